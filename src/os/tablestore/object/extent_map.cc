// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include "os/tablestore/object/extent_map.h"

#include <algorithm>

#include "common/debug.h"
#include "common/dout.h"
#include "include/ceph_assert.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.extent_map "

namespace tablestore {

ExtentMap::ExtentMap(CephContext* cct, Engine& engine) : cct(cct), engine(engine) {}

std::pair<uint32_t, uint32_t> ExtentMap::shards_of(const Onode& o, const BlockRange& range)
{
  if (range.empty())
    return {0, 0};
  const uint64_t present = o.shards_present.size();
  const uint64_t first = std::min<uint64_t>(range.first / o.span_blocks, present);
  const uint64_t end = std::min<uint64_t>((range.end - 1) / o.span_blocks + 1, present);
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end)};
}

BlockRange ExtentMap::range_of(const Onode& o, uint32_t index)
{
  const uint64_t first = uint64_t(index) * o.span_blocks;
  return {first, std::min(first + o.span_blocks, std::max(first, block_ceil(o.size)))};
}

std::vector<uint32_t> ExtentMap::missing(const Onode& o, const BlockRange& range) const
{
  std::vector<uint32_t> indices;
  const auto [first, end] = shards_of(o, range);
  for (uint32_t index = first; index < end; ++index) {
    if (o.has_shard(index) && !o.shards.contains(index))
      indices.push_back(index);
  }
  return indices;
}

int ExtentMap::decode(const Onode& o, uint32_t index, const std::optional<std::string>& row,
                      ExtentShard* shard) const
{
  if (!row) {
    derr << "extent map of " << o.oid << " (nid " << o.nid << "): shard " << index
         << " is missing; 'ceph pg repair' brings the object back from a replica"
         << dendl;
    return -EIO;
  }
  try {
    ceph::buffer::list bl;
    bl.append(*row);
    auto p = bl.cbegin();
    shard->decode(p);
    if (!shard->extents.empty() && shard->extents.back().logical_end() > o.span_blocks)
      throw_malformed("extent reaches beyond its shard");
  } catch (const NewerVersion& e) {
    derr << "extent map of " << o.oid << " (nid " << o.nid << "): shard " << index << ": "
         << e.what() << dendl;
    return -EOPNOTSUPP;
  } catch (const ceph::buffer::error& e) {
    derr << "extent map of " << o.oid << " (nid " << o.nid << "): shard " << index
         << " is damaged: " << e.what()
         << "; 'ceph pg repair' brings the object back from a replica" << dendl;
    return -EIO;
  }
  shard->has_row = true;
  return 0;
}

int ExtentMap::read_rows(const Onode& o, const std::vector<uint32_t>& indices, Rows* rows) const
{
  std::vector<std::string> keys;
  for (uint32_t index : indices)
    keys.push_back(shard_key(o.nid, index));
  if (auto all = engine.get(Family::object, keys); all.ok()) {
    *rows = all.take();
    return 0;
  }
  // One by one: what can be read is not lost with what cannot.
  for (const std::string& key : keys) {
    std::string row;
    const auto found = engine.get(Family::object, key, &row);
    if (!found.ok()) {
      derr << "cannot read the extent map of " << o.oid << ": " << found.status().what() << dendl;
      if (found.status().code() != EIO)
        return -found.status().code();
      row.clear();
    }
    rows->push_back(found.ok() && !*found ? std::nullopt : std::optional(std::move(row)));
  }
  return 0;
}

int ExtentMap::load(Onode& o, const BlockRange& range) const
{
  std::lock_guard l{o.load_lock};
  const std::vector<uint32_t> indices = missing(o, range);
  if (indices.empty())
    return 0;
  Rows rows;
  if (int r = read_rows(o, indices, &rows); r < 0)
    return r;
  int result = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    ExtentShard shard;
    const int r = decode(o, indices[i], rows[i], &shard);
    if (r == 0)
      o.shards.emplace(indices[i], std::move(shard));
    else if (result != -EOPNOTSUPP)
      result = r;
  }
  return result;
}

std::vector<BlockRange> ExtentMap::missing_ranges(Onode& o, const BlockRange& range) const
{
  std::lock_guard l{o.load_lock};
  std::vector<BlockRange> ranges;
  for (uint32_t index : missing(o, range))
    ranges.push_back(range_of(o, index));
  return ranges;
}

int ExtentMap::load_to_change(Onode& o, const BlockRange& range,
                              std::vector<BlockRange>* lost) const
{
  if (const int r = load(o, range); r != -EIO)
    return r;
  std::lock_guard l{o.load_lock};
  for (uint32_t index : missing(o, range)) {
    derr << "extent map of " << o.oid << ": forgets shard " << index
         << ", which is to be changed; its blocks come back by ceph-objectstore-tool --op repair"
         << dendl;
    ExtentShard shard;
    shard.dirty = true;
    shard.has_row = true;
    o.shards.emplace(index, std::move(shard));
    o.set_shard_present(index, false);
    lost->push_back(range_of(o, index));
  }
  return 0;
}

ExtentShard* ExtentMap::find(Onode& o, uint32_t index) const
{
  if (!o.has_shard(index))
    return nullptr;
  std::lock_guard l{o.load_lock};
  auto p = o.shards.find(index);
  ceph_assert(p != o.shards.end());
  return &p->second;
}

std::vector<ExtentMap::Piece> ExtentMap::lookup(Onode& o, const BlockRange& range) const
{
  std::vector<Piece> pieces;
  for_each(o, range, [&](const ExtentShard&, const MappedExtent& e, uint64_t base) {
    const uint64_t first = std::max(base + e.logical_block, range.first);
    const uint64_t end = std::min(base + e.logical_end(), range.end);
    const uint32_t skip = static_cast<uint32_t>(first - base - e.logical_block);
    pieces.push_back(Piece{first,
                           Extent{e.physical.container, e.physical.block + skip,
                                  static_cast<uint32_t>(end - first)},
                           e.checksums.data() + skip});
    return 0;
  });
  return pieces;
}

void ExtentMap::punch(Onode& o, const BlockRange& range, std::vector<MappedExtent>* removed) const
{
  const auto [first, end] = shards_of(o, range);
  for (uint32_t index = first; index < end; ++index) {
    ExtentShard* shard = find(o, index);
    if (!shard)
      continue;
    const uint64_t base = uint64_t(index) * o.span_blocks;
    const uint64_t from = std::max(range.first, base) - base;
    const uint64_t to = std::min(range.end, base + o.span_blocks) - base;
    shard->punch(from, to, removed);
    if (shard->extents.empty())
      o.set_shard_present(index, false);
  }
}

void ExtentMap::insert(Onode& o, uint64_t logical_block, const MappedExtent& e) const
{
  ceph_assert(!o.inline_data);
  for (uint32_t done = 0; done < e.physical.blocks;) {
    const uint32_t index = (logical_block + done) / o.span_blocks;
    const uint32_t at = (logical_block + done) % o.span_blocks;
    const uint32_t blocks = std::min(e.physical.blocks - done, o.span_blocks - at);
    MappedExtent part = e.slice(done, blocks);
    part.logical_block = at;
    o.shards[index].insert(std::move(part));
    o.set_shard_present(index, true);
    done += blocks;
  }
}

void ExtentMap::write_out(Txn& txn, Onode& o) const
{
  for (auto p = o.shards.begin(); p != o.shards.end();) {
    auto& [index, shard] = *p;
    if (!shard.dirty) {
      ++p;
      continue;
    }
    const std::string key = shard_key(o.nid, index);
    if (!shard.extents.empty() && !o.embeds_shard()) {
      txn.put(Family::object, key, shard.encode());
      shard.has_row = true;
    } else if (shard.has_row) {
      txn.erase(Family::object, key);
      shard.has_row = false;
    }
    ceph_assert(shard.extents.empty() || index == 0 || !o.embeds_shard());
    shard.dirty = false;
    p = shard.extents.empty() ? o.shards.erase(p) : std::next(p);
  }
}

void ExtentMap::erase_rows(Txn& txn, Onode& o) const
{
  for (const auto& [index, shard] : o.shards) {
    if (shard.has_row)
      txn.erase(Family::object, shard_key(o.nid, index));
  }
  o.shards.clear();
  o.shards_present.clear();
}

}  // namespace tablestore
