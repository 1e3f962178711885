// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/perf.h"

#include "common/ceph_context.h"
#include "common/perf_counters.h"
#include "common/perf_counters_collection.h"

namespace tablestore {

namespace {

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
                    "Transactions that were slowed down because space is short");
  b.add_time_avg(l_tablestore_space_wait_lat, "space_wait_lat",
                 "Average wait of these");
}

void add_read_counters(PerfCountersBuilder& b)
{
  const int useful = PerfCountersBuilder::PRIO_USEFUL;
  b.add_time_avg(l_tablestore_read_lat, "read_lat", "Average read latency", "r_l", useful);
  b.add_u64_counter(l_tablestore_read_bytes, "read_bytes", "Bytes read from objects", NULL,
                    useful, unit_t(UNIT_BYTES));
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
  b.add_time_avg(l_tablestore_clist_lat, "clist_lat", "Average time of collection listings",
                 "cl_l", useful);
  b.add_time_avg(l_tablestore_remove_lat, "remove_lat", "Average time to remove an object",
                 "rm_l");
}

void add_state_counters(PerfCountersBuilder& b)
{
  const int useful = PerfCountersBuilder::PRIO_USEFUL;
  const auto bytes = unit_t(UNIT_BYTES);
  b.add_u64(l_tablestore_onodes, "onodes", "Onodes in memory");
  b.add_u64(l_tablestore_onode_bytes, "onode_bytes", "Memory that they take", NULL, 0, bytes);
  b.add_u64_counter(l_tablestore_onode_hits, "onode_hits", "Onodes found in memory", NULL, useful);
  b.add_u64_counter(l_tablestore_onode_misses, "onode_misses", "Onodes not found in memory", NULL,
                    useful);
  b.add_u64(l_tablestore_data_cache_bytes, "data_cache_bytes", "Object data in memory", NULL, 0,
            bytes);
  b.add_u64(l_tablestore_table_cache_bytes, "table_cache_bytes", "Blocks of the table in memory",
            NULL, 0, bytes);
  b.add_u64(l_tablestore_memtable_bytes, "memtable_bytes",
            "Memory of rows that are in no table file yet", NULL, 0, bytes);
  b.add_u64(l_tablestore_bitmap_bytes, "bitmap_bytes", "Memory of the allocation map", NULL, 0,
            bytes);
  b.add_u64(l_tablestore_in_flight_bytes, "in_flight_bytes",
            "Data and rows on their way to the disk", NULL, 0, bytes);
  b.add_u64(l_tablestore_allocated, "allocated", "Container space of all objects", "al_b",
            useful, bytes);
  b.add_u64(l_tablestore_stored, "stored", "Bytes stored in all objects", "st_b", useful, bytes);
  b.add_u64(l_tablestore_inline_bytes, "inline_bytes", "Of these, in rows of the table", NULL, 0,
            bytes);
  b.add_u64(l_tablestore_objects, "objects", "Objects");
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
                    "Of these, for space that was not prepared");
  b.add_u64_counter(l_tablestore_log_bytes, "log_bytes", "Bytes written to the log", NULL, useful,
                    bytes);
  b.add_u64_counter(l_tablestore_log_padding_bytes, "log_padding_bytes", "Of these, padding", NULL,
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
  b.add_u64_counter(l_tablestore_checkpoints, "checkpoints", "Checkpoints of the table");
  b.add_u64_counter(l_tablestore_prepared_bytes, "prepared_bytes", "Bytes written ahead of use",
                    NULL, 0, bytes);
  b.add_u64_counter(l_tablestore_punched_bytes, "punched_bytes",
                    "Bytes given back to the file system", NULL, 0, bytes);
  b.add_u64_counter(l_tablestore_first_touch_bytes, "first_touch_bytes",
                    "Bytes written to space that was not prepared", NULL, 0, bytes);
  b.add_u64(l_tablestore_recovery_ms, "recovery_ms", "Duration of the last recovery");
  b.add_u64(l_tablestore_recovered_transactions, "recovered_transactions",
            "Transactions replayed by it");
}

}  // namespace

PerfCounters* make_perf_counters(CephContext* cct)
{
  PerfCountersBuilder b(cct, "tablestore", l_tablestore_first, l_tablestore_last);
  add_transaction_counters(b);
  add_read_counters(b);
  add_state_counters(b);
  add_engine_counters(b);
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
