// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include "os/tablestore/object/object_data.h"

#include <sstream>

#include "common/debug.h"
#include "common/dout.h"
#include "include/ceph_assert.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/object/spurious_reads.h"
#include "os/tablestore/rows/keys.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.data "

namespace tablestore {

ObjectData::ObjectData(const Parts& parts, uint64_t inline_max, unsigned read_threads)
  : cct(parts.cct),
    engine(parts.engine),
    references(parts.references),
    cache(parts.cache),
    spurious_reads(parts.spurious_reads),
    slow_ops(parts.slow_ops),
    logger(parts.logger),
    inline_max(inline_max),
    map(cct, engine),
    helpers(read_threads)
{
}

uint64_t ObjectData::reservation_for_write(uint64_t offset, uint64_t length, uint64_t inline_max)
{
  if (length == 0)
    return 0;
  const uint64_t blocks = block_ceil(offset + length) - block_floor(offset);
  return (blocks + block_ceil(inline_max)) * block_bytes;
}

uint64_t ObjectData::reservation_for_edges(uint64_t inline_max)
{
  return (2 + block_ceil(inline_max)) * block_bytes;
}

uint64_t ObjectData::reservation_for_clone_range(uint64_t from_offset, uint64_t length,
                                                 uint64_t to_offset, uint64_t inline_max)
{
  // The source's inline data may be copied, and the target's may have to become blocks.
  const uint64_t edges = reservation_for_edges(inline_max) + reservation_for_edges(inline_max);
  const bool copied = from_offset % block_bytes != to_offset % block_bytes;
  return edges + (copied ? reservation_for_write(to_offset, length, inline_max) : 0);
}

uint64_t ObjectData::tail_bytes(Onode& o, const BlockRange& within)
{
  const uint64_t used = o.size % block_bytes;
  const BlockRange last{block_floor(o.size), block_floor(o.size) + 1};
  if (used == 0 || holds_no_blocks(o) || !within.contains(last))
    return 0;
  return map.load(o, last) == 0 && !map.lookup(o, last).empty() ? block_bytes - used : 0;
}

int ObjectData::load_to_change(ObjectTxn& txn, Onode& o, const BlockRange& range,
                               const BlockRange& replaced)
{
  if (const int r = map.load(o, range); r != -EIO)
    return r;
  // The space is there before anything is forgotten: who has forgotten, and cannot mark it, has
  // holes, which are zeros to a reader.
  if (int r = reserve_lost(txn, o, map.missing_ranges(o, range)); r < 0)
    return r;
  std::vector<BlockRange> all_forgotten;
  if (int r = map.load_to_change(o, range, &all_forgotten); r < 0)
    return r;
  for (const BlockRange& forgotten : all_forgotten) {
    const BlockRange before{forgotten.first,
                            std::max(forgotten.first, std::min(forgotten.end, replaced.first))};
    const BlockRange after{std::min(forgotten.end, std::max(forgotten.first, replaced.end)),
                           forgotten.end};
    for (const BlockRange& lost : replaced.empty() ? std::vector{forgotten}
                                                   : std::vector{before, after})
      lose_blocks(txn, o, lost);
  }
  return 0;
}

int ObjectData::reserve_lost(ObjectTxn& txn, const Onode& o, const std::vector<BlockRange>& lost)
{
  if (lost.empty())
    return 0;
  uint64_t bytes = 0;
  for (const BlockRange& range : lost)
    bytes += range.blocks() * block_bytes;
  if (const Status s = engine.reserve(bytes); !s.ok()) {
    derr << "no space to mark what " << o.oid << " has lost: " << s.what() << dendl;
    return s.code() == ENOSPC ? -EIO : -s.code();
  }
  txn.reserved_bytes += bytes;
  return 0;
}

void ObjectData::lose_blocks(ObjectTxn& txn, Onode& o, const BlockRange& range)
{
  if (range.empty())
    return;
  const uint64_t bytes = range.blocks() * block_bytes;
  ceph::buffer::ptr memory(ceph::buffer::create_aligned(bytes, block_bytes));
  memory.zero();
  ceph::buffer::list zeros;
  zeros.push_back(std::move(memory));
  LostBytes lost;
  lost.insert(range.first * block_bytes, bytes);
  replace_blocks(txn, o, range.first, std::move(zeros), lost);
}

void ObjectData::set_size(ObjectTxn& txn, Onode& o, uint64_t size)
{
  if (size == o.size)
    return;
  const bool embedded = o.embeds_shard();
  const int64_t tail_before = tail_bytes(o);
  o.size = size;
  stats(txn, o)[PoolStats::stored_bytes] += tail_before - int64_t(tail_bytes(o));
  // It moves between the onode's row and a row of its own.
  if (o.embeds_shard() != embedded && o.has_shard(0))
    o.shards.at(0).dirty = true;
}

void ObjectData::map_blocks(ObjectTxn& txn, Onode& o, uint64_t block, const MappedExtent& e)
{
  map.insert(o, block, e);
  const uint64_t tail = tail_bytes(o, BlockRange{block, block + e.physical.blocks});
  stats(txn, o)[PoolStats::stored_bytes] += e.physical.length_bytes() - tail;
}

void ObjectData::unmap_blocks(ObjectTxn& txn, Onode& o, const BlockRange& range)
{
  stats(txn, o)[PoolStats::stored_bytes] += tail_bytes(o, range);
  std::vector<MappedExtent> removed;
  map.punch(o, range, &removed);
  for (const MappedExtent& e : removed) {
    stats(txn, o)[PoolStats::stored_bytes] -= e.physical.length_bytes();
    release(txn, o, e);
  }
}

int ObjectData::inline_bytes(Onode& o, ceph::buffer::list* out, bool past_cache)
{
  std::lock_guard l{o.load_lock};
  if (o.inline_lost) {
    derr << "the inline data of " << o.oid << " (nid " << o.nid << ") is lost: it could not be "
         << "read when a part of it was overwritten; repair the object from a replica" << dendl;
    return -EIO;
  }
  // Until a change is applied, no row has it.
  if (o.inline_cache && (!past_cache || o.transactions_in_flight > 0)) {
    out->append(*o.inline_cache);
    return 0;
  }
  std::string row, why, first_why;
  ReadTries tries = spurious_reads.begin();
  int r = read_inline_row(o, past_cache, &row, &why);
  first_why = why;
  while (r < 0 && tries.again())
    r = read_inline_row(o, past_cache, &row, &why);
  if (r < 0) {
    derr << why << "; repair the object from a replica" << dendl;
    return r;
  }
  if (!first_why.empty())
    spurious_reads.note(first_why);
  ceph::buffer::list data;
  data.append(ceph::buffer::copy(row.data(), row.size()));
  out->append(data);
  if (!past_cache)
    o.inline_cache = std::move(data);
  return 0;
}

int ObjectData::read_inline_row(const Onode& o, bool past_cache, std::string* row,
                                std::string* why)
{
  int error = EIO;
  std::ostringstream reason;
  reason << "the inline data of " << o.oid << " (nid " << o.nid << ") ";
  const std::string key = inline_key(o.nid);
  const Result<bool> found = engine.get(Family::data, key, row);
  if (!found.ok()) {
    reason << "cannot be read: " << found.status().what();
    error = found.status().code();
  } else if (!*found) {
    reason << "is missing, expected " << o.size << " bytes";
  } else if (const uint32_t checksum = crc32c(0, row->data(), row->size());
             row->size() != o.size || checksum != o.inline_checksum) {
    reason << "is " << (is_lost(o.inline_checksum, checksum) ? "lost" : "damaged")
           << ": expected " << o.size << " bytes with crc32c " << o.inline_checksum << ", found "
           << row->size() << " bytes with crc32c " << checksum;
  } else if (const Status s = past_cache ? engine.check_on_disk(Family::data, key, *row) : Status();
             !s.ok()) {
    reason << "is in a cache, but not on the disk any more: " << s.what();
  } else {
    return 0;
  }
  *why = reason.str();
  return -error;
}

void ObjectData::set_inline(ObjectTxn& txn, Onode& o, ceph::buffer::list&& data, bool lost)
{
  const int64_t before = o.inline_data ? o.size : 0;
  stats(txn, o)[PoolStats::inline_bytes] += int64_t(data.length()) - before;
  stats(txn, o)[PoolStats::stored_bytes] += int64_t(data.length()) - before;
  set_size(txn, o, data.length());
  o.inline_data = true;
  o.inline_dirty = true;
  o.inline_lost = lost;
  o.inline_cache = std::move(data);
}

void ObjectData::drop_inline(ObjectTxn& txn, Onode& o)
{
  stats(txn, o)[PoolStats::inline_bytes] -= o.size;
  stats(txn, o)[PoolStats::stored_bytes] -= o.size;
  o.inline_data = false;
  o.inline_dirty = true;
  o.inline_lost = false;
  o.inline_cache.reset();
}

void ObjectData::note_freed(ObjectTxn& txn, const Onode& o, const Extent& extent)
{
  cache.invalidate(extent);
  stats(txn, o)[PoolStats::allocated_bytes] -= extent.length_bytes();
}

void ObjectData::release(ObjectTxn& txn, const Onode& o, const MappedExtent& e)
{
  if (!e.shared) {
    txn.free(e.physical);
    note_freed(txn, o, e.physical);
    return;
  }
  std::vector<Extent> freed;
  if (references.release(txn, e, &freed) < 0) {
    // Who else owns the blocks is not known: keeping them is safe, and fsck finds them.
    derr << "blocks of " << o.oid << " in container " << e.physical.container << " at "
         << e.physical.offset_bytes() << "~" << e.physical.length_bytes()
         << " cannot be freed; ceph-objectstore-tool --op repair gives them back" << dendl;
  }
  for (const Extent& extent : freed)
    note_freed(txn, o, extent);
}

void ObjectData::write_out(ObjectTxn& txn, const OnodeRef& o)
{
  if (o->inline_dirty) {
    const std::string key = inline_key(o->nid);
    if (o->inline_data) {
      ceph::buffer::list& data = *o->inline_cache;
      const std::string_view row(data.length() ? data.c_str() : "", data.length());
      const uint32_t checksum = crc32c(0, row.data(), row.size());
      o->inline_checksum = o->inline_lost ? checksum_of_lost(checksum) : checksum;
      txn.put(Family::data, key, row);
      o->inline_has_row = true;
    } else if (o->inline_has_row) {
      txn.erase(Family::data, key);
      o->inline_has_row = false;
    }
    o->inline_dirty = false;
  }
  unshare(txn, *o);
  map.write_out(txn, *o);
}

int ObjectData::load_all(const OnodeRef& o)
{
  return map.load(*o, BlockRange{0, uint64_t(o->shards_present.size()) * o->span_blocks});
}

}  // namespace tablestore
