// Compacts where readers had to pass many rows that were erased (PassedErasures).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/table/table.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

// The work "compact_passed". It begins soon after a reader has told, and rests then, for twenty
// times as long as that has taken, and ten seconds at least: readers may pass what others erase all
// the time. Where they do, the least rest gets longer: each time is a flush of all that is in
// memory, and four small files of level 0 are a compaction of their family.
//
// `mutex_` guards what the table's readers and the destructor tell the work.
class PassedCompaction {
 public:
  // Where `space_is_scarce` nothing is compacted for readers: Erasures looks after that.
  PassedCompaction(Threads& threads, Table& table, Counters& counters,
                   std::function<bool()> space_is_scarce);
  // Waits until a compaction that is under way has ended: after cancel(), and after
  // Table::end_background() where it may have to wait for others'.
  ~PassedCompaction();
  void start();
  // It ends soon, and nothing is begun any more.
  void cancel();

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  bool step();
  // As far as it can be begun until then; returns what is compacted.
  std::vector<PassedRange> compact(std::vector<PassedRange> told, Clock::time_point end);
  void drop_told_within(const std::vector<PassedRange>& compacted);

  Threads& threads_;
  Table& table_;
  Counters& counters_;
  const std::function<bool()> space_is_scarce_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool told_ = true;   // recovery reads, too
  std::atomic<bool> stopping_{false};
  std::unique_ptr<Worker> worker_;
};

}  // namespace tablestore
