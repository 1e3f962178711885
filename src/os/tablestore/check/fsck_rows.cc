// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "common/debug.h"
#include "common/pretty_binary.h"
#include "os/tablestore/check/fsck.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/space/pool_totals.h"

namespace tablestore {

namespace {

std::string str(const PoolStats& stats)
{
  return "stored " + std::to_string(stats[PoolStats::stored_bytes]) + " allocated " +
         std::to_string(stats[PoolStats::allocated_bytes]) + " inline " +
         std::to_string(stats[PoolStats::inline_bytes]) + " objects " +
         std::to_string(stats[PoolStats::objects]);
}

}  // namespace

Status Fsck::check_shard_rows()
{
  const auto [first, last] = all_shards_range();
  auto it = engine.iterate(Family::object, first, last);
  for (it->seek(first); it->valid(); it->next()) {
    const std::string key(it->key());
    uint64_t nid;
    uint32_t index;
    if (decode_shard_key(key, &nid, &index)) {
      auto p = objects.find(nid);
      if (p != objects.end() && index < p->second.shards.size() && p->second.shards[index])
        continue;
    }
    // The object may be one whose own row is damaged.
    if (extents_lost) {
      error("the extents in " + pretty_binary_string(key) + " belong to no object");
      continue;
    }
    repairable("the extents in " + pretty_binary_string(key) + " belong to no object",
               [&](Txn& txn) { txn.erase(Family::object, key); });
  }
  return it->status();
}

Status Fsck::check_inline_rows()
{
  auto it = engine.iterate(Family::data, {}, {});
  for (it->seek_to_first(); it->valid(); it->next()) {
    const std::string key(it->key());
    uint64_t nid;
    if (decode_inline_key(key, &nid)) {
      auto p = objects.find(nid);
      if (p != objects.end() && p->second.inline_data) {
        p->second.inline_row_seen = true;
        continue;
      }
    }
    const std::string what = "the data in " + pretty_binary_string(key) + " belongs to no object";
    if (extents_lost)
      error(what);
    else
      repairable(what, [&](Txn& txn) { txn.erase(Family::data, key); });
  }
  for (const auto& [nid, rows] : objects) {
    if (rows.inline_data && !rows.inline_row_seen)
      error("the inline data of the object with number " + std::to_string(nid) + " is missing");
  }
  return it->status();
}

Status Fsck::check_omap_rows()
{
  auto it = engine.iterate(Family::omap, {}, {});
  it->seek_to_first();
  while (it->valid()) {
    int64_t pool;
    uint64_t nid;
    const std::string key(it->key());
    if (!decode_omap_prefix(key, &pool, &nid)) {
      repairable("the omap row " + pretty_binary_string(key) + " has a bad key",
                 [&](Txn& txn) { txn.erase(Family::omap, key); });
      it->next();
      continue;
    }
    const auto [first, last] = omap_range(omap_prefix(pool, nid));
    auto p = objects.find(nid);
    if (p == objects.end() || !p->second.has_omap || p->second.pool != pool) {
      const std::string what = "omap of pool " + std::to_string(pool) + " number " +
          std::to_string(nid) + " belongs to no object";
      if (extents_lost)
        error(what);
      else
        repairable(what, [&](Txn& txn) { txn.erase_range(Family::omap, first, last); });
    }
    // Deep: every block of the table is read, and so verified.
    if (options.deep) {
      while (it->valid() && it->key() < last)
        it->next();
    } else {
      it->seek(last);
    }
  }
  return it->status();
}

Status Fsck::check_reference_maps()
{
  const auto [first, last] = reference_maps_range();
  auto it = engine.iterate(Family::super, first, last);
  for (it->seek(first); it->valid(); it->next()) {
    ReferenceMap slot;
    const std::string key(it->key());
    if (!decode_reference_map_key(key, &slot.container, &slot.first_block)) {
      error("the row " + pretty_binary_string(key) + " of a shared slot has a bad key");
      continue;
    }
    try {
      slot.decode(it->value());
    } catch (const ceph::buffer::error& e) {
      error("the row " + pretty_binary_string(key) + " of a shared slot is damaged: " + e.what());
      extents_lost = true;
      continue;
    }
    check_reference_map(key, slot);
  }
  for (const auto& [name, found] : shared) {
    error("the references of the shared slot in container " + std::to_string(name.first) +
          " at block " + std::to_string(name.second) + " are missing");
    extents_lost = true;
  }
  return it->status();
}

void Fsck::check_reference_map(std::string_view key, const ReferenceMap& slot)
{
  const std::string name = "the shared slot in container " + std::to_string(slot.container) +
      " at block " + std::to_string(slot.first_block);
  SharedReferences found;
  if (auto p = shared.find({slot.container, slot.first_block}); p != shared.end()) {
    found = std::move(p->second);
    shared.erase(p);
  }
  // What the row says, block by block; the slot's first block is held for its name only.
  std::map<uint32_t, uint32_t> recorded;
  for (const auto& [block, run] : slot.runs) {
    for (uint32_t i = 0; i < run.blocks && run.references > 0; ++i)
      recorded[block + i] = run.references;
  }
  if (recorded != found.references && extents_lost) {
    error(name + " has other references than its row says");
  } else if (recorded != found.references) {
    ReferenceMap fixed;
    fixed.container = slot.container;
    fixed.first_block = slot.first_block;
    for (const auto& [block, references] : found.references)
      fixed.runs[block] = {1, references};
    if (!fixed.runs.empty())
      fixed.runs.try_emplace(slot.first_block, ReferenceMap::Run{1, 0});
    repairable(name + " has other references than its row says", [&](Txn& txn) {
      if (fixed.runs.empty()) {
        txn.erase(Family::super, key);
        return;
      }
      txn.put(Family::super, key, fixed.encode());
    });
    if (options.repair) {
      for (const Extent& extent : fixed.owned())
        own(extent, name);
      for (const Extent& extent : fixed.owned())
        pools[found.pool][PoolStats::allocated_bytes] += extent.length_bytes();
      return;
    }
  }
  for (const Extent& extent : slot.owned()) {
    own(extent, name);
    pools[found.pool][PoolStats::allocated_bytes] += extent.length_bytes();
  }
}

Status Fsck::check_pool_stats()
{
  PoolTotals totals;
  if (Status s = totals.load(engine); !s.ok())
    return s;
  std::map<int64_t, PoolStats> recorded = totals.all();
  for (const auto& [pool, stats] : pools)
    recorded.try_emplace(pool);
  for (const auto& [pool, said] : recorded) {
    const PoolStats& counted = pools[pool];
    if (said.values == counted.values || extents_lost)
      continue;
    repairable("pool " + std::to_string(pool) + " has " + str(counted) + ", its row says " +
                   str(said),
               [&](Txn& txn) {
                 const std::string key = pool_stats_key(pool);
                 txn.erase(Family::super, key);
                 txn.add(key, counted.values);
               });
  }
  return {};
}

Status Fsck::check_blocks()
{
  uint64_t leaked = 0, missing = 0;
  for (const auto& [container, engine_says] : engine_blocks) {
    auto p = owned_blocks.find(container);
    for (uint32_t block = 0; block < engine_says.blocks(); ++block) {
      const bool owned = p != owned_blocks.end() && p->second.test(block);
      leaked += engine_says.test(block) && !owned;
      missing += owned && !engine_says.test(block);
    }
  }
  if (missing > 0)
    error(std::to_string(missing) + " blocks of objects are free to the allocator");
  if (leaked == 0)
    return {};
  if (extents_lost) {
    error(std::to_string(leaked) + " blocks that no object is known to have; they stay as they "
          "are, because the extents of some objects cannot be read");
    return {};
  }
  bool freed = false;
  repairable(std::to_string(leaked) + " blocks that no object has", [&](Txn&) { freed = true; });
  return freed ? engine.free_unowned(owned_blocks) : Status();
}

}  // namespace tablestore
