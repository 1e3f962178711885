// Rows as they are in the table's files, read past every cache.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/engine/status.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
class SstFileReader;
}  // namespace rocksdb

namespace tablestore {

// RocksDB has no read that leaves out its block cache, and reads its files through the kernel's
// page cache. So the files that can hold a row are opened once more, without the one and with
// direct I/O. Thread-safe.
class FileRows {
 public:
  // All outlive this.
  FileRows(rocksdb::DB& db, rocksdb::Env* env, const ReadRetries& retries);
  ~FileRows();

  // Success where the newest file that holds a row of `key` has `value` there, and where the row is
  // in a memtable, and so in the log. EIO where a file that may hold it cannot be read.
  Status check(rocksdb::ColumnFamilyHandle* family, std::string_view key, std::string_view value);
  // Closes the files, so that those that a compaction has replaced go from the disk.
  void close_files();

 private:
  enum class Found { yes, no, file_is_gone };
  Result<Found> look(rocksdb::ColumnFamilyHandle* family, std::string_view key,
                     std::string_view value);
  bool in_a_memtable(rocksdb::ColumnFamilyHandle* family, std::string_view key);
  // Null where the file is gone.
  Result<std::shared_ptr<rocksdb::SstFileReader>> open(rocksdb::ColumnFamilyHandle* family,
                                                       uint64_t number, const std::string& path);

  rocksdb::DB& db_;
  rocksdb::Env* const env_;
  const ReadRetries& retries_;
  struct OpenFile {
    std::shared_ptr<rocksdb::SstFileReader> reader;
    uint64_t used_at;
  };
  std::mutex mutex_;
  std::map<uint64_t, OpenFile> files_;  // under mutex_, as the next; by number
  uint64_t uses_ = 0;
};

}  // namespace tablestore
