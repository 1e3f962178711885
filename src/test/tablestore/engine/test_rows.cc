#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "os/tablestore/engine/table/counter_merge.h"
#include "os/tablestore/engine/table/row_combiner.h"
#include "os/tablestore/engine/table/rows.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/write_batch.h"
#include "test/tablestore/engine/test_directory.h"

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

std::string scribed(std::string batch) {
  Scribe scribe;
  EXPECT_TRUE(rocksdb::WriteBatch(std::move(batch)).Iterate(&scribe).ok());
  return scribe.text;
}

// No range can be listed.
bool list_none(const Row&, CountedRows*) { return false; }

std::string combined(uint32_t count, const std::string& rows, uint64_t* left_out) {
  RowCombiner combiner(list_none);
  combiner.append(count, rows);
  Counters counters;
  const std::string text = scribed(combiner.take(counters));
  *left_out = counters.rows_left_out;
  return text;
}

TEST(RowCombiner, OnlyTheLastRowOfAKeyIsLeft) {
  const std::string rows = written([](RowWriter& w) {
    w.put(Family::super, "a", "1");
    w.put(Family::omap, "a", "2");
    w.erase(Family::super, "a");
    w.put(Family::omap, "b", "3");
    w.put(Family::super, "a", "4");
    w.erase(Family::omap, "b");
  });
  uint64_t left_out = 0;
  EXPECT_EQ(combined(6, rows, &left_out), "put0[a,1:4]put3[a,1:2]erase3[b,0:]");
  EXPECT_EQ(left_out, 3u);
}

TEST(RowCombiner, TheRestIsSortedByKey) {
  const std::string rows = written([](RowWriter& w) {
    w.put(Family::omap, "c", "1");
    w.put(Family::object, "d", "2");
    w.put(Family::omap, "a", "3");
    w.erase_range(Family::omap, "x", "z");
    w.put(Family::omap, "b", "4");
    w.put(Family::omap, "a", "5");
  });
  uint64_t left_out = 0;
  EXPECT_EQ(combined(6, rows, &left_out),
            "put1[d,1:2]put3[c,1:1]range3[x,1:z]put3[a,1:5]put3[b,1:4]");
}

TEST(RowCombiner, ARangeThatIsErasedStays) {
  const std::string rows = written([](RowWriter& w) {
    w.put(Family::omap, "k", "1");
    w.put(Family::omap, "l", "2");
    w.erase_range(Family::omap, "k", "z");
    w.put(Family::omap, "k", "3");
  });
  uint64_t left_out = 0;
  EXPECT_EQ(combined(4, rows, &left_out), "put3[l,1:2]range3[k,1:z]put3[k,1:3]");
  EXPECT_EQ(left_out, 1u);
}

// Combines rows where the table has those of Family::omap with these keys.
class ListedRanges : public testing::Test {
 protected:
  std::string combined(void (*write)(RowWriter&)) {
    const std::string rows = written(write);
    uint32_t count = 0;
    Row row;
    for (RowReader reader(rows); reader.next(&row);) ++count;
    combiner.append(count, rows);
    return scribed(combiner.take(counters));
  }
  bool list(const Row& range, CountedRows* erasures) {
    ++lists;
    if (too_many) return false;
    for (const char* key : {"b", "d", "f"})
      if (key >= range.key && key < range.value) {
        RowWriter(erasures->rows).erase(range.family, key);
        ++erasures->count;
      }
    return true;
  }
  bool too_many = false;
  unsigned lists = 0;
  Counters counters;
  RowCombiner combiner{
      [this](const Row& range, CountedRows* erasures) { return list(range, erasures); }};
};

TEST_F(ListedRanges, AreErasedRowByRow) {
  EXPECT_EQ(combined([](RowWriter& w) {
              w.put(Family::omap, "a", "1");
              w.erase_range(Family::omap, "b", "f");
            }),
            "erase3[b,0:]erase3[d,0:]put3[a,1:1]");
  EXPECT_EQ(counters.listed_ranges, 1u);
  EXPECT_EQ(counters.listed_rows, 2u);
  EXPECT_EQ(counters.range_deletions, 0u);
  EXPECT_EQ(counters.rows_left_out, 0u);
}

TEST_F(ListedRanges, TakeTheRowsThatTheBatchHasOfThemBefore) {
  EXPECT_EQ(combined([](RowWriter& w) {
              w.put(Family::omap, "c", "not in the table");
              w.put(Family::omap, "d", "in the table");
              w.put(Family::object, "c", "of another family");
              w.put(Family::omap, "f", "behind the range");
              w.erase_range(Family::omap, "b", "f");
            }),
            "erase3[b,0:]put1[c,17:of anoth]erase3[c,0:]erase3[d,0:]put3[f,16:behind t]");
  EXPECT_EQ(counters.listed_rows, 1u);
}

TEST_F(ListedRanges, LeaveTheRowsThatTheBatchHasOfThemLater) {
  EXPECT_EQ(combined([](RowWriter& w) {
              w.put(Family::omap, "c", "1");
              w.erase_range(Family::omap, "a", "z");
              w.put(Family::omap, "c", "2");
              w.put(Family::omap, "d", "3");
            }),
            "erase3[b,0:]erase3[f,0:]put3[c,1:2]put3[d,1:3]");
  EXPECT_EQ(counters.rows_left_out, 1u);
}

TEST_F(ListedRanges, AreNotListedWhereALaterOneHasAllOfThem) {
  EXPECT_EQ(combined([](RowWriter& w) {
              w.erase_range(Family::omap, "b", "e");
              w.put(Family::omap, "b", "1");
              w.erase_range(Family::omap, "a", "z");
            }),
            "erase3[d,0:]erase3[f,0:]erase3[b,0:]");
  EXPECT_EQ(lists, 1u);
  EXPECT_EQ(counters.rows_left_out, 1u);
}

TEST_F(ListedRanges, StayOneWhereTheyCannotBeListed) {
  too_many = true;
  EXPECT_EQ(combined([](RowWriter& w) {
              w.put(Family::omap, "c", "1");
              w.erase_range(Family::omap, "b", "f");
              w.put(Family::omap, "d", "2");
            }),
            "put3[c,1:1]range3[b,1:f]put3[d,1:2]");
  EXPECT_EQ(counters.range_deletions, 1u);
  EXPECT_EQ(counters.listed_ranges, 0u);
}

TEST_F(ListedRanges, AreNoneOfRowsThatAreMerged) {
  EXPECT_EQ(combined([](RowWriter& w) { w.erase_range(Family::super, "b", "f"); }),
            "range0[b,1:f]");
  EXPECT_EQ(lists, 0u);
  EXPECT_EQ(counters.range_deletions, 0u);
}

TEST_F(ListedRanges, OfOneBatchAreNothingToTheNext) {
  combined([](RowWriter& w) { w.erase_range(Family::omap, "a", "z"); });
  EXPECT_EQ(combined([](RowWriter& w) { w.put(Family::omap, "b", "1"); }), "put3[b,1:1]");
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

std::string counter(int64_t value) { return counters({value}); }

TEST(RowCombiner, OperandsAreAddedUp) {
  std::string rows;
  RowWriter w(rows);
  for (int64_t i = 1; i <= 4; ++i) w.merge(Family::super, "k", counter(i));
  RowCombiner combiner(list_none);
  combiner.append(4, rows);
  Counters counted;
  const std::string batch = combiner.take(counted);
  std::string expected;
  RowWriter(expected).merge(Family::super, "k", counter(10));
  EXPECT_EQ(batch.substr(12), expected);
  EXPECT_EQ(counted.rows_left_out, 3u);
}

TEST(RowCombiner, OperandsAreNotAddedAcrossWhatErasesThem) {
  std::string rows;
  RowWriter w(rows);
  w.merge(Family::super, "a", counter(1));
  w.merge(Family::super, "b", counter(1));
  w.erase_range(Family::super, "a", "z");
  w.merge(Family::super, "a", counter(2));
  w.put(Family::super, "b", counter(5));
  w.merge(Family::super, "b", counter(3));
  RowCombiner combiner(list_none);
  combiner.append(6, rows);
  Counters counted;
  rocksdb::WriteBatch batch(combiner.take(counted));
  EXPECT_EQ(batch.Count(), 5);
  EXPECT_EQ(counted.rows_left_out, 1u);  // b's first operand: the put replaces it
}

// What a table holds after random rows is what it holds after the same rows, combined. Of ranges
// those with few rows are listed.
TEST(RowCombiner, ATableCannotTellTheDifference) {
  const TestDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = options.create_missing_column_families = true;
  options.merge_operator = make_counter_merge();
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const char* name : {"default", "1", "2", "3"}) descriptors.emplace_back(name, options);
  struct Database {
    std::unique_ptr<rocksdb::DB> db;
    std::vector<rocksdb::ColumnFamilyHandle*> families;
    std::string content() {
      std::string all;
      for (auto* family : families) {
        std::unique_ptr<rocksdb::Iterator> i(db->NewIterator({}, family));
        for (i->SeekToFirst(); i->Valid(); i->Next())
          all += family->GetName() + i->key().ToString() + "=" + i->value().ToString() + ";";
        EXPECT_TRUE(i->status().ok()) << i->status().ToString();
      }
      return all;
    }
    ~Database() {
      for (auto* family : families) db->DestroyColumnFamilyHandle(family);
    }
  } plain, combined;
  for (auto [database, name] : {std::pair(&plain, "/plain"), std::pair(&combined, "/combined")}) {
    rocksdb::DB* db = nullptr;
    const auto s = rocksdb::DB::Open(options, directory.path() + name, descriptors,
                                     &database->families, &db);
    ASSERT_TRUE(s.ok()) << s.ToString();
    database->db.reset(db);
  }
  std::mt19937_64 random(20261122);
  Counters counted;
  RowCombiner combiner([&](const Row& range, CountedRows* erasures) {
    const size_t before = erasures->rows.size();
    const uint32_t max = erasures->count + 2;
    std::unique_ptr<rocksdb::Iterator> i(
        combined.db->NewIterator({}, combined.families[size_t(range.family)]));
    for (i->Seek(range.key); i->Valid() && i->key().compare(range.value) < 0; i->Next()) {
      if (erasures->count == max) {
        erasures->count -= 2;
        erasures->rows.resize(before);
        return false;
      }
      RowWriter(erasures->rows).erase(range.family, i->key().ToStringView());
      ++erasures->count;
    }
    return true;
  });
  for (int round = 0; round < 2000; ++round) {
    RowBatch batch;
    std::deque<std::string> transactions;
    for (int txn = 0; txn < 4; ++txn) {
      std::string& rows = transactions.emplace_back();
      RowWriter w(rows);
      uint32_t count = 0;
      for (uint64_t n = random() % 6; n > 0; --n, ++count) {
        const auto family = Family(random() % families);
        std::string key(1, char('a' + random() % 6)), end(1, char('a' + random() % 6));
        if (end < key) std::swap(key, end);
        switch (random() % 6) {
          case 0: w.erase(family, key); break;
          case 1: w.erase_range(family, key, end); break;
          case 2: case 3: w.merge(Family::super, key, counter(int64_t(random()))); break;
          default: w.put(family, key, counter(int64_t(random()))); break;
        }
      }
      batch.append(count, rows);
      combiner.append(count, rows);
    }
    const uint64_t accounted = counted.rows_left_out + counted.listed_ranges - counted.listed_rows;
    rocksdb::WriteBatch all(batch.take()), fewer(combiner.take(counted));
    EXPECT_EQ(all.Count(), fewer.Count() + counted.rows_left_out + counted.listed_ranges -
                               counted.listed_rows - accounted);
    rocksdb::WriteOptions no_log;
    no_log.disableWAL = true;
    ASSERT_TRUE(plain.db->Write(no_log, &all).ok());
    ASSERT_TRUE(combined.db->Write(no_log, &fewer).ok());
    ASSERT_EQ(plain.content(), combined.content()) << "round " << round;
  }
  EXPECT_GT(counted.rows_left_out, 2000u);
  EXPECT_GT(counted.listed_rows, 200u);
  EXPECT_GT(counted.range_deletions, 100u);
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
