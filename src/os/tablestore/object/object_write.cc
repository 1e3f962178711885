// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Changes: new blocks take the place of old ones, which are freed in the same transaction.

#include <algorithm>
#include <cstring>

#include "common/debug.h"
#include "common/dout.h"
#include "common/perf_counters.h"
#include "include/ceph_assert.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/rows/keys.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.data "

namespace tablestore {

namespace {

/// Below this size a piece of client memory is not worth an entry of its own in a vectored write.
constexpr uint32_t bytes_per_vector_entry = 16 << 10;

ceph::buffer::list zeros(uint64_t bytes)
{
  ceph::buffer::list bl;
  bl.append_zero(bytes);
  return bl;
}

void append_range(const ceph::buffer::list& from, uint64_t offset, uint64_t length,
                  ceph::buffer::list* to)
{
  if (length > 0) {
    ceph::buffer::list part;
    part.substr_of(from, offset, length);
    to->claim_append(part);
  }
}

void copy_to(const ceph::buffer::list& from, uint64_t offset, uint64_t length, char* to)
{
  if (length > 0) {
    auto p = from.begin();
    p += static_cast<unsigned>(offset);
    p.copy(length, to);
  }
}

/// The content of `block`, whose memory holds the old one, once `data` is written at `offset`.
void overlay(uint64_t block, uint64_t offset, const ceph::buffer::list& data, char* memory)
{
  const uint64_t start = block * block_bytes;
  const uint64_t from = std::max(start, offset);
  const uint64_t to = std::min(start + block_bytes, offset + data.length());
  copy_to(data, from - offset, to - from, memory + (from - start));
}

}  // namespace

int ObjectData::write(ObjectTxn& txn, const OnodeRef& o, uint64_t offset,
                      const ceph::buffer::list& data)
{
  return write(txn, o, offset, data, LostBytes());
}

int ObjectData::write(ObjectTxn& txn, const OnodeRef& o, uint64_t offset,
                      const ceph::buffer::list& data, const LostBytes& lost)
{
  if (data.length() == 0)
    return 0;
  txn.dirty(o);
  const uint64_t new_size = std::max(o->size, offset + data.length());
  if (holds_no_blocks(*o) && new_size <= inline_max)
    return write_inline(txn, o, offset, data, lost);
  if (o->inline_data)
    return spill(txn, o, offset, data, lost);
  return write_blocks(txn, o, offset, data, lost);
}

int ObjectData::write_inline(ObjectTxn& txn, const OnodeRef& o, uint64_t offset,
                             const ceph::buffer::list& data, const LostBytes& lost)
{
  logger.inc(l_tablestore_write_inline);
  const uint64_t end = offset + data.length();
  const uint64_t new_size = std::max(o->size, end);
  ceph::buffer::ptr memory(ceph::buffer::create(new_size));
  LostBytes old_lost;
  if (offset > 0 || end < o->size) {
    memory.zero();
    if (o->inline_data) {
      ceph::buffer::list old;
      if (int r = read_what_is_left(o, 0, o->size, old, &old_lost); r < 0)
        return r;
      copy_to(old, 0, old.length(), memory.c_str());
    }
  }
  copy_to(data, 0, data.length(), memory.c_str() + offset);
  ceph::buffer::list all;
  all.push_back(std::move(memory));
  set_inline(txn, *o, std::move(all), !lost.empty() || !old_lost.empty());
  return 0;
}

int ObjectData::spill(ObjectTxn& txn, const OnodeRef& o, uint64_t offset,
                      const ceph::buffer::list& data, LostBytes lost)
{
  ceph::buffer::list old;
  LostBytes old_lost;
  if (offset > 0 || data.length() < o->size) {
    if (int r = read_what_is_left(o, 0, o->size, old, &old_lost); r < 0)
      return r;
  }
  drop_inline(txn, *o);
  const bool apart = block_floor(offset) >= block_ceil(old.length());
  if (apart || data.length() == 0) {
    if (old.length() > 0) {
      if (int r = write_blocks(txn, o, 0, old, std::move(old_lost)); r < 0)
        return r;
    }
    return data.length() > 0 ? write_blocks(txn, o, offset, data, std::move(lost)) : 0;
  }
  if (!old_lost.empty()) {
    LostBytes written;
    written.insert(offset, data.length());
    written.intersection_of(old_lost);
    old_lost.subtract(written);
    lost.union_of(old_lost);
  }
  ceph::buffer::list all;
  append_range(old, 0, std::min<uint64_t>(offset, old.length()), &all);
  all.append_zero(offset - all.length());
  all.append(data);
  if (all.length() < old.length()) {
    const uint64_t done = all.length();
    append_range(old, done, old.length() - done, &all);
  }
  return write_blocks(txn, o, 0, all, std::move(lost));
}

int ObjectData::write_blocks(ObjectTxn& txn, const OnodeRef& o, uint64_t offset,
                             const ceph::buffer::list& data, LostBytes lost)
{
  const uint64_t end = offset + data.length();
  const BlockRange touched{block_floor(offset), block_ceil(end)};
  const BlockRange replaced{block_ceil(offset),
                            end >= o->size ? block_ceil(end) : block_floor(end)};
  if (int r = load_to_change(txn, *o, touched, replaced); r < 0)
    return r;
  ceph::buffer::list blocks;
  if (int r = merge_edges(o, offset, data, &blocks, &lost); r < 0)
    return r;
  logger.inc(l_tablestore_write_blocks);
  logger.inc(l_tablestore_write_pad_bytes, blocks.length() - data.length());
  set_size(txn, *o, std::max(o->size, end));
  replace_blocks(txn, *o, touched.first, std::move(blocks), lost);
  return 0;
}

int ObjectData::merge_edges(const OnodeRef& o, uint64_t offset, const ceph::buffer::list& data,
                            ceph::buffer::list* blocks, LostBytes* lost)
{
  const uint64_t end = offset + data.length();
  const uint64_t first = block_floor(offset);
  const uint64_t last = block_floor(end - 1);
  const bool partial_head = offset % block_bytes != 0;
  const bool partial_tail = end % block_bytes != 0;
  // Bytes beyond the object's size are zeros already, in memory and on disk.
  const auto append_merged = [&](uint64_t block, bool keeps_old) {
    ceph::buffer::ptr memory(ceph::buffer::create_aligned(block_bytes, block_bytes));
    memory.zero();
    if (keeps_old) {
      ceph::buffer::list old;
      LostBytes old_lost;
      const int r = read_what_is_left(o, block * block_bytes, block_bytes, old, &old_lost);
      if (r < 0)
        return r;
      copy_to(old, 0, old.length(), memory.c_str());
      lost->union_of(old_lost);
    }
    overlay(block, offset, data, memory.c_str());
    blocks->push_back(std::move(memory));
    return 0;
  };

  if (first == last && (partial_head || partial_tail))
    return append_merged(first, partial_head || end < o->size);
  uint64_t position = offset;
  if (partial_head) {
    if (int r = append_merged(first, true); r < 0)
      return r;
    position = (first + 1) * block_bytes;
  }
  const uint64_t middle_end = partial_tail ? last * block_bytes : end;
  ceph::buffer::list middle;
  append_range(data, position - offset, middle_end - position, &middle);
  middle.rebuild_aligned_size_and_memory(
    block_bytes, block_bytes, std::max(16u, middle.length() / bytes_per_vector_entry));
  blocks->claim_append(middle);
  return partial_tail ? append_merged(last, end < o->size) : 0;
}

void ObjectData::replace_blocks(ObjectTxn& txn, Onode& o, uint64_t first_block,
                                ceph::buffer::list&& blocks, const LostBytes& lost)
{
  std::vector<uint32_t> checksums;
  const std::vector<Extent> extents = write_new_blocks(txn, std::move(blocks), &checksums);
  mark_lost(o, first_block, lost, &checksums);
  map_new_blocks(txn, o, first_block, extents, checksums);
}

std::vector<Extent> ObjectData::write_new_blocks(ObjectTxn& txn, ceph::buffer::list&& blocks,
                                                 std::vector<uint32_t>* checksums)
{
  const uint64_t bytes = blocks.length();
  ceph_assert(bytes % block_bytes == 0);
  ceph_assert(txn.reserved_bytes >= bytes);
  txn.reserved_bytes -= bytes;
  std::vector<iovec> iov;
  for (const auto& piece : blocks.buffers())
    iov.push_back(iovec{const_cast<char*>(piece.c_str()), piece.length()});
  const std::vector<Extent> extents =
    engine.write(txn, iov, std::any(std::move(blocks)), checksums);
  // The cache may hold what a transaction wrote there that failed.
  for (const Extent& extent : extents)
    cache.invalidate(extent);
  return extents;
}

void ObjectData::map_new_blocks(ObjectTxn& txn, Onode& o, uint64_t first_block,
                                const std::vector<Extent>& extents,
                                const std::vector<uint32_t>& checksums)
{
  unmap_blocks(txn, o, BlockRange{first_block, first_block + checksums.size()});
  uint32_t done = 0;
  for (const Extent& extent : extents) {
    MappedExtent e;
    e.physical = extent;
    e.checksums.assign(checksums.begin() + done, checksums.begin() + done + extent.blocks);
    map_blocks(txn, o, first_block + done, e);
    done += extent.blocks;
  }
  ceph_assert(done == checksums.size());
  stats(txn, o)[PoolStats::allocated_bytes] += done * block_bytes;
}

void ObjectData::mark_lost(const Onode& o, uint64_t first_block, const LostBytes& lost,
                           std::vector<uint32_t>* checksums)
{
  for (size_t i = 0; !lost.empty() && i < checksums->size(); ++i) {
    const uint64_t offset = (first_block + i) * block_bytes;
    if (!lost.intersects(offset, block_bytes))
      continue;
    (*checksums)[i] = checksum_of_lost((*checksums)[i]);
    derr << "a part of the block at " << offset << " of " << o.oid << " is changed, and the rest "
         << "cannot be read: reads of the block fail until all of it is overwritten or the object "
         << "is repaired from a replica; scrub the placement group" << dendl;
  }
}

int ObjectData::zero_in_block(ObjectTxn& txn, const OnodeRef& o, uint64_t offset, uint64_t end)
{
  end = std::min(end, o->size);
  if (offset >= end)
    return 0;
  const uint64_t block = block_floor(offset);
  if (map.lookup(*o, BlockRange{block, block + 1}).empty())
    return 0;
  return write_blocks(txn, o, offset, zeros(end - offset));
}

int ObjectData::zero(ObjectTxn& txn, const OnodeRef& o, uint64_t offset, uint64_t length)
{
  if (length == 0)
    return 0;
  txn.dirty(o);
  const uint64_t end = offset + length;
  if (o->inline_data) {
    if (std::max(o->size, end) <= inline_max)
      return write_inline(txn, o, offset, zeros(length), LostBytes());
    if (int r = spill(txn, o, 0, ceph::buffer::list()); r < 0)
      return r;
  }
  const BlockRange touched{block_floor(offset), block_ceil(end)};
  const BlockRange whole{block_ceil(offset),
                         end >= o->size ? block_ceil(end) : block_floor(end)};
  if (int r = load_to_change(txn, *o, touched, whole); r < 0)
    return r;
  const uint64_t head_end = std::min(end, block_ceil(offset) * block_bytes);
  if (int r = zero_in_block(txn, o, offset, head_end); r < 0)
    return r;
  if (!whole.empty())
    unmap_blocks(txn, *o, whole);
  const uint64_t tail = std::max(whole.end * block_bytes, head_end);
  if (int r = zero_in_block(txn, o, tail, end); r < 0)
    return r;
  set_size(txn, *o, std::max(o->size, end));
  return 0;
}

int ObjectData::truncate(ObjectTxn& txn, const OnodeRef& o, uint64_t size)
{
  if (size == o->size)
    return 0;
  txn.dirty(o);
  if (o->inline_data) {
    if (size == 0) {
      drop_inline(txn, *o);
      set_size(txn, *o, 0);
      return 0;
    }
    if (size <= inline_max) {
      ceph::buffer::list old, resized;
      LostBytes lost;
      if (int r = read_what_is_left(o, 0, o->size, old, &lost); r < 0)
        return r;
      ceph::buffer::ptr memory(ceph::buffer::create(size));
      memory.zero();
      copy_to(old, 0, std::min(size, o->size), memory.c_str());
      resized.push_back(std::move(memory));
      set_inline(txn, *o, std::move(resized), !lost.empty());
      return 0;
    }
    if (int r = spill(txn, o, 0, ceph::buffer::list()); r < 0)
      return r;
  }
  if (size < o->size)
    return shrink_blocks(txn, o, size);
  set_size(txn, *o, size);
  return 0;
}

int ObjectData::shrink_blocks(ObjectTxn& txn, const OnodeRef& o, uint64_t size)
{
  const BlockRange cut{block_ceil(size), block_ceil(o->size)};
  if (int r = load_to_change(txn, *o, BlockRange{block_floor(size), cut.end}, cut); r < 0)
    return r;
  if (size > 0 && size <= o->span_bytes()) {
    // Its first shard moves into the onode's row.
    if (int r = load_to_change(txn, *o, BlockRange{0, 1}, BlockRange{}); r < 0)
      return r;
  }
  if (int r = zero_in_block(txn, o, size, cut.first * block_bytes); r < 0)
    return r;
  unmap_blocks(txn, *o, cut);
  set_size(txn, *o, size);
  return 0;
}

int ObjectData::remove(ObjectTxn& txn, const OnodeRef& o)
{
  txn.dirty(o);
  if (o->inline_data)
    drop_inline(txn, *o);
  if (o->inline_has_row) {
    txn.erase(Family::data, inline_key(o->nid));
    o->inline_has_row = false;
  }
  o->inline_dirty = false;
  const BlockRange all{0, std::max(block_ceil(o->size), uint64_t(o->shards_present.size()) *
                                                          o->span_blocks)};
  // Shards that cannot be read now, but may be later, are not lost: their rows and blocks stay for
  // fsck.
  std::vector<BlockRange> lost;
  if (map.load_to_change(*o, all, &lost) == 0)
    unmap_blocks(txn, *o, all);
  map.erase_rows(txn, *o);
  set_size(txn, *o, 0);
  return 0;
}

}  // namespace tablestore
