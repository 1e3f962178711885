// What an engine holds in memory: within bounds that do not grow with what is stored.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "rocksdb/cache.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

constexpr uint64_t mib = 1 << 20;

class MemoryTest : public EngineFixture {
 protected:
  // Rows of `bytes` in all, in turn of all families that callers use; `seed` tells values apart.
  std::shared_ptr<Txn> rows(unsigned first, unsigned count, uint64_t bytes, char seed) {
    static constexpr Family family[] = {Family::object, Family::data, Family::omap};
    auto txn = std::make_shared<Txn>();
    for (unsigned i = first; i < first + count; ++i)
      txn->put(family[i % 3], key(i), value(i, bytes / count, seed));
    return txn;
  }
  static std::string key(unsigned i) { return "key" + std::to_string(i); }
  static std::string value(unsigned i, uint64_t bytes, char seed) {
    return std::string(bytes, char(seed + i % 17));
  }
};

// Whatever families rows are of. Three take as much each, so a bound of each would be thrice this.
TEST_F(MemoryTest, MemtablesKeepToOneBound) {
  options.memtable_bytes = 8 * mib;
  options.log_bytes = 128 * mib;
  ASSERT_NO_FATAL_FAILURE(format());
  ASSERT_NO_FATAL_FAILURE(open());
  uint64_t most = 0;
  constexpr unsigned rows_each = 30;
  for (unsigned i = 0; i < 300; ++i) {
    commit(rows(i * rows_each, rows_each, mib / 4, 'a'));
    most = std::max(most, engine->memory().memtable_bytes);
  }
  EXPECT_GT(most, options.memtable_bytes / 2);
  EXPECT_LE(most, 2 * options.memtable_bytes + 2 * mib);  // a block each of what is flushed
  for (unsigned i = 0; i < 300 * rows_each; i += 97)
    ASSERT_EQ(get(std::array{Family::object, Family::data, Family::omap}[i % 3], key(i)),
              value(i, mib / 4 / rows_each, 'a'));
}

TEST_F(MemoryTest, SmallMemtablesOfAllFamiliesAreNotFlushedAtOnce) {
  options.memtable_bytes = mib;
  ASSERT_NO_FATAL_FAILURE(format());
  ASSERT_NO_FATAL_FAILURE(open());
  auto flushed = [this] {
    for (const auto& [name, value] : engine->statistics())
      if (name == "table_flushed_bytes") return value;
    return uint64_t(0);
  };
  const uint64_t before = flushed();
  for (unsigned i = 0; i < 100; ++i) commit(rows(i * 3, 3, 300, 'a'));
  EXPECT_EQ(flushed(), before);
}

TEST_F(MemoryTest, TableBlocksAreInTheCacheThatIsGiven) {
  options.table_cache = rocksdb::NewLRUCache(4 * mib);
  ASSERT_NO_FATAL_FAILURE(format());
  ASSERT_NO_FATAL_FAILURE(open());
  for (unsigned i = 0; i < 4; ++i) commit(rows(i * 256, 256, mib / 2, 'a'));
  ASSERT_TRUE(engine->checkpoint().ok());
  for (unsigned i = 0; i < 1024; ++i)
    ASSERT_TRUE(get(std::array{Family::object, Family::data, Family::omap}[i % 3], key(i)));
  const uint64_t in_cache = engine->memory().table_cache_bytes;
  EXPECT_GT(in_cache, mib);
  EXPECT_EQ(in_cache, options.table_cache->GetUsage());
  options.table_cache->SetCapacity(mib / 4);  // whoever gives it decides on its size
  EXPECT_LE(engine->memory().table_cache_bytes, mib / 4);
}

TEST_F(MemoryTest, BitmapsAndDataInFlightAreCounted) {
  ASSERT_NO_FATAL_FAILURE(format());
  ASSERT_NO_FATAL_FAILURE(open());
  auto txn = std::make_shared<Txn>();
  const auto written = write(*txn, 16, 1);
  txn->put(Family::object, "key", "value");
  commit(txn);
  const EngineMemory memory = engine->memory();
  EXPECT_GT(memory.bitmap_bytes, 0u);
  EXPECT_EQ(memory.in_flight_bytes, 0u);
  EXPECT_EQ(memory.sum(), memory.bitmap_bytes + memory.memtable_bytes + memory.table_cache_bytes);
}

class ReplayMemoryTest : public MemoryTest {
 protected:
  static constexpr unsigned transactions = 256, rows_each = 10;
  static constexpr uint64_t bytes_each = mib / 4;

  // A log with 64 MiB of rows that are in no file of the table.
  void fill() {
    options.memtable_bytes = 256 * mib;
    options.log_bytes = 256 * mib;
    ASSERT_NO_FATAL_FAILURE(format());
    ASSERT_NO_FATAL_FAILURE(open());
    for (unsigned i = 0; i < transactions; ++i)
      engine->submit(rows(i * rows_each, rows_each, bytes_each, 'a'));
    engine->drain();
    engine.reset();
    options.memtable_bytes = 4 * mib;
    options.replay_bytes = 2 * mib;
  }
  void expect_all_rows() {
    for (unsigned i = 0; i < transactions * rows_each; ++i)
      ASSERT_EQ(get(std::array{Family::object, Family::data, Family::omap}[i % 3], key(i)),
                value(i, bytes_each / rows_each, 'a'));
  }
  static uint64_t status_bytes(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
    return 0;
  }
};

TEST_F(ReplayMemoryTest, RowsBeyondTheBoundAreReadAgain) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_GE(engine->counters().recovered_transactions, transactions);
  EXPECT_GT(engine->counters().recovered_groups_read_again, 0u);
  EXPECT_LT(engine->counters().recovered_groups_read_again, engine->counters().recovered_groups);
  expect_all_rows();
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  expect_all_rows();
}

TEST_F(ReplayMemoryTest, RowsWithinTheBoundAreReadOnce) {
  ASSERT_NO_FATAL_FAILURE(fill());
  options.replay_bytes = 256 * mib;
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(engine->counters().recovered_groups_read_again, 0u);
  expect_all_rows();
}

// Of the process, as the kernel counts it: RocksDB and the allocator take their part in any case.
TEST_F(ReplayMemoryTest, AReplayDoesNotTakeWhatItReplays) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  uint64_t peaks[2];
  for (const bool bounded : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(fill());
    if (!bounded) options.replay_bytes = 256 * mib;
    ::malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
    const uint64_t before = status_bytes("VmRSS");
    ASSERT_GT(before, 0u);
    ASSERT_NO_FATAL_FAILURE(open());
    peaks[bounded] = status_bytes("VmHWM") - before;
    TearDown();
    SetUp();
  }
  const uint64_t replayed = transactions * bytes_each;
  EXPECT_LT(peaks[true] + replayed / 2, peaks[false]);
}

TEST_F(ReplayMemoryTest, ALogThatTheTableHasTakesNone) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_NO_FATAL_FAILURE(open());
  ASSERT_TRUE(engine->checkpoint().ok());
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  EXPECT_EQ(engine->counters().recovered_groups_read_again, 0u);
  expect_all_rows();
}

}  // namespace
}  // namespace tablestore
