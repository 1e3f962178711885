// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <chrono>
#include <memory>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

/// What a store finds around it: a disk, and how threads run. An OSD's is OsdSurroundings; a
/// simulator has another one, in which one seed gives one history.
///
/// Where its threads do not run by themselves, the store is called from one thread only, and
/// callbacks need a queue (set_collection_commit_queue). Such a store may be destroyed while it is
/// mounted, as the end of a process would.
class Surroundings {
 public:
  virtual ~Surroundings() = default;

  /// Where the engine's files are; in the store's directory are only the files `fsid` and `type`
  /// besides. `for_reading`: nothing may be made or changed to find out what the disk can do.
  virtual Result<std::shared_ptr<Disk>> open_disk(bool for_reading) = 0;
  /// Of the store and its engine; outlives both.
  virtual Threads& threads() = 0;
  /// The last word on what the engine is formatted and opened with.
  virtual void adjust(EngineOptions& options) = 0;
  /// For how long a read that fails is repeated: clients wait meanwhile. A simulator has no time.
  virtual std::chrono::nanoseconds read_retry_time() const { return std::chrono::seconds(1); }
  /// Sees each transaction before it is begun.
  virtual void transaction_begins(const std::shared_ptr<const Txn>&) {}
};

}  // namespace tablestore
