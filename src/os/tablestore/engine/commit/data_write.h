// One contiguous piece of a transaction's data on its way to a container.
#pragma once

#include <any>
#include <memory>

#include "os/tablestore/engine/engine.h"

namespace tablestore {

class CommitLane;

struct Txn::DataWrite {
  Run run;
  std::vector<Extent> slots; // the allocations that it consists of
  uint32_t checksum = 0;     // as the log keeps it: crc32c over the crc32c of each block
  bool first_touch = false;  // of blocks that were not written extents: needs a flush of this very
                             // file
  WriteOp op;
  HeldFile held;             // its file, until it is written
  std::shared_ptr<const std::any> keep_alive;
  Txn* txn = nullptr;
  CommitLane* lane = nullptr;
};

}  // namespace tablestore
