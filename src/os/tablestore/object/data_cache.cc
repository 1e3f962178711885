// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include "os/tablestore/object/data_cache.h"

#include <algorithm>

#include "include/ceph_assert.h"
#include "include/mempool.h"

namespace tablestore {

namespace {

/// One piece of memory that holds nothing else, or nearly nothing.
ceph::buffer::list own_memory(ceph::buffer::list&& data)
{
  const bool own = data.get_num_buffers() == 1 &&
                   data.front().raw_length() <= data.length() + data.length() / 4;
  if (!own) {
    ceph::buffer::ptr copy(ceph::buffer::create_aligned(data.length(), block_bytes));
    data.begin().copy(data.length(), copy.c_str());
    data.clear();
    data.push_back(std::move(copy));
  }
  // Not create_aligned_in_mempool(), which forgets the pool of what is aligned to pages.
  data.reassign_to_mempool(mempool::mempool_tablestore_data);
  return std::move(data);
}

}  // namespace

DataCache::DataCache(uint64_t bytes_max) : shard_bytes_max(bytes_max / shard_count) {}

DataCache::~DataCache() = default;

DataCache::Shard& DataCache::shard_of(const Run& granule)
{
  const uint64_t n = address(granule.container, granule.block) / granule_blocks;
  return shards[(n * 0x9e3779b97f4a7c15ull >> 32) % shard_count];
}

Run DataCache::take_granule(Run& rest)
{
  Run part = rest;
  part.blocks = std::min(rest.blocks, granule_blocks - rest.block % granule_blocks);
  rest.block += part.blocks;
  rest.blocks -= part.blocks;
  return part;
}

bool DataCache::get(const Run& extent, ceph::buffer::list& out)
{
  ceph::buffer::list found;
  for (Run rest = extent; rest.blocks > 0;) {
    if (!get_granule(take_granule(rest), found))
      return false;
  }
  out.claim_append(found);
  return true;
}

bool DataCache::get_granule(const Run& extent, ceph::buffer::list& out)
{
  Shard& shard = shard_of(extent);
  std::lock_guard l{shard.mutex};
  auto p = shard.runs.upper_bound(address(extent.container, extent.block));
  if (p == shard.runs.begin())
    return false;
  --p;
  uint32_t block = extent.block;
  while (block < extent.end()) {
    if (p == shard.runs.end())
      return false;
    CachedRun& run = p->second;
    if (run.extent.container != extent.container || run.extent.block > block ||
        run.extent.end() <= block)
      return false;
    const uint32_t end = std::min(run.extent.end(), extent.end());
    ceph::buffer::list part;
    part.substr_of(run.data, (block - run.extent.block) * block_bytes,
                   (end - block) * block_bytes);
    out.claim_append(part);
    shard.lru.splice(shard.lru.begin(), shard.lru, run.position);
    shard.bins.use(run.bin, run.extent.length_bytes());
    block = end;
    ++p;
  }
  return true;
}

void DataCache::put(const Run& extent, const ceph::buffer::list& data)
{
  ceph_assert(data.length() == extent.length_bytes());
  uint32_t offset = 0;
  for (Run rest = extent; rest.blocks > 0;) {
    const Run part = take_granule(rest);
    if (part.length_bytes() > shard_bytes_max)
      return;
    ceph::buffer::list piece;
    piece.substr_of(data, offset, part.length_bytes());
    offset += part.length_bytes();
    piece = own_memory(std::move(piece));
    Shard& shard = shard_of(part);
    std::lock_guard l{shard.mutex};
    remove_overlaps(shard, part);
    add_run(shard, part, std::move(piece));
    trim(shard);
  }
}

void DataCache::invalidate(const Run& extent)
{
  for (Run rest = extent; rest.blocks > 0;) {
    const Run part = take_granule(rest);
    Shard& shard = shard_of(part);
    std::lock_guard l{shard.mutex};
    remove_overlaps(shard, part);
  }
}

void DataCache::add_run(Shard& shard, const Run& extent, ceph::buffer::list&& data)
{
  auto [p, added] = shard.runs.try_emplace(address(extent.container, extent.block));
  ceph_assert(added);
  CachedRun& run = p->second;
  run.extent = extent;
  run.data = std::move(data);
  shard.lru.push_front(&run);
  run.position = shard.lru.begin();
  shard.bins.use(run.bin, extent.length_bytes());
  shard.bytes += extent.length_bytes();
}

void DataCache::remove_overlaps(Shard& shard, const Run& extent)
{
  auto p = shard.runs.upper_bound(address(extent.container, extent.block));
  if (p != shard.runs.begin())
    --p;
  while (p != shard.runs.end()) {
    const Run old = p->second.extent;
    if (old.container > extent.container ||
        (old.container == extent.container && old.block >= extent.end()))
      return;
    if (old.container != extent.container || old.end() <= extent.block) {
      ++p;
      continue;
    }
    const ceph::buffer::list data = std::move(p->second.data);
    p = remove_run(shard, p);
    // What stays is copied, so that it does not keep the memory of what goes.
    if (old.block < extent.block) {
      const Run head{old.container, old.block, extent.block - old.block};
      ceph::buffer::list part;
      part.substr_of(data, 0, head.length_bytes());
      add_run(shard, head, own_memory(std::move(part)));
    }
    if (old.end() > extent.end()) {
      const Run tail{old.container, extent.end(), old.end() - extent.end()};
      ceph::buffer::list part;
      part.substr_of(data, (tail.block - old.block) * block_bytes, tail.length_bytes());
      add_run(shard, tail, own_memory(std::move(part)));
      return;
    }
  }
}

DataCache::Runs::iterator DataCache::remove_run(Shard& shard, Runs::iterator run)
{
  shard.bytes -= run->second.extent.length_bytes();
  *run->second.bin -= run->second.extent.length_bytes();
  shard.lru.erase(run->second.position);
  return shard.runs.erase(run);
}

void DataCache::trim(Shard& shard)
{
  while (shard.bytes > shard_bytes_max && !shard.lru.empty()) {
    const Run& oldest = shard.lru.back()->extent;
    remove_run(shard, shard.runs.find(address(oldest.container, oldest.block)));
  }
}

void DataCache::clear()
{
  for (Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    for (auto p = shard.runs.begin(); p != shard.runs.end();)
      p = remove_run(shard, p);
  }
}

void DataCache::resize(uint64_t bytes_max)
{
  shard_bytes_max = bytes_max / shard_count;
  for (Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    trim(shard);
  }
}

uint64_t DataCache::bytes_used_within(uint32_t begin_bin, uint32_t end_bin) const
{
  uint64_t bytes = 0;
  for (const Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    bytes += shard.bins.sum(begin_bin, end_bin);
  }
  return bytes;
}

void DataCache::shift_bins()
{
  for (Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    shard.bins.shift();
  }
}

void DataCache::set_bin_count(uint32_t count)
{
  for (Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    shard.bins.set_count(count);
  }
}

uint64_t DataCache::bytes() const
{
  uint64_t bytes = 0;
  for (const Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    bytes += shard.bytes;
  }
  return bytes;
}

}  // namespace tablestore
