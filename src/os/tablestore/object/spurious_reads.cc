// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/object/spurious_reads.h"

#include "common/debug.h"
#include "common/perf_counters.h"
#include "os/tablestore/engine/troubles.h"
#include "os/tablestore/home/perf.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.data "

namespace tablestore {

SpuriousReads::SpuriousReads(CephContext* cct, const StoreOptions& options, PerfCounters& logger,
                             Troubles& troubles, std::chrono::nanoseconds time_max)
  : cct(cct), options(options), logger(logger), troubles(troubles), time_max(time_max)
{
}

ReadRetries SpuriousReads::of_engine()
{
  return {[this] { return unsigned(options.retry_disk_reads); },
          [this](const std::string& what) { note(what); }};
}

void SpuriousReads::note(const std::string& what)
{
  derr << "a read succeeded only when it was repeated: " << what << dendl;
  logger.inc(l_tablestore_reads_with_retries);
  std::lock_guard l{mutex};
  ++count;
  last = what;
  tell_locked();
}

void SpuriousReads::tell()
{
  std::lock_guard l{mutex};
  tell_locked();
}

void SpuriousReads::tell_locked()
{
  if (count == 0 || !options.warn_on_spurious_read_errors) {
    troubles.clear("SPURIOUS_READ_ERRORS");
    return;
  }
  troubles.raise("SPURIOUS_READ_ERRORS",
                 std::to_string(count) +
                     " reads since the OSD started succeeded only when they were repeated, the "
                     "last one of " +
                     last +
                     ". The data are right; what brings them may not be: look for errors of this "
                     "disk in dmesg and smartctl -x, check cable, controller and memory");
}

}  // namespace tablestore
