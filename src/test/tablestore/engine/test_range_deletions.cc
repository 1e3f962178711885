// Ranges of rows that are erased: row by row in the table, where they have few rows that can be
// read.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

class RangeDeletionTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    options.delete_range_threshold = 4;
    options.table_options = "disable_auto_compactions=true;compression=kNoCompression";
    ASSERT_NO_FATAL_FAILURE(format());
    ASSERT_NO_FATAL_FAILURE(open());
  }
  static std::string key(int i) {
    char name[16];
    std::snprintf(name, sizeof(name), "k%06d", i);
    return name;
  }
  void put(int from, int to, size_t bytes = 10) {
    auto txn = std::make_shared<Txn>();
    for (int i = from; i < to; ++i) txn->put(Family::omap, key(i), std::string(bytes, 'v'));
    commit(txn);
  }
  void erase(int from, int to) {
    auto txn = std::make_shared<Txn>();
    for (int i = from; i < to; ++i) txn->erase(Family::omap, key(i));
    commit(txn);
  }
  void erase_range(int from, int to) {
    auto txn = std::make_shared<Txn>();
    txn->erase_range(Family::omap, key(from), key(to));
    commit(txn);
  }
  // Listed ranges, their rows in the table, and deletions of ranges: since the store was opened.
  std::array<uint64_t, 3> counted() {
    const Counters& c = engine->counters();
    return {c.listed_ranges, c.listed_rows, c.range_deletions};
  }
  using Counted = std::array<uint64_t, 3>;
  std::vector<std::string> keys() {
    std::vector<std::string> found;
    auto it = engine->iterate(Family::omap, "", "");
    for (it->seek_to_first(); it->valid(); it->next()) found.emplace_back(it->key());
    EXPECT_TRUE(it->status().ok()) << it->status().what();
    return found;
  }
};

TEST_F(RangeDeletionTest, FewRowsAreErasedOneByOne) {
  put(0, 5);
  ASSERT_TRUE(engine->checkpoint().ok());
  erase_range(1, 4);
  EXPECT_EQ(counted(), (Counted{1, 3, 0}));
  EXPECT_EQ(keys(), (std::vector{key(0), key(4)}));
  ASSERT_NO_FATAL_FAILURE(close_and_open());
  EXPECT_EQ(keys(), (std::vector{key(0), key(4)}));
}

TEST_F(RangeDeletionTest, ManyRowsAreErasedAsARange) {
  put(0, 6);
  erase_range(1, 5);
  EXPECT_EQ(counted(), (Counted{0, 0, 1}));
  EXPECT_EQ(keys(), (std::vector{key(0), key(5)}));
}

TEST_F(RangeDeletionTest, OneThatHasNoRowsLeavesNothing) {
  put(0, 1);
  erase_range(1, 5);
  EXPECT_EQ(counted(), (Counted{1, 0, 0}));
}

TEST_F(RangeDeletionTest, TheRowsOfItsOwnTransactionAreNotCounted) {
  auto txn = std::make_shared<Txn>();
  for (int i = 0; i < 10; ++i) txn->put(Family::omap, key(i), "v");
  txn->erase_range(Family::omap, key(0), key(9));
  txn->put(Family::omap, key(3), "later");
  commit(txn);
  EXPECT_EQ(counted(), (Counted{1, 0, 0}));
  EXPECT_EQ(keys(), (std::vector{key(3), key(9)}));
}

TEST_F(RangeDeletionTest, ARecoveryDoesTheSame) {
  put(0, 5);
  ASSERT_TRUE(engine->checkpoint().ok());
  erase_range(1, 4);
  put(2, 3);
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  EXPECT_EQ(counted(), (Counted{1, 2, 0}));  // the third is put in the same batch
  EXPECT_EQ(keys(), (std::vector{key(0), key(2), key(4)}));
}

TEST_F(RangeDeletionTest, RowsThatCannotBeReadAreErasedAsARange) {
  put(0, 3, 100'000);
  ASSERT_TRUE(engine->close().ok());
  engine.reset();
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/table")) {
    if (entry.path().extension() != ".sst" || entry.file_size() < 300'000) continue;
    std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(150'000);  // of the second row
    file.put('x');
  }
  ASSERT_NO_FATAL_FAILURE(open());
  std::string value;
  ASSERT_EQ(engine->get(Family::omap, key(1), &value).status().code(), EIO);
  erase_range(0, 3);
  EXPECT_EQ(counted(), (Counted{0, 0, 1}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get(Family::omap, key(i)), std::nullopt) << i;
}

TEST_F(RangeDeletionTest, NoLongRowOfErasedOnesIsPassed) {
  constexpr int batch = 10'000;
  for (int i = 0; i < 70'000; i += batch) {
    put(i, i + batch);
    erase(i, i + batch);
  }
  erase_range(0, 30'000);
  EXPECT_EQ(counted(), (Counted{1, 0, 0}));
  erase_range(0, 70'000);
  EXPECT_EQ(counted(), (Counted{1, 0, 1}));
}

}  // namespace
}  // namespace tablestore
