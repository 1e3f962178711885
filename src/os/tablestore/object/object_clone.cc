// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Clones: the target's extent map refers to the source's blocks, until one of them has them alone.

#include <algorithm>

#include "include/ceph_assert.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/reference_maps.h"

namespace tablestore {

namespace {

/// What is in memory at once of a clone that must be copied.
constexpr uint64_t copy_bytes_max = 4 << 20;

}  // namespace

int ObjectData::clone_range(ObjectTxn& txn, const OnodeRef& from, const OnodeRef& to,
                            uint64_t from_offset, uint64_t length, uint64_t to_offset)
{
  const uint64_t end = from_offset + length;
  const uint64_t to_end = to_offset + length;
  ceph_assert(end <= from->size);
  ceph_assert(from != to || to_end <= from_offset || end <= to_offset);
  if (length == 0)
    return 0;
  txn.dirty(from);
  txn.dirty(to);
  if (to->inline_data && from != to && to_offset == 0 && to_end >= to->size) {
    drop_inline(txn, *to);
    set_size(txn, *to, 0);
  }
  // The bytes of a last block beyond the end of its object are zeros: it is shared whole where
  // it becomes the last block of the target.
  const bool to_the_ends = end == from->size && to_end >= to->size;
  const BlockRange whole{block_ceil(from_offset),
                         to_the_ends ? block_ceil(end) : block_floor(end)};
  // Owners of shared blocks are in one collection: a split must not take them apart.
  const bool stays_together = from->oid.hobj.get_hash() == to->oid.hobj.get_hash();
  if (from->inline_data || whole.empty() || !stays_together ||
      from_offset % block_bytes != to_offset % block_bytes)
    return copy_range(txn, from, to, from_offset, length, to_offset);
  if (to->inline_data) {
    if (int r = spill(txn, to, 0, ceph::buffer::list()); r < 0)
      return r;
  }
  const uint64_t whole_start = whole.first * block_bytes;
  const uint64_t whole_end = std::min(whole.end * block_bytes, end);
  const uint64_t to_whole = block_floor(to_offset + (whole_start - from_offset));
  if (int r = share_blocks(txn, *from, whole, *to, to_whole, whole_end - whole_start); r < 0)
    return r;
  // The edges come after: an object that has no blocks could become an inline one by them.
  if (from_offset < whole_start) {
    const int r = copy_range(txn, from, to, from_offset, whole_start - from_offset, to_offset);
    if (r < 0)
      return r;
  }
  if (whole_end < end) {
    return copy_range(txn, from, to, whole_end, end - whole_end,
                      to_offset + (whole_end - from_offset));
  }
  return 0;
}

int ObjectData::copy_range(ObjectTxn& txn, const OnodeRef& from, const OnodeRef& to,
                           uint64_t from_offset, uint64_t length, uint64_t to_offset)
{
  if (!from->inline_data) {
    const BlockRange range{block_floor(from_offset), block_ceil(from_offset + length)};
    const int r = map.load(*from, range);
    if (r < 0 && r != -EIO)   // what cannot be read of the source is lost in the target
      return r;
    if (r == 0 && map.lookup(*from, range).empty())
      return zero(txn, to, to_offset, length);
  }
  while (length > 0) {
    // Pieces end where blocks of the target end, so that none is written twice.
    const uint64_t piece = std::min(length, copy_bytes_max - to_offset % block_bytes);
    if (int r = copy_piece(txn, from, to, from_offset, piece, to_offset); r < 0)
      return r;
    from_offset += piece;
    to_offset += piece;
    length -= piece;
  }
  return 0;
}

int ObjectData::copy_piece(ObjectTxn& txn, const OnodeRef& from, const OnodeRef& to,
                           uint64_t from_offset, uint64_t length, uint64_t to_offset)
{
  ceph::buffer::list data;
  LostBytes lost, lost_there;
  if (int r = read_what_is_left(from, from_offset, length, data, &lost); r < 0)
    return r;
  ceph_assert(data.length() == length);
  for (const auto& [offset, bytes] : lost)
    lost_there.insert(offset - from_offset + to_offset, bytes);
  return write(txn, to, to_offset, data, lost_there);
}

int ObjectData::copy_within(ObjectTxn& txn, const OnodeRef& o, uint64_t from_offset,
                            uint64_t length, uint64_t to_offset)
{
  return copy_piece(txn, o, o, from_offset, length, to_offset);
}

int ObjectData::share_blocks(ObjectTxn& txn, Onode& from, const BlockRange& range, Onode& to,
                             uint64_t to_block, uint64_t bytes)
{
  // What cannot be read now of the source's map may be read later: only the target loses it.
  std::vector<BlockRange> known, unknown;
  if (int r = load_what_is_left(from, range, &known, &unknown); r < 0)
    return r;
  if (int r = reserve_lost(txn, to, unknown); r < 0)
    return r;
  const BlockRange replaced{to_block, to_block + range.blocks()};
  if (int r = load_to_change(txn, to, replaced, replaced); r < 0)
    return r;
  std::vector<std::pair<uint64_t, MappedExtent>> copies;
  for (const BlockRange& part : known) {
    if (int r = share_part(txn, from, part, &copies); r < 0)
      return r;
  }
  unmap_blocks(txn, to, replaced);
  set_size(txn, to, std::max(to.size, to_block * block_bytes + bytes));
  for (const auto& [block, e] : copies)
    map_blocks(txn, to, to_block + (block - range.first), e);
  for (const BlockRange& lost : unknown)
    lose_blocks(txn, to, BlockRange{to_block + (lost.first - range.first),
                                    to_block + (lost.end - range.first)});
  return 0;
}

int ObjectData::load_what_is_left(Onode& o, const BlockRange& range,
                                  std::vector<BlockRange>* known, std::vector<BlockRange>* unknown)
{
  const int r = map.load(o, range);
  if (r < 0 && r != -EIO)
    return r;
  uint64_t first = range.first;
  for (const BlockRange& missing : map.missing_ranges(o, range)) {
    const BlockRange part{std::max(range.first, missing.first), std::min(range.end, missing.end)};
    if (part.empty())
      continue;
    if (first < part.first)
      known->push_back(BlockRange{first, part.first});
    unknown->push_back(part);
    first = part.end;
  }
  if (first < range.end)
    known->push_back(BlockRange{first, range.end});
  return 0;
}

int ObjectData::share_part(ObjectTxn& txn, Onode& from, const BlockRange& range,
                           std::vector<std::pair<uint64_t, MappedExtent>>* copies)
{
  return map.for_each(from, range, [&](ExtentShard& shard, MappedExtent& e, uint64_t base) {
    const uint64_t first = std::max(base + e.logical_block, range.first);
    const uint64_t end = std::min(base + e.logical_end(), range.end);
    const uint32_t skip = static_cast<uint32_t>(first - base - e.logical_block);
    const uint32_t blocks = static_cast<uint32_t>(end - first);
    const bool was_shared = e.shared;
    const int r =
        references.share(txn, e, Extent{e.physical.container, e.physical.block + skip, blocks});
    shard.dirty |= e.shared != was_shared;
    if (r == 0)
      copies->emplace_back(first, e.slice(skip, blocks));
    return r;
  });
}

void ObjectData::unshare(ObjectTxn& txn, Onode& o)
{
  std::vector<MappedExtent*> extents;
  for (auto& [index, shard] : o.shards) {
    if (!shard.dirty && !o.embeds_shard())
      continue;
    for (MappedExtent& e : shard.extents) {
      if (references.is_worth_a_look(e))
        extents.push_back(&e);
    }
  }
  if (extents.empty())
    return;
  std::vector<Extent> freed;
  references.unshare(txn, extents, &freed);
  for (const Extent& extent : freed)
    note_freed(txn, o, extent);
}

}  // namespace tablestore
