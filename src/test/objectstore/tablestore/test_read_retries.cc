// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Reads that fail are repeated before they are an error.
#include <chrono>

#include "global/global_context.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"
#include "os/tablestore/object/reference_maps.h"
#include "test/objectstore/tablestore/damage_fixture.h"
#include "test/objectstore/tablestore/flaky_disk.h"
#include "test/objectstore/tablestore/wrapped_surroundings.h"
#include "test/tablestore/engine/flaky_table.h"

using namespace tablestore_test;
using namespace std::chrono_literals;

namespace {

class RetryingSurroundings : public WrappedSurroundings<FlakyDisk> {
 public:
  RetryingSurroundings(const std::string& dir, std::chrono::nanoseconds retry_time)
    : WrappedSurroundings(dir), retry_time(retry_time) {}
  std::chrono::nanoseconds read_retry_time() const override { return retry_time; }
  std::chrono::nanoseconds usual() const { return WrappedSurroundings::read_retry_time(); }

 private:
  const std::chrono::nanoseconds retry_time;
};

}  // namespace

class StoreReadRetries : public DamageFixture {
 protected:
  using Fault = FlakyDisk::Fault;

  std::unique_ptr<ObjectStore> new_store() override
  {
    around = std::make_shared<RetryingSurroundings>(dir, retry_time);
    return std::make_unique<TableStore>(g_ceph_context, dir, around);
  }
  void SetUp() override
  {
    DamageFixture::SetUp();
    set("tablestore_retry_disk_reads", "3");
    write(ch, victim, 0, content(1, size));
    remount({&ch});
  }
  FlakyDisk& disk() { return around->disk(); }
  /// The next reads of byte `offset` of the object.
  void spoil(uint64_t offset, Fault fault, unsigned times)
  {
    const Place place = find_content(1, offset);
    disk().spoil(place.path, place.offset, fault, times);
    disk().take_reads();
  }

  std::chrono::nanoseconds retry_time = 10min;   ///< from the next mount on
  std::shared_ptr<RetryingSurroundings> around;
};

TEST_F(StoreReadRetries, AReadThatSucceedsWhenItIsRepeatedIsNoError)
{
  for (const Fault fault : {Fault::garbage, Fault::error}) {
    store->flush_cache(nullptr);
    spoil(20000, fault, 3);
    EXPECT_TRUE(same(content(1, size), read(ch, victim)));
    EXPECT_EQ(4u, disk().take_reads().size());
  }
  EXPECT_EQ(2u, counter("reads_with_retries"));
  EXPECT_EQ(0u, counter("read_eio"));
}

TEST_F(StoreReadRetries, OnlyWhatFailedIsReadAgainFromTheDisk)
{
  spoil(20000, Fault::garbage, 2);
  EXPECT_TRUE(same(content(1, size), read(ch, victim)));
  const auto reads = disk().take_reads();
  ASSERT_EQ(3u, reads.size());
  EXPECT_EQ(size, reads[0].length);
  for (size_t i : {1, 2}) {
    EXPECT_EQ(4 * KiB, reads[i].length);
    EXPECT_EQ(reads[0].offset + 16 * KiB, reads[i].offset);
    EXPECT_TRUE(reads[i].aligned);
  }
}

TEST_F(StoreReadRetries, WhatGotNoBetterIsAnErrorAndInNoCache)
{
  for (const Fault fault : {Fault::garbage, Fault::error}) {
    const uint64_t before = counter("read_eio");
    spoil(20000, fault, 4);
    EXPECT_EQ(-EIO, read_error(victim));
    EXPECT_EQ(before + 1, counter("read_eio"));
    EXPECT_EQ(4u, disk().take_reads().size());
    EXPECT_TRUE(same(content(1, size), read(ch, victim))) << "the fault is over";
    store->flush_cache(nullptr);
  }
  EXPECT_EQ(0u, counter("reads_with_retries"));
  EXPECT_EQ(0u, alerts().count("TABLESTORE_SPURIOUS_READ_ERRORS"));
}

TEST_F(StoreReadRetries, TheOptionIsFollowed)
{
  set("tablestore_retry_disk_reads", "0");
  spoil(20000, Fault::garbage, 1);
  EXPECT_EQ(-EIO, read_error(victim));
  set("tablestore_retry_disk_reads", "1");
  spoil(20000, Fault::garbage, 1);
  EXPECT_TRUE(same(content(1, size), read(ch, victim)));
}

TEST_F(StoreReadRetries, TheOperatorIsToldUnlessHeDoesNotWantIt)
{
  const std::string name = "TABLESTORE_SPURIOUS_READ_ERRORS";
  EXPECT_EQ(0u, alerts().count(name));
  spoil(20000, Fault::error, 1);
  read(ch, victim);
  const auto told = alerts();
  ASSERT_EQ(1u, told.count(name));
  EXPECT_TRUE(told.at(name).starts_with("1 ")) << told.at(name);
  EXPECT_NE(std::string::npos, told.at(name).find("victim")) << told.at(name);
  set("tablestore_warn_on_spurious_read_errors", "false");
  EXPECT_TRUE(eventually([&] { return alerts().count(name) == 0; }));
  set("tablestore_warn_on_spurious_read_errors", "true");
  EXPECT_TRUE(eventually([&] { return alerts().count(name) == 1; }));
}

TEST_F(StoreReadRetries, PiecesOfSeveralWritesAreRepeatedEachByItself)
{
  // One run on the disk, of two extents, both of which are bad at first.
  write(ch, other, 0, content(2, 32 * KiB));
  write(ch, other, 32 * KiB, content(2, 32 * KiB, 32 * KiB));
  remount({&ch});
  const Place first = find_content(2, 4 * KiB), second = find_content(2, 40 * KiB);
  disk().spoil(first.path, first.offset, Fault::error, 1);
  disk().spoil(second.path, second.offset, Fault::garbage, 2);
  EXPECT_TRUE(same(content(2, 64 * KiB), read(ch, other)));
  EXPECT_EQ(1u, counter("reads_with_retries"));
}

TEST_F(StoreReadRetries, APartialOverwriteOfABlockTriesAgainToo)
{
  spoil(20000, Fault::error, 1);
  write(ch, victim, 20000, content(2, 10));
  EXPECT_TRUE(same(content(2, 10), read(ch, victim, 20000, 10)));
  EXPECT_TRUE(same(content(1, 1000, 20010), read(ch, victim, 20010, 1000)));
  EXPECT_EQ(1u, counter("reads_with_retries"));
}

TEST_F(StoreReadRetries, APartialOverwriteOfABadBlockReadsItNoMoreOftenThanAReadDoes)
{
  expect_clean = false;
  spoil(20000, Fault::error, 100);
  write(ch, victim, 20000, content(2, 10));
  EXPECT_EQ(4u, disk().take_reads().size());
  EXPECT_EQ(-EIO, read_error(victim, 20000, 10));
  EXPECT_TRUE(same(content(1, 16 * KiB), read(ch, victim, 0, 16 * KiB)));
}

// Readers and writers of the placement group wait meanwhile.
TEST_F(StoreReadRetries, AReadThatTookLongToFailIsNotRepeated)
{
  expect_clean = false;
  retry_time = around->usual();
  EXPECT_LE(retry_time, 1s);
  remount({&ch});
  spoil(20000, Fault::slow_error, 100);
  EXPECT_EQ(-EIO, read_error(victim));
  EXPECT_EQ(1u, disk().take_reads().size());
  write(ch, victim, 20000, content(2, 10));
  EXPECT_EQ(1u, disk().take_reads().size());
  EXPECT_EQ(-EIO, read_error(victim, 20000, 10));
  EXPECT_TRUE(same(content(1, 16 * KiB), read(ch, victim, 0, 16 * KiB)));
}

TEST_F(StoreReadRetries, AChangeThatNeedsWhatCannotBeReadForAnotherReasonFailsAsAWhole)
{
  set("objectstore_debug_throw_on_failed_txc", "true");
  for (const uint64_t length : {10, 6000, 30000}) {
    SCOPED_TRACE(length);
    spoil(20000, Fault::no_damage, 4);
    Transaction t;
    bufferlist data = content(2, length);
    t.write(ch->cid, victim, 20000, length, data);
    EXPECT_THROW(store->queue_transaction(ch, std::move(t)), int);
    EXPECT_TRUE(same(content(1, size), read(ch, victim)));
    store->flush_cache(nullptr);
  }
}

// Reads of rows: the same option, the same count.
class StoreRowRetries : public DamageFixture {
 protected:
  std::unique_ptr<ObjectStore> new_store() override
  {
    around = std::make_shared<WrappedSurroundings<tablestore::FlakyTable>>(dir);
    return std::make_unique<TableStore>(g_ceph_context, dir, around);
  }
  std::shared_ptr<WrappedSurroundings<tablestore::FlakyTable>> around;
};

TEST_F(StoreRowRetries, AreCountedAndToldAsThoseOfData)
{
  write(ch, victim, 0, content(1, size));
  remount({&ch});
  store->flush_cache(nullptr);
  const std::string name = "TABLESTORE_SPURIOUS_READ_ERRORS";
  EXPECT_EQ(0u, counter("reads_with_retries"));
  EXPECT_EQ(0u, alerts().count(name));
  around->disk().fail_reads(1);
  struct stat st;
  EXPECT_EQ(0, store->stat(ch, victim, &st));
  ASSERT_EQ(0, around->disk().left()) << "no row was read";
  EXPECT_EQ(1u, counter("reads_with_retries"));
  const auto told = alerts();
  ASSERT_EQ(1u, told.count(name));
  EXPECT_NE(std::string::npos, told.at(name).find(".sst")) << told.at(name);
}

TEST_F(StoreRowRetries, TheOptionIsFollowed)
{
  expect_clean = false;
  write(ch, victim, 0, content(1, size));
  remount({&ch});
  set("tablestore_retry_disk_reads", "0");
  store->flush_cache(nullptr);
  around->disk().fail_reads(1);
  struct stat st;
  EXPECT_EQ(-EIO, store->stat(ch, victim, &st));
  EXPECT_EQ(0u, counter("reads_with_retries"));
  EXPECT_EQ(0, store->stat(ch, victim, &st));
}

// Who shares blocks with a clone needs the row that counts them.
TEST_F(StoreRowRetries, ACloneIsNotLostWhereWhoSharesItsBlocksCannotBeReadJustNow)
{
  set("objectstore_debug_throw_on_failed_txc", "true");
  const ghobject_t first = object("first clone", 1, 0x11), second = object("second clone", 1, 0x11);
  const auto clone_to = [&](const ghobject_t& to) {
    Transaction t;
    t.clone(ch->cid, victim, to);
    return t;
  };
  write(ch, victim, 0, content(1, size));
  commit(ch, clone_to(first));
  remount({&ch});
  EXPECT_TRUE(same(content(1, size), read(ch, victim)));
  EXPECT_FALSE(store->exists(ch, second));
  // Onodes stay in memory, reference maps and the table's blocks do not.
  auto& parts = static_cast<TableStore&>(*store).parts();
  while (parts.reference_maps.count() > 0)
    parts.reference_maps.trim();
  ASSERT_TRUE(parts.engine.drop_caches().ok());
  constexpr int more_than_are_made = 1000;
  around->disk().fail_reads(more_than_are_made, ETIMEDOUT);
  int failed = 0;
  try {
    store->queue_transaction(ch, clone_to(second));
  } catch (int r) {
    failed = r;
  }
  EXPECT_LT(around->disk().left(), more_than_are_made) << "no row was read";
  around->disk().fail_reads(0);
  EXPECT_EQ(-ETIMEDOUT, failed);
  EXPECT_FALSE(store->exists(ch, second));
  commit(ch, clone_to(second));
  EXPECT_TRUE(same(content(1, size), read(ch, second)));
}

// What only grows is a counter to who collects it.
TEST_F(StoreReadRetries, CountersThatOnlyGrowAreNoGauges)
{
  ceph::JSONFormatter f;
  store->get_perf_counters()->dump_formatted(&f, true, select_labeled_t::unlabeled);
  std::ostringstream text;
  f.flush(text);
  const auto metric_type = [&](const std::string& name) {
    const std::string all = text.str();
    const size_t at = all.find('"' + name + "\":");
    const size_t type = all.find("\"metric_type\":\"", at);
    return at == std::string::npos ? "missing" : all.substr(type + 15, 5);
  };
  for (const char* name : {"onode_hits", "onode_misses", "flushes", "log_bytes", "read_eio",
                           "container_reads", "punched_bytes", "reads_with_retries"})
    EXPECT_EQ("count", metric_type(name)) << name;
  for (const char* name : {"onodes", "onode_bytes", "allocated", "recovery_ms"})
    EXPECT_EQ("gauge", metric_type(name)) << name;
}
