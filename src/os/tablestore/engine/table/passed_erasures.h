// Where readers had to pass many rows that were erased.
//
// An erased row costs every reader of a range around it until a compaction drops it. RocksDB's
// CompactOnDeletionCollector goes by what is in a file when it is written: nobody flushes a
// memtable for its erasures, and nobody finds those that are few in each file. Readers find them.
// The idea is that of memtable_op_scan_flush_trigger in later versions of RocksDB, which flushes
// but does not compact.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "os/tablestore/engine/table/rows.h"

namespace tablestore {

struct PassedRange {
  Family family;
  std::string first, last;  // an empty last: to the end

  bool is_within(const PassedRange& other) const {
    return family == other.family && first >= other.first &&
           (other.last.empty() || (!last.empty() && last <= other.last));
  }
  bool is_within_one_of(const std::vector<PassedRange>& others) const {
    return std::ranges::any_of(others,
                               [this](const PassedRange& other) { return is_within(other); });
  }
};

// Thread-safe.
class PassedErasures {
 public:
  // Called where there was nothing to take, in a reader's thread. Before anybody reads.
  void on_first(std::function<void()> told) { told_ = std::move(told); }

  void tell(PassedRange range) {
    bool is_first = false;
    {
      std::lock_guard lock(mutex_);
      if (range.is_within_one_of(ranges_)) return;
      is_first = ranges_.empty();
      // A reader that goes on tells of more and more.
      std::erase_if(ranges_, [&range](const PassedRange& each) { return each.is_within(range); });
      if (ranges_.size() < ranges_max)  // who is not heard comes again
        ranges_.push_back(std::move(range));
    }
    if (is_first && told_) told_();
  }
  std::vector<PassedRange> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(ranges_, {});
  }

 private:
  static constexpr size_t ranges_max = 64;
  std::mutex mutex_;
  std::vector<PassedRange> ranges_;
  std::function<void()> told_;
};

}  // namespace tablestore
