// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <iosfwd>

#include "common/Formatter.h"
#include "common/ceph_mutex.h"
#include "common/perf_counters.h"
#include "os/ObjectStore.h"
#include "os/tablestore/engine/engine.h"

namespace tablestore {

class DataCache;
class OnodeCache;
class PoolTotals;
class ReferenceMaps;
class SpaceGate;
class Troubles;

/// What the OSD and its operator are told of the store: space, alerts, counters. Thread-safe.
class Statistics {
 public:
  struct Parts {
    Engine& engine;
    const OnodeCache& onodes;
    const DataCache& data_cache;
    const ReferenceMaps& references;
    const PoolTotals& pools;
    const SpaceGate& gate;
    ceph::common::PerfCounters& logger;
    const Troubles& troubles;
  };
  explicit Statistics(Parts parts) : parts(std::move(parts)) {}

  // ---- space
  void statfs(store_statfs_t* buf, osd_alert_list_t* alerts);
  void pool_statfs(int64_t pool, store_statfs_t* buf);
  objectstore_perf_stat_t latencies();

  // ---- counters
  /// Brings those up to date that say how things are.
  void refresh_counters();
  void dump_counters(ceph::Formatter* f);
  void dump_caches(ceph::Formatter* f) const;
  void dump_caches(std::ostream& os) const;
  void dump_table(ceph::Formatter* f);
  /// How many rows of which size: reads the whole table.
  void dump_rows_by_size(ceph::Formatter* f);
  /// All of them: for the admin socket.
  void dump(ceph::Formatter* f);

 private:
  const Parts parts;
  ceph::mutex mutex = ceph::make_mutex("TableStore::Statistics::mutex");
  PerfCounters::avg_tracker<uint64_t> commit_latency_ns;   ///< under mutex
};

}  // namespace tablestore
