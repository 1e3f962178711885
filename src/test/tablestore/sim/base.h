// Where histories begin: stores that were made once, and are copied for each history.
#pragma once

#include "test/tablestore/sim/machine.h"

namespace tablestore::sim {

inline constexpr uint64_t provisioned_bytes = 20 << 20;

struct Base {
  const char* name;
  DiskImage image;
  State state;
  uint64_t lsn = 0;  // the last transaction, which `state` is after
  uint64_t provisioned_bytes = 0;  // of a store that is opened on it
};

// A store with a few rows and objects.
const Base& fresh_base();
// The same, in the log's second lap: close before the ring's end, stale groups lie ahead of the
// log's end, block after block.
const Base& wrapped_base();
// The first one, half of whose containers were made and written by mkfs.
const Base& provisioned_base();

}  // namespace tablestore::sim
