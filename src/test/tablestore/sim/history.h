// What can happen in a random history of the engine.
#pragma once

#include "test/tablestore/sim/frame/history.h"

namespace tablestore::sim {

enum class Step::Kind : uint8_t {
  transaction,  // one to four ops, queued
  abandon,      // made, and not queued
  commit,       // one round of the lane
  drain,        // until all is applied, then compared
  checkpoint,
  prepare,      // some steps of background work each
  shrink,
  compact,
  fill_disk,    // others take what space there is, or give it back
  faults,       // from now to the next crash the disk fails now and then
  rot,          // a bit of a container's block flips, at rest
  crash,        // within the next I/Os, and again while recovering
  close,        // in order, and opened again
  bulk,         // a transaction of many rows, so that the log fills
  requested,    // the checkpoint that the filling log asks for
  huge,         // an object of more than a container is written or removed
  read,         // some of what is queued, while the disk may fail
};

extern const Histories histories;

}  // namespace tablestore::sim
