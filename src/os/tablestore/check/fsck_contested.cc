// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Blocks that several extents have and do not share. The first of their owners to go would free
// what the others still have. Where these are objects of one hash, they can share: then nothing is
// freed too early, and checksums say whose data it is.

#include <algorithm>
#include <optional>

#include "common/debug.h"
#include "include/stringify.h"
#include "os/tablestore/check/fsck.h"
#include "os/tablestore/object/onode_rows.h"
#include "os/tablestore/rows/keys.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.fsck "

namespace tablestore {

namespace {

bool has_any(const std::map<uint32_t, BlockBitmap>& bitmaps, const Extent& extent)
{
  const auto p = bitmaps.find(extent.container);
  return p != bitmaps.end() && extent.end() <= p->second.blocks() &&
         p->second.any(extent.block, extent.blocks);
}

}  // namespace

Status Fsck::check_contested_blocks()
{
  if (contested_blocks.empty())
    return {};
  std::map<uint32_t, BlockBitmap> seen, of_several_hashes;
  Status s = for_each_hash([&](std::vector<ContestedExtent>& owners) {
    for (const auto& [o, index, e] : owners) {
      derr << "container " << e->physical.container << " blocks " << e->physical.block << "~"
           << e->physical.blocks << ", of which others have some, are of " << o->oid
           << (e->shared ? ", shared" : "") << dendl;
      if (has_any(seen, e->physical)) {
        of_several_hashes.try_emplace(e->physical.container, contested_blocks.at(
                                                                 e->physical.container).blocks())
            .first->second.set(e->physical.block, e->physical.blocks);
      }
    }
    for (const auto& [o, index, e] : owners) {
      seen.try_emplace(e->physical.container,
                       contested_blocks.at(e->physical.container).blocks())
          .first->second.set(e->physical.block, e->physical.blocks);
    }
  });
  if (!s.ok() || !options.repair || extents_lost)
    return s;
  return for_each_hash([&](std::vector<ContestedExtent>& owners) {
    std::ranges::sort(owners, [](const auto& a, const auto& b) {
      return a.extent->physical < b.extent->physical;
    });
    for (std::span<ContestedExtent> rest = owners; !rest.empty();) {
      size_t count = 0;
      Extent all = rest.front().extent->physical;
      for (; count < rest.size(); ++count) {
        const Extent& next = rest[count].extent->physical;
        if (next.container != all.container || next.block >= all.end())
          break;
        all.blocks = std::max(all.end(), next.end()) - all.block;
      }
      if (count > 1 && !has_any(of_several_hashes, all))
        share_anew(rest.first(count), all);
      rest = rest.subspan(count);
    }
  });
}

Status Fsck::for_each_hash(const std::function<void(std::vector<ContestedExtent>&)>& f)
{
  const auto [first, last] = all_onodes_range();
  auto it = engine.iterate(Family::object, first, last);
  std::string hash;
  std::vector<ContestedExtent> owners;
  for (it->seek(first); it->valid(); it->next()) {
    if (hash_part(it->key()) != hash) {
      if (!owners.empty())
        f(owners);
      owners.clear();
      hash = hash_part(it->key());
    }
    auto o = std::make_shared<Onode>();
    o->key = it->key();
    try {
      if (!decode_onode_key(it->key(), &o->oid))
        continue;
      o->decode(it->value());
    } catch (const ceph::buffer::error&) {
      continue;   // which was said
    }
    data.load_all(o);
    for (auto& [index, shard] : o->shards) {
      for (MappedExtent& e : shard.extents) {
        if (has_any(contested_blocks, e.physical))
          owners.push_back(ContestedExtent{o, index, &e});
      }
    }
  }
  if (!owners.empty())
    f(owners);
  return it->status();
}

void Fsck::share_anew(std::span<ContestedExtent> owners, const Extent& all)
{
  std::optional<uint32_t> name;
  for (const auto& [o, index, e] : owners) {
    // Of objects with one number nobody knows whose the extents are.
    const auto doubt = in_doubt.find(o->nid);
    if (doubt != in_doubt.end() && doubt->second.objects > 1)
      return;
    if (e->shared && name && *name != e->map_block)
      return;
    if (e->shared)
      name = e->map_block;
  }
  // One that is there has other blocks than these.
  const auto named = settled.find(all.container);
  if (!name && named != settled.end() && named->second.test(all.block))
    return;
  if (!name)
    name = all.block;
  if (all.block < *name || all.end() - *name > largest_slot_blocks)
    return;
  for (const auto& [o, index, e] : owners) {
    if (e->shared)
      continue;
    e->shared = true;
    e->map_block = *name;
    derr << o->oid << " shares container " << e->physical.container << " blocks "
         << e->physical.block << "~" << e->physical.blocks << " from now on; repaired" << dendl;
    if (o->embeds_shard())
      put_onode(*fixes, *o);
    else
      fixes->put(Family::object, shard_key(o->nid, index), o->shards.at(index).encode());
    more_to_do = true;
  }
}

}  // namespace tablestore
