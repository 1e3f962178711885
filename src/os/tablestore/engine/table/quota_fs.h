// A quota that is used up is a full file system, to RocksDB as to everybody else.
#pragma once

#include <memory>

namespace rocksdb {
class FileSystem;
}

namespace tablestore {

// RocksDB waits and goes on after ENOSPC only; any other error of a write ends the table's life.
// `fs`, where EDQUOT is ENOSPC.
std::shared_ptr<rocksdb::FileSystem> take_quota_for_space(std::shared_ptr<rocksdb::FileSystem> fs);

}  // namespace tablestore
