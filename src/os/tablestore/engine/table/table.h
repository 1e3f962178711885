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
#include "os/tablestore/engine/threads.h"

namespace rocksdb {
class Cache;
}

namespace tablestore {

struct TableOptions {
  uint64_t memtable_bytes = 128 << 20;
  uint64_t cache_bytes = 256 << 20;
  std::string option_string;  // RocksDB DBOptions and ColumnFamilyOptions, over ours
};

// Owns the database below table/. Thread-safe; write() from one thread at a time.
//
// What survives a crash is some state between two write() calls: all families are flushed at the
// same cut (atomic_flush), also when RocksDB flushes of its own accord.
class Table {
 public:
  static Status format(Disk& disk, const TableOptions& options, Threads& threads);
  static Result<std::unique_ptr<Table>> open(Disk& disk, const TableOptions& options,
                                             Threads& threads);
  ~Table();  // does not flush

  // Writes a batch (RowBatch::take) to the memtables, atomically. Takes the batch; ENOSPC: nothing
  // was written, the batch is given back and may be given again when the file system has space.
  Status write(std::string* batch);
  Result<bool> get(Family family, std::string_view key, std::string* value);
  Result<std::vector<std::optional<std::string>>> get(Family family,
                                                      std::span<const std::string> keys);
  std::unique_ptr<RowIterator> iterate(Family family, std::string_view lower,
                                       std::string_view upper);
  // All that was written becomes durable. ENOSPC: may be tried again.
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
  Table(Disk& disk, Threads& threads, uint64_t cache_bytes);
  rocksdb::ColumnFamilyHandle* handle(Family f) const { return handles_[size_t(f)]; }
  Threads& threads_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<rocksdb::Cache> cache_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

}  // namespace tablestore
