// What a look into a table costs that is much larger than its cache.
#include <cstdio>
#include <random>

#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

class TableCacheTest : public EngineFixture {
 protected:
  static constexpr unsigned rows = 200000;

  static std::string key(unsigned i) {
    char number[16];
    std::snprintf(number, sizeof(number), "%08u", i);
    return std::string(120, 'k') + number;
  }
  // One file of the bottom level, whose index alone is larger than a shard of the cache.
  void make_table() {
    options.memtable_bytes = 64 << 20;
    options.table_cache_bytes = 2 << 20;
    options.log_bytes = 64 << 20;
    options.table_options = "compression=kNoCompression;target_file_size_base=1073741824";
    ASSERT_NO_FATAL_FAILURE(format());
    ASSERT_NO_FATAL_FAILURE(open());
    for (unsigned i = 0; i < rows;) {
      auto txn = std::make_shared<Txn>();
      for (const unsigned end = i + 1000; i < end; ++i)
        txn->put(Family::object, key(i), std::string(100, char('a' + i % 26)));
      commit(txn);
    }
    ASSERT_TRUE(engine->checkpoint().ok());
    ASSERT_TRUE(engine->compact().ok());
    close_and_open();  // a file that was opened at level 0 keeps what is pinned there
  }
  uint64_t statistic(const std::string& wanted) {
    for (const auto& [name, value] : engine->statistics())
      if (name == wanted) return value;
    ADD_FAILURE() << "no statistic " << wanted;
    return 0;
  }
};

// The index and the filter of the file come in pieces: a lookup brings a few blocks into the cache,
// and not all of the index.
TEST_F(TableCacheTest, ALookupReadsAFewBlocks) {
  ASSERT_NO_FATAL_FAILURE(make_table());
  constexpr unsigned lookups = 2000;
  std::mt19937 random(1);
  const uint64_t before = statistic("table_cache_filled_bytes");
  for (unsigned n = 0; n < lookups; ++n) {
    const unsigned i = random() % rows;
    ASSERT_EQ(get(Family::object, key(i)), std::string(100, char('a' + i % 26)));
  }
  // One of the index, one of the filter, one of rows.
  const uint64_t of_each = (statistic("table_cache_filled_bytes") - before) / lookups;
  EXPECT_GT(of_each, 1000u);  // the cache does not hold the table
  EXPECT_LT(of_each, 4 * block_bytes);
}

}  // namespace
}  // namespace tablestore
