// Reads of the table's files that fail are repeated, below RocksDB: it takes the first failure for
// the last word, and so would a compaction that leaves out what it cannot read.
#pragma once

#include <memory>

#include "os/tablestore/engine/io/repeated_read.h"

namespace rocksdb {
class FileSystem;
}

namespace tablestore {

// The same file system, but that opening a file for reads at random, and each of these reads, is
// repeated. Bytes that are wrong it takes for right: see TableDamage.
std::shared_ptr<rocksdb::FileSystem> repeat_reads(std::shared_ptr<rocksdb::FileSystem> below,
                                                  ReadRetries retries);

}  // namespace tablestore
