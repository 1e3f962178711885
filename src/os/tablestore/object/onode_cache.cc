// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/object/onode_cache.h"

#include "include/ceph_assert.h"
#include "include/mempool.h"

namespace tablestore {

namespace {

// A shard of a few extents: map node, vector, and four bytes of checksum for each block.
uint64_t shard_memory_bytes(const Onode& onode)
{
  return 64 + 2 * sizeof(MappedExtent) + 4 * onode.span_blocks;
}

constexpr size_t looks_per_add = 16;

void count_in_mempool(ssize_t onodes, ssize_t bytes)
{
  mempool::get_pool(mempool::mempool_tablestore_onode).adjust_count(onodes, bytes);
}

}  // namespace

uint64_t onode_memory_bytes(const Onode& onode)
{
  uint64_t bytes = sizeof(Onode) + 128 + 2 * onode.key.size();
  for (const auto& [name, value] : onode.attrs)
    bytes += 96 + name.size() + value.length();
  if (onode.inline_data)
    bytes += onode.size;
  else
    bytes += onode.shards_present.size() * shard_memory_bytes(onode);
  return bytes;
}

OnodeCache::OnodeCache(uint64_t bytes_max) : shard_bytes_max(bytes_max / shard_count) {}

OnodeCache::~OnodeCache()
{
  count_in_mempool(-ssize_t(count()), -ssize_t(bytes()));
}

// By other bits of the hash than the buckets of a shard.
OnodeCache::Shard& OnodeCache::shard_of(const ghobject_t& oid)
{
  return shards[(std::hash<ghobject_t>{}(oid) >> 20) % shard_count];
}

OnodeRef OnodeCache::get(const ghobject_t& oid)
{
  Shard& shard = shard_of(oid);
  std::lock_guard l{shard.mutex};
  auto p = shard.entries.find(&oid);
  if (p == shard.entries.end()) {
    ++shard.counted.misses;
    return nullptr;
  }
  ++shard.counted.hits;
  shard.bins.use(p->second.bin, p->second.bytes);
  shard.lru.splice(shard.lru.begin(), shard.lru, p->second.position);
  return p->second.onode;
}

OnodeRef OnodeCache::add(OnodeRef onode)
{
  const uint64_t bytes = onode_memory_bytes(*onode);
  std::list<OnodeRef> dropped;  // destroyed after the mutex is released
  Shard& shard = shard_of(onode->oid);
  std::lock_guard l{shard.mutex};
  auto [p, added] = shard.entries.try_emplace(&onode->oid);
  Entry& entry = p->second;
  if (!added)
    return entry.onode;
  entry.onode = onode;
  entry.bytes = bytes;
  shard.lru.push_front(&entry);
  entry.position = shard.lru.begin();
  shard.bins.use(entry.bin, bytes);
  shard.bytes += bytes;
  count_in_mempool(1, ssize_t(bytes));
  trim(shard, shard_bytes_max, looks_per_add, dropped);
  return onode;
}

void OnodeCache::update_size(const OnodeRef& onode)
{
  const uint64_t bytes = onode_memory_bytes(*onode);
  Shard& shard = shard_of(onode->oid);
  std::lock_guard l{shard.mutex};
  auto p = shard.entries.find(&onode->oid);
  if (p == shard.entries.end())
    return;
  AgeBins::resize(p->second.bin, p->second.bytes, bytes);
  count_in_mempool(0, ssize_t(bytes - p->second.bytes));
  shard.bytes += bytes - p->second.bytes;
  p->second.bytes = bytes;
}

void OnodeCache::take_out(Shard& shard, Entry& entry)
{
  shard.bytes -= entry.bytes;
  *entry.bin -= entry.bytes;
  count_in_mempool(-1, -ssize_t(entry.bytes));
}

void OnodeCache::trim(Shard& shard, uint64_t bytes_max, size_t looks,
                      std::list<OnodeRef>& dropped)
{
  // What is in use goes to the front: it will be of use, and it is not looked at again soon.
  while (shard.bytes > bytes_max && !shard.lru.empty() && looks-- > 0) {
    Entry* entry = shard.lru.back();
    OnodeRef& onode = entry->onode;
    if (onode.use_count() > 1 || onode->transactions_in_flight > 0) {
      shard.lru.splice(shard.lru.begin(), shard.lru, entry->position);
      continue;
    }
    take_out(shard, *entry);
    shard.lru.pop_back();
    dropped.push_back(std::move(onode));
    shard.entries.erase(&dropped.back()->oid);
  }
}

void OnodeCache::forget(const OnodeRef& onode)
{
  // One is the transaction that failed.
  ceph_assert(onode->transactions_in_flight <= 1);
  Shard& shard = shard_of(onode->oid);
  std::lock_guard l{shard.mutex};
  auto p = shard.entries.find(&onode->oid);
  if (p == shard.entries.end())
    return;
  // Its name is the key; the caller's reference keeps it.
  ceph_assert(p->second.onode == onode);
  take_out(shard, p->second);
  shard.lru.erase(p->second.position);
  shard.entries.erase(p);
}

void OnodeCache::clear()
{
  for (Shard& shard : shards) {
    std::list<OnodeRef> dropped;
    std::lock_guard l{shard.mutex};
    trim(shard, 0, shard.entries.size(), dropped);
  }
}

void OnodeCache::resize(uint64_t bytes_max)
{
  shard_bytes_max = bytes_max / shard_count;
  for (Shard& shard : shards) {
    std::list<OnodeRef> dropped;
    std::lock_guard l{shard.mutex};
    trim(shard, shard_bytes_max, shard.entries.size(), dropped);
  }
}

uint64_t OnodeCache::bytes() const
{
  uint64_t bytes = 0;
  for (const Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    bytes += shard.bytes;
  }
  return bytes;
}

uint64_t OnodeCache::bytes_used_within(uint32_t begin_bin, uint32_t end_bin) const
{
  uint64_t bytes = 0;
  for (const Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    bytes += shard.bins.sum(begin_bin, end_bin);
  }
  return bytes;
}

void OnodeCache::shift_bins()
{
  for (Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    shard.bins.shift();
  }
}

void OnodeCache::set_bin_count(uint32_t count)
{
  for (Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    shard.bins.set_count(count);
  }
}

OnodeCache::Usage OnodeCache::usage() const
{
  Usage sum;
  for (const Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    sum.hits += shard.counted.hits;
    sum.misses += shard.counted.misses;
  }
  return sum;
}

uint64_t OnodeCache::count() const
{
  uint64_t count = 0;
  for (const Shard& shard : shards) {
    std::lock_guard l{shard.mutex};
    count += shard.entries.size();
  }
  return count;
}

}  // namespace tablestore
