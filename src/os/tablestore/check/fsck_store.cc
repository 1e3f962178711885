// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Rows about the store as a whole: they follow from the rows of its objects.

#include <algorithm>

#include "common/pretty_binary.h"
#include "include/stringify.h"
#include "os/tablestore/check/derived_rows.h"
#include "os/tablestore/check/fsck.h"
#include "os/tablestore/home/copied_row.h"
#include "os/tablestore/home/store_meta.h"
#include "os/tablestore/object/nid_allocator.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/space/pool_totals.h"

namespace tablestore {

namespace {

constexpr unsigned pg_num_max = 1 << 18;

std::string str(const PoolStats& stats)
{
  return "stored " + std::to_string(stats[PoolStats::stored_bytes]) + " allocated " +
         std::to_string(stats[PoolStats::allocated_bytes]) + " inline " +
         std::to_string(stats[PoolStats::inline_bytes]) + " objects " +
         std::to_string(stats[PoolStats::objects]);
}

}  // namespace

Status Fsck::check_store_meta()
{
  const auto found = StoreMeta::load(engine);
  if (!found.ok())
    return found.status();
  has_copies = found->has_copies;
  StoreMeta meta = found->meta.value_or(StoreMeta());
  const bool too_low = meta.inline_bound < largest_inline_bytes;
  meta.inline_bound = std::max(meta.inline_bound, largest_inline_bytes);
  // A mount makes the copies of a store that has none.
  if (!found->has_copies)
    meta.version = std::min(meta.version, StoreMeta::version_with_copies - 1);
  if (!found->damage.empty())
    repairable(found->damage, [&](Txn& txn) { meta.put(txn); });
  else if (too_low)
    repairable("objects have more inline data than the row that describes the store says",
               [&](Txn& txn) { meta.put(txn); });
  return {};
}

Status Fsck::check_nid_bound()
{
  const auto found = NidAllocator::load(engine, has_copies);
  if (!found.ok())
    return found.status();
  const uint64_t bound = found->bound.value_or(0);
  if (found->bound && bound > nid_max && !found->damage.empty())
    repairable(found->damage, [bound](Txn& txn) { NidAllocator::put(txn, bound); });
  if (bound > nid_max || (nid_max == 0 && (found->bound || found->damage.empty())))
    return {};
  std::string what = "objects have numbers up to " + std::to_string(nid_max);
  if (!found->damage.empty())
    what += ": " + found->damage;
  else if (!found->bound)
    what += ", and the row nid_max is missing";
  else
    what += ", and the next one would get " + std::to_string(bound + 1);
  // Rows that are kept for an object that cannot be read have a number, too.
  const auto derived = derive_rows(engine);
  if (!derived.ok())
    return derived.status();
  const uint64_t highest = std::max(nid_max, derived->nid_max);
  repairable(what,
             [&](Txn& txn) { NidAllocator::put(txn, NidAllocator::bound_above(highest)); });
  return {};
}

// How many bits of its pool's hashes are a placement group's follows from the pool's pg_num, which
// an OSD has in its maps and the store has not. It is put back where every pg_num that fits all
// other placement groups of the pool gives the same. A guess could make the objects of one
// placement group those of another.
std::optional<uint32_t> Fsck::bits_of(const coll_t& cid) const
{
  if (cid.is_meta())
    return 0;
  spg_t pgid;
  if (!cid.is_pg(&pgid))
    return std::nullopt;
  std::vector<std::pair<pg_t, uint32_t>> siblings;
  unsigned highest = pgid.ps();
  for (const auto& [sibling, bits] : collection_bits) {
    spg_t other;
    if (sibling == cid || !sibling.is_pg(&other) || other.pool() != pgid.pool())
      continue;
    siblings.emplace_back(other.pgid, bits);
    highest = std::max(highest, other.ps());
  }
  std::optional<uint32_t> found;
  if (siblings.empty())
    return found;
  for (unsigned pg_num = highest + 1; pg_num <= pg_num_max; ++pg_num) {
    const bool fits = std::all_of(siblings.begin(), siblings.end(), [pg_num](const auto& sibling) {
      return sibling.first.get_split_bits(pg_num) == sibling.second;
    });
    if (!fits)
      continue;
    const uint32_t bits = pgid.pgid.get_split_bits(pg_num);
    if (found && *found != bits)
      return std::nullopt;
    found = bits;
  }
  return found;
}

Status Fsck::check_collection_rows()
{
  for (const CollectionRows::Damaged& row : collection_rows.damaged) {
    repairable(row.damage, [&](Txn& txn) {
      if (row.node)
        put_row(txn, row.cid, *row.node);
      else
        CopiedRow::erase(txn, collection_key(row.cid));
    });
  }
  for (const std::string& key : collection_rows.bad_keys)
    repairable("the row " + pretty_binary_string(key) + " names no collection",
               [&](Txn& txn) { CopiedRow::erase(txn, key); });
  for (const coll_t& cid : collection_rows.lost)
    check_lost_collection(cid);
  if (!collection_rows.is_complete)
    error("rows of collections cannot be read, nor their copies: there may be more than are known");
  return {};
}

void Fsck::check_lost_collection(const coll_t& cid)
{
  const std::string what = "the row of the collection " + stringify(cid) + " is lost";
  CollectionNode node;
  if (const auto bits = bits_of(cid)) {
    node.bits = *bits;
    return repairable(what, [&](Txn& txn) { put_row(txn, cid, node); });
  }
  error(what + ", and which objects belong to it does not follow from the other placement groups "
        "of its pool: the store does not mount but for reading; export the other placement groups, "
        "and rebuild the OSD");
  // It stays known that it was there.
  if (options.repair)
    CopiedRow::put(*fixes, collection_key(cid), "");
}

Status Fsck::check_lost_names()
{
  // A repair has begun with writing them anew.
  for (const std::string& damage : lost_names.damage())
    repairable(damage, [](Txn&) {});
  return {};
}

Status Fsck::check_pool_stats()
{
  PoolTotals totals;
  if (Status s = totals.load(engine); !s.ok())
    return s;
  if (totals.is_unreadable())
    return Status(EIO, "the rows of pool statistics cannot be read");
  std::map<int64_t, PoolStats> recorded = totals.all();
  for (const auto& [pool, stats] : pools)
    recorded.try_emplace(pool);
  const auto count_anew = [this](Txn& txn, int64_t pool) {
    const std::string key = pool_stats_key(pool);
    txn.erase(Family::super, key);
    txn.add(key, pools[pool].values);
  };
  for (const std::string& key : totals.damaged_rows()) {
    int64_t pool;
    const bool known = decode_pool_stats_key(key, &pool);
    repairable("the row " + pretty_binary_string(key) + " of pool statistics is damaged",
               [&](Txn& txn) { known ? count_anew(txn, pool) : txn.erase(Family::super, key); });
    if (known)
      recorded.erase(pool);
  }
  for (const auto& [pool, said] : recorded) {
    if (said.values == pools[pool].values || extents_lost)
      continue;
    repairable("pool " + std::to_string(pool) + " has " + str(pools[pool]) + ", its row says " +
                   str(said),
               [&](Txn& txn) { count_anew(txn, pool); });
  }
  std::string noted;
  const auto uncounted = engine.get(Family::super, PoolTotals::uncounted_key(), &noted);
  if (uncounted.ok() && *uncounted && !extents_lost)
    repairable("pools have not been counted since a mount found damaged statistics",
               [](Txn& txn) { txn.erase(Family::super, PoolTotals::uncounted_key()); });
  return {};
}

}  // namespace tablestore
