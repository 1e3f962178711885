// Rows that are erased in masses: a compaction drops them, and reads do not pass them for long.
#include <chrono>
#include <cstdio>
#include <thread>

#include "os/tablestore/engine/table/engine_rows.h"
#include "rocksdb/perf_context.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

class CompactOnDeletionTest : public EngineFixture {
 protected:
  static constexpr unsigned rows = 2000;

  void SetUp() override {
    EngineFixture::SetUp();
    options.compact_on_deletion_window = 1000;
    options.compact_on_deletion_trigger = 500;
    ASSERT_NO_FATAL_FAILURE(format());
    ASSERT_NO_FATAL_FAILURE(open());
  }
  void reopen() {
    engine.reset();
    ASSERT_NO_FATAL_FAILURE(open());
  }
  static std::string key(unsigned i) {
    char text[16];
    std::snprintf(text, sizeof(text), "k%08u", i);
    return text;
  }
  void put_all(Family family) {
    auto put = std::make_shared<Txn>();
    for (unsigned i = 0; i < rows; ++i) put->put(family, key(i), "value");
    commit(put);
    ASSERT_TRUE(engine->checkpoint().ok());
    ASSERT_TRUE(engine->compact().ok());
  }
  // Of each hundred rows the last `erased`.
  void erase_of_each_hundred(Family family, unsigned erased) {
    auto erase = std::make_shared<Txn>();
    for (unsigned i = 0; i < rows; ++i)
      if (i % 100 >= 100 - erased) erase->erase(family, key(i));
    commit(erase);
  }
  // Erasures, by a reader of all rows.
  uint64_t passed(Family family) {
    rocksdb::get_perf_context()->Reset();
    auto it = engine->iterate(family, "a", "z");
    for (it->seek_to_first(); it->valid(); it->next()) {
    }
    EXPECT_TRUE(it->status().ok()) << it->status().what();
    return rocksdb::get_perf_context()->internal_delete_skipped_count;
  }
  template <typename Condition>
  static bool is_soon(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  void expect_that_none_is_passed_soon(Family family) {
    ASSERT_TRUE(is_soon([&] { return passed(family) == 0; })) << passed(family);
  }
};

TEST_F(CompactOnDeletionTest, ErasedRowsAreDroppedSoon) {
  options.compact_on_passing = 0;
  reopen();
  for (const Family family : {Family::omap, Family::object}) {
    ASSERT_NO_FATAL_FAILURE(put_all(family));
    ASSERT_NO_FATAL_FAILURE(erase_of_each_hundred(family, 99));
    ASSERT_TRUE(engine->checkpoint().ok());
    ASSERT_NO_FATAL_FAILURE(expect_that_none_is_passed_soon(family));
  }
  EXPECT_EQ(engine->counters().passed_ranges, 0u);
}

// Nobody flushes them, and no file has enough of them.
TEST_F(CompactOnDeletionTest, ErasedRowsThatReadersPassAreDroppedSoon) {
  options.compact_on_deletion_window = options.compact_on_deletion_trigger = 1 << 20;
  for (const Family family : {Family::omap, Family::object}) {
    reopen();
    ASSERT_NO_FATAL_FAILURE(put_all(family));
    ASSERT_NO_FATAL_FAILURE(erase_of_each_hundred(family, 60));
    EXPECT_EQ(passed(family), uint64_t(rows / 10 * 6));
    ASSERT_NO_FATAL_FAILURE(expect_that_none_is_passed_soon(family));
    EXPECT_TRUE(is_soon([&] { return engine->counters().passed_ranges > 0; }));
  }
}

// A flush does not drop them, nor does a compaction that has nothing to merge them with.
TEST_F(CompactOnDeletionTest, ErasedRowsOfATableThatHasNothingElseAreDroppedSoon) {
  options.compact_on_deletion_window = options.compact_on_deletion_trigger = 1 << 20;
  reopen();
  auto put = std::make_shared<Txn>();
  for (unsigned i = 0; i < rows; ++i) put->put(Family::omap, key(i), "value");
  commit(put);
  ASSERT_NO_FATAL_FAILURE(erase_of_each_hundred(Family::omap, 100));
  ASSERT_TRUE(engine->checkpoint().ok());
  ASSERT_TRUE(engine->compact().ok());
  expect_that_none_is_passed_soon(Family::omap);
}

// A recovery reads the rows of allocation maps before the work begins.
TEST_F(CompactOnDeletionTest, ARecoveryIsAReader) {
  auto erase = std::make_shared<Txn>();
  for (uint32_t chunk = 0; chunk < 600; ++chunk)
    erase->erase(Family::super, engine_rows::allocation(1000, chunk));
  commit(erase);
  ASSERT_TRUE(engine->close().ok());
  reopen();
  EXPECT_TRUE(is_soon([&] { return engine->counters().passed_ranges > 0; }));
}

// Readers that are there while it is done, and one that comes later.
TEST_F(CompactOnDeletionTest, ReadersAreHeardAgain) {
  options.compact_on_deletion_window = options.compact_on_deletion_trigger = 1 << 20;
  reopen();
  for (int round = 1; round <= 2; ++round) {
    ASSERT_NO_FATAL_FAILURE(put_all(Family::omap));
    ASSERT_NO_FATAL_FAILURE(erase_of_each_hundred(Family::omap, 90));
    ASSERT_NO_FATAL_FAILURE(expect_that_none_is_passed_soon(Family::omap));
  }
  EXPECT_TRUE(is_soon([&] { return engine->counters().passed_ranges > 1; }));
}

TEST_F(CompactOnDeletionTest, FewerErasedRowsThanOthersAreLeftAsTheyAre) {
  ASSERT_NO_FATAL_FAILURE(put_all(Family::omap));
  ASSERT_NO_FATAL_FAILURE(erase_of_each_hundred(Family::omap, 40));
  for (int n = 0; n < 10; ++n) {
    EXPECT_EQ(passed(Family::omap), uint64_t(rows / 10 * 4));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(engine->counters().passed_ranges, 0u);
}

}  // namespace
}  // namespace tablestore
