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

std::string PoolTotals::uncounted_key() { return meta_key("pools_uncounted"); }

Status PoolTotals::load(Engine& engine)
{
  std::lock_guard l{mutex};
  totals.clear();
  damaged_keys.clear();
  unreadable = false;
  Status s = load_rows(engine, AtDamage::fail);
  if (s.code() == EIO) {
    totals.clear();
    damaged_keys.clear();
    unreadable = true;
    s = load_rows(engine, AtDamage::step_over);
  }
  if (!s.ok())
    return s;
  std::string value;
  const auto noted = engine.get(Family::super, uncounted_key(), &value);
  if (!noted.ok() && noted.status().code() != EIO)
    return noted.status();
  damaged = unreadable || !damaged_keys.empty() || !noted.ok() || *noted;
  return {};
}

Status PoolTotals::load_rows(Engine& engine, AtDamage at_damage)
{
  const auto [first, last] = pool_stats_range();
  auto it = engine.iterate(Family::super, first, last, at_damage);
  for (it->seek(first); it->valid(); it->next()) {
    const std::string key(it->key());
    std::string value(it->value());
    if (at_damage == AtDamage::step_over) {
      // What lies behind the damage may be an older version, or a sum without its newest parts.
      const auto found = engine.get(Family::super, key, &value);
      if (!found.ok() && found.status().code() != EIO)
        return found.status();
      if (!found.ok())
        damaged_keys.push_back(key);
      if (!found.ok() || !*found)
        continue;
    }
    int64_t pool;
    PoolStats stats;
    if (decode_pool_stats_key(key, &pool) && decode(value, &stats))
      totals[pool] = stats;
    else
      damaged_keys.push_back(key);
  }
  return it->status();
}

void PoolTotals::discard_damaged(Engine& engine)
{
  std::lock_guard l{mutex};
  if (!unreadable && damaged_keys.empty())
    return;
  auto txn = std::make_shared<Txn>();
  for (const std::string& key : damaged_keys)
    txn->erase(Family::super, key);
  if (unreadable) {
    // Nobody knows the keys of all rows that are lost, and nothing can be added to one of them.
    const auto [first, last] = pool_stats_range();
    txn->erase_range(Family::super, first, last);
    for (const auto& [pool, stats] : totals)
      txn->add(pool_stats_key(pool), stats.values);
  }
  txn->put(Family::super, uncounted_key(), "");
  txn->barrier = true;
  engine.submit(std::move(txn));
  engine.drain();
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
