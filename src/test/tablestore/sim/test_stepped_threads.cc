// Work that is made in steps.
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include "os/tablestore/engine/table/rows.h"
#include "os/tablestore/engine/table/table.h"
#include "test/tablestore/sim/machine.h"
#include "test/tablestore/sim/stepped_threads.h"

namespace tablestore::sim {
namespace {

// An open that fails closes the table as it is.
TEST(SteppedThreads, ATableIsClosedWhileACompactionWaits) {
  SteppedThreads threads;
  threads.step_compactions();
  SimDisk disk(Machine::format(), Machine::capacity_bytes, 1);
  const EngineOptions o = Machine::engine_options();
  TableOptions of_table;
  of_table.memtable_bytes = o.memtable_bytes;
  of_table.cache_bytes = o.table_cache_bytes;
  of_table.option_string = o.table_options;
  auto table = Table::open(disk, of_table, threads);
  ASSERT_TRUE(table.ok()) << table.status().what();
  threads.let_compactions_wait();
  uint64_t pending = 0;
  for (int file = 0; file < 8 && pending == 0; ++file) {
    std::string row;
    RowWriter(row).put(Family::object, "key", std::to_string(file));
    RowBatch batch;
    batch.append(1, row);
    std::string rows = batch.take();
    ASSERT_TRUE((*table)->write(&rows).ok());
    ASSERT_TRUE((*table)->flush().ok());
    threads.table()->GetAggregatedIntProperty("rocksdb.compaction-pending", &pending);
  }
  ASSERT_NE(pending, 0u);
  *table = nullptr;
  // And another one compacts what it is told to.
  table = Table::open(disk, of_table, threads);
  ASSERT_TRUE(table.ok()) << table.status().what();
  EXPECT_TRUE((*table)->flush().ok());
  threads.table()->GetAggregatedIntProperty("rocksdb.compaction-pending", &pending);
  while (threads.step_compaction()) {
  }
  threads.table()->GetAggregatedIntProperty("rocksdb.compaction-pending", &pending);
  EXPECT_EQ(pending, 0u);
  *table = nullptr;
}

}  // namespace
}  // namespace tablestore::sim
