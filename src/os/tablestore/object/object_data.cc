// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include "os/tablestore/object/object_data.h"

#include "common/debug.h"
#include "common/dout.h"
#include "include/ceph_assert.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/object/reference_maps.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.data "

namespace tablestore {

ObjectData::ObjectData(CephContext* cct, Engine& engine, ReferenceMaps& references,
                       DataCache& cache, uint64_t inline_max, unsigned read_threads)
  : cct(cct), engine(engine), references(references), cache(cache), inline_max(inline_max),
    map(cct, engine), helpers(read_threads)
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

int ObjectData::inline_bytes(Onode& o, ceph::buffer::list* out)
{
  std::lock_guard l{o.load_lock};
  if (o.inline_cache) {
    out->append(*o.inline_cache);
    return 0;
  }
  std::string row;
  const Result<bool> found = engine.get(Family::data, inline_key(o.nid), &row);
  if (!found.ok()) {
    derr << "cannot read the inline data of " << o.oid << ": " << found.status().what() << dendl;
    return -EIO;
  }
  if (!*found) {
    derr << "the inline data of " << o.oid << " (nid " << o.nid << ") is missing, expected "
         << o.size << " bytes; repair the object from a replica" << dendl;
    return -EIO;
  }
  const uint32_t checksum = crc32c(0, row.data(), row.size());
  if (row.size() != o.size || checksum != o.inline_checksum) {
    derr << "the inline data of " << o.oid << " (nid " << o.nid << ") is damaged: expected "
         << o.size << " bytes with crc32c " << o.inline_checksum << ", found " << row.size()
         << " bytes with crc32c " << checksum << "; repair the object from a replica" << dendl;
    return -EIO;
  }
  ceph::buffer::list data;
  data.append(ceph::buffer::copy(row.data(), row.size()));
  out->append(data);
  o.inline_cache = std::move(data);
  return 0;
}

void ObjectData::set_inline(ObjectTxn& txn, Onode& o, ceph::buffer::list&& data)
{
  const int64_t before = o.inline_data ? o.size : 0;
  stats(txn, o)[PoolStats::inline_bytes] += int64_t(data.length()) - before;
  stats(txn, o)[PoolStats::stored_bytes] += int64_t(data.length()) - before;
  set_size(txn, o, data.length());
  o.inline_data = true;
  o.inline_dirty = true;
  o.inline_cache = std::move(data);
}

void ObjectData::drop_inline(ObjectTxn& txn, Onode& o)
{
  stats(txn, o)[PoolStats::inline_bytes] -= o.size;
  stats(txn, o)[PoolStats::stored_bytes] -= o.size;
  o.inline_data = false;
  o.inline_dirty = true;
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
         << " cannot be freed; ceph-tablestore-tool repair gives them back" << dendl;
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
      o->inline_checksum = crc32c(0, row.data(), row.size());
      txn.put(Family::data, key, row);
      o->inline_has_row = true;
    } else if (o->inline_has_row) {
      txn.erase(Family::data, key);
      o->inline_has_row = false;
    }
    o->inline_dirty = false;
  }
  map.write_out(txn, *o);
}

int ObjectData::load_all(const OnodeRef& o)
{
  return map.load(*o, BlockRange{0, uint64_t(o->shards_present.size()) * shard_span_blocks});
}

}  // namespace tablestore
