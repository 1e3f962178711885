// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/slow_ops.h"

#include "common/debug.h"
#include "common/perf_counters.h"
#include "os/tablestore/home/perf.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore "

namespace tablestore {

void RecentEvents::note(ceph::mono_time now, std::string what)
{
  std::lock_guard l{mutex};
  if (times.size() == kept_max)
    times.pop_front();
  times.push_back(now);
  last = std::move(what);
}

RecentEvents::Seen RecentEvents::within(ceph::timespan lifetime, ceph::mono_time now)
{
  std::lock_guard l{mutex};
  while (!times.empty() && times.front() + lifetime < now)   // `now` may be before it
    times.pop_front();
  return {times.size(), last};
}

SlowOps::SlowOps(CephContext* cct, const StoreOptions& options, PerfCounters& logger)
  : cct(cct), options(options), logger(logger)
{
}

void SlowOps::committed(ceph::timespan took, uint64_t bytes)
{
  logger.inc(l_tablestore_slow_committed_count);
  const std::string what = "a commit of " + std::to_string(bytes) + " bytes";
  dout(0) << "slow: " << what << " took " << took << dendl;
  operations.note(ceph::mono_clock::now(), what);
}

void SlowOps::read(ceph::timespan took, const std::string& what)
{
  logger.inc(l_tablestore_slow_read_count);
  dout(0) << "slow: a read of " << what << " took " << took << dendl;
  operations.note(ceph::mono_clock::now(), "a read of " + what);
}

void SlowOps::stalled(ceph::timespan took, const std::string& what)
{
  logger.inc(l_tablestore_stalled_read_count);
  dout(0) << "slow: the disk took " << took << " to read " << what << dendl;
  stalls.note(ceph::mono_clock::now(), what);
}

}  // namespace tablestore
