#include <gtest/gtest.h>

#include "os/tablestore/engine/table/counter_merge.h"
#include "os/tablestore/engine/table/rows.h"
#include "rocksdb/db.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/write_batch.h"

namespace tablestore {
namespace {

// Writes every record of a batch down.
class Scribe : public rocksdb::WriteBatch::Handler {
 public:
  std::string text;
  rocksdb::Status note(const char* what, uint32_t family, const rocksdb::Slice& a,
                       const rocksdb::Slice& b) {
    text += std::string(what) + std::to_string(family) + "[" + a.ToString() + "," +
            std::to_string(b.size()) + ":" + b.ToString().substr(0, 8) + "]";
    return rocksdb::Status::OK();
  }
  rocksdb::Status PutCF(uint32_t f, const rocksdb::Slice& k, const rocksdb::Slice& v) override {
    return note("put", f, k, v);
  }
  rocksdb::Status DeleteCF(uint32_t f, const rocksdb::Slice& k) override {
    return note("erase", f, k, {});
  }
  rocksdb::Status DeleteRangeCF(uint32_t f, const rocksdb::Slice& a,
                                const rocksdb::Slice& b) override {
    return note("range", f, a, b);
  }
  rocksdb::Status MergeCF(uint32_t f, const rocksdb::Slice& k, const rocksdb::Slice& v) override {
    return note("merge", f, k, v);
  }
};

TEST(Rows, AreReadBackByRocksDB) {
  const std::string large(300, 'x');
  std::string rows;
  RowWriter w(rows);
  w.put(Family::super, "a", "1");
  w.put(Family::object, "b", large);
  w.put(Family::omap, large, "");
  w.erase(Family::super, "c");
  w.erase(Family::data, "d");
  w.erase_range(Family::super, "e", "f");
  w.erase_range(Family::omap, "g", "h");
  w.merge(Family::super, "i", "12345678");
  RowBatch batch;
  batch.append(8, rows);
  EXPECT_EQ(batch.count(), 8u);
  rocksdb::WriteBatch parsed(batch.take());
  EXPECT_EQ(parsed.Count(), 8u);
  Scribe scribe;
  ASSERT_TRUE(parsed.Iterate(&scribe).ok());
  EXPECT_EQ(scribe.text, "put0[a,1:1]put1[b,300:xxxxxxxx]put3[" + large +
                             ",0:]erase0[c,0:]erase2[d,0:]range0[e,1:f]range3[g,1:h]"
                             "merge0[i,8:12345678]");
}

std::string written(void (*write)(RowWriter&)) {
  std::string rows;
  RowWriter writer(rows);
  write(writer);
  return rows;
}

TEST(Rows, WhatRowWriterMakesIsSound) {
  const std::string rows = written([](RowWriter& w) {
    w.put(Family::super, "a", std::string(300, 'x'));
    w.put(Family::omap, "", "");
    w.erase(Family::super, "c");
    w.erase(Family::data, "d");
    w.erase_range(Family::super, "e", "e");
    w.erase_range(Family::omap, "g", "h");
    w.merge(Family::super, "i", "1234567812345678");
  });
  EXPECT_TRUE(rows_are_sound(7, rows));
  EXPECT_FALSE(rows_are_sound(6, rows));
  EXPECT_FALSE(rows_are_sound(8, rows));
  for (size_t bytes = 0; bytes < rows.size(); ++bytes)
    EXPECT_FALSE(rows_are_sound(7, rows.substr(0, bytes))) << bytes;
  EXPECT_TRUE(rows_are_sound(0, ""));
}

TEST(Rows, WhatItDoesNotMakeIsNot) {
  const std::string not_counters =
      written([](RowWriter& w) { w.merge(Family::super, "k", "odd"); });
  const std::string no_merging =
      written([](RowWriter& w) { w.merge(Family::omap, "k", "12345678"); });
  const std::string backwards =
      written([](RowWriter& w) { w.erase_range(Family::omap, "z", "a"); });
  const std::string no_family =
      written([](RowWriter& w) { w.put(Family(families), "key", "value"); });
  const std::string endless_length = "\x01\xff\xff\xff\xff\xff\x0f" + std::string(100, 'x');
  const std::string too_long = "\x01\xff\xff\xff\xff\x0fx";
  const std::string of_transactions("\x0a" "1", 2);  // RocksDB's, of two phases
  for (const std::string& rows : {not_counters, no_merging, backwards, no_family, endless_length,
                                  too_long, of_transactions})
    EXPECT_FALSE(rows_are_sound(1, rows));
}

TEST(Rows, ABatchIsEmptyAfterTake) {
  RowBatch batch;
  std::string rows;
  RowWriter(rows).put(Family::super, "a", "1");
  batch.append(1, rows);
  batch.take();
  EXPECT_EQ(batch.count(), 0u);
  rocksdb::WriteBatch parsed(batch.take());
  EXPECT_EQ(parsed.Count(), 0);
}

std::string counters(std::initializer_list<int64_t> values) {
  std::string s;
  for (int64_t v : values) s.append(reinterpret_cast<const char*>(&v), sizeof(v));
  return s;
}

TEST(CounterMerge, AddsAndKeepsTheLongerRow) {
  auto merge = std::static_pointer_cast<rocksdb::AssociativeMergeOperator>(make_counter_merge());
  std::string sum;
  const std::string a = counters({1, -2}), b = counters({10, 20, 30});
  const rocksdb::Slice existing(a);
  ASSERT_TRUE(merge->Merge("k", &existing, b, &sum, nullptr));
  EXPECT_EQ(sum, counters({11, 18, 30}));
  const rocksdb::Slice longer(b);
  ASSERT_TRUE(merge->Merge("k", &longer, a, &sum, nullptr));
  EXPECT_EQ(sum, counters({11, 18, 30}));
  ASSERT_TRUE(merge->Merge("k", nullptr, a, &sum, nullptr));
  EXPECT_EQ(sum, a);
  EXPECT_FALSE(merge->Merge("k", nullptr, "odd", &sum, nullptr));
}

TEST(CounterMerge, DamagedCountersWrapAround) {
  auto merge = std::static_pointer_cast<rocksdb::AssociativeMergeOperator>(make_counter_merge());
  std::string sum;
  const std::string most = counters({INT64_MAX});
  const rocksdb::Slice existing(most);
  ASSERT_TRUE(merge->Merge("k", &existing, counters({1}), &sum, nullptr));
  EXPECT_EQ(sum, counters({INT64_MIN}));
}

}  // namespace
}  // namespace tablestore
