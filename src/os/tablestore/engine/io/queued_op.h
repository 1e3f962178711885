// A write or a flush that waits in a queue.
#pragma once

#include "os/tablestore/engine/io/disk.h"
#include "os/tablestore/engine/io/posix_file.h"

namespace tablestore {

// One of the two is set; the owner keeps it alive until it is told.
struct QueuedOp {
  WriteOp* write = nullptr;
  FlushOp* flush = nullptr;

  // The queues are those of a FileDisk, whose files are PosixFiles.
  PosixFile& file() const {
    return static_cast<PosixFile&>(write ? *write->file : *flush->file);
  }
  // The owner may free the operation in it, or submit it again.
  void done(int error) const {
    if (write) {
      write->done(*write, error);
    } else {
      flush->done(*flush, error);
    }
  }
};

}  // namespace tablestore
