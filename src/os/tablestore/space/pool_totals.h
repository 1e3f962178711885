// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <map>
#include <string_view>

#include "common/ceph_mutex.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/space/pool_stats.h"

namespace tablestore {

/// The counters of all pools: as of the last transaction queued, in memory; as of the last one
/// applied, in the rows 'P'. Thread-safe.
class PoolTotals {
 public:
  Status load(Engine& engine);
  /// Adds a transaction's deltas here, and to its rows.
  void queue(Txn& txn, const std::map<int64_t, PoolStats>& deltas);
  /// Zeros for a pool without objects.
  PoolStats get(int64_t pool) const;
  PoolStats sum() const;
  std::map<int64_t, PoolStats> all() const;

  /// A row's value; false where damaged.
  static bool decode(std::string_view value, PoolStats* stats);

 private:
  mutable ceph::mutex mutex = ceph::make_mutex("TableStore::PoolTotals::mutex");
  std::map<int64_t, PoolStats> totals;
};

}  // namespace tablestore
