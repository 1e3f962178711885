// RocksDB's file system for a frozen disk.
#pragma once

#include <memory>

namespace rocksdb {
class FileSystem;
}

namespace tablestore {

// Reads the files of `below`. New files are in memory, and names that are removed or replaced are
// so here alone. Locks nothing: who opens a store for reading has locked it by other means. No
// file of below can be appended to, which RocksDB does not do to its own either.
std::shared_ptr<rocksdb::FileSystem> freeze_table_fs(std::shared_ptr<rocksdb::FileSystem> below);

}  // namespace tablestore
