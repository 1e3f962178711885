// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "common/debug.h"
#include "common/pretty_binary.h"
#include "os/tablestore/check/fsck.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.fsck "

namespace tablestore {

namespace {

std::string name_of(uint32_t container, uint32_t first_block)
{
  return "the shared slot in container " + std::to_string(container) + " at block " +
         std::to_string(first_block);
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
    if (p == objects.end() && lost_names.any()) {
      // Of one whose onode is lost, and that may be the only one that there is.
      dout(0) << "omap of pool " << pool << " number " << nid << " belongs to no object that is "
              << "known, and stays until what was lost is settled" << dendl;
    } else if (p == objects.end() || !p->second.has_omap || p->second.pool != pool) {
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
      repairable("the row " + pretty_binary_string(key) + " of a shared slot has a bad key",
                 [&](Txn& txn) { txn.erase(Family::super, key); });
      continue;
    }
    try {
      slot.decode(it->value());
    } catch (const NewerVersion& e) {
      return Status(ENOTSUP, "the row of " + name_of(slot.container, slot.first_block) + ": " +
                                 e.what());
    } catch (const ceph::buffer::error& e) {
      const std::string what = "the row of " + name_of(slot.container, slot.first_block) +
          " is damaged: " + e.what();
      // Where objects refer to it, it is rebuilt below.
      if (shared.count({slot.container, slot.first_block}) > 0)
        dout(0) << what << dendl;
      else if (extents_lost)
        error(what);
      else
        repairable(what, [&](Txn& txn) { txn.erase(Family::super, key); });
      continue;
    }
    check_reference_map(key, slot);
  }
  for (const auto& [name, found] : shared)
    rebuild_reference_map(name.first, name.second, found);
  return it->status();
}

// The first block is held for its name only, where nothing refers to it.
void Fsck::SharedReferences::fill(ReferenceMap* map) const
{
  for (const auto& [block, count] : references)
    map->runs[block] = {1, count};
  if (!map->runs.empty())
    map->runs.try_emplace(map->first_block, ReferenceMap::Run{1, 0});
}

void Fsck::own_shared(const ReferenceMap& slot, int64_t pool, const std::string& name)
{
  for (const Extent& extent : slot.owned()) {
    own(extent, name);
    pools[pool][PoolStats::allocated_bytes] += extent.length_bytes();
  }
}

void Fsck::rebuild_reference_map(uint32_t container, uint32_t first_block,
                                 const SharedReferences& found)
{
  const std::string name = name_of(container, first_block);
  ReferenceMap map;
  map.container = container;
  map.first_block = first_block;
  found.fill(&map);
  if (extents_lost) {
    error("the references of " + name + " are missing or damaged; they stay so, because the "
          "extents of some objects cannot be read");
  } else {
    repairable("the references of " + name + " are missing or damaged", [&](Txn& txn) {
      txn.put(Family::super, reference_map_key(container, first_block), map.encode());
    });
  }
  own_shared(map, found.pool, name);
}

void Fsck::check_reference_map(std::string_view key, const ReferenceMap& slot)
{
  const std::string name = name_of(slot.container, slot.first_block);
  SharedReferences found;
  if (auto p = shared.find({slot.container, slot.first_block}); p != shared.end()) {
    found = std::move(p->second);
    shared.erase(p);
  }
  // What the row says, block by block.
  std::map<uint32_t, uint32_t> recorded;
  for (const auto& [block, run] : slot.runs) {
    for (uint32_t i = 0; i < run.blocks && run.references > 0; ++i)
      recorded[block + i] = run.references;
  }
  if (recorded == found.references || extents_lost) {
    if (recorded != found.references)
      error(name + " has other references than its row says");
    own_shared(slot, found.pool, name);
    return;
  }
  ReferenceMap fixed;
  fixed.container = slot.container;
  fixed.first_block = slot.first_block;
  found.fill(&fixed);
  repairable(name + " has other references than its row says", [&](Txn& txn) {
    if (fixed.runs.empty())
      txn.erase(Family::super, key);
    else
      txn.put(Family::super, key, fixed.encode());
  });
  own_shared(options.repair ? fixed : slot, found.pool, name);
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
  bool adopts = options.repair && !engine.knows_owners();
  const auto adopt = [&](Txn&) { adopts = true; };
  if (missing > 0)
    repairable(std::to_string(missing) + " blocks of objects are free to the allocator", adopt);
  if (leaked > 0 && extents_lost) {
    error(std::to_string(leaked) + " blocks that no object is known to have; they stay as they "
          "are, because the extents of some objects cannot be read");
  } else if (leaked > 0) {
    repairable(std::to_string(leaked) + " blocks that no object has", adopt);
  }
  if (!adopts)
    return {};
  if (extents_lost)
    keep_blocks_without_owner();
  return engine.adopt_owned(owned_blocks);
}

void Fsck::keep_blocks_without_owner()
{
  for (const auto& [container, engine_says] : engine_blocks) {
    BlockBitmap& owned =
        owned_blocks.try_emplace(container, engine_says.blocks()).first->second;
    for (uint32_t b = engine_says.next_set(0); b < engine_says.blocks();
         b = engine_says.next_set(b + 1))
      owned.set(b, 1);
  }
}

}  // namespace tablestore
