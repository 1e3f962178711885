// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/space/space_gate.h"

#include "common/Formatter.h"
#include "common/debug.h"
#include "common/errno.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/space/pool_totals.h"
#include "os/tablestore/object/reference_maps.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

using namespace tablestore;

int TableStore::statfs(store_statfs_t* buf, osd_alert_list_t* alerts)
{
  buf->reset();
  if (alerts)
    alerts->clear();
  if (!engine)
    return 0;
  const SpaceUsage usage = engine->space();
  const uint64_t reserve = std::min(space->reserve_bytes(), usage.available_bytes);
  buf->total = usage.total_bytes;
  buf->available = usage.available_bytes - reserve;
  buf->internally_reserved = reserve;

  const PoolStats sum = pools->sum();
  buf->allocated = sum[PoolStats::allocated_bytes] + sum[PoolStats::inline_bytes];
  buf->data_stored = sum[PoolStats::stored_bytes];
  const std::string end(32, '\xff');
  buf->omap_allocated = engine->estimate_row_bytes(Family::omap, {}, end);
  buf->internal_metadata = int64_t(usage.table_bytes + usage.log_bytes) - buf->omap_allocated;
  buf->floor(0);
  if (alerts && buf->available == 0) {
    alerts->emplace("TABLESTORE_NO_SPACE",
                    "only the reserve of " + std::to_string(reserve) + " bytes is left");
  }
  if (alerts && has_fast_commits)
    alerts->emplace("TABLESTORE_FAST_COMMIT", fast_commit_warning(path));
  return 0;
}

int TableStore::pool_statfs(uint64_t pool_id, store_statfs_t* buf, bool* per_pool_omap)
{
  buf->reset();
  *per_pool_omap = true;
  const PoolStats stats = pools->get(int64_t(pool_id));
  buf->allocated = stats[PoolStats::allocated_bytes] + stats[PoolStats::inline_bytes];
  buf->data_stored = stats[PoolStats::stored_bytes];
  const auto [first, last] = omap_pool_range(int64_t(pool_id));
  buf->omap_allocated = engine->estimate_row_bytes(Family::omap, first, last);
  buf->floor(0);
  return 0;
}

objectstore_perf_stat_t TableStore::get_cur_stats()
{
  std::lock_guard l{tick_mutex};
  commit_latency_ns.consume_next(logger->get_tavg_ns(l_tablestore_txc_commit_lat));
  objectstore_perf_stat_t stats;
  stats.os_commit_latency_ns = commit_latency_ns.current_avg();
  stats.os_apply_latency_ns = stats.os_commit_latency_ns;
  return stats;
}

void TableStore::refresh_perf_counters()
{
  if (!engine)
    return;
  copy_engine_counters(engine->counters(), *logger);
  logger->set(l_tablestore_onodes, onodes->count());
  logger->set(l_tablestore_onode_bytes, onodes->bytes());
  const OnodeCache::Usage lookups = onodes->usage();
  logger->set(l_tablestore_onode_hits, lookups.hits);
  logger->set(l_tablestore_onode_misses, lookups.misses);
  logger->set(l_tablestore_data_cache_bytes, data_cache->bytes());
  const PoolStats sum = pools->sum();
  logger->set(l_tablestore_allocated, sum[PoolStats::allocated_bytes]);
  logger->set(l_tablestore_stored, sum[PoolStats::stored_bytes]);
  logger->set(l_tablestore_inline_bytes, sum[PoolStats::inline_bytes]);
  logger->set(l_tablestore_objects, sum[PoolStats::objects]);
}

int TableStore::flush_cache(std::ostream*)
{
  dout(1) << __func__ << dendl;
  onodes->clear();
  reference_maps->trim();
  data_cache->clear();
  Status s = engine->drop_caches();
  return s.ok() ? 0 : -s.code();
}

void TableStore::dump_perf_counters(ceph::Formatter* f)
{
  refresh_perf_counters();
  f->open_object_section("perf_counters");
  logger->dump_formatted(f, false, select_labeled_t::unlabeled);
  f->close_section();
}

void TableStore::dump_cache_stats(ceph::Formatter* f)
{
  f->dump_unsigned("tablestore_onodes", onodes->count());
  f->dump_unsigned("tablestore_onode_bytes", onodes->bytes());
  f->dump_unsigned("tablestore_data_cache_bytes", data_cache->bytes());
}

void TableStore::dump_cache_stats(std::ostream& os)
{
  os << "tablestore_onodes: " << onodes->count()
     << " tablestore_onode_bytes: " << onodes->bytes()
     << " tablestore_data_cache_bytes: " << data_cache->bytes();
}

void TableStore::get_db_statistics(ceph::Formatter* f)
{
  f->open_object_section("tablestore_statistics");
  for (const auto& [name, value] : engine->statistics())
    f->dump_unsigned(name, value);
  f->close_section();
}

void TableStore::generate_db_histogram(ceph::Formatter* f)
{
  static constexpr std::array names = {"super", "object", "data", "omap"};
  f->open_object_section("rows_by_size");
  for (unsigned family = 0; family < families; ++family) {
    std::map<uint64_t, uint64_t> rows_by_power;
    uint64_t rows = 0, bytes = 0;
    auto it = engine->iterate(Family(family), {}, {});
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

int TableStore::compact()
{
  dout(1) << __func__ << dendl;
  Status s = engine->compact();
  if (!s.ok())
    derr << __func__ << " " << s.what() << dendl;
  return -s.code();
}
