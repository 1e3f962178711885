// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Alerts of how a store does: each comes, and goes again.
#include <string>

#include "common/perf_counters.h"
#include "global/global_context.h"
#include "os/tablestore/engine/troubles.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/home/slow_ops.h"
#include "os/tablestore/operate/alerts.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;
using namespace tablestore;

namespace {

using std::chrono::seconds;

class AlertsTest : public ::testing::Test {
 protected:
  ~AlertsTest() override { remove_perf_counters(g_ceph_context, logger); }

  void look(seconds after = seconds(1)) { alerts.look(state, warnings, now += after); }
  std::string line(const std::string& name)
  {
    const auto all = troubles.all();
    return all.contains(name) ? all.at(name) : "";
  }
  bool is_raised(const std::string& name) { return line(name) != ""; }

  StoreOptions options{g_ceph_context};
  ceph::common::PerfCounters* const logger = make_perf_counters(g_ceph_context);
  Troubles troubles;
  SlowOps slow_ops{g_ceph_context, options, *logger};
  Alerts alerts{troubles, slow_ops};
  StoreOptions::Warnings warnings = options.warnings();
  StoreState state;
  ceph::mono_time now = ceph::mono_clock::now();
};

class StoreAlerts : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "the alerts of tablestore";
    set("tablestore_log_op_age", a_day);   // a machine that stands still for a while is not slow
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }
  bool is_raised(const std::string& name)
  {
    store_statfs_t space;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, store->statfs(&space, &alerts));
    return alerts.contains(name);
  }
  uint64_t fragmentation()
  {
    return store->get_perf_counters()->get(l_tablestore_fragmentation);
  }
  static constexpr const char* a_day = "86400";   ///< in seconds
  Handle ch;
};

}  // namespace

TEST_F(AlertsTest, AHealthyStoreHasNone)
{
  state = {.gauges = {.log_used_bytes = 1, .log_capacity_bytes = 10, .table_bytes = 1},
           .checkpoints = 1, .total_bytes = 10, .fragmentation = 0.5};
  look();
  look(seconds(1000));
  EXPECT_TRUE(troubles.all().empty());
}

TEST_F(AlertsTest, CommitsThatWaitedForTheLogAreToldForAWhile)
{
  look();
  EXPECT_FALSE(is_raised("LOG_FULL"));
  ++state.log_full_waits;
  look();
  EXPECT_TRUE(is_raised("LOG_FULL"));
  look(seconds(299));
  EXPECT_TRUE(is_raised("LOG_FULL"));
  look(seconds(2));
  EXPECT_FALSE(is_raised("LOG_FULL"));
  warnings.log_full = false;
  ++state.log_full_waits;
  look();
  EXPECT_FALSE(is_raised("LOG_FULL"));
}

TEST_F(AlertsTest, ACheckpointThatIsWantedAndDoesNotComeIsLate)
{
  state.gauges.log_is_pressed = true;
  look();
  look(seconds(119));
  EXPECT_FALSE(is_raised("CHECKPOINT_LATE"));
  look(seconds(2));
  EXPECT_TRUE(is_raised("CHECKPOINT_LATE"));
  ++state.checkpoints;
  look();
  EXPECT_FALSE(is_raised("CHECKPOINT_LATE"));
  look(seconds(119));
  EXPECT_FALSE(is_raised("CHECKPOINT_LATE")) << "the next one has its time as well";
  look(seconds(3));
  EXPECT_TRUE(is_raised("CHECKPOINT_LATE"));
  state.gauges.log_is_pressed = false;
  look();
  EXPECT_FALSE(is_raised("CHECKPOINT_LATE"));
}

TEST_F(AlertsTest, ATableThatTakesMoreThanItsPartIsOversized)
{
  state.total_bytes = 100;
  state.gauges.table_bytes = 51;
  look();
  EXPECT_NE(std::string::npos, line("TABLE_OVERSIZED").find("51 %")) << line("TABLE_OVERSIZED");
  state.gauges.table_bytes = 50;
  look();
  EXPECT_FALSE(is_raised("TABLE_OVERSIZED"));
  state.gauges.table_bytes = 100;
  warnings.table_size = 1;
  look();
  EXPECT_FALSE(is_raised("TABLE_OVERSIZED"));
}

TEST_F(AlertsTest, FragmentationAboveTheOptionIsTold)
{
  state.fragmentation = 0.81;
  look();
  EXPECT_TRUE(is_raised("FREE_FRAGMENTATION"));
  state.fragmentation = 0.8;
  look();
  EXPECT_FALSE(is_raised("FREE_FRAGMENTATION"));
}

TEST_F(AlertsTest, SlowOperationsAreToldForTheirLifetime)
{
  EXPECT_FALSE(slow_ops.is_slow(seconds(4))) << "the default is five";
  EXPECT_TRUE(slow_ops.is_slow(seconds(6)));
  warnings.slow_ops_threshold = 2;
  slow_ops.committed(seconds(6), 4096);
  look(seconds(0));
  EXPECT_FALSE(is_raised("SLOW_OPS")) << "fewer than the threshold";
  slow_ops.read(seconds(6), "an object");
  now = ceph::mono_clock::now();
  look();
  EXPECT_EQ(0u, line("SLOW_OPS").find("2 ")) << line("SLOW_OPS");
  EXPECT_NE(std::string::npos, line("SLOW_OPS").find("an object")) << line("SLOW_OPS");
  EXPECT_FALSE(is_raised("STALLED_READ"));
  look(seconds(86400));
  EXPECT_FALSE(is_raised("SLOW_OPS"));
}

TEST_F(AlertsTest, StalledReadsAreToldUnlessTheThresholdIsZero)
{
  slow_ops.stalled(seconds(6), "an object");
  now = ceph::mono_clock::now();
  look();
  EXPECT_TRUE(is_raised("STALLED_READ"));
  EXPECT_FALSE(is_raised("SLOW_OPS"));
  warnings.stalled_read_threshold = 0;
  look();
  EXPECT_FALSE(is_raised("STALLED_READ"));
}

TEST_F(StoreAlerts, ASlowCommitAndAStalledReadReachTheOsdAndGoWithTheirLifetime)
{
  const std::string slow = "TABLESTORE_SLOW_OPS", stalled = "TABLESTORE_STALLED_READ";
  EXPECT_FALSE(is_raised(slow));
  set("tablestore_log_op_age", "0");
  Transaction t;
  t.write(ch->cid, object("large"), 0, 64 * KiB, content(1, 64 * KiB));
  commit(ch, std::move(t));
  EXPECT_TRUE(eventually([&] { return is_raised(slow); }));
  EXPECT_FALSE(is_raised(stalled));
  store->flush_cache(nullptr);
  read(ch, object("large"));
  EXPECT_TRUE(eventually([&] { return is_raised(stalled); }));
  set("tablestore_log_op_age", a_day);
  set("tablestore_slow_ops_warn_lifetime", "1");
  set("tablestore_stalled_read_warn_lifetime", "1");
  EXPECT_TRUE(eventually([&] { return !is_raised(slow) && !is_raised(stalled); }));
}

TEST_F(StoreAlerts, FragmentationIsLookedAtAndTold)
{
  const std::string name = "TABLESTORE_FREE_FRAGMENTATION";
  // Every second block of what was written is free again.
  constexpr unsigned objects = 200;
  for (unsigned i = 0; i < objects; ++i)
    write(ch, object("o" + std::to_string(i)), 0, content(i, 4 * KiB));
  wait_durable(ch);
  for (unsigned i = 0; i < objects; i += 2)
    remove(ch, object("o" + std::to_string(i)));
  // What was freed can be handed out two groups later, and counts as free from then on.
  for (int i = 0; i < 3; ++i)
    commit(ch, {});
  set("tablestore_fragmentation_check_period", "1");
  set("tablestore_warn_on_free_fragmentation", "0.000001");
  EXPECT_TRUE(eventually([&] { return is_raised(name); })) << fragmentation();
  set("tablestore_warn_on_free_fragmentation", "1");
  EXPECT_TRUE(eventually([&] { return !is_raised(name); }));
}
