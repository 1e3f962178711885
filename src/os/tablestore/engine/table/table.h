// The LSM table: RocksDB without a WAL of its own. The engine's log stands in for it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/disk.h"

namespace rocksdb {
class Cache;
class ColumnFamilyHandle;
class DB;
class Env;
}  // namespace rocksdb

namespace tablestore {

struct TableOptions {
  uint64_t memtable_bytes = 128 << 20;
  uint64_t cache_bytes = 256 << 20;
  std::string option_string;  // RocksDB DBOptions and ColumnFamilyOptions, over ours
  // Nothing runs in the background but what a call has asked for, and when open(), flush() and
  // compact() return, that is done too. Without statistics, log and compression, which are most of
  // what opening a small table takes.
  bool stepped = false;
};

// Owns the database below table/. Thread-safe; apply() from one thread at a time.
//
// What survives a crash is some state between two apply() calls: all families are flushed at the
// same cut (atomic_flush), also when RocksDB flushes of its own accord.
class Table {
 public:
  static Status format(Disk& disk, const TableOptions& options);
  static Result<std::unique_ptr<Table>> open(Disk& disk, const TableOptions& options);
  ~Table();  // does not flush

  // Applies a batch (RowBatch::take) to the memtables, atomically. Takes the batch; ENOSPC: nothing
  // was applied, the batch is given back and may be given again when the file system has space.
  Status apply(std::string* batch);
  Result<bool> get(Family family, std::string_view key, std::string* value);
  Result<std::vector<std::optional<std::string>>> get(Family family,
                                                      std::span<const std::string> keys);
  std::unique_ptr<RowIterator> iterate(Family family, std::string_view lower,
                                       std::string_view upper);
  // All that was applied becomes durable. ENOSPC: may be tried again.
  Status flush();
  Status compact();
  void drop_caches();
  void resize_cache(uint64_t bytes);
  // Tries to leave the state that an ENOSPC put the database in.
  void resume();

  uint64_t file_bytes();       // live table files
  uint64_t memory_bytes();     // memtables
  uint64_t estimate_bytes(Family family, std::string_view begin, std::string_view end);
  void add_statistics(std::vector<std::pair<std::string, uint64_t>>* out);

 private:
  Table();
  void settle();
  rocksdb::ColumnFamilyHandle* handle(Family f) const { return handles_[size_t(f)]; }
  bool stepped_ = false;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<rocksdb::Cache> cache_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

}  // namespace tablestore
