// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/operate/statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

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

const Statistics::Average Statistics::averages[] = {
  {l_tablestore_state_queued_lat, &Counters::queued_ns, &Counters::transactions},
  {l_tablestore_state_log_lat, &Counters::log_ns, &Counters::groups},
  {l_tablestore_state_data_lat, &Counters::data_ns, &Counters::groups},
  {l_tablestore_state_flush_lat, &Counters::flush_ns, &Counters::groups},
  {l_tablestore_apply_lat, &Counters::apply_ns, &Counters::applied_batches},
};

/// The engine adds up, on the path of commits; an average here takes one value after the other, and
/// gets so many, of which the sum is right.
void Statistics::bring_averages_up_to_date()
{
  static_assert(std::size(averages) == std::tuple_size_v<decltype(told)>);
  std::lock_guard l{mutex};
  const Counters& counters = parts.engine.counters();
  for (size_t i = 0; i < told.size(); ++i) {
    const uint64_t count = counters.*averages[i].count;
    const uint64_t sum_ns = counters.*averages[i].sum_ns;
    const uint64_t more = count - std::exchange(told[i].count, count);
    if (more == 0)
      continue;
    const uint64_t ns = sum_ns - std::exchange(told[i].sum_ns, sum_ns);
    for (uint64_t n = 0; n < more; ++n) {
      const uint64_t rest = n == 0 ? ns % more : 0;
      parts.logger.tinc(averages[i].counter, ceph::timespan(ns / more + rest));
    }
  }
}

void Statistics::set_gauges(const EngineGauges& gauges)
{
  PerfCounters& logger = parts.logger;
  logger.set(l_tablestore_unprepared_free_bytes, gauges.unprepared_free_bytes);
  logger.set(l_tablestore_log_used_bytes, gauges.log_used_bytes);
  logger.set(l_tablestore_log_capacity_bytes, gauges.log_capacity_bytes);
  logger.set(l_tablestore_table_bytes, gauges.table_bytes);
  logger.set(l_tablestore_table_pending_compaction_bytes, gauges.table_pending_compaction_bytes);
  logger.set(l_tablestore_table_flushed_bytes, gauges.table_flushed_bytes);
  logger.set(l_tablestore_table_compacted_bytes, gauges.table_compacted_bytes);
}

FreeSpace Statistics::look_at_free_space()
{
  FreeSpace space = parts.engine.free_space();
  parts.logger.set(l_tablestore_fragmentation, uint64_t(space.score * 1e6));
  return space;
}

void Statistics::tick()
{
  refresh_counters();
  const StoreOptions::Warnings warnings = parts.options.warnings();
  const auto now = ceph::mono_clock::now();
  const auto period = std::chrono::seconds(warnings.fragmentation_check_seconds);
  if (warnings.fragmentation_check_seconds > 0 &&
      (!fragmentation_looked_at || now - *fragmentation_looked_at > period)) {
    look_at_free_space();
    fragmentation_looked_at = now;
  }
  const Counters& counters = parts.engine.counters();
  alerts.look({.gauges = parts.engine.gauges(),
               .checkpoints = counters.checkpoints,
               .log_full_waits = counters.log_full_waits,
               .total_bytes = parts.engine.space().total_bytes,
               .fragmentation = double(parts.logger.get(l_tablestore_fragmentation)) / 1e6},
              warnings, now);
}

void Statistics::refresh_counters()
{
  PerfCounters& logger = parts.logger;
  bring_averages_up_to_date();
  set_gauges(parts.engine.gauges());
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

void Statistics::dump_log(ceph::Formatter* f)
{
  const EngineGauges gauges = parts.engine.gauges();
  const Counters& counters = parts.engine.counters();
  f->open_object_section("log");
  f->dump_unsigned("capacity_bytes", gauges.log_capacity_bytes);
  f->dump_unsigned("used_bytes", gauges.log_used_bytes);
  f->dump_bool("wants_checkpoint", gauges.log_is_pressed);
  f->dump_unsigned("groups", counters.groups);
  f->dump_unsigned("transactions", counters.transactions);
  f->dump_unsigned("checkpoints", counters.checkpoints);
  f->dump_unsigned("log_full_waits", counters.log_full_waits);
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
