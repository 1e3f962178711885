// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The performance counters: each moves for its reason, and only then.
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "common/Formatter.h"
#include "common/ceph_json.h"
#include "common/perf_counters.h"
#include "common/perf_counters_collection.h"
#include "global/global_context.h"
#include "os/tablestore/home/perf.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;
using namespace tablestore;

namespace {

class StoreCounters : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "the counters of tablestore";
    set("tablestore_log_op_age", a_day);   // a machine that stands still for a while is not slow
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
    commit(ch, {});
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }
  const PerfCounters& logger()
  {
    store->refresh_perf_counters();
    return *store->get_perf_counters();
  }
  uint64_t value(int counter) { return logger().get(counter); }
  uint64_t samples(int average) { return logger().get_tavg_ns(average).first; }
  uint64_t sum_ns(int average) { return logger().get_tavg_ns(average).second; }
  std::map<int, uint64_t> values(const std::set<int>& counters)
  {
    std::map<int, uint64_t> all;
    for (int counter : counters)
      all[counter] = value(counter);
    return all;
  }
  void write_durably(const ghobject_t& oid, uint64_t offset, const bufferlist& bl)
  {
    Transaction t;
    t.write(ch->cid, oid, offset, bl.length(), bl);
    commit(ch, std::move(t));
  }

  static constexpr const char* a_day = "86400";   ///< in seconds
  const ghobject_t large = object("large");
  Handle ch;
};

const std::set<int> of_writes = {l_tablestore_write_inline, l_tablestore_write_blocks,
                                 l_tablestore_write_pad_bytes,
                                 l_tablestore_write_penalty_read_ops};

const std::set<int> of_omap = {
  l_tablestore_omap_setheader_count, l_tablestore_omap_setkeys_count,
  l_tablestore_omap_setkeys_records, l_tablestore_omap_setkeys_bytes,
  l_tablestore_omap_rmkeys_count, l_tablestore_omap_rmkey_range_count,
  l_tablestore_omap_clear_count};

}  // namespace

TEST_F(StoreCounters, EachTransactionIsInTheQueueOnceAndEachGroupInEachState)
{
  write_durably(large, 0, content(1, 64 * KiB));   // the store's own one takes object numbers
  const uint64_t transactions = value(l_tablestore_transactions);
  const uint64_t groups = value(l_tablestore_groups);
  const uint64_t queued = samples(l_tablestore_state_queued_lat);
  const uint64_t flushed = samples(l_tablestore_state_flush_lat);
  for (int i = 0; i < 10; ++i)
    write_durably(large, 0, content(i, 64 * KiB));
  wait_durable(ch);
  const uint64_t more = value(l_tablestore_transactions) - transactions;
  EXPECT_EQ(10u, more);
  EXPECT_EQ(queued + more, samples(l_tablestore_state_queued_lat));
  EXPECT_EQ(flushed + value(l_tablestore_groups) - groups, samples(l_tablestore_state_flush_lat));
  EXPECT_EQ(samples(l_tablestore_state_log_lat), samples(l_tablestore_state_data_lat));
}

TEST_F(StoreCounters, TheStatesOfACommitAddUpToLessThanTheCommit)
{
  const uint64_t before = sum_ns(l_tablestore_txc_commit_lat);
  const auto states = [this] {
    return sum_ns(l_tablestore_state_queued_lat) + sum_ns(l_tablestore_state_log_lat) +
           sum_ns(l_tablestore_state_data_lat) + sum_ns(l_tablestore_state_flush_lat);
  };
  const uint64_t states_before = states();
  // One at a time: a group is one transaction.
  for (int i = 0; i < 20; ++i)
    write_durably(large, 0, content(i, 64 * KiB));
  EXPECT_GT(states(), states_before);
  EXPECT_LE(states() - states_before, sum_ns(l_tablestore_txc_commit_lat) - before);
}

TEST_F(StoreCounters, ApplyIsTimedForEachBatchOfRows)
{
  const uint64_t before = samples(l_tablestore_apply_lat);
  write_durably(large, 0, content(1, 64 * KiB));
  EXPECT_TRUE(eventually([&] { return samples(l_tablestore_apply_lat) > before; }));
  EXPECT_GT(sum_ns(l_tablestore_apply_lat), 0u);
}

TEST_F(StoreCounters, AWriteIsInlineOrInBlocks)
{
  auto before = values(of_writes);
  write_durably(object("small"), 0, content(1, 300));
  ++before[l_tablestore_write_inline];
  EXPECT_EQ(before, values(of_writes));
  write_durably(large, 0, content(1, 64 * KiB));
  ++before[l_tablestore_write_blocks];
  EXPECT_EQ(before, values(of_writes));
}

TEST_F(StoreCounters, APartOfABlockCostsAReadAndPadding)
{
  write_durably(large, 0, content(1, 64 * KiB));
  auto before = values(of_writes);
  write_durably(large, 5000, content(2, 100));
  ++before[l_tablestore_write_blocks];
  ++before[l_tablestore_write_penalty_read_ops];
  before[l_tablestore_write_pad_bytes] += 4 * KiB - 100;
  EXPECT_EQ(before, values(of_writes));
  write_durably(large, 4 * KiB, content(3, 4 * KiB));
  ++before[l_tablestore_write_blocks];
  EXPECT_EQ(before, values(of_writes)) << "a whole block has nothing to read";
}

TEST_F(StoreCounters, ReadsAreHitsOrMissesAndOnlyMissesReadTheDisk)
{
  write_durably(large, 0, content(1, 64 * KiB));
  wait_durable(ch);
  store->flush_cache(nullptr);
  const uint64_t hits = value(l_tablestore_data_hit_bytes);
  const uint64_t misses = value(l_tablestore_data_miss_bytes);
  const uint64_t disk_reads = samples(l_tablestore_read_wait_aio_lat);
  const uint64_t verified = samples(l_tablestore_csum_lat);
  read(ch, large);
  EXPECT_EQ(misses + 64 * KiB, value(l_tablestore_data_miss_bytes));
  EXPECT_EQ(hits, value(l_tablestore_data_hit_bytes));
  EXPECT_EQ(disk_reads + 1, samples(l_tablestore_read_wait_aio_lat));
  EXPECT_EQ(verified + 1, samples(l_tablestore_csum_lat));
  read(ch, large);
  EXPECT_EQ(misses + 64 * KiB, value(l_tablestore_data_miss_bytes));
  EXPECT_EQ(hits + 64 * KiB, value(l_tablestore_data_hit_bytes));
  EXPECT_EQ(disk_reads + 1, samples(l_tablestore_read_wait_aio_lat));
}

TEST_F(StoreCounters, OnodesAreHitsOrMissesWhichOnlyGrow)
{
  write_durably(large, 0, content(1, 64 * KiB));
  wait_durable(ch);
  store->flush_cache(nullptr);
  struct stat st;
  const uint64_t misses = value(l_tablestore_onode_misses);
  EXPECT_TRUE(eventually([&] {   // what is not applied stays in memory
    store->flush_cache(nullptr);
    store->stat(ch, large, &st);
    return value(l_tablestore_onode_misses) > misses;
  }));
  const uint64_t hits = value(l_tablestore_onode_hits);
  const uint64_t now = value(l_tablestore_onode_misses);
  store->stat(ch, large, &st);
  EXPECT_EQ(hits + 1, value(l_tablestore_onode_hits));
  EXPECT_EQ(now, value(l_tablestore_onode_misses));
}

TEST_F(StoreCounters, OmapChangesAreCountedByKind)
{
  auto expected = values(of_omap);
  Transaction t;
  t.touch(ch->cid, large);
  std::map<std::string, bufferlist> keys{{"a", to_bl("12")}, {"bb", to_bl("3")}};
  t.omap_setkeys(ch->cid, large, keys);
  t.omap_setheader(ch->cid, large, to_bl("header"));
  commit(ch, std::move(t));
  ++expected[l_tablestore_omap_setkeys_count];
  expected[l_tablestore_omap_setkeys_records] += 2;
  expected[l_tablestore_omap_setkeys_bytes] += 6;
  ++expected[l_tablestore_omap_setheader_count];
  EXPECT_EQ(expected, values(of_omap));
  Transaction u;
  u.omap_rmkeys(ch->cid, large, std::set<std::string>{"a"});
  u.omap_rmkeyrange(ch->cid, large, "b", "c");
  u.omap_clear(ch->cid, large);
  commit(ch, std::move(u));
  ++expected[l_tablestore_omap_rmkeys_count];
  ++expected[l_tablestore_omap_rmkey_range_count];
  ++expected[l_tablestore_omap_clear_count];
  EXPECT_EQ(expected, values(of_omap));
}

TEST_F(StoreCounters, OmapReadsAreTimed)
{
  Transaction t;
  t.touch(ch->cid, large);
  std::map<std::string, bufferlist> keys{{"a", to_bl("12")}}, found;
  t.omap_setkeys(ch->cid, large, keys);
  commit(ch, std::move(t));
  const uint64_t key_reads = samples(l_tablestore_omap_get_keys_lat);
  const uint64_t value_reads = samples(l_tablestore_omap_get_values_lat);
  std::set<std::string> names;
  store->omap_get_keys(ch, large, &names);
  EXPECT_EQ(key_reads + 1, samples(l_tablestore_omap_get_keys_lat));
  EXPECT_EQ(value_reads, samples(l_tablestore_omap_get_values_lat));
  store->omap_get_values(ch, large, {"a"}, &found);
  EXPECT_EQ(value_reads + 1, samples(l_tablestore_omap_get_values_lat));
}

TEST_F(StoreCounters, NothingIsSlowUntilItTakesLongerThanTheOption)
{
  write_durably(large, 0, content(1, 64 * KiB));
  store->flush_cache(nullptr);
  read(ch, large);
  EXPECT_EQ(0u, value(l_tablestore_slow_committed_count));
  EXPECT_EQ(0u, value(l_tablestore_slow_read_count));
  EXPECT_EQ(0u, value(l_tablestore_stalled_read_count));
  set("tablestore_log_op_age", "0");
  write_durably(large, 0, content(2, 64 * KiB));
  EXPECT_EQ(1u, value(l_tablestore_slow_committed_count));
  EXPECT_EQ(0u, value(l_tablestore_slow_read_count));
  store->flush_cache(nullptr);
  read(ch, large);
  EXPECT_EQ(1u, value(l_tablestore_slow_read_count));
  EXPECT_EQ(1u, value(l_tablestore_stalled_read_count));
  read(ch, large);
  EXPECT_EQ(1u, value(l_tablestore_stalled_read_count)) << "from memory";
  set("tablestore_log_op_age", a_day);
  write_durably(large, 0, content(3, 64 * KiB));
  EXPECT_EQ(1u, value(l_tablestore_slow_committed_count));
}

TEST_F(StoreCounters, LogAndTableSayHowFullTheyAre)
{
  EXPECT_GT(value(l_tablestore_log_capacity_bytes), 0u);
  const uint64_t used = value(l_tablestore_log_used_bytes);
  for (int i = 0; i < 20; ++i)
    write_durably(object("small" + std::to_string(i)), 0, content(i, 1000));
  EXPECT_GE(value(l_tablestore_log_used_bytes), used + 20 * 1000);
  EXPECT_LT(value(l_tablestore_log_used_bytes), value(l_tablestore_log_capacity_bytes));
  const uint64_t flushed = value(l_tablestore_table_flushed_bytes);
  ASSERT_EQ(0, store->compact());
  EXPECT_GT(value(l_tablestore_table_flushed_bytes), flushed);
  EXPECT_GT(value(l_tablestore_table_bytes), 0u);
}

TEST_F(StoreCounters, TheHistogramHasEachCommitOnce)
{
  const auto commits = [this] {
    std::unique_ptr<ceph::Formatter> f(ceph::Formatter::create("json"));
    std::ostringstream text;
    g_ceph_context->get_perfcounters_collection()->dump_formatted_histograms(
        f.get(), false, "tablestore", "commit_latency_bytes_histogram");
    f->flush(text);
    JSONParser json;
    EXPECT_TRUE(json.parse(text.str().c_str(), int(text.str().size()))) << text.str();
    JSONObj* at = json.find_obj("tablestore");
    at = at ? at->find_obj("commit_latency_bytes_histogram") : nullptr;
    at = at ? at->find_obj("values") : nullptr;
    EXPECT_TRUE(at) << text.str();
    uint64_t sum = 0;
    if (!at)
      return sum;
    for (auto row = at->find_first(); !row.end(); ++row) {
      for (auto cell = (*row)->find_first(); !cell.end(); ++cell)
        sum += std::stoull((*cell)->get_data());
    }
    return sum;
  };
  const uint64_t before = commits();
  for (int i = 0; i < 5; ++i)
    write_durably(large, 0, content(i, 64 * KiB));
  EXPECT_EQ(before + 5, commits());
}

// Who is told to watch a counter has to get it: the manager, and what exports from it, leave out
// those of priority 0.
TEST_F(StoreCounters, WhatOperatorsWatchIsExported)
{
  std::unique_ptr<ceph::Formatter> f(ceph::Formatter::create("json"));
  std::ostringstream text;
  g_ceph_context->get_perfcounters_collection()->dump_formatted(
      f.get(), true, select_labeled_t::unlabeled, "tablestore");
  f->flush(text);
  JSONParser json;
  ASSERT_TRUE(json.parse(text.str().c_str(), int(text.str().size()))) << text.str();
  JSONObj* all = json.find_obj("tablestore");
  ASSERT_TRUE(all) << text.str();
  for (const char* name :
       {"container_flushes", "space_waits", "space_wait_lat", "prepared_bytes", "inline_bytes",
        "objects", "recovery_ms", "recovered_transactions", "state_queued_lat", "state_log_lat",
        "state_data_lat", "state_flush_lat", "apply_lat", "slow_committed_count",
        "slow_read_count", "fragmentation_micros", "log_used_bytes", "log_capacity_bytes",
        "table_bytes", "table_pending_compaction_bytes", "unprepared_free_bytes", "onode_hits",
        "onode_misses", "first_touch_bytes", "memtable_bytes", "in_flight_bytes"}) {
    JSONObj* counter = all->find_obj(name);
    ASSERT_TRUE(counter) << name;
    EXPECT_EQ("5", counter->find_obj("priority")->get_data()) << name;
  }
  // Prometheus' rate() is for counters.
  EXPECT_EQ("counter", all->find_obj("onode_hits")->find_obj("metric_type")->get_data());
  EXPECT_EQ("gauge", all->find_obj("log_used_bytes")->find_obj("metric_type")->get_data());
}
