// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "common/ceph_mutex.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

/// Numbers of object incarnations, never given out twice, also not after a crash.
///
/// The row 'M' "nid_max" is a bound that no number given out has reached. It is raised ahead of use
/// in a transaction of its own: were it part of the transaction that uses the number, that of
/// another sequencer could become durable before it. Thread-safe.
class NidAllocator {
 public:
  /// The bound as found by mount.
  NidAllocator(Engine& engine, Threads& threads, uint64_t durable_max);
  /// Waits, once in a million numbers at most, for the bound to become durable.
  uint64_t allocate();

  static Result<uint64_t> load(Engine& engine);

 private:
  class Raise;
  /// Engine::submit() may block, and does not need `mutex`.
  void raise_ahead(std::unique_lock<ceph::mutex>& l);

  Engine& engine;
  Threads& threads;
  ceph::mutex mutex = ceph::make_mutex("TableStore::NidAllocator::mutex");
  ceph::condition_variable cond;
  uint64_t next;
  uint64_t durable_max;
  uint64_t queued_max;
};

}  // namespace tablestore
