// From what lies on the disk to the state after the last transaction that happened.
#pragma once

#include "os/tablestore/engine/container/containers.h"
#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/table/table.h"

namespace tablestore {

struct RecoveryParts {
  LogRing& log;
  Table& table;
  Containers& containers;
  Counters& counters;
  const Reporter& reporter;
  StoreUuid store_uuid;
};

struct RecoveredLog {
  LogPosition head;  // where the next group goes, in an epoch that is durably new
  uint64_t tail = 0; // the first group that a recovery from the table as it is on the disk would
                     // need
};

// The rows that an empty store starts with; the table is flushed.
Status format_recovery_rows(Table& table);

// One-time, before the lane starts; single-threaded. What it does, in order:
//   1 loads the allocation map of the last checkpoint
//   2 reads the chain of log groups after it
//   3 judges each group that nothing vouches for by the checksums of its data, and cuts the log at
//     the first that fails: that one and what follows never happened (I5, I6)
//   4 replays: allocation, and the rows that the table does not have
//   5 begins a new epoch: a group at the cut, flushed, so that what was cut off never comes back
//     (I5)
// Nothing is written before step 4 has succeeded in memory but the table's memtables.
// EIO: damage (a row, the durable part of the log, a missing container) or a failing disk.
Result<RecoveredLog> recover(RecoveryParts parts);

}  // namespace tablestore
