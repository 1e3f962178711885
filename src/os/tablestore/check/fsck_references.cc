// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// References to shared extents: what rows say, and what objects have.

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

bool test(const std::map<uint32_t, BlockBitmap>& bitmaps, uint32_t container, uint32_t block)
{
  const auto p = bitmaps.find(container);
  return p != bitmaps.end() && block < p->second.blocks() && p->second.test(block);
}

}  // namespace

void Fsck::settle_references()
{
  if (of_hash.empty())
    return;
  const Runs all = of_hash.runs();
  std::vector<std::string> keys;
  for (Runs rest = all; !rest.empty(); rest = rest.subspan(first_name(rest).size()))
    keys.push_back(reference_map_key(rest.front().container, rest.front().name));
  // What cannot be read now is seen when all rows are read.
  const auto rows = engine.get(Family::super, keys);
  Runs rest = all;
  for (size_t i = 0; !rest.empty(); ++i) {
    const Runs found = first_name(rest);
    rest = rest.subspan(found.size());
    ReferenceMap map(found.front().container, found.front().name);
    try {
      if (rows.ok() && (*rows)[i])
        map.decode(*(*rows)[i]);
    } catch (const ceph::buffer::error&) {
      map.runs.clear();
    }
    if (!settle(map, found))
      unsettled.add(found);
  }
  of_hash.clear();
}

bool Fsck::settle(const ReferenceMap& map, Runs found)
{
  const auto there = engine_blocks.find(map.container);
  if (!agrees(map, found) || there == engine_blocks.end() ||
      map.first_block >= there->second.blocks() ||
      test(settled, map.container, map.first_block))
    return false;
  settled.try_emplace(map.container, there->second.blocks())
      .first->second.set(map.first_block, 1);
  own_shared(map, found.front().pool);
  return true;
}

Status Fsck::check_reference_maps()
{
  const auto [first, last] = reference_maps_range();
  auto it = engine.iterate(Family::super, first, last);
  Runs rest = unsettled.runs();   // in the order of the rows
  ReferenceCounts counts{&memory};
  for (it->seek(first); it->valid(); it->next()) {
    ReferenceMap slot;
    const std::string key(it->key());
    if (!decode_reference_map_key(key, &slot.container, &slot.first_block)) {
      repairable("the row " + pretty_binary_string(key) + " of a shared slot has a bad key",
                 [&](Txn& txn) { txn.erase(Family::super, key); });
      continue;
    }
    const std::pair name{slot.container, slot.first_block};
    const auto is_before = [&name](const ReferenceCounts::Run& run) {
      return std::pair{run.container, run.name} < name;
    };
    while (!rest.empty() && is_before(rest.front())) {
      rebuild_reference_map(first_name(rest));
      rest = rest.subspan(first_name(rest).size());
    }
    Runs found;
    if (!rest.empty() && std::pair{rest.front().container, rest.front().name} == name)
      found = first_name(rest);
    try {
      slot.decode(it->value());
    } catch (const NewerVersion& e) {
      return Status(ENOTSUP, "the row of " + name_of(slot.container, slot.first_block) + ": " +
                                 e.what());
    } catch (const ceph::buffer::error& e) {
      const std::string what = "the row of " + name_of(slot.container, slot.first_block) +
          " is damaged: " + e.what();
      // Where objects refer to it, it is rebuilt with the next row.
      if (!found.empty())
        dout(0) << what << dendl;
      else if (extents_lost)
        error(what);
      else
        repairable(what, [&](Txn& txn) { txn.erase(Family::super, key); });
      continue;
    }
    rest = rest.subspan(found.size());
    const bool agreed = test(settled, slot.container, slot.first_block);
    if (agreed && found.empty())
      continue;
    counts.clear();
    counts.add(found);
    if (agreed) {   // and yet there are more references
      counts.add(slot, found.front().pool);
      disown(slot, found.front().pool);
    }
    check_reference_map(key, slot, counts.runs());
  }
  for (; !rest.empty(); rest = rest.subspan(first_name(rest).size()))
    rebuild_reference_map(first_name(rest));
  return it->status();
}

void Fsck::own_shared(const ReferenceMap& slot, std::optional<int64_t> pool)
{
  const std::string name = name_of(slot.container, slot.first_block);
  for (const Extent& extent : slot.owned()) {
    own(extent, name);
    if (pool)
      pools[*pool][PoolStats::allocated_bytes] += extent.length_bytes();
  }
}

void Fsck::disown(const ReferenceMap& slot, int64_t pool)
{
  for (const Extent& extent : slot.owned()) {
    if (const auto p = owned_blocks.find(extent.container);
        p != owned_blocks.end() && extent.end() <= p->second.blocks())
      p->second.clear(extent.block, extent.blocks);
    pools[pool][PoolStats::allocated_bytes] -= extent.length_bytes();
  }
}

void Fsck::rebuild_reference_map(Runs found)
{
  ReferenceMap map(found.front().container, found.front().name);
  const std::string name = name_of(map.container, map.first_block);
  fill(&map, found);
  if (extents_lost) {
    error("the references of " + name + " are missing or damaged; they stay so, because the "
          "extents of some objects cannot be read");
  } else {
    repairable("the references of " + name + " are missing or damaged", [&](Txn& txn) {
      txn.put(Family::super, reference_map_key(map.container, map.first_block), map.encode());
    });
  }
  own_shared(map, found.front().pool);
}

void Fsck::check_reference_map(std::string_view key, const ReferenceMap& slot, Runs found)
{
  const std::string name = name_of(slot.container, slot.first_block);
  const auto pool = found.empty() ? std::nullopt : std::optional<int64_t>(found.front().pool);
  const std::string what =
      name + (found.empty() ? " has references, and no object has any of it"
                            : " has other references than its row says");
  const bool is_right = !found.empty() && agrees(slot, found);
  if (is_right || extents_lost) {
    if (!is_right)
      error(what);
    own_shared(slot, pool);
    return;
  }
  ReferenceMap fixed(slot.container, slot.first_block);
  fill(&fixed, found);
  repairable(what, [&](Txn& txn) {
    if (fixed.runs.empty())
      txn.erase(Family::super, key);
    else
      txn.put(Family::super, key, fixed.encode());
  });
  own_shared(options.repair ? fixed : slot, pool);
}

}  // namespace tablestore
