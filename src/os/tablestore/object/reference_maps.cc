// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include "os/tablestore/object/reference_maps.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/debug.h"
#include "common/dout.h"
#include "include/ceph_assert.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.reference_maps "

namespace tablestore {

namespace {

constexpr uint8_t reference_map_version = newest_reference_map_version;
constexpr uint8_t reference_map_compat = 1;
constexpr uint64_t u32_max = std::numeric_limits<uint32_t>::max();
constexpr size_t trim_at_least = 4096;
constexpr size_t trim_all_at = 65536;   // some 20 MB

}  // namespace

void ReferenceMap::split_at(uint32_t block)
{
  auto p = runs.upper_bound(block);
  if (p == runs.begin())
    return;
  --p;
  const uint32_t end = p->first + p->second.blocks;
  if (p->first == block || end <= block)
    return;
  runs.emplace_hint(std::next(p), block, Run{end - block, p->second.references});
  p->second.blocks = block - p->first;
}

bool ReferenceMap::covered(uint32_t block, uint32_t blocks, uint32_t references_min) const
{
  auto p = runs.upper_bound(block);
  if (p == runs.begin())
    return false;
  --p;
  const uint32_t end = block + blocks;
  for (; block < end; ++p) {
    if (p == runs.end() || p->first > block || p->first + p->second.blocks <= block ||
        p->second.references < references_min)
      return false;
    block = p->first + p->second.blocks;
  }
  return true;
}

void ReferenceMap::merge_neighbours()
{
  for (auto p = runs.begin(); p != runs.end();) {
    auto next = std::next(p);
    if (next != runs.end() && p->first + p->second.blocks == next->first &&
        p->second.references == next->second.references) {
      p->second.blocks += next->second.blocks;
      runs.erase(next);
    } else {
      p = next;
    }
  }
}

bool ReferenceMap::add_reference(uint32_t block, uint32_t blocks)
{
  if (!covered(block, blocks, 1))
    return false;
  split_at(block);
  split_at(block + blocks);
  for (auto p = runs.find(block); p != runs.end() && p->first < block + blocks; ++p)
    ++p->second.references;
  merge_neighbours();
  return true;
}

bool ReferenceMap::drop_reference(uint32_t block, uint32_t blocks, std::vector<Extent>* freed)
{
  if (!covered(block, blocks, 1))
    return false;
  split_at(block);
  split_at(block + blocks);
  for (auto p = runs.find(block); p != runs.end() && p->first < block + blocks; ++p)
    --p->second.references;
  take_free(freed);
  merge_neighbours();
  return true;
}

bool ReferenceMap::has_one_owner(uint32_t block, uint32_t blocks) const
{
  if (!covered(block, blocks, 1))
    return false;
  const uint32_t end = block + blocks;
  auto p = std::prev(runs.upper_bound(block));
  for (; p != runs.end() && p->first < end; ++p) {
    if (p->second.references > 1)
      return false;
  }
  const auto last = std::prev(p);
  const bool nothing_behind = p == runs.end() && last->first + last->second.blocks <= end;
  return block > first_block || nothing_behind;
}

void ReferenceMap::hand_over(uint32_t block, uint32_t blocks, std::vector<Extent>* freed)
{
  ceph_assert(has_one_owner(block, blocks));
  split_at(block);
  split_at(block + blocks);
  runs.erase(runs.lower_bound(block), runs.lower_bound(block + blocks));
  take_free(freed);
  merge_neighbours();
}

void ReferenceMap::take_free(std::vector<Extent>* freed)
{
  const bool in_use = std::any_of(runs.begin(), runs.end(),
                                  [](const auto& r) { return r.second.references > 0; });
  if (in_use)
    split_at(first_block + 1);
  for (auto p = runs.begin(); p != runs.end();) {
    if (p->second.references > 0 || (in_use && p->first == first_block)) {
      ++p;
      continue;
    }
    if (!freed->empty() && freed->back().container == container &&
        freed->back().end() == p->first) {
      freed->back().blocks += p->second.blocks;
    } else {
      freed->push_back(Extent{container, p->first, p->second.blocks});
    }
    p = runs.erase(p);
  }
}

std::vector<Extent> ReferenceMap::owned() const
{
  std::vector<Extent> extents;
  for (const auto& [block, run] : runs)
    extents.push_back(Extent{container, block, run.blocks});
  return extents;
}

std::string ReferenceMap::encode() const
{
  ValueWriter out;
  out.varint(runs.size());
  uint32_t position = first_block;
  for (const auto& [block, run] : runs) {
    out.varint(block - position);
    out.varint(run.blocks);
    out.varint(run.references);
    position = block + run.blocks;
  }
  return out.finish(reference_map_version, reference_map_compat);
}

void ReferenceMap::decode(std::string_view row)
{
  ValueReader in(reference_map_version, row);
  runs.clear();
  uint64_t position = first_block;
  const uint64_t end = std::min(position + largest_slot_blocks, u32_max);
  for (uint64_t left = in.varint_up_to(largest_slot_blocks); left > 0; --left) {
    position += in.varint_up_to(end - position);
    Run run;
    run.blocks = in.varint_up_to(end - position);
    run.references = in.varint_up_to(u32_max);
    if (run.blocks == 0)
      throw_malformed("empty run of a reference map");
    if (run.references == 0 && (position != first_block || run.blocks != 1))
      throw_malformed("blocks of a reference map without references");
    runs.emplace(position, run);
    position += run.blocks;
  }
  if (runs.empty() || runs.begin()->first != first_block)
    throw_malformed("reference map without its first block");
}

ReferenceMaps::ReferenceMaps(CephContext* cct, Engine& engine) : cct(cct), engine(engine)
{
  for (auto& count : departures)
    count = 1;
}

ReferenceMapRef ReferenceMaps::create(const Extent& extent)
{
  auto map = std::make_shared<ReferenceMap>(extent.container, extent.block);
  std::lock_guard l{mutex};
  make_room_locked();
  // One of this name that is still pinned is a dead one, empty: the blocks were handed out again.
  ReferenceMapRef& entry = maps[name_of(extent.container, extent.block)];
  ceph_assert(!entry || entry->runs.empty());
  entry = map;
  map->used = true;
  return map;
}

int ReferenceMaps::load(uint32_t container, uint32_t first_block, ReferenceMapRef* loaded)
{
  const uint64_t name = name_of(container, first_block);
  {
    std::lock_guard l{mutex};
    if (auto p = maps.find(name); p != maps.end()) {
      p->second->used = true;
      *loaded = p->second;
      return 0;
    }
  }
  auto map = std::make_shared<ReferenceMap>(container, first_block);
  std::string row;
  ++row_reads;
  const Result<bool> found =
      engine.get(Family::super, reference_map_key(container, first_block), &row);
  if (!found.ok()) {
    derr << "cannot read the row of the reference map at container " << container << " block "
         << first_block << ": " << found.status().what() << dendl;
    return -found.status().code();
  }
  if (!*found) {
    derr << "the row of the reference map at container " << container << " block " << first_block
         << " is missing, run ceph-objectstore-tool --op repair" << dendl;
    return -EIO;
  }
  try {
    map->decode(row);
  } catch (const NewerVersion& e) {
    derr << "the row of the reference map at container " << container << " block " << first_block
         << ": " << e.what() << dendl;
    return -EOPNOTSUPP;
  } catch (const ceph::buffer::error& e) {
    derr << "the row of the reference map at container " << container << " block " << first_block
         << " is damaged, run ceph-objectstore-tool --op repair: " << e.what() << dendl;
    return -EIO;
  }
  map->used = true;
  std::lock_guard l{mutex};
  make_room_locked();
  *loaded = maps.try_emplace(name, map).first->second;
  return 0;
}

void ReferenceMaps::load_together(std::span<MappedExtent* const> extents)
{
  std::vector<ReferenceMapRef> missing;
  std::vector<std::string> keys;
  {
    std::lock_guard l{mutex};
    for (const MappedExtent* e : extents) {
      const bool is_asked_for = !missing.empty() && missing.back()->first_block == e->map_block &&
          missing.back()->container == e->physical.container;
      if (is_asked_for || maps.contains(name_of(e->physical.container, e->map_block)))
        continue;
      missing.push_back(std::make_shared<ReferenceMap>(e->physical.container, e->map_block));
      keys.push_back(reference_map_key(e->physical.container, e->map_block));
    }
  }
  if (missing.size() < 2)
    return;
  row_reads += keys.size();
  const auto rows = engine.get(Family::super, keys);
  if (!rows.ok())
    return;
  std::lock_guard l{mutex};
  make_room_locked();
  for (size_t i = 0; i < missing.size(); ++i) {
    try {
      if (!(*rows)[i])
        continue;
      missing[i]->decode(*(*rows)[i]);
      missing[i]->used = true;
      maps.try_emplace(name_of(missing[i]->container, missing[i]->first_block), missing[i]);
    } catch (const ceph::buffer::error&) {
      // Who asks for this one is told.
    }
  }
}

int ReferenceMaps::share(ObjectTxn& txn, MappedExtent& e, const Extent& part)
{
  ceph_assert(part.container == e.physical.container && part.block >= e.physical.block &&
              part.end() <= e.physical.end());
  ReferenceMapRef map;
  if (e.shared) {
    if (int r = load(e.physical.container, e.map_block, &map); r < 0)
      return r;
    txn.dirty(map);
  } else {
    map = create(e.physical);
    txn.dirty(map);
    map->runs.emplace(e.physical.block, ReferenceMap::Run{e.physical.blocks, 1});
    e.shared = true;
    e.map_block = e.physical.block;
    ++shared;
  }
  if (!map->add_reference(part.block, part.blocks)) {
    derr << "the reference map at container " << map->container << " block " << map->first_block
         << " does not hold blocks " << part.block << "~" << part.blocks
         << " that an object refers to, run ceph-objectstore-tool --op repair" << dendl;
    return -EIO;
  }
  e.looked_at = departures_of(e);
  return 0;
}

int ReferenceMaps::release(ObjectTxn& txn, const MappedExtent& e, std::vector<Extent>* freed)
{
  ReferenceMapRef map;
  if (int r = load(e.physical.container, e.map_block, &map); r < 0)
    return r;
  txn.dirty(map);
  std::vector<Extent> lost;
  if (!map->drop_reference(e.physical.block, e.physical.blocks, &lost)) {
    derr << "the reference map at container " << map->container << " block " << map->first_block
         << " does not hold blocks " << e.physical.block << "~" << e.physical.blocks
         << " that an object refers to, run ceph-objectstore-tool --op repair" << dendl;
    return -EIO;
  }
  ++departures_of(e);
  for (const Extent& extent : lost) {
    txn.free(extent);
    freed->push_back(extent);
  }
  return 0;
}

void ReferenceMaps::unshare(ObjectTxn& txn, std::vector<MappedExtent*>& extents,
                            std::vector<Extent>* freed)
{
  // The first block of a map can only be handed over when nothing else is left.
  std::ranges::sort(extents, [](const MappedExtent* a, const MappedExtent* b) {
    return a->physical > b->physical;
  });
  load_together(extents);
  for (MappedExtent* e : extents) {
    const Extent& blocks = e->physical;
    ReferenceMapRef map;
    if (load(blocks.container, e->map_block, &map) < 0 ||
        !map->has_one_owner(blocks.block, blocks.blocks)) {
      e->looked_at = departures_of(*e);
      continue;
    }
    txn.dirty(map);
    ++departures_of(*e);
    std::vector<Extent> for_name;
    map->hand_over(blocks.block, blocks.blocks, &for_name);
    for (const Extent& extent : for_name) {
      txn.free(extent);
      freed->push_back(extent);
    }
    e->shared = false;
    e->map_block = 0;
    e->looked_at = 0;
    ++unshared;
  }
}

bool ReferenceMaps::is_counted(const ReferenceMapName& name,
                               const std::vector<SharedToMove::Block>& blocks)
{
  ReferenceMapRef map;
  if (load(name.container, name.first_block, &map) < 0 || blocks.empty())
    return false;
  auto p = blocks.begin();
  for (const auto& [first, run] : map->runs) {
    for (uint32_t i = 0; run.references > 0 && i < run.blocks; ++i, ++p) {
      if (p == blocks.end() || p->block != first + i || p->references != run.references)
        return false;
    }
  }
  return p == blocks.end();
}

std::vector<Extent> ReferenceMaps::move(ObjectTxn& txn, const SharedToMove& what,
                                        const std::vector<Extent>& extents)
{
  ReferenceMapRef old;
  const int r = load(what.name.container, what.name.first_block, &old);
  ceph_assert(r == 0);
  txn.dirty(old);
  const std::vector<Extent> freed = old->owned();
  for (const Extent& extent : freed)
    txn.free(extent);
  old->runs.clear();
  auto p = what.blocks.begin();
  for (const Extent& extent : extents) {
    const ReferenceMapRef map = create(extent);
    txn.dirty(map);
    for (uint32_t i = 0; i < extent.blocks; ++i, ++p)
      map->runs.emplace(extent.block + i, ReferenceMap::Run{1, p->references});
    map->merge_neighbours();
  }
  return freed;
}

void ReferenceMaps::write_out(Txn& txn, ReferenceMap& map)
{
  const std::string key = reference_map_key(map.container, map.first_block);
  if (map.runs.empty())
    txn.erase(Family::super, key);
  else
    txn.put(Family::super, key, map.encode());
  map.dirty = false;
}

void ReferenceMaps::forget(const ReferenceMapRef& map)
{
  // One is the transaction that failed.
  ceph_assert(map->transactions_in_flight <= 1);
  std::lock_guard l{mutex};
  auto p = maps.find(name_of(map->container, map->first_block));
  if (p != maps.end() && p->second == map)
    maps.erase(p);
}

void ReferenceMaps::trim()
{
  std::lock_guard l{mutex};
  trim_locked(true);
}

void ReferenceMaps::make_room_locked()
{
  if (maps.size() >= trim_at)
    trim_locked(maps.size() >= trim_all_at);
}

void ReferenceMaps::trim_locked(bool all)
{
  std::erase_if(maps, [all](const auto& entry) {
    const ReferenceMapRef& map = entry.second;
    // Whoever uses one under its collection's lock holds a reference besides the map's.
    const bool pinned = map.use_count() > 1 || map->transactions_in_flight > 0;
    const bool was_used = std::exchange(map->used, false);
    return !pinned && (all || !was_used);
  });
  trim_at = std::max(trim_at_least, maps.size() * 2);
}

uint64_t ReferenceMaps::count() const
{
  std::lock_guard l{mutex};
  return maps.size();
}

}  // namespace tablestore
