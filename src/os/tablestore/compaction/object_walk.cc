// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/compaction/object_walk.h"

#include <algorithm>

#include "os/tablestore/object/onode.h"
#include "os/tablestore/rows/keys.h"

namespace tablestore {

namespace {

/// What there are more of is for the next walk.
constexpr size_t nids_max = 1 << 20;

bool any_in(const std::vector<MappedExtent>& extents, const std::set<uint32_t>& containers)
{
  return std::ranges::any_of(extents, [&](const MappedExtent& e) {
    return containers.contains(e.physical.container);
  });
}

}  // namespace

void ObjectWalk::begin()
{
  phase = Phase::extent_maps;
  at = all_shards_range().first;
  nids.clear();
}

void ObjectWalk::look(const std::set<uint32_t>& containers, unsigned rows,
                      std::vector<ghobject_t>* found)
{
  if (phase == Phase::end)
    return;
  const auto [first, last] = phase == Phase::extent_maps ? all_shards_range() : all_onodes_range();
  // An iterator of its own each time: one that stays would keep what is compacted meanwhile.
  auto it = engine.iterate(Family::object, at, last, AtDamage::step_over);
  for (it->seek(at); it->valid() && rows > 0; it->next(), --rows) {
    if (phase == Phase::extent_maps) {
      look_at_extent_map(containers, it->key(), it->value());
      continue;
    }
    ghobject_t oid;
    if (is_wanted(containers, it->value()) && decode_onode_key(it->key(), &oid))
      found->push_back(std::move(oid));
  }
  if (it->valid()) {
    at = it->key();
    return;
  }
  phase = phase == Phase::extent_maps ? Phase::objects : Phase::end;
  at = all_onodes_range().first;
}

void ObjectWalk::look_at_extent_map(const std::set<uint32_t>& containers, std::string_view key,
                                    std::string_view row)
{
  uint64_t nid;
  uint32_t index;
  if (nids.size() >= nids_max || !decode_shard_key(key, &nid, &index) || nids.contains(nid))
    return;
  ceph::buffer::list bl;
  bl.append(row);
  auto p = bl.cbegin();
  ExtentShard shard;
  try {
    shard.decode(p);
  } catch (const ceph::buffer::error&) {   // damaged, or newer: its blocks stay where they are
    return;
  }
  if (any_in(shard.extents, containers))
    nids.insert(nid);
}

bool ObjectWalk::is_wanted(const std::set<uint32_t>& containers, std::string_view row) const
{
  ObjectContents o;
  try {
    o.decode(row);
  } catch (const ceph::buffer::error&) {
    return false;
  }
  return nids.contains(o.nid) || std::ranges::any_of(o.shards, [&](const auto& shard) {
    return any_in(shard.second.extents, containers);
  });
}

}  // namespace tablestore
