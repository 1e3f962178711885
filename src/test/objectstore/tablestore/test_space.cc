// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What statfs says, the cap on capacity, and a store that is full.
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>

#include <sys/stat.h>

#include "global/global_context.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/home/perf.h"
#include "test/objectstore/tablestore/store_fixture.h"
#include "test/objectstore/tablestore/wrapped_surroundings.h"
#include "test/tablestore/engine/disk_wrapper.h"

using namespace tablestore_test;
namespace fs = std::filesystem;

class StoreStatistics : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (store_type() == "memstore" || store_type() == "kstore")
      GTEST_SKIP() << "has no such numbers";
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }
  store_statfs_t statfs()
  {
    wait_durable(ch);
    store_statfs_t s;
    EXPECT_EQ(0, store->statfs(&s));
    return s;
  }
  store_statfs_t pool_statfs(int64_t pool)
  {
    wait_durable(ch);
    ch->flush();
    store_statfs_t s;
    bool per_pool_omap = false;
    EXPECT_EQ(0, store->pool_statfs(pool, &s, &per_pool_omap));
    EXPECT_TRUE(per_pool_omap);
    return s;
  }

  Handle ch;
};

TEST_F(StoreStatistics, NewStoreIsEmpty)
{
  const auto s = statfs();
  EXPECT_EQ(0, s.data_stored);
  EXPECT_EQ(0, s.allocated);
  EXPECT_GT(s.total, 0u);
  EXPECT_GT(s.available, 0u);
  EXPECT_LE(s.available + s.internally_reserved, s.total);
  const auto p = pool_statfs(1);
  EXPECT_EQ(0, p.data_stored);
  EXPECT_EQ(0, p.allocated);
}

TEST_F(StoreStatistics, NumbersFollowTheDataOfAPool)
{
  write(ch, object("a"), 0, content(1, MiB));
  write(ch, object("b"), 0, content(2, 100 * KiB));
  auto p = pool_statfs(1);
  EXPECT_EQ(int64_t(MiB + 100 * KiB), p.data_stored);
  EXPECT_GE(p.allocated, p.data_stored);
  EXPECT_LE(p.allocated, p.data_stored + int64_t(64 * KiB));
  EXPECT_EQ(p.data_stored, statfs().data_stored);

  // Overwriting stores no more; growing and truncating do what they say.
  write(ch, object("a"), 0, content(3, 500 * KiB));
  EXPECT_EQ(int64_t(MiB + 100 * KiB), pool_statfs(1).data_stored);
  write(ch, object("b"), 100 * KiB, content(4, 50 * KiB));
  EXPECT_EQ(int64_t(MiB + 150 * KiB), pool_statfs(1).data_stored);
  Transaction t;
  t.truncate(ch->cid, object("a"), 512 * KiB);
  queue(ch, std::move(t));
  p = pool_statfs(1);
  EXPECT_EQ(int64_t(662 * KiB), p.data_stored);
  EXPECT_LE(p.allocated, int64_t(662 * KiB + 64 * KiB));

  EXPECT_EQ(0, pool_statfs(2).data_stored);
  remount({&ch});
  EXPECT_EQ(int64_t(662 * KiB), pool_statfs(1).data_stored);
  EXPECT_EQ(p.allocated, pool_statfs(1).allocated);

  remove(ch, object("a"));
  remove(ch, object("b"));
  p = pool_statfs(1);
  EXPECT_EQ(0, p.data_stored);
  EXPECT_EQ(0, p.allocated);
  EXPECT_EQ(0, statfs().allocated);
}

TEST_F(StoreStatistics, HolesAreNotStored)
{
  write(ch, object("a"), 4 * MiB, content(1, 64 * KiB));
  Transaction t;
  t.zero(ch->cid, object("a"), 0, 2 * MiB);
  t.truncate(ch->cid, object("a"), 8 * MiB);
  queue(ch, std::move(t));
  EXPECT_LE(pool_statfs(1).allocated, int64_t(128 * KiB));
  EXPECT_EQ(int64_t(64 * KiB), pool_statfs(1).data_stored);
}

TEST_F(StoreStatistics, PoolsAreApartAndTemporaryObjectsBelongToTheirs)
{
  Handle other = make_collection(pg(2));
  write(ch, object("a"), 0, content(1, 64 * KiB));
  write(other, object("a", 2), 0, content(2, 128 * KiB));
  wait_durable(other);
  write(ch, temp_object("t", 1, 5), 0, content(3, 32 * KiB));
  EXPECT_EQ(int64_t(96 * KiB), pool_statfs(1).data_stored);
  EXPECT_EQ(int64_t(128 * KiB), pool_statfs(2).data_stored);
  EXPECT_EQ(int64_t(224 * KiB), statfs().data_stored);
}

TEST_F(StoreStatistics, SmallObjectsAreCountedToo)
{
  for (int i = 0; i < 100; ++i)
    write(ch, object("small" + std::to_string(i)), 0, content(i, 1000));
  EXPECT_EQ(100 * 1000, pool_statfs(1).data_stored);
  remount({&ch});
  EXPECT_EQ(100 * 1000, pool_statfs(1).data_stored);
  for (int i = 0; i < 100; ++i)
    remove(ch, object("small" + std::to_string(i)));
  EXPECT_EQ(0, pool_statfs(1).data_stored);
}

TEST_F(StoreStatistics, AvailableShrinksByWhatIsAllocatedAndComesBack)
{
  const auto before = statfs();
  write(ch, object("a"), 0, content(1, 64 * MiB));
  EXPECT_TRUE(eventually([&] { return statfs().available <= before.available - 64 * MiB; }));
  EXPECT_GE(statfs().available, before.available - 128 * MiB);
  EXPECT_EQ(before.total, statfs().total);
  remove(ch, object("a"));
  EXPECT_TRUE(eventually([&] { return statfs().available + 16 * MiB >= before.available; }));
  remount({&ch});
  EXPECT_GE(statfs().available + 16 * MiB, before.available);
}

class StoreCapacity : public StoreStatistics {
 protected:
  static constexpr uint64_t capacity = 512 * MiB;
  static constexpr uint64_t object_size = MiB;

  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "has no such cap";
    set("tablestore_capacity", std::to_string(capacity));
    set("objectstore_debug_throw_on_failed_txc", "true");
    StoreStatistics::SetUp();
  }
  static ghobject_t nth(int i) { return object("fill" + std::to_string(i), 1); }

  /// Writes objects until none fits by what statfs says; returns their number.
  int fill(uint64_t seed)
  {
    int count = 0;
    while (statfs().available >= 2 * object_size) {
      if (const int error = try_write(nth(count), object_size, seed + count)) {
        ADD_FAILURE() << "error " << error << " for object " << count << " where statfs says "
                      << statfs();
        break;
      }
      if (++count > int(capacity / object_size)) {
        ADD_FAILURE() << "the store takes more than its capacity";
        break;
      }
    }
    return count;
  }
  /// What the file system says that the directory takes.
  uint64_t disk_usage()
  {
    uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(dir)) {
      struct stat st;
      if (::lstat(entry.path().c_str(), &st) == 0)
        bytes += st.st_blocks * 512;
    }
    return bytes;
  }
  int try_write(const ghobject_t& oid, uint64_t size, uint64_t seed = 9)
  {
    try {
      write(ch, oid, 0, content(seed, size));
    } catch (int error) {
      return error;
    }
    return 0;
  }
};

TEST_F(StoreCapacity, FilledReadEmptiedAndFilledAgain)
{
  const auto empty = statfs();
  EXPECT_LE(empty.total, capacity);
  int first_count = 0;
  for (uint64_t round = 0; round < 3; ++round) {
    const int count = fill(round * 1000);
    // Log, table and reserve take their part; the larger one is for objects.
    EXPECT_GT(count, int(capacity / object_size / 2)) << "round " << round;
    if (round == 0)
      first_count = count;
    EXPECT_GE(count + 16, first_count) << "space was lost in round " << round;
    EXPECT_LE(disk_usage(), capacity + 16 * MiB) << "round " << round;
    for (int i = 0; i < count; i += 7)
      ASSERT_TRUE(same(content(round * 1000 + i, object_size), read(ch, nth(i)))) << i;
    if (round == 1) {
      remount({&ch});
      ASSERT_TRUE(same(content(round * 1000, object_size), read(ch, nth(0))));
    }
    for (int i = 0; i < count; ++i)
      remove(ch, nth(i));
    EXPECT_TRUE(list(ch).empty());
    EXPECT_TRUE(eventually([&] { return statfs().available + 24 * MiB >= empty.available; }));
  }
}

TEST_F(StoreCapacity, TooLargeWriteIsRefusedWholeAndTheStoreGoesOn)
{
  const int count = fill(0);
  // More than there is.
  EXPECT_EQ(-ENOSPC, try_write(object("too large"), 64 * MiB));
  EXPECT_FALSE(store->exists(ch, object("too large")));
  // Also when it is the last of several operations.
  Transaction t;
  bufferlist small = content(1, 100), large = content(2, 64 * MiB);
  t.write(ch->cid, object("small"), 0, small.length(), small);
  t.write(ch->cid, object("large"), 0, large.length(), large);
  int error = 0;
  try {
    queue(ch, std::move(t));
  } catch (int e) {
    error = e;
  }
  EXPECT_EQ(-ENOSPC, error);
  EXPECT_FALSE(store->exists(ch, object("small")));
  EXPECT_EQ(size_t(count), list(ch).size());

  // Deleting works, and then there is room.
  for (int i = 0; i < 100; ++i)
    remove(ch, nth(i));
  wait_durable(ch);
  EXPECT_TRUE(eventually([&] { return statfs().available >= 80 * MiB; }));
  EXPECT_EQ(0, try_write(object("large"), 64 * MiB));
  EXPECT_TRUE(same(content(9, 64 * MiB), read(ch, object("large"))));
  remount({&ch});
  EXPECT_TRUE(same(content(9, 64 * MiB), read(ch, object("large"))));
  EXPECT_FALSE(store->exists(ch, object("small")));
  for (int i = 100; i < count; i += 9)
    ASSERT_TRUE(same(content(i, object_size), read(ch, nth(i)))) << i;
}

TEST_F(StoreCapacity, FullStoreTakesMetadataAndOverwrites)
{
  const int count = fill(0);
  // What an OSD still does when it is full: attributes, log entries, removal.
  for (int i = 0; i < 200; ++i) {
    Transaction t;
    bufferlist value = content(i, 200);
    t.setattr(ch->cid, nth(i % count), "_", value);
    std::map<std::string, bufferlist> keys{{"k" + std::to_string(i), value}};
    t.omap_setkeys(ch->cid, nth(0), keys);
    queue(ch, std::move(t));
  }
  EXPECT_EQ(200u, omap(ch, nth(0)).size());
  remount({&ch});
  EXPECT_EQ(200u, omap(ch, nth(0)).size());
  remove(ch, nth(1));
  EXPECT_FALSE(store->exists(ch, nth(1)));
}

TEST_F(StoreCapacity, SmallObjectsFillItAsWell)
{
  // 4 KiB each, with gaps: the worst for a store that has classes of slots.
  int count = 0;
  while (statfs().available >= 32 * MiB && count < 200) {
    Transaction t;
    for (int i = 0; i < 512; ++i) {
      bufferlist bl = content(count * 1000 + i, 4 * KiB);
      t.write(ch->cid, object("s" + std::to_string(count) + "." + std::to_string(i)), 0,
              bl.length(), bl);
    }
    queue(ch, std::move(t));
    ++count;
  }
  EXPECT_GT(count, 60);
  for (int b = 0; b < count; ++b) {
    Transaction t;
    for (int i = 0; i < 512; i += 2)
      t.remove(ch->cid, object("s" + std::to_string(b) + "." + std::to_string(i)));
    queue(ch, std::move(t));
  }
  wait_durable(ch);
  // Half of it is free, in pieces of one block: large objects take those.
  EXPECT_TRUE(eventually([&] { return statfs().available > uint64_t(count) * MiB * 8 / 10; }));
  EXPECT_EQ(0, try_write(object("large"), 32 * MiB));
  EXPECT_TRUE(same(content(9, 32 * MiB), read(ch, object("large"))));
  for (int b = 0; b < count; b += 10)
    EXPECT_TRUE(same(content(b * 1000 + 1, 4 * KiB),
                     read(ch, object("s" + std::to_string(b) + ".1"))));
}

/// A store that rests makes itself a stock of written containers.
class StoreStock : public StoreCapacity {
 protected:
  static constexpr uint64_t stock = 32 * MiB;

  void SetUp() override
  {
    set("tablestore_stock_size", std::to_string(stock));
    set("tablestore_prepare_rate", std::to_string(1024 * MiB));
    set("tablestore_container_size", std::to_string(4 * MiB));
    StoreCapacity::SetUp();
  }
  uint64_t value(int counter)
  {
    store->refresh_perf_counters();
    return store->get_perf_counters()->get(counter);
  }
  bool is_there()
  {
    return eventually([&] { return value(tablestore::l_tablestore_prepared_bytes) >= stock; });
  }
};

TEST_F(StoreStock, ItIsMadeBeforeTheFirstObjectAndCountsAsAvailable)
{
  EXPECT_TRUE(is_there());
  EXPECT_GT(statfs().available, capacity / 2);
  EXPECT_EQ(0, try_write(nth(0), 5 * MiB));
  wait_durable(ch);
  EXPECT_EQ(0u, value(tablestore::l_tablestore_first_touch_bytes));
  EXPECT_TRUE(same(content(9, 5 * MiB), read(ch, nth(0))));
}

TEST_F(StoreStock, ObjectsFindPlaceInItWhenNothingElseIsLeft)
{
  EXPECT_TRUE(is_there());
  const int count = fill(7);
  EXPECT_GT(uint64_t(count) * object_size, capacity / 2);
  EXPECT_LT(statfs().available, 2 * object_size);
  for (int i = 0; i < count; i += 17)
    EXPECT_TRUE(same(content(7 + i, object_size), read(ch, nth(i))));
}

/// Most of the space is in containers from the beginning.
class ProvisionedCapacity : public StoreCapacity {
 protected:
  void SetUp() override
  {
    set("tablestore_provision_size", std::to_string(256 * MiB));
    set("tablestore_container_size", std::to_string(4 * MiB));
    StoreCapacity::SetUp();
  }
  /// Objects with omap alone until none is available; their number. `alerts`: of that moment, since
  /// a compaction may give some back at any later one.
  int fill_with_omap(osd_alert_list_t* alerts = nullptr)
  {
    int count = 0;
    while (available(alerts) > 0) {
      if (count == int(capacity / (256 * KiB))) {
        ADD_FAILURE() << "the store takes more than its capacity";
        break;
      }
      Transaction t;
      std::map<std::string, bufferlist> keys{{"k", content(count, 256 * KiB)}};
      t.touch(ch->cid, nth(count));
      t.omap_setkeys(ch->cid, nth(count), keys);
      commit(ch, std::move(t));
      ++count;
    }
    return count;
  }

 private:
  /// By one answer with its alerts.
  uint64_t available(osd_alert_list_t* alerts)
  {
    store_statfs_t s;
    if (alerts)
      alerts->clear();
    EXPECT_EQ(0, store->statfs(&s, alerts));
    return s.available;
  }
};

TEST_F(ProvisionedCapacity, OmapFillsItAndTheStoreSaysSo)
{
  osd_alert_list_t alerts;
  const int count = fill_with_omap(&alerts);
  EXPECT_EQ(1u, alerts.count("TABLESTORE_NO_SPACE"));
  EXPECT_GT(count, int(64 * MiB / (256 * KiB)));
  EXPECT_TRUE(eventually([&] { return disk_usage() <= capacity + 16 * MiB; }));
  remount({&ch});
  for (int i = 0; i < count; ++i)
    remove(ch, nth(i));
  wait_durable(ch);
  EXPECT_TRUE(list(ch).empty());
  remount({&ch});
  EXPECT_TRUE(list(ch).empty());
}

TEST_F(ProvisionedCapacity, MoreRowsThanThereIsSpaceForAreRefusedWhole)
{
  const int count = fill_with_omap();
  Transaction t;
  std::map<std::string, bufferlist> keys;
  // More than the table is ever going to give back by compactions.
  for (uint64_t i = 0; i < capacity / MiB; ++i)
    keys["k" + std::to_string(i)] = content(i, MiB);
  t.touch(ch->cid, object("many rows"));
  t.omap_setkeys(ch->cid, object("many rows"), keys);
  int error = 0;
  try {
    queue(ch, std::move(t));
  } catch (int e) {
    error = e;
  }
  EXPECT_EQ(-ENOSPC, error);
  EXPECT_FALSE(store->exists(ch, object("many rows")));
  EXPECT_EQ(size_t(count), list(ch).size());
}

/// On which no container can be made, as where its directory does not take files.
class RefusingDisk : public tablestore::DiskWrapper {
 public:
  using DiskWrapper::DiskWrapper;
  void refuse(bool now) { refuses = now; }
  tablestore::Result<std::unique_ptr<tablestore::File>> open(const std::string& path,
                                                             tablestore::OpenMode mode) override
  {
    if (refuses && mode == tablestore::OpenMode::create_new && path.starts_with("containers/"))
      return tablestore::Status::from_errno(EPERM, path);
    return DiskWrapper::open(path, mode);
  }

 private:
  std::atomic<bool> refuses{false};
};

class StoreThatCannotGrow : public StoreStatistics {
 protected:
  std::unique_ptr<ObjectStore> new_store() override
  {
    around = std::make_shared<WrappedSurroundings<RefusingDisk>>(dir);
    return std::make_unique<TableStore>(g_ceph_context, dir, around);
  }
  bool says_why()
  {
    osd_alert_list_t alerts;
    store_statfs_t s;
    store->statfs(&s, &alerts);
    return alerts.count("TABLESTORE_GROWTH_FAILED") == 1;
  }
  std::shared_ptr<WrappedSurroundings<RefusingDisk>> around;
};

TEST_F(StoreThatCannotGrow, TakesWhatIsOnTheWayAndThenWaits)
{
  write(ch, object("before"), 0, content(1, MiB));
  around->disk().refuse(true);
  const uint64_t free = statfs().available;
  const auto waits = std::async(std::launch::async, [&] {
    write(ch, object("fills"), 0, content(2, 256 * MiB));
  });
  EXPECT_TRUE(eventually([&] { return says_why(); }));
  store_statfs_t s;
  store->statfs(&s);
  EXPECT_LT(s.available, free);
  EXPECT_LE(s.available, 128 * MiB) << "what containers have free";
  EXPECT_EQ(std::future_status::timeout, waits.wait_for(std::chrono::seconds(1)));
  auto other = make_collection(pg(2));
  // Of what is kept for the last.
  write(other, object("on the way"), 0, content(3, 8 * MiB));
  wait_durable(other);
  EXPECT_TRUE(same(content(3, 8 * MiB), read(other, object("on the way"))));
  remove(other, object("on the way"));
  wait_durable(other);
  around->disk().refuse(false);
  waits.wait();
  EXPECT_TRUE(same(content(2, 256 * MiB), read(ch, object("fills"))));
  EXPECT_TRUE(eventually([&] { return !says_why(); }));
  other.reset();
}
