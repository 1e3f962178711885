// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Where histories begin: stores that were made once, and are copied for each history.
#pragma once

#include "test/objectstore/tablestore/sim/machine.h"

namespace tablestore_sim {

struct Base {
  const char* name;
  DiskImage image;
  State state;
  uint64_t lsn = 0;   ///< the last transaction, which `state` is after
  uint64_t provisioned_bytes = 0;   ///< of a store that is mounted on it
};

/// A store with the first collections, and a few objects in the first of pool 1: number 0 with
/// blocks, attributes and omap, that shares slots with its snapshot, and number 3 that is inline.
const Base& fresh_base();
/// The same, in the log's second lap: close before the ring's end, stale groups lie ahead of the
/// log's end, block after block.
const Base& wrapped_base();
/// The first one, half of whose containers were made and written by mkfs.
const Base& provisioned_base();

}  // namespace tablestore_sim
