// RocksDB's file system for a disk that is a real directory.
#pragma once

#include <memory>

namespace rocksdb {
class FileSystem;
}

namespace tablestore {

std::shared_ptr<rocksdb::FileSystem> default_table_fs();

}  // namespace tablestore
