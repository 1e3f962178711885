// Rows of one family, as RocksDB's iterator has them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/engine/table/passed_erasures.h"
#include "os/tablestore/engine/table/rocksdb_status.h"
#include "os/tablestore/engine/table/slice.h"
#include "os/tablestore/engine/table/table.h"
#include "os/tablestore/engine/table/table_damage.h"
#include "rocksdb/db.h"
#include "rocksdb/perf_context.h"

namespace tablestore {

// RocksDB counts them by thread.
inline uint64_t passed_by_this_thread() {
  return rocksdb::get_perf_context()->internal_delete_skipped_count;
}

class TableIterator : public RowIterator {
 public:
  struct Parts {
    rocksdb::DB& db;
    TableDamage& damage;
    PassedErasures& passed;
    uint64_t tell_from;  // so many erased rows on; 0: nobody is told
    const ReadRetries& retries;
  };
  TableIterator(const Parts& parts, Family family, rocksdb::ColumnFamilyHandle* handle,
                std::string_view lower, std::string_view upper, AtDamage at_damage)
      : parts_(parts),
        family_(family),
        handle_(handle),
        lower_(lower),
        upper_(upper),
        lower_slice_(lower_),
        upper_slice_(upper_),
        sequence_(parts.db.GetLatestSequenceNumber()) {
    if (!lower_.empty()) options_.iterate_lower_bound = &lower_slice_;
    if (!upper_.empty()) options_.iterate_upper_bound = &upper_slice_;
    options_.step_over_damage = at_damage == AtDamage::step_over;
    iterator_.reset(parts_.db.NewIterator(options_, handle));
  }
  void seek(std::string_view key) override {
    passed_count_ = told_count_ = 0;
    counted(key, [&] {
      iterator_->Seek(slice(key));
      if (failed()) try_again([&] { iterator_->Seek(slice(key)); });
    });
  }
  void seek_to_first() override {
    passed_count_ = told_count_ = 0;
    counted(lower_, [&] {
      iterator_->SeekToFirst();
      if (failed()) try_again([&] { iterator_->SeekToFirst(); });
    });
  }
  bool valid() const override { return iterator_->Valid(); }
  void next() override {
    last_ = key();
    counted(last_, [&] {
      iterator_->Next();
      if (failed())
        try_again([&] {
          iterator_->Seek(last_);
          if (iterator_->Valid() && key() == last_) iterator_->Next();
        });
    });
  }
  std::string_view key() const override { return iterator_->key().ToStringView(); }
  std::string_view value() const override { return iterator_->value().ToStringView(); }
  Status status() const override { return to_status(iterator_->status(), "iterate"); }

 private:
  bool failed() const { return !iterator_->Valid() && !iterator_->status().ok(); }
  // A step from `from` on. What it passed is told of where there is more of it than there are rows
  // that the reader wanted: a compaction is not worth it for less.
  template <typename Step>
  void counted(std::string_view from, Step step) {
    const uint64_t before = passed_by_this_thread();
    step();
    const uint64_t count = passed_by_this_thread() - before;
    ++found_count_;
    if (count > 0 && passed_count_ == 0) {
      passed_from_ = from;
      found_count_ = 1;
    }
    passed_count_ += count;
    if (passed_count_ < found_count_) passed_count_ = told_count_ = 0;
    if (parts_.tell_from == 0 || passed_count_ < told_count_ + parts_.tell_from || failed()) return;
    parts_.passed.tell({family_, passed_from_, valid() ? std::string(key()) : upper_});
    told_count_ = passed_count_;
  }
  // As get() does. A file that cannot be opened is stepped over once it is known to be damaged.
  void try_again(const std::function<void()>& position) {
    rocksdb::Status error;
    const unsigned retries = parts_.retries.max();
    bool is_sound = false;
    for (unsigned tried = 0; failed() && (tried < retries || tried == 0);) {
      error = iterator_->status();
      const uint64_t known = parts_.damage.files();
      is_sound = parts_.damage.met(parts_.db, error);
      if (is_sound ? retries == 0 : !options_.step_over_damage) return;
      if (is_sound) position();
      if (failed() && (options_.step_over_damage || is_of_the_same_moment())) {
        iterator_.reset(parts_.db.NewIterator(options_, handle_));
        position();
      }
      if (parts_.damage.files() == known) ++tried;
    }
    if (failed() || error.ok()) return;
    parts_.damage.passed(error);
    if (is_sound) parts_.retries.helped("table: " + error.ToString());
  }
  // RocksDB's iterator may keep what it has met, so that only another one reads again. That one
  // must not show what was written since, beside rows that were read before.
  bool is_of_the_same_moment() const {
    return last_.empty() || parts_.db.GetLatestSequenceNumber() == sequence_;
  }
  const Parts parts_;
  const Family family_;
  rocksdb::ColumnFamilyHandle* const handle_;
  rocksdb::ReadOptions options_;
  const std::string lower_, upper_;
  const rocksdb::Slice lower_slice_, upper_slice_;
  const rocksdb::SequenceNumber sequence_;  // before the iterator was made
  std::string last_;                        // the key that was left last
  std::string passed_from_;                 // where the first of passed_count_ begins
  uint64_t passed_count_ = 0;
  uint64_t told_count_ = 0;                 // of these
  uint64_t found_count_ = 0;                // since then
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

}  // namespace tablestore
