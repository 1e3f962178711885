// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "include/common_fwd.h"
#include "os/tablestore/engine/counters.h"

namespace tablestore {

/// The store's performance counters; names as BlueStore's where the meaning is the same.
enum {
  l_tablestore_first = 932430,
  // transactions
  l_tablestore_txc,
  l_tablestore_txc_throttle_lat,
  l_tablestore_txc_submit_lat,
  l_tablestore_txc_commit_lat,
  l_tablestore_txc_apply_lat,
  l_tablestore_commit_latency_bytes_histogram,
  l_tablestore_state_queued_lat,
  l_tablestore_state_log_lat,
  l_tablestore_state_data_lat,
  l_tablestore_state_flush_lat,
  l_tablestore_apply_lat,
  l_tablestore_slow_committed_count,
  l_tablestore_txc_barriers,
  l_tablestore_txc_ops,
  l_tablestore_write_bytes,
  l_tablestore_write_inline,
  l_tablestore_write_blocks,
  l_tablestore_write_pad_bytes,
  l_tablestore_write_penalty_read_ops,
  l_tablestore_space_waits,
  l_tablestore_space_wait_lat,
  // reads
  l_tablestore_read_lat,
  l_tablestore_read_bytes,
  l_tablestore_read_wait_aio_lat,
  l_tablestore_csum_lat,
  l_tablestore_slow_read_count,
  l_tablestore_stalled_read_count,
  l_tablestore_read_eio,
  l_tablestore_reads_with_retries,
  l_tablestore_onode_load_lat,
  l_tablestore_omap_wait_lat,
  l_tablestore_omap_iterate_lat,
  l_tablestore_omap_get_keys_lat,
  l_tablestore_omap_get_values_lat,
  l_tablestore_omap_setheader_count,
  l_tablestore_omap_setkeys_count,
  l_tablestore_omap_setkeys_records,
  l_tablestore_omap_setkeys_bytes,
  l_tablestore_omap_rmkeys_count,
  l_tablestore_omap_rmkey_range_count,
  l_tablestore_omap_clear_count,
  l_tablestore_clist_lat,
  l_tablestore_remove_lat,
  // caches
  l_tablestore_onodes,
  l_tablestore_onode_bytes,
  l_tablestore_onode_hits,
  l_tablestore_onode_misses,
  l_tablestore_data_cache_bytes,
  l_tablestore_data_hit_bytes,
  l_tablestore_data_miss_bytes,
  l_tablestore_table_cache_bytes,
  l_tablestore_memtable_bytes,
  l_tablestore_bitmap_bytes,
  l_tablestore_in_flight_bytes,
  // space
  l_tablestore_allocated,
  l_tablestore_stored,
  l_tablestore_inline_bytes,
  l_tablestore_objects,
  l_tablestore_fragmentation,
  l_tablestore_unprepared_free_bytes,
  l_tablestore_log_used_bytes,
  l_tablestore_log_capacity_bytes,
  l_tablestore_table_bytes,
  l_tablestore_table_pending_compaction_bytes,
  l_tablestore_table_flushed_bytes,
  l_tablestore_table_compacted_bytes,
  l_tablestore_shared_extents,
  l_tablestore_unshared_extents,
  l_tablestore_reference_row_reads,
  // the engine
  l_tablestore_groups,
  l_tablestore_transactions,
  l_tablestore_flushes,
  l_tablestore_container_flushes,
  l_tablestore_log_bytes,
  l_tablestore_log_padding_bytes,
  l_tablestore_log_saved_bytes,
  l_tablestore_row_bytes,
  l_tablestore_data_bytes,
  l_tablestore_data_writes,
  l_tablestore_log_full_waits,
  l_tablestore_engine_reads,
  l_tablestore_engine_read_bytes,
  l_tablestore_checkpoints,
  l_tablestore_prepared_bytes,
  l_tablestore_punched_bytes,
  l_tablestore_first_touch_bytes,
  l_tablestore_recovery_ms,
  l_tablestore_recovered_transactions,
  l_tablestore_last
};

/// Made and registered with the context; the caller unregisters and deletes.
ceph::common::PerfCounters* make_perf_counters(CephContext* cct);
void remove_perf_counters(CephContext* cct, ceph::common::PerfCounters* logger);
void copy_engine_counters(const Counters& from, ceph::common::PerfCounters& to);

}  // namespace tablestore
