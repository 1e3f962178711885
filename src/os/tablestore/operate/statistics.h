// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <array>
#include <iosfwd>
#include <optional>

#include "common/Formatter.h"
#include "common/ceph_mutex.h"
#include "common/perf_counters.h"
#include "os/ObjectStore.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/operate/alerts.h"

namespace tablestore {

class DataCache;
class OnodeCache;
class PoolTotals;
class ReferenceMaps;
class SlowOps;
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
    Troubles& troubles;
    SlowOps& slow_ops;
    const StoreOptions& options;
  };
  explicit Statistics(const Parts& parts)
    : parts(parts), alerts(parts.troubles, parts.slow_ops)
  {
  }

  /// Once a second: counters and alerts.
  void tick();

  // ---- space
  void statfs(store_statfs_t* buf, osd_alert_list_t* alerts);
  void pool_statfs(int64_t pool, store_statfs_t* buf);
  objectstore_perf_stat_t latencies();

  // ---- counters
  /// Brings those up to date that say how things are.
  void refresh_counters();
  /// Looks at all free space. FreeSpace::score is kept, as a counter and for the alert.
  FreeSpace look_at_free_space();
  void dump_counters(ceph::Formatter* f);
  void dump_caches(ceph::Formatter* f) const;
  void dump_caches(std::ostream& os) const;
  void dump_table(ceph::Formatter* f);
  /// How many rows of which size: reads the whole table.
  void dump_rows_by_size(ceph::Formatter* f);
  void dump_log(ceph::Formatter* f);
  /// All of them: for the admin socket.
  void dump(ceph::Formatter* f);

 private:
  /// Of an average of which the engine keeps the sum and the count.
  struct Average {
    int counter;
    Counters::Count Counters::*sum_ns;
    Counters::Count Counters::*count;
  };
  static const Average averages[];
  struct Told {
    uint64_t sum_ns = 0, count = 0;
  };
  void bring_averages_up_to_date();
  void set_gauges(const EngineGauges& gauges);

  const Parts parts;
  Alerts alerts;                                             ///< the thread of tick()
  std::optional<ceph::mono_time> fragmentation_looked_at;    ///< the same
  ceph::mutex mutex = ceph::make_mutex("TableStore::Statistics::mutex");
  PerfCounters::avg_tracker<uint64_t> commit_latency_ns;   ///< under mutex
  std::array<Told, 5> told;                                ///< of `averages`; under mutex
};

}  // namespace tablestore
