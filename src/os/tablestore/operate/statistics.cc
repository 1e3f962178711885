// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/operate/statistics.h"

#include <algorithm>
#include <array>
#include <bit>

#include "os/tablestore/engine/troubles.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/object/onode_cache.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/space/pool_totals.h"
#include "os/tablestore/space/space_gate.h"

namespace tablestore {

// ---- space

void Statistics::statfs(store_statfs_t* buf, osd_alert_list_t* alerts)
{
  const SpaceUsage usage = parts.engine.space();
  const uint64_t reserve = std::min(parts.gate.reserve_bytes(), usage.available_bytes);
  buf->total = usage.total_bytes;
  buf->available = usage.available_bytes - reserve;
  buf->internally_reserved = reserve;

  const PoolStats sum = parts.pools.sum();
  buf->allocated = sum[PoolStats::allocated_bytes] + sum[PoolStats::inline_bytes];
  buf->data_stored = sum[PoolStats::stored_bytes];
  const std::string end(32, '\xff');
  buf->omap_allocated = parts.engine.estimate_row_bytes(Family::omap, {}, end);
  buf->internal_metadata = int64_t(usage.table_bytes + usage.log_bytes) - buf->omap_allocated;
  buf->floor(0);
  if (alerts && buf->available == 0) {
    alerts->emplace("TABLESTORE_NO_SPACE",
                    "only the reserve of " + std::to_string(reserve) + " bytes is left");
  }
  if (!alerts)
    return;
  for (const auto& [name, line] : parts.troubles.all())
    alerts->emplace("TABLESTORE_" + name, line);
}

void Statistics::pool_statfs(int64_t pool, store_statfs_t* buf)
{
  const PoolStats stats = parts.pools.get(pool);
  buf->allocated = stats[PoolStats::allocated_bytes] + stats[PoolStats::inline_bytes];
  buf->data_stored = stats[PoolStats::stored_bytes];
  const auto [first, last] = omap_pool_range(pool);
  buf->omap_allocated = parts.engine.estimate_row_bytes(Family::omap, first, last);
  buf->floor(0);
}

objectstore_perf_stat_t Statistics::latencies()
{
  std::lock_guard l{mutex};
  commit_latency_ns.consume_next(parts.logger.get_tavg_ns(l_tablestore_txc_commit_lat));
  objectstore_perf_stat_t stats;
  stats.os_commit_latency_ns = commit_latency_ns.current_avg();
  stats.os_apply_latency_ns = stats.os_commit_latency_ns;
  return stats;
}

// ---- counters

void Statistics::refresh_counters()
{
  PerfCounters& logger = parts.logger;
  copy_engine_counters(parts.engine.counters(), logger);
  logger.set(l_tablestore_onodes, parts.onodes.count());
  logger.set(l_tablestore_onode_bytes, parts.onodes.bytes());
  const OnodeCache::Usage lookups = parts.onodes.usage();
  logger.set(l_tablestore_onode_hits, lookups.hits);
  logger.set(l_tablestore_onode_misses, lookups.misses);
  logger.set(l_tablestore_data_cache_bytes, parts.data_cache.bytes());
  const EngineMemory memory = parts.engine.memory();
  logger.set(l_tablestore_table_cache_bytes, memory.table_cache_bytes);
  logger.set(l_tablestore_memtable_bytes, memory.memtable_bytes);
  logger.set(l_tablestore_bitmap_bytes, memory.bitmap_bytes);
  logger.set(l_tablestore_in_flight_bytes, memory.in_flight_bytes);
  const PoolStats sum = parts.pools.sum();
  logger.set(l_tablestore_allocated, sum[PoolStats::allocated_bytes]);
  logger.set(l_tablestore_stored, sum[PoolStats::stored_bytes]);
  logger.set(l_tablestore_inline_bytes, sum[PoolStats::inline_bytes]);
  logger.set(l_tablestore_objects, sum[PoolStats::objects]);
  const ReferenceMaps::Usage sharing = parts.references.usage();
  logger.set(l_tablestore_shared_extents, sharing.shared);
  logger.set(l_tablestore_unshared_extents, sharing.unshared);
  logger.set(l_tablestore_reference_row_reads, sharing.row_reads);
}

void Statistics::dump_counters(ceph::Formatter* f)
{
  refresh_counters();
  f->open_object_section("perf_counters");
  parts.logger.dump_formatted(f, false, select_labeled_t::unlabeled);
  f->close_section();
}

void Statistics::dump_caches(ceph::Formatter* f) const
{
  f->dump_unsigned("tablestore_onodes", parts.onodes.count());
  f->dump_unsigned("tablestore_onode_bytes", parts.onodes.bytes());
  f->dump_unsigned("tablestore_data_cache_bytes", parts.data_cache.bytes());
  f->dump_unsigned("tablestore_table_cache_bytes", parts.engine.memory().table_cache_bytes);
}

void Statistics::dump_caches(std::ostream& os) const
{
  os << "tablestore_onodes: " << parts.onodes.count()
     << " tablestore_onode_bytes: " << parts.onodes.bytes()
     << " tablestore_data_cache_bytes: " << parts.data_cache.bytes()
     << " tablestore_table_cache_bytes: " << parts.engine.memory().table_cache_bytes;
}

void Statistics::dump_table(ceph::Formatter* f)
{
  f->open_object_section("tablestore_statistics");
  for (const auto& [name, value] : parts.engine.statistics())
    f->dump_unsigned(name, value);
  f->close_section();
}

void Statistics::dump_rows_by_size(ceph::Formatter* f)
{
  static constexpr std::array names = {"super", "object", "data", "omap"};
  f->open_object_section("rows_by_size");
  for (unsigned family = 0; family < families; ++family) {
    std::map<uint64_t, uint64_t> rows_by_power;
    uint64_t rows = 0, bytes = 0;
    auto it = parts.engine.iterate(Family(family), {}, {});
    for (it->seek_to_first(); it->valid(); it->next()) {
      const uint64_t size = it->key().size() + it->value().size();
      ++rows;
      bytes += size;
      ++rows_by_power[std::bit_ceil(size)];
    }
    f->open_object_section(names[family]);
    f->dump_unsigned("rows", rows);
    f->dump_unsigned("bytes", bytes);
    for (const auto& [power, count] : rows_by_power)
      f->dump_unsigned("up_to_" + std::to_string(power), count);
    f->close_section();
  }
  f->close_section();
}

void Statistics::dump(ceph::Formatter* f)
{
  refresh_counters();
  f->open_object_section("tablestore");
  dump_table(f);
  f->open_object_section("caches");
  dump_caches(f);
  f->close_section();
  f->open_array_section("pools");
  for (const auto& [pool, stats] : parts.pools.all()) {
    f->open_object_section("pool");
    f->dump_int("pool", pool);
    f->dump_int("objects", stats[PoolStats::objects]);
    f->dump_int("stored_bytes", stats[PoolStats::stored_bytes]);
    f->dump_int("allocated_bytes", stats[PoolStats::allocated_bytes]);
    f->dump_int("inline_bytes", stats[PoolStats::inline_bytes]);
    f->close_section();
  }
  f->close_section();
  f->close_section();
}

}  // namespace tablestore
