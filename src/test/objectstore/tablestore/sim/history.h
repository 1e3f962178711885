// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What can happen in a random history of the store.
#pragma once

#include "test/tablestore/sim/frame/history.h"

enum class tablestore::sim::Step::Kind : uint8_t {
  transaction,   ///< one to five ops, queued
  across,        ///< the same, through the handle of another collection
  collections,   ///< one that makes, removes, splits or merges some
  commit,        ///< one round of the lane
  read,          ///< what is queued is read
  drain,         ///< until all is applied, then compared with fsck and statfs
  flush_commit,  ///< a callback after all that was queued
  tick,          ///< what the store does once a second
  drop_caches,
  checkpoint,
  requested,     ///< the checkpoint that the filling log asks for
  prepare,       ///< some steps of background work each
  shrink,
  compact,
  bulk,          ///< a transaction of many rows, so that the log fills
  fill_disk,     ///< others take what space there is, or give it back
  faults,        ///< from now to the next crash the disk fails now and then
  rot,           ///< bits flip, at rest
  crash,         ///< within the next I/Os, and again while recovering
  close,         ///< umount and mount
  fsck,          ///< umount, fsck, mount
  repair,        ///< what belongs to nothing is put there and repaired
  stumble,       ///< transactions while many reads fail, some in their middle
  apply,         ///< what is durable goes to the table
  scrub,         ///< all objects, as a deep scrub reads them
  caches,        ///< get more memory, or less
  take_back,     ///< from now on a transaction that fails is taken back (a setting for tests)
  decay,         ///< a bit flips below the running store; a scrub, and the object is replaced
  empty,         ///< nearly empty containers are emptied, some steps of it
};

namespace tablestore_sim {

using tablestore::sim::HistoryOptions;
using tablestore::sim::Step;

extern const tablestore::sim::Histories histories;

}  // namespace tablestore_sim
