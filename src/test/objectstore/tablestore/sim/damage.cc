// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/damage.h"

#include <algorithm>

#include "os/tablestore/TableStore.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/mounted_store.h"
#include "os/tablestore/rows/keys.h"
#include "test/tablestore/sim/damage_bounds.h"

namespace tablestore_sim {

using namespace tablestore;

// ---- rows

void LostKeys::add(const DamagedTableFile& file)
{
  auto& of_family = ranges[size_t(file.family)];
  // Its first and last key included.
  const std::string before_first =
      file.first.empty() ? file.first : file.first.substr(0, file.first.size() - 1);
  const std::string behind_last = file.last + '\0';
  if (file.gaps.empty() && !file.no_row_lost)
    of_family.emplace_back(before_first, behind_last);
  for (const auto& [after, before] : file.gaps)
    of_family.emplace_back(after.empty() ? before_first : after,
                           before.empty() ? behind_last : before);
}

bool LostKeys::empty() const
{
  return std::all_of(ranges.begin(), ranges.end(), [](const auto& r) { return r.empty(); });
}

bool LostKeys::contains(Family family, std::string_view key) const
{
  const auto& of_family = ranges[size_t(family)];
  return std::any_of(of_family.begin(), of_family.end(), [&](const auto& range) {
    return range.first < key && key < range.second;
  });
}

bool LostKeys::any(Family family, std::string_view first, std::string_view end) const
{
  const auto& of_family = ranges[size_t(family)];
  return std::any_of(of_family.begin(), of_family.end(), [&](const auto& range) {
    return range.first < end && first < range.second;
  });
}

unsigned lost_rows(TableStore& store, const coll_t& cid, const ghobject_t& oid,
                   const LostKeys& lost)
{
  if (lost.contains(Family::object, onode_key(oid)))
    return Damage::onode | Damage::of_data | Damage::of_omap;
  auto handle = store.open_collection(cid);
  const ObjectInUse object = store.parts().objects.use(static_cast<Collection&>(*handle), oid);
  if (object.r < 0)
    return 0;
  const Onode& o = *object.o;
  unsigned found = 0;
  if (lost.any(Family::object, shard_key(o.nid, 0), shard_key(o.nid + 1, 0)) ||
      lost.contains(Family::data, inline_key(o.nid)))
    found |= Damage::of_data;
  const auto [first, end] = omap_range(omap_prefix(o.omap_pool, o.nid));
  if (lost.any(Family::omap, first, end))
    found |= Damage::of_omap;
  return found;
}

bool may_lose_both_copies(const sim::DiskImage& image, const EngineOptions& options)
{
  const auto [first, last] = all_copies_range();
  return !sim::can_read(image, options, {Family::super, "C", "N"}) &&
      !sim::can_read(image, options, {Family::object, first, last});
}

// ---- files

std::set<Damage::Block> damaged_data(const sim::DiskImage& image)
{
  std::set<Damage::Block> found;
  for (const auto& [path, id] : image.names()) {
    if (!path.starts_with("containers/") || image.inode(id).damaged.empty())
      continue;
    const uint32_t container = uint32_t(std::stoul(path.substr(path.rfind('/') + 1)));
    for (const auto& [block, damaged] : image.inode(id).damaged)
      found.insert({container, block});
  }
  return found;
}

std::set<std::string> damaged_table_files(const sim::DiskImage& image)
{
  std::set<std::string> found;
  for (const auto& [path, id] : image.names()) {
    if (path.starts_with("table/") && !image.inode(id).damaged.empty())
      found.insert(path.substr(path.rfind('/') + 1));
  }
  return found;
}

// ---- blocks

namespace {

bool is_marked(Engine& engine, const Run& block, uint32_t expected)
{
  BlockMemory memory(block_bytes);
  if (!engine.read(block, memory.span()).ok())
    return false;
  const iovec all{memory.data(), block_bytes};
  std::vector<uint32_t> checksums;
  crc32c_blocks(std::span(&all, 1), &checksums);
  return is_lost(expected, checksums[0]);
}

}  // namespace

bool DamagedBlocks::any() const
{
  return inline_marked || std::find(on_disk.begin(), on_disk.end(), true) != on_disk.end() ||
      std::find(marked.begin(), marked.end(), true) != marked.end();
}

bool DamagedBlocks::at(uint64_t block) const
{
  return inline_marked || (block < on_disk.size() && (on_disk[block] || marked[block]));
}

DamagedBlocks damaged_blocks(TableStore& store, const coll_t& cid, const ghobject_t& oid,
                             const std::set<Damage::Block>& damaged)
{
  MountedStore& parts = store.parts();
  auto handle = store.open_collection(cid);
  const ObjectInUse object = parts.objects.use(static_cast<Collection&>(*handle), oid);
  DamagedBlocks found;
  if (object.r < 0 || parts.data.load_all(object.o) < 0)
    return found;
  if (object.o->inline_data) {
    std::string row;
    const auto is = parts.engine.get(Family::data, inline_key(object.o->nid), &row);
    found.inline_marked = object.o->inline_lost ||
        (is.ok() && *is &&
         is_lost(object.o->inline_checksum, crc32c(0, row.data(), row.size())));
    return found;
  }
  for (const auto& [index, shard] : object.o->shards) {
    for (const MappedExtent& e : shard.extents) {
      const uint64_t first = uint64_t(index) * object.o->span_blocks + e.logical_block;
      if (found.on_disk.size() < first + e.physical.blocks) {
        found.on_disk.resize(first + e.physical.blocks);
        found.marked.resize(first + e.physical.blocks);
      }
      for (uint32_t i = 0; i < e.physical.blocks; ++i) {
        const Run block{e.physical.container, e.physical.block + i, 1};
        found.on_disk[first + i] = damaged.contains({block.container, block.block});
        found.marked[first + i] = is_marked(parts.engine, block, e.checksums[i]);
      }
    }
  }
  return found;
}

}  // namespace tablestore_sim
