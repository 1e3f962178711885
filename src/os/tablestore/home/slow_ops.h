// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <deque>
#include <string>

#include "common/ceph_mutex.h"
#include "common/ceph_time.h"
#include "include/common_fwd.h"
#include "os/tablestore/home/options.h"

namespace tablestore {

/// When something happened of late, and what it was the last time. Thread-safe.
class RecentEvents {
 public:
  void note(ceph::mono_time now, std::string what);
  struct Seen {
    uint64_t count = 0;
    std::string last;
  };
  /// Those of the last `lifetime`; what is older is forgotten.
  Seen within(ceph::timespan lifetime, ceph::mono_time now);

 private:
  static constexpr size_t kept_max = 10000;
  ceph::mutex mutex = ceph::make_mutex("TableStore::RecentEvents::mutex");
  std::deque<ceph::mono_time> times;   ///< under mutex, as the next
  std::string last;
};

/// Commits and reads that took longer than tablestore_log_op_age: counted, logged, and kept for the
/// alerts. Who is not slow pays for one comparison. Thread-safe.
class SlowOps {
 public:
  SlowOps(CephContext* cct, const StoreOptions& options, ceph::common::PerfCounters& logger);

  bool is_slow(ceph::timespan took) const { return took.count() > options.log_op_age_ns; }
  /// A transaction got durable: it is_slow().
  void committed(ceph::timespan took, uint64_t bytes);
  /// A read of an object: it is_slow().
  void read(ceph::timespan took, const std::string& what);
  /// A read of the disk, a part of the one above: it is_slow().
  void stalled(ceph::timespan took, const std::string& what);

  RecentEvents operations;   ///< commits and reads
  RecentEvents stalls;

 private:
  CephContext* const cct;
  const StoreOptions& options;
  ceph::common::PerfCounters& logger;
};

}  // namespace tablestore
