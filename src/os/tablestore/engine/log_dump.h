// Looks at the log of a store that is not opened: nothing is replayed or judged.
#pragma once

#include <functional>

#include "os/tablestore/engine/io/disk.h"
#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/status.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

struct LogVisitor {
  // The first group that a recovery would read goes there; the table has the rows of all
  // transactions up to `applied_lsn`.
  std::function<void(const LogPosition& start, uint64_t applied_lsn)> start;
  // One group, and the file that it begins in. False: no more.
  std::function<bool(const LogGroup& group, const std::string& path)> group;
};

// The groups since the last checkpoint, in their order. `disk` is frozen (io/frozen_disk.h), since
// the table, which knows where they begin, is opened. `end`: why there are no more, where that is
// not that nobody has begun another; see LogReader::end(). Errors as of Engine::open().
Status visit_log(Disk& disk, Threads& threads, const LogVisitor& visitor, Status* end);

}  // namespace tablestore
