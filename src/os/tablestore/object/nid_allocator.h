// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <optional>
#include <string>

#include "common/ceph_mutex.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

/// Numbers of object incarnations, never given out twice, also not after a crash.
///
/// The row 'M' "nid_max" (a CopiedRow) is a bound that no number given out has reached. It is
/// raised ahead of use in a transaction of its own: were it part of that which uses the number,
/// that of another sequencer could become durable before it. Thread-safe.
class NidAllocator {
 public:
  /// The bound as found by mount.
  NidAllocator(Engine& engine, Threads& threads, uint64_t durable_max);
  /// Waits, once in a million numbers at most, for the bound to become durable.
  uint64_t allocate();

  struct Loaded {
    std::optional<uint64_t> bound;   ///< none: there is no row, as in a store without objects, or
                                     ///< it is lost
    std::string damage;              ///< as CopiedRow's
  };
  static Result<Loaded> load(Engine& engine, bool has_copies);
  /// A bound above `nid`, and its row.
  static uint64_t bound_above(uint64_t nid);
  static void put(Txn& txn, uint64_t bound);

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
