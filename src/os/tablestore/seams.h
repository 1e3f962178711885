// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <functional>
#include <memory>

#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// What a simulator puts in the place of a store's surroundings. All empty in production.
struct StoreSeams {
  /// Instead of the directory's, in which then only the files `fsid` and `type` are.
  std::shared_ptr<Disk> disk;
  /// The last word on what the engine is formatted and opened with.
  std::function<void(EngineOptions&)> engine_options;
  /// The store has no threads, and lets no time pass: who uses it makes its steps (stepping.h) and
  /// calls it from one thread only; callbacks need a queue (set_collection_commit_queue). Where a
  /// thread would wait for the commit lane, the store makes the lane's steps. It may be destroyed
  /// while it is mounted, as the end of a process would.
  bool stepped = false;
  /// Sees each transaction before it is begun.
  std::function<void(const std::shared_ptr<const Txn>&)> on_queue;
};

}  // namespace tablestore
