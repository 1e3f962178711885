// Notices where a sync of one of RocksDB's files or directories fails.
//
// Such a sync is a flush of the disk. One that fails may have dropped what others had written to
// the log and to containers as well, and no later flush tells of it (File::flush). RocksDB would
// only stop its own writes, which the engine may meet much later.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "os/tablestore/engine/status.h"

namespace rocksdb {
class FileSystem;
class IOStatus;
}  // namespace rocksdb

namespace tablestore {

// Thread-safe. `mutex_` guards what follows it; nobody calls out while it is held.
class FailedSyncs {
 public:
  // The first, if there was one.
  Status first() const;
  // From now on each is told, in the thread that met it: one that is within RocksDB. Returns the
  // first that nobody was told of. `is_ending`, which outlives this: a flush of something else has
  // failed; null: nothing else is flushed.
  Status tell(std::function<void(const Status&)> teller,
              const std::atomic<bool>* is_ending = nullptr);

  // A sync of `path` has come to `status`, which it returns. A file for which there is no space is
  // no failure of the disk: only the table's own data has no place. Behind a flush that failed no
  // sync succeeds any more: the disk may have dropped what this one seems to have made durable, and
  // RocksDB would delete the files whose rows it has.
  rocksdb::IOStatus noted(const std::string& path, rocksdb::IOStatus status);

 private:
  mutable std::mutex mutex_;
  Status first_;
  std::function<void(const Status&)> teller_;
  const std::atomic<bool>* is_ending_ = nullptr;
};

// `fs`, watched.
std::shared_ptr<rocksdb::FileSystem> watch_syncs(std::shared_ptr<rocksdb::FileSystem> fs,
                                                 std::shared_ptr<FailedSyncs> failed);

}  // namespace tablestore
