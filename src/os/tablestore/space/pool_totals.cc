// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/space/pool_totals.h"

#include <cstring>

#include "include/byteorder.h"
#include "os/tablestore/rows/keys.h"

namespace tablestore {

namespace {

/// Damaged totals may overflow.
void add(const PoolStats& more, PoolStats* total)
{
  for (size_t i = 0; i < more.values.size(); ++i)
    total->values[i] = int64_t(uint64_t(total->values[i]) + uint64_t(more.values[i]));
}

}  // namespace

bool PoolTotals::decode(std::string_view value, PoolStats* stats)
{
  if (value.size() % sizeof(int64_t) != 0 || value.size() > sizeof(stats->values))
    return false;
  stats->values.fill(0);
  for (size_t i = 0; i * sizeof(int64_t) < value.size(); ++i) {
    ceph_le64 raw;
    memcpy(&raw, value.data() + i * sizeof(raw), sizeof(raw));
    stats->values[i] = int64_t(uint64_t(raw));
  }
  return true;
}

Status PoolTotals::load(Engine& engine)
{
  std::lock_guard l{mutex};
  totals.clear();
  const auto [first, last] = pool_stats_range();
  auto it = engine.iterate(Family::super, first, last);
  for (it->seek(first); it->valid(); it->next()) {
    int64_t pool;
    PoolStats stats;
    if (!decode_pool_stats_key(it->key(), &pool) || !decode(it->value(), &stats))
      return Status(EIO, "a row of pool statistics is damaged; run fsck");
    totals[pool] = stats;
  }
  return it->status();
}

void PoolTotals::queue(Txn& txn, const std::map<int64_t, PoolStats>& deltas)
{
  std::lock_guard l{mutex};
  for (const auto& [pool, delta] : deltas) {
    if (delta.values == PoolStats{}.values)
      continue;
    txn.add(pool_stats_key(pool), delta.values);
    add(delta, &totals[pool]);
  }
}

PoolStats PoolTotals::get(int64_t pool) const
{
  std::lock_guard l{mutex};
  auto p = totals.find(pool);
  return p == totals.end() ? PoolStats{} : p->second;
}

PoolStats PoolTotals::sum() const
{
  std::lock_guard l{mutex};
  PoolStats sum;
  for (const auto& [pool, stats] : totals)
    add(stats, &sum);
  return sum;
}

std::map<int64_t, PoolStats> PoolTotals::all() const
{
  std::lock_guard l{mutex};
  return totals;
}

}  // namespace tablestore
