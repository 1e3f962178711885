// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "common/debug.h"
#include "common/pretty_binary.h"
#include "include/rados.h"
#include "include/stringify.h"
#include "os/tablestore/check/fsck.h"
#include "os/tablestore/rows/keys.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.fsck "

namespace tablestore {

namespace {

// Deep fsck reads an object in pieces of this size.
constexpr uint64_t read_bytes = 4 << 20;

std::string name_of(const Extent& e)
{
  return "container " + std::to_string(e.container) + " blocks " + std::to_string(e.block) + "~" +
         std::to_string(e.blocks);
}

}  // namespace

void Fsck::check_collection(const Onode& o)
{
  for (const KeyRange& range : collection_ranges) {
    if (o.key >= range.first && o.key < range.last)
      return;
  }
  // The meta collection takes objects of any pool, though it does not list them.
  if (has_meta && pools_with_collections.count(normalised_pool(o.oid.hobj.pool)) == 0)
    dout(0) << o.oid << " is in no collection that lists it" << dendl;
  else
    error(stringify(o.oid) + " is in no collection");
}

Status Fsck::check_objects()
{
  const auto [first, last] = all_onodes_range();
  auto it = engine.iterate(Family::object, first, last);
  for (it->seek(first); it->valid(); it->next()) {
    auto o = std::make_shared<Onode>();
    o->key = it->key();
    if (!decode_onode_key(it->key(), &o->oid)) {
      repairable("the key " + pretty_binary_string(o->key) + " is no object",
                 [&](Txn& txn) { txn.erase(Family::object, o->key); });
      continue;
    }
    try {
      o->decode(it->value());
      o->exists = true;
    } catch (const ceph::buffer::error& e) {
      error(stringify(o->oid) + " has a damaged row: " + e.what());
      extents_lost = true;
      continue;
    }
    check_collection(*o);
    check_object(o);
  }
  return it->status();
}

void Fsck::check_object(const OnodeRef& o)
{
  ObjectRows rows;
  rows.pool = o->omap_pool;
  rows.has_omap = o->has_omap;
  rows.inline_data = o->inline_data;
  if (!o->embeds_shard())
    rows.shards = o->shards_present;
  if (!objects.emplace(o->nid, std::move(rows)).second)
    error(stringify(o->oid) + " has the number of another object: " + std::to_string(o->nid));

  PoolStats& stats = pools[o->omap_pool];
  ++stats[PoolStats::objects];
  if (o->inline_data) {
    stats[PoolStats::stored_bytes] += o->size;
    stats[PoolStats::inline_bytes] += o->size;
  }
  if (data.load_all(o) < 0) {
    error(stringify(o->oid) + " has a damaged extent map");
    extents_lost = true;
    return;
  }
  count_extents(*o, &stats);
  for (uint64_t offset = 0; options.deep && offset < o->size; offset += read_bytes) {
    ceph::buffer::list bl;
    if (data.read(o, offset, read_bytes, bl, CEPH_OSD_OP_FLAG_FADVISE_NOCACHE) < 0)
      error(stringify(o->oid) + " has damaged data after offset " + std::to_string(offset));
  }
}

void Fsck::count_extents(const Onode& o, PoolStats* stats)
{
  for (const auto& [index, shard] : o.shards) {
    const uint64_t shard_start = index * shard_span_bytes;
    for (const MappedExtent& e : shard.extents) {
      const uint64_t start = shard_start + uint64_t(e.logical_block) * block_bytes;
      (*stats)[PoolStats::stored_bytes] +=
          std::min(start + e.physical.length_bytes(), std::max(o.size, start)) - start;
      if (!e.shared) {
        own(e.physical, stringify(o.oid));
        (*stats)[PoolStats::allocated_bytes] += e.physical.length_bytes();
        continue;
      }
      auto [p, first] = shared.try_emplace({e.physical.container, e.map_block});
      if (first)
        p->second.pool = o.omap_pool;
      for (uint32_t block = e.physical.block; block < e.physical.end(); ++block)
        ++p->second.references[block];
    }
  }
}

void Fsck::own(const Extent& extent, const std::string& owner)
{
  const auto there = engine_blocks.find(extent.container);
  if (there == engine_blocks.end() || extent.end() > there->second.blocks()) {
    error(owner + " has " + name_of(extent) + ", which is not in this store");
    return;
  }
  BlockBitmap& owned =
      owned_blocks.try_emplace(extent.container, there->second.blocks()).first->second;
  if (owned.any(extent.block, extent.blocks))
    error(owner + " has " + name_of(extent) + ", of which something else has a part");
  owned.set(extent.block, extent.blocks);
}

}  // namespace tablestore
