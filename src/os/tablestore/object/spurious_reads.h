// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <chrono>
#include <string>

#include "common/ceph_mutex.h"
#include "common/ceph_time.h"
#include "include/common_fwd.h"
#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/home/options.h"

namespace tablestore {

class Troubles;

/// How often a read that fails is repeated, and for how long: readers and writers of its collection
/// wait meanwhile. A disk that takes long to fail has tried by itself, as has the kernel.
class ReadTries {
 public:
  ReadTries(unsigned retries_max, std::chrono::nanoseconds time_max)
    : left(retries_max), time_max(time_max) {}
  /// After one that has failed: whether there is to be another.
  bool again()
  {
    if (left == 0 || ceph::mono_clock::now() - started_at >= time_max)
      return false;
    --left;
    return true;
  }

 private:
  unsigned left;
  const std::chrono::nanoseconds time_max;
  const ceph::mono_time started_at = ceph::mono_clock::now();
};

/// How often a read that fails is repeated, and who is told where that helped: a cable, a
/// controller or a kernel may spoil what is read, and not what is on the disk. Thread-safe.
class SpuriousReads {
 public:
  /// `time_max`: after so long a read that failed is not repeated.
  SpuriousReads(CephContext* cct, const StoreOptions& options,
                ceph::common::PerfCounters& logger, Troubles& troubles,
                std::chrono::nanoseconds time_max);

  ReadTries begin() const { return ReadTries(options.retry_disk_reads, time_max); }
  /// The same for the engine's own reads, those of rows; this outlives the engine.
  ReadRetries of_engine();
  /// A read succeeded when it was repeated. `what`: of which object, from where, and why it had
  /// failed.
  void note(const std::string& what);
  /// The operator sees the count in ceph health, for as long as the option wants it.
  void tell();

 private:
  void tell_locked();

  CephContext* const cct;
  const StoreOptions& options;
  ceph::common::PerfCounters& logger;
  Troubles& troubles;
  const std::chrono::nanoseconds time_max;
  ceph::mutex mutex = ceph::make_mutex("TableStore::SpuriousReads::mutex");
  uint64_t count = 0;   ///< under mutex, as the next; since the mount
  std::string last;
};

}  // namespace tablestore
