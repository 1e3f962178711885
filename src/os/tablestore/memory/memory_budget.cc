// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/memory/memory_budget.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/ceph_context.h"
#include "common/debug.h"
#include "kv/rocksdb_cache/BinnedLRUCache.h"
#include "perfglue/heap_profiler.h"

#define dout_context parts.cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore "

namespace tablestore {

namespace {

constexpr int table_cache_shard_bits = 4;
/// How old what is in a cache may be to be asked for at PRI1, PRI2 ...: 10 s to two hours. What is
/// older comes after that.
const std::vector<uint64_t> ages = {1, 2, 6, 24, 120, 720};
constexpr auto age_interval = std::chrono::seconds(10);

}  // namespace

MemoryBudget::MemoryBudget(Parts p)
  : parts(std::move(p)),
    table_share(std::dynamic_pointer_cast<PriorityCache::PriCache>(parts.table_cache)),
    onode_share(std::make_shared<CacheShare<OnodeCache>>(parts.onodes, "TableStore onodes")),
    data_share(std::make_shared<CacheShare<DataCache>>(parts.data, "TableStore data"))
{
}

std::shared_ptr<rocksdb::Cache> MemoryBudget::make_table_cache(CephContext* cct, uint64_t bytes)
{
  return rocksdb_cache::NewBinnedLRUCache(cct, "tablestore", bytes, table_cache_shard_bits);
}

void MemoryBudget::tick()
{
  std::lock_guard l{mutex};
  const uint64_t fixed = parts.options.fixed_cache_bytes();
  if (fixed != 0 || !table_share) {
    manager.reset();
    share_fixed(fixed != 0 ? fixed : parts.options.memory_limits().cache_max());
  } else {
    follow_target();
  }
}

// What data does not use of its share serves the onodes until it does.
void MemoryBudget::share_fixed(uint64_t bytes)
{
  const auto all = double(bytes);
  const auto data_bytes = uint64_t(CacheShares::data * all);
  const uint64_t unused = data_bytes - std::min(data_bytes, parts.data.bytes());
  apply(uint64_t(CacheShares::table * all), uint64_t(CacheShares::onodes * all) + unused,
        data_bytes);
}

// Where the allocator does not tell what is mapped, what the store can count is taken off before,
// and osd_memory_base stands for the rest of the OSD alone.
uint64_t MemoryBudget::cache_max() const
{
  if (ceph_using_tcmalloc())
    return limits.cache_max();
  const EngineMemory memory = parts.engine.memory();
  return limits.cache_max(memory.sum() - memory.table_cache_bytes);
}

void MemoryBudget::start_manager(uint64_t cache_max)
{
  manager.emplace(parts.cct, limits.cache_min, cache_max, limits.target, true,
                  "tablestore-pricache");
  const std::pair<std::string, std::shared_ptr<PriorityCache::PriCache>> shares[] = {
      {"table", table_share}, {"onodes", onode_share}, {"data", data_share}};
  for (const auto& [name, share] : shares) {
    share->import_bins(ages);
    manager->insert(name, share, true);
  }
  table_share->set_cache_ratio(CacheShares::table);
  onode_share->set_cache_ratio(CacheShares::onodes);
  data_share->set_cache_ratio(CacheShares::data);
  next_resize = {};
  next_shift = ceph::coarse_mono_clock::now() + age_interval;
}

void MemoryBudget::follow_target()
{
  const MemoryLimits before = std::exchange(limits, parts.options.memory_limits());
  const uint64_t most = cache_max();
  if (!manager)
    start_manager(most);
  manager->set_min_memory(limits.cache_min);
  manager->set_max_memory(most);
  manager->set_target_memory(limits.target);
  const auto now = ceph::coarse_mono_clock::now();
  if (limits != before || now >= next_resize) {
    manager->tune_memory();
    next_resize = now + std::chrono::duration_cast<ceph::timespan>(
        std::chrono::duration<double>(limits.resize_interval_seconds));
  }
  if (now >= next_shift) {
    manager->shift_bins();
    next_shift = now + age_interval;
  }
  manager->balance();
  // Each gets a reserve to grow into, also where there is hardly any memory to share.
  const uint64_t committed[] = {uint64_t(table_share->get_committed_size()),
                                uint64_t(onode_share->get_committed_size()),
                                uint64_t(data_share->get_committed_size())};
  const uint64_t sum = committed[0] + committed[1] + committed[2];
  const double scale = std::min(1.0, double(manager->get_tuned_mem()) / double(sum));
  dout(10) << __func__ << " target " << limits.target << " caches " << manager->get_tuned_mem()
           << ": table " << committed[0] << " onodes " << committed[1] << " data " << committed[2]
           << " times " << scale << dendl;
  apply(uint64_t(committed[0] * scale), uint64_t(committed[1] * scale),
        uint64_t(committed[2] * scale));
}

void MemoryBudget::apply(uint64_t table_bytes, uint64_t onode_bytes, uint64_t data_bytes)
{
  parts.data.resize(data_bytes);
  parts.onodes.resize(onode_bytes);
  parts.engine.resize_table_cache(table_bytes);
}

}  // namespace tablestore
