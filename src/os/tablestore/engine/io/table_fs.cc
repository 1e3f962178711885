#include "os/tablestore/engine/io/table_fs.h"

#include "rocksdb/file_system.h"

namespace tablestore {

std::shared_ptr<rocksdb::FileSystem> default_table_fs() { return rocksdb::FileSystem::Default(); }

}  // namespace tablestore
