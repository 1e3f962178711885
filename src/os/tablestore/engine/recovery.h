// From what lies on the disk to the state after the last transaction that happened.
#pragma once

#include <functional>

#include "os/tablestore/engine/container/containers.h"
#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/table/table.h"
#include "os/tablestore/engine/troubles.h"

namespace tablestore {

struct RecoveryParts {
  LogRing& log;
  Table& table;
  Containers& containers;
  Counters& counters;
  const Reporter& reporter;
  Troubles& troubles;
  StoreUuid store_uuid;
  uint64_t group_bytes_max;      // of the log
  // Called when it is certain that the store opens, and before anything is written that a program
  // which does not know of incompat_allocation_chunks must not read.
  const std::function<Status()>& claim_format;
  const std::function<bool()>& make_room;  // see CommitParts
  bool accept_log_loss = false;  // see EngineOptions
  uint64_t replay_bytes = 64 << 20;  // of the log, that are kept in memory
};

struct RecoveredLog {
  LogPosition head;  // where the next group goes, in an epoch that is durably new
  uint64_t tail = 0; // the first group that a recovery from the table as it is on the disk would
                     // need
  uint64_t saved_bytes = 0;  // by compressing the groups in between
  // False: the table is ahead of a log that was cut, so that rows may own blocks that are free
  // according to the log. Nothing may be handed out, given back or prepared.
  bool ownership_is_known = true;
  // False: in some containers all blocks count as owned, as rows of the allocation map cannot be
  // read.
  bool allocation_is_known = true;
};

// The rows that an empty store starts with; the table is flushed.
Status format_recovery_rows(Table& table);

// One-time, before the lane starts; single-threaded. What it does, in order:
//   1 loads the allocation map of the last checkpoint. A row of it that cannot be read makes all of
//     its container owned, so that nothing there is handed out; the map can be counted anew
//   2 reads the chain of log groups after it. Where more cannot be read than the one group that was
//     being written can have taken, acknowledged ones may have lain there: the store is refused
//     Groups that a later one vouches for have happened: their allocation is replayed at once, and
//     their rows are kept for step 4 as far as replay_bytes go; the others are read once more then
//   3 judges each group that nothing vouches for by the checksums of its data, and cuts the log at
//     the first that fails: that one and what follows never happened (I5, I6). What is cut off is
//     said as a warning
//   4 replays: the rest of the allocation, and the rows that the table does not have
//   5 begins a new epoch: a group at the cut, flushed, so that what was cut off never comes back
//     (I5)
// Nothing is written before step 4 has succeeded in memory but the table's memtables. What an
// operator has to know for longer than this life of the store is in rows of its own, and raised
// anew.
// EIO: damage (a row, the durable part of the log, a missing container) or a failing disk. Where
// the durable part of the log is damaged and the loss is accepted, the log is cut at the damage.
// Another error (ENOMEM): of a read, for a reason that says nothing of the store.
Result<RecoveredLog> recover(RecoveryParts parts);

}  // namespace tablestore
