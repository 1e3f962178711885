// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/perf.h"

#include "common/ceph_context.h"
#include "common/perf_counters.h"
#include "common/perf_counters_collection.h"

namespace tablestore {

namespace {

/// Commits by their latency, in powers of two from 8 us on, and by the bytes that they carry.
void add_commit_histogram(PerfCountersBuilder& b)
{
  const PerfHistogramCommon::axis_config_d latency{
      "Latency (usec)", PerfHistogramCommon::SCALE_LOG2, 0, 8, 24};
  const PerfHistogramCommon::axis_config_d size{
      "Transaction size (bytes)", PerfHistogramCommon::SCALE_LOG2, 0, 512, 18};
  b.add_u64_counter_histogram(l_tablestore_commit_latency_bytes_histogram,
                              "commit_latency_bytes_histogram", latency, size,
                              "Commits by latency and bytes");
}

void add_state_latencies(PerfCountersBuilder& b)
{
  const int useful = PerfCountersBuilder::PRIO_USEFUL;
  b.add_time_avg(l_tablestore_state_queued_lat, "state_queued_lat",
                 "Average time of a transaction in the queue of the commit lane", "sq_l", useful);
  b.add_time_avg(l_tablestore_state_log_lat, "state_log_lat",
                 "Average time from taking a group to its log record being written", "sl_l",
                 useful);
  b.add_time_avg(l_tablestore_state_data_lat, "state_data_lat",
                 "Average time that a group then waited for its data", "sd_l", useful);
  b.add_time_avg(l_tablestore_state_flush_lat, "state_flush_lat",
                 "Average time of the flushes of a group", "sf_l", useful);
  b.add_time_avg(l_tablestore_apply_lat, "apply_lat",
                 "Average time to write a batch of rows to the table", "ap_l", useful);
  b.add_u64_counter(l_tablestore_slow_committed_count, "slow_committed_count",
                    "Commits that took longer than tablestore_log_op_age", "scc", useful);
}

void add_write_counters(PerfCountersBuilder& b)
{
  const int useful = PerfCountersBuilder::PRIO_USEFUL;
  b.add_u64_counter(l_tablestore_write_inline, "write_inline",
                    "Writes of objects whose data is a row of the table", NULL, useful);
  b.add_u64_counter(l_tablestore_write_blocks, "write_blocks",
                    "Writes of blocks of containers", NULL, useful);
  b.add_u64_counter(l_tablestore_write_pad_bytes, "write_pad_bytes",
                    "Bytes of the blocks of these that were not asked to be written", NULL,
                    useful, unit_t(UNIT_BYTES));
  b.add_u64_counter(l_tablestore_write_penalty_read_ops, "write_penalty_read_ops",
                    "Reads that writes had to make first: of the rest of a block, or of inline "
                    "data", NULL, useful);
}

void add_transaction_counters(PerfCountersBuilder& b)
{
  const int useful = PerfCountersBuilder::PRIO_USEFUL;
  b.add_u64_counter(l_tablestore_txc, "txc", "Transactions queued", "tx", useful);
  b.add_time_avg(l_tablestore_txc_throttle_lat, "txc_throttle_lat",
                 "Average wait for the throttle", "th_l", useful);
  b.add_time_avg(l_tablestore_txc_submit_lat, "txc_submit_lat",
                 "Average time in queue_transactions", "s_l", useful);
  b.add_time_avg(l_tablestore_txc_commit_lat, "txc_commit_lat",
                 "Average time from queue_transactions to durable", "c_l",
                 PerfCountersBuilder::PRIO_CRITICAL);
  b.add_time_avg(l_tablestore_txc_apply_lat, "txc_apply_lat",
                 "Average time from queue_transactions to rows in the table");
  b.add_u64_counter(l_tablestore_txc_barriers, "txc_barriers",
                    "Transactions that nothing may overtake");
  b.add_u64_counter(l_tablestore_txc_ops, "txc_ops", "Operations of all transactions");
  b.add_u64_counter(l_tablestore_write_bytes, "write_bytes",
                    "Bytes written to objects by transactions", NULL, useful, unit_t(UNIT_BYTES));
  b.add_u64_counter(l_tablestore_space_waits, "space_waits",
                    "Transactions that were slowed down because space is short", NULL, useful);
  b.add_time_avg(l_tablestore_space_wait_lat, "space_wait_lat",
                 "Average wait of these", "sw_l", useful);
}

void add_omap_counters(PerfCountersBuilder& b)
{
  const int useful = PerfCountersBuilder::PRIO_USEFUL;
  b.add_time_avg(l_tablestore_omap_get_keys_lat, "omap_get_keys_lat",
                 "Average time to read all keys of an omap", NULL, useful);
  b.add_time_avg(l_tablestore_omap_get_values_lat, "omap_get_values_lat",
                 "Average time to read the values of some keys", NULL, useful);
  b.add_u64_counter(l_tablestore_omap_setheader_count, "omap_setheader_count",
                    "Omap headers set");
  b.add_u64_counter(l_tablestore_omap_setkeys_count, "omap_setkeys_count",
                    "Operations that set omap keys", NULL, useful);
  b.add_u64_counter(l_tablestore_omap_setkeys_records, "omap_setkeys_records",
                    "Omap keys set", NULL, useful);
  b.add_u64_counter(l_tablestore_omap_setkeys_bytes, "omap_setkeys_bytes",
                    "Bytes of keys and values set", NULL, useful, unit_t(UNIT_BYTES));
  b.add_u64_counter(l_tablestore_omap_rmkeys_count, "omap_rmkeys_count",
                    "Omap keys removed by their name", NULL, useful);
  b.add_u64_counter(l_tablestore_omap_rmkey_range_count, "omap_rmkey_range_count",
                    "Ranges of omap keys removed", NULL, useful);
  b.add_u64_counter(l_tablestore_omap_clear_count, "omap_clear_count",
                    "Omaps removed as a whole");
}

void add_read_counters(PerfCountersBuilder& b)
{
  const int useful = PerfCountersBuilder::PRIO_USEFUL;
  b.add_time_avg(l_tablestore_read_lat, "read_lat", "Average read latency", "r_l", useful);
  b.add_u64_counter(l_tablestore_read_bytes, "read_bytes", "Bytes read from objects", NULL,
                    useful, unit_t(UNIT_BYTES));
  b.add_time_avg(l_tablestore_read_wait_aio_lat, "read_wait_aio_lat",
                 "Average time of a read from a container", "rw_l", useful);
  b.add_time_avg(l_tablestore_csum_lat, "csum_lat",
                 "Average time to verify what it has read", "cs_l", useful);
  b.add_u64_counter(l_tablestore_slow_read_count, "slow_read_count",
                    "Reads of objects that took longer than tablestore_log_op_age", "src", useful);
  b.add_u64_counter(l_tablestore_stalled_read_count, "stalled_read_count",
                    "Reads of the disk that took longer than that", "str", useful);
  b.add_u64_counter(l_tablestore_read_eio, "read_eio",
                    "Reads that failed: disk errors and bad checksums", NULL, useful);
  b.add_u64_counter(l_tablestore_reads_with_retries, "reads_with_retries",
                    "Reads that succeeded only when they were repeated", NULL, useful);
  b.add_time_avg(l_tablestore_onode_load_lat, "onode_load_lat",
                 "Average time to load an onode that was not in memory");
  b.add_time_avg(l_tablestore_omap_wait_lat, "omap_wait_lat",
                 "Average wait of omap reads for updates that were queued before");
  b.add_time_avg(l_tablestore_omap_iterate_lat, "omap_iterate_lat",
                 "Average time of omap iterations");
  add_omap_counters(b);
  b.add_time_avg(l_tablestore_clist_lat, "clist_lat", "Average time of collection listings",
                 "cl_l", useful);
  b.add_time_avg(l_tablestore_remove_lat, "remove_lat", "Average time to remove an object",
                 "rm_l");
}

void add_state_counters(PerfCountersBuilder& b)
{
  const int useful = PerfCountersBuilder::PRIO_USEFUL;
  const auto bytes = unit_t(UNIT_BYTES);
  b.add_u64(l_tablestore_onodes, "onodes", "Onodes in memory", NULL, useful);
  b.add_u64(l_tablestore_onode_bytes, "onode_bytes", "Memory that they take", NULL, useful, bytes);
  b.add_u64_counter(l_tablestore_onode_hits, "onode_hits", "Onodes found in memory", NULL, useful);
  b.add_u64_counter(l_tablestore_onode_misses, "onode_misses", "Onodes not found in memory", NULL,
                    useful);
  b.add_u64(l_tablestore_data_cache_bytes, "data_cache_bytes", "Object data in memory", NULL,
            useful, bytes);
  b.add_u64_counter(l_tablestore_data_hit_bytes, "data_hit_bytes",
                    "Bytes of blocks that were read from memory", NULL, useful, bytes);
  b.add_u64_counter(l_tablestore_data_miss_bytes, "data_miss_bytes",
                    "Bytes of blocks that were read from containers", NULL, useful, bytes);
  b.add_u64(l_tablestore_table_cache_bytes, "table_cache_bytes", "Blocks of the table in memory",
            NULL, useful, bytes);
  b.add_u64(l_tablestore_memtable_bytes, "memtable_bytes",
            "Memory of rows that are in no table file yet", NULL, useful, bytes);
  b.add_u64(l_tablestore_bitmap_bytes, "bitmap_bytes", "Memory of the allocation map", NULL, useful,
            bytes);
  b.add_u64(l_tablestore_in_flight_bytes, "in_flight_bytes",
            "Data and rows on their way to the disk", NULL, useful, bytes);
  b.add_u64(l_tablestore_allocated, "allocated", "Container space of all objects", "al_b",
            useful, bytes);
  b.add_u64(l_tablestore_stored, "stored", "Bytes stored in all objects", "st_b", useful, bytes);
  b.add_u64(l_tablestore_inline_bytes, "inline_bytes", "Of these, in rows of the table", NULL,
            useful, bytes);
  b.add_u64(l_tablestore_objects, "objects", "Objects", NULL, useful);
  b.add_u64_counter(l_tablestore_shared_extents, "shared_extents",
                    "Extents that became shared by a clone");
  b.add_u64_counter(l_tablestore_unshared_extents, "unshared_extents",
                    "Extents that became one object's own again");
  b.add_u64_counter(l_tablestore_reference_row_reads, "reference_row_reads",
                    "Rows of references to shared extents that were asked of the table");
}

void add_engine_counters(PerfCountersBuilder& b)
{
  const int useful = PerfCountersBuilder::PRIO_USEFUL;
  const auto bytes = unit_t(UNIT_BYTES);
  b.add_u64_counter(l_tablestore_groups, "groups", "Log groups made durable", NULL, useful);
  b.add_u64_counter(l_tablestore_transactions, "transactions", "Transactions made durable", NULL,
                    useful);
  b.add_u64_counter(l_tablestore_flushes, "flushes", "Device flushes on the commit path", NULL,
                    useful);
  b.add_u64_counter(l_tablestore_container_flushes, "container_flushes",
                    "Of these, for space that was not prepared", NULL, useful);
  b.add_u64_counter(l_tablestore_log_bytes, "log_bytes", "Bytes written to the log", NULL, useful,
                    bytes);
  b.add_u64_counter(l_tablestore_log_padding_bytes, "log_padding_bytes", "Of these, padding", NULL,
                    0, bytes);
  b.add_u64_counter(l_tablestore_log_saved_bytes, "log_saved_bytes",
                    "Bytes that the log would have beside these if no group was compressed", NULL,
                    0, bytes);
  b.add_u64_counter(l_tablestore_row_bytes, "row_bytes", "Rows in the log", NULL, 0, bytes);
  b.add_u64_counter(l_tablestore_data_bytes, "data_bytes", "Bytes written to containers", NULL,
                    useful, bytes);
  b.add_u64_counter(l_tablestore_data_writes, "data_writes", "Write requests to containers");
  b.add_u64_counter(l_tablestore_log_full_waits, "log_full_waits",
                    "Waits of the commit lane for a checkpoint", NULL, useful);
  b.add_u64_counter(l_tablestore_engine_reads, "container_reads", "Read requests to containers");
  b.add_u64_counter(l_tablestore_engine_read_bytes, "container_read_bytes",
                    "Bytes read from containers", NULL, 0, bytes);
  b.add_u64_counter(l_tablestore_checkpoints, "checkpoints", "Checkpoints of the table",
                    NULL, useful);
  b.add_u64_counter(l_tablestore_prepared_bytes, "prepared_bytes", "Bytes written ahead of use",
                    NULL, useful, bytes);
  b.add_u64_counter(l_tablestore_punched_bytes, "punched_bytes",
                    "Bytes given back to the file system", NULL, useful, bytes);
  b.add_u64_counter(l_tablestore_first_touch_bytes, "first_touch_bytes",
                    "Bytes written to space that was not prepared", NULL, useful, bytes);
  b.add_u64(l_tablestore_recovery_ms, "recovery_ms", "Duration of the last recovery", NULL,
            useful);
  b.add_u64(l_tablestore_recovered_transactions, "recovered_transactions",
            "Transactions replayed by it", NULL, useful);
}

void add_space_counters(PerfCountersBuilder& b)
{
  const int useful = PerfCountersBuilder::PRIO_USEFUL;
  const auto bytes = unit_t(UNIT_BYTES);
  b.add_u64(l_tablestore_fragmentation, "fragmentation_micros",
            "How fragmented free space is: 0 to 1000000", "fbss", useful);
  b.add_u64(l_tablestore_unprepared_free_bytes, "unprepared_free_bytes",
            "Free space in containers that was never written: its first write costs a flush", NULL,
            useful, bytes);
  b.add_u64(l_tablestore_log_used_bytes, "log_used_bytes",
            "What a restart would replay of the log, unpacked where it is compressed", NULL,
            useful, bytes);
  b.add_u64(l_tablestore_log_capacity_bytes, "log_capacity_bytes", "Size of the log", NULL,
            useful, bytes);
  b.add_u64(l_tablestore_table_bytes, "table_bytes", "Files of the table", NULL, useful, bytes);
  b.add_u64(l_tablestore_table_pending_compaction_bytes, "table_pending_compaction_bytes",
            "About what the table has yet to compact", NULL, useful, bytes);
  b.add_u64_counter(l_tablestore_table_flushed_bytes, "table_flushed_bytes",
                    "Bytes written to the table's files from memory", NULL, useful, bytes);
  b.add_u64_counter(l_tablestore_table_compacted_bytes, "table_compacted_bytes",
                    "Bytes written by its compactions", NULL, useful, bytes);
}

}  // namespace

PerfCounters* make_perf_counters(CephContext* cct)
{
  PerfCountersBuilder b(cct, "tablestore", l_tablestore_first, l_tablestore_last);
  add_transaction_counters(b);
  add_read_counters(b);
  add_state_counters(b);
  add_engine_counters(b);
  add_commit_histogram(b);
  add_state_latencies(b);
  add_write_counters(b);
  add_space_counters(b);
  PerfCounters* logger = b.create_perf_counters();
  cct->get_perfcounters_collection()->add(logger);
  return logger;
}

void remove_perf_counters(CephContext* cct, PerfCounters* logger)
{
  cct->get_perfcounters_collection()->remove(logger);
  delete logger;
}

void copy_engine_counters(const Counters& from, PerfCounters& to)
{
  to.set(l_tablestore_groups, from.groups);
  to.set(l_tablestore_transactions, from.transactions);
  to.set(l_tablestore_flushes, from.flushes);
  to.set(l_tablestore_container_flushes, from.container_flushes);
  to.set(l_tablestore_log_bytes, from.log_bytes);
  to.set(l_tablestore_log_padding_bytes, from.log_padding_bytes);
  to.set(l_tablestore_log_saved_bytes, from.log_saved_bytes);
  to.set(l_tablestore_row_bytes, from.row_bytes);
  to.set(l_tablestore_data_bytes, from.data_bytes);
  to.set(l_tablestore_data_writes, from.data_writes);
  to.set(l_tablestore_log_full_waits, from.log_full_waits);
  to.set(l_tablestore_engine_reads, from.reads);
  to.set(l_tablestore_engine_read_bytes, from.read_bytes);
  to.set(l_tablestore_checkpoints, from.checkpoints);
  to.set(l_tablestore_prepared_bytes, from.prepared_bytes);
  to.set(l_tablestore_punched_bytes, from.punched_bytes);
  to.set(l_tablestore_first_touch_bytes, from.first_touch_bytes);
  to.set(l_tablestore_recovery_ms, from.recovery_ns / 1000000);
  to.set(l_tablestore_recovered_transactions, from.recovered_transactions);
}

}  // namespace tablestore
