// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/ceph_mutex.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/space/pool_stats.h"

namespace tablestore {

/// The counters of all pools: as of the last transaction queued, in memory; as of the last one
/// applied, in the rows 'P'. Thread-safe.
class PoolTotals {
 public:
  /// Those whose rows are damaged count from nothing, and is_damaged() is true from then on. An
  /// error: they could not be looked at, for a reason that says nothing of them (EMFILE, ENOMEM).
  Status load(Engine& engine);
  /// Whether the totals are too low, until repair counts them anew.
  bool is_damaged() const { return damaged; }
  /// Some cannot be read, so that there may be more of them than any list has.
  bool is_unreadable() const { return unreadable; }
  const std::vector<std::string>& damaged_rows() const { return damaged_keys; }
  /// Takes away rows that nothing can be added to, and notes that there were some; the others stay.
  /// After load(), before the first transaction; durable on return.
  void discard_damaged(Engine& engine);
  /// Adds a transaction's deltas here, and to its rows.
  void queue(Txn& txn, const std::map<int64_t, PoolStats>& deltas);
  /// Zeros for a pool without objects.
  PoolStats get(int64_t pool) const;
  PoolStats sum() const;
  std::map<int64_t, PoolStats> all() const;

  /// A row's value; false where damaged.
  static bool decode(std::string_view value, PoolStats* stats);
  /// The row that notes it: there as long as totals are too low.
  static std::string uncounted_key();

 private:
  Status load_rows(Engine& engine, AtDamage at_damage);

  mutable ceph::mutex mutex = ceph::make_mutex("TableStore::PoolTotals::mutex");
  std::map<int64_t, PoolStats> totals;
  bool damaged = false;                     ///< as of load()
  std::vector<std::string> damaged_keys;
  bool unreadable = false;                  ///< not all rows could be read
};

}  // namespace tablestore
