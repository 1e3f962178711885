// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Containers of which little is in use are emptied, and all objects are as they were.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "common/perf_counters.h"
#include "global/global_context.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/home/osd_surroundings.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/mounted_store.h"
#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/damage_fixture.h"

using namespace tablestore_test;
using tablestore::ContainerCompaction;

namespace {

constexpr uint64_t object_bytes = 64 * KiB;
constexpr int object_count = 256;
constexpr int kept_of = 8;   ///< one of so many stays

}  // namespace

class StoreCompaction : public DamageFixture {
 protected:
  void SetUp() override
  {
    set("tablestore_container_size", "4M");
    DamageFixture::SetUp();
  }
  static ghobject_t numbered(int n) { return object("o" + std::to_string(n), 1, n); }
  static ghobject_t snapshot_of_object(int n, uint64_t snap)
  {
    ghobject_t oid = numbered(n);
    oid.hobj.snap = snap;
    return oid;
  }
  /// Objects in several containers, of which few are left.
  void fragment()
  {
    for (int n = 0; n < object_count; ++n)
      write(ch, numbered(n), 0, content(n, object_bytes));
    for (int n = 0; n < object_count; ++n) {
      if (n % kept_of != 0)
        remove(ch, numbered(n));
    }
    wait_durable(ch);
  }
  void expect_kept()
  {
    for (int n = 0; n < object_count; n += kept_of)
      EXPECT_TRUE(same(content(n, object_bytes), read(ch, numbered(n)))) << n;
  }
  tablestore::MountedStore& parts() { return static_cast<TableStore&>(*store).parts(); }
  ContainerCompaction& compaction() { return parts().compaction; }
  uint64_t container_bytes()
  {
    parts().engine.drain();
    return parts().engine.space().container_bytes;
  }
  /// However long it takes: what it calls may refer to the test.
  void wait_for_end()
  {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(10);
    while (compaction().progress().running) {
      if (std::chrono::steady_clock::now() > end) {
        std::cerr << "the compaction does not end" << std::endl;
        std::abort();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ContainerCompaction::Progress compact(int64_t max_live_percent = 50)
  {
    EXPECT_EQ(0, compaction().start(max_live_percent));
    wait_for_end();
    const auto p = compaction().progress();
    EXPECT_EQ(p.left_bytes == 0,
              p.containers_chosen == p.containers_emptied + p.containers_opened) << p.result;
    return p;
  }
  /// Of a store that is not mounted: its rows behind its back.
  void with_engine(const std::function<void(tablestore::Engine&, tablestore::Txn&)>& f)
  {
    auto disk = tablestore::open_file_disk(dir, {});
    ASSERT_TRUE(disk.ok()) << disk.status().what();
    auto engine = tablestore::Engine::open(**disk, {});
    ASSERT_TRUE(engine.ok()) << engine.status().what();
    auto txn = std::make_shared<tablestore::Txn>();
    f(**engine, *txn);
    (*engine)->submit(txn);
    const tablestore::Status closed = (*engine)->close();
    ASSERT_TRUE(closed.ok()) << closed.what();
  }
  /// What an operator sees of space, but for what is available.
  std::vector<int64_t> statistics()
  {
    ch->flush();
    store_statfs_t all, pool;
    bool per_pool_omap;
    EXPECT_EQ(0, store->statfs(&all));
    EXPECT_EQ(0, store->pool_statfs(1, &pool, &per_pool_omap));
    return {all.data_stored, all.allocated, pool.data_stored, pool.allocated,
            int64_t(parts().engine.space().data_bytes)};
  }
};

TEST_F(StoreCompaction, EmptiedContainersGoAndObjectsAreAsTheyWere)
{
  fragment();
  const ghobject_t with_all = object("all", 1, 0x77);
  Transaction t;
  bufferlist unaligned = content(1000, 150001);
  t.write(ch->cid, with_all, 300 * KiB + 17, unaligned.length(), unaligned);
  bufferlist value = to_bl("value");
  t.setattr(ch->cid, with_all, "name", value);
  std::map<std::string, bufferlist> keys{{"key", to_bl("of omap")}};
  t.omap_setkeys(ch->cid, with_all, keys);
  commit(ch, std::move(t));
  const auto before = statistics();
  const uint64_t bytes_before = container_bytes();

  const auto p = compact();
  EXPECT_GE(p.containers_emptied, 3u) << p.result;
  EXPECT_EQ(0u, p.left_bytes) << p.result;
  EXPECT_LE(container_bytes() + (p.containers_emptied - 2) * 4 * MiB, bytes_before);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(before, statistics());
    expect_kept();
    bufferlist expected = zeros(300 * KiB + 17);
    expected.append(unaligned);
    EXPECT_TRUE(same(expected, read(ch, with_all)));
    EXPECT_EQ("value", attr(ch, with_all, "name"));
    EXPECT_EQ((std::map<std::string, std::string>{{"key", "of omap"}}), omap(ch, with_all));
    remount({&ch});
  }
}

TEST_F(StoreCompaction, WhatClonesShareMovesForAllOfThem)
{
  fragment();
  for (int n = 0; n < object_count; n += kept_of) {
    Transaction t;
    t.clone(ch->cid, numbered(n), snapshot_of_object(n, 1));
    bufferlist changed = content(n + 5000, 8 * KiB);
    t.write(ch->cid, numbered(n), 12 * KiB, changed.length(), changed);
    t.clone(ch->cid, numbered(n), snapshot_of_object(n, 2));
    t.clone_range(ch->cid, numbered(n), object("part" + std::to_string(n), 1, n), 8 * KiB,
                  24 * KiB, 40 * KiB);
    commit(ch, std::move(t));
  }
  const auto before = statistics();
  const auto p = compact();
  EXPECT_EQ(0u, p.left_bytes) << p.result;
  EXPECT_EQ(0u, p.unaccounted_bytes);
  EXPECT_GE(p.containers_emptied, 3u);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(before, statistics());
    for (int n = 0; n < object_count; n += kept_of) {
      bufferlist head = content(n, 12 * KiB);
      head.append(content(n + 5000, 8 * KiB));
      head.append(content(n, object_bytes - 20 * KiB, 20 * KiB));
      bufferlist part = zeros(40 * KiB), range;
      range.substr_of(head, 8 * KiB, 24 * KiB);
      part.append(range);
      EXPECT_TRUE(same(head, read(ch, numbered(n)))) << n;
      EXPECT_TRUE(same(content(n, object_bytes), read(ch, snapshot_of_object(n, 1)))) << n;
      EXPECT_TRUE(same(head, read(ch, snapshot_of_object(n, 2)))) << n;
      EXPECT_TRUE(same(part, read(ch, object("part" + std::to_string(n), 1, n)))) << n;
    }
    remount({&ch});
  }
  // References were moved, too: what loses its last one is free.
  for (const ghobject_t& oid : list(ch))
    remove(ch, oid);
  EXPECT_EQ(0, statistics().back());
}

// A clone whose row does not come when it is looked for, and is there afterwards.
TEST_F(StoreCompaction, WhatAnOwnerSharesThatIsNotFoundStaysWhereItIs)
{
  fragment();
  Transaction t;
  t.clone(ch->cid, numbered(0), snapshot_of_object(0, 1));
  commit(ch, std::move(t));
  const std::string key = tablestore::onode_key(snapshot_of_object(0, 1));
  std::string row;
  damage_offline([&] {
    with_engine([&](tablestore::Engine& engine, tablestore::Txn& txn) {
      EXPECT_TRUE(*engine.get(tablestore::Family::object, key, &row));
      txn.erase(tablestore::Family::object, key);
    });
  });
  EXPECT_EQ(object_bytes, compact().unaccounted_bytes);
  damage_offline([&] {
    with_engine([&](tablestore::Engine&, tablestore::Txn& txn) {
      txn.put(tablestore::Family::object, key, row);
    });
  });
  EXPECT_TRUE(same(content(0, object_bytes), read(ch, snapshot_of_object(0, 1))));
  expect_kept();
}

TEST_F(StoreCompaction, DamagedExtentsStayWhereTheyAre)
{
  fragment();
  damage_offline([&] { flip_bit(find_content(0, 5 * KiB)); });
  const auto p = compact();
  EXPECT_EQ(object_bytes, p.unreadable_bytes);
  EXPECT_GE(p.left_bytes, object_bytes);
  EXPECT_GE(p.containers_emptied, 2u);
  EXPECT_NE("", p.result);
  remount({&ch});
  EXPECT_EQ(-EIO, read_error(numbered(0), 4 * KiB, 4 * KiB));
  EXPECT_TRUE(same(content(0, 4 * KiB), read(ch, numbered(0), 0, 4 * KiB)));
  for (int n = kept_of; n < object_count; n += kept_of)
    EXPECT_TRUE(same(content(n, object_bytes), read(ch, numbered(n)))) << n;
}

TEST_F(StoreCompaction, OthersChangeObjectsMeanwhile)
{
  fragment();
  std::atomic<bool> done{false};
  constexpr int threads = 3;
  std::vector<std::thread> writers;
  std::vector<std::map<int, std::string>> expected(threads);
  for (int t = 0; t < threads; ++t) {
    writers.emplace_back([&, t] {
      std::mt19937 random(t);
      auto& mine = expected[t];
      for (int n = kept_of * t; n < object_count; n += kept_of * threads)
        mine[n] = content(n, object_bytes).to_str();
      for (uint64_t round = 0; !done; ++round) {
        const int n = kept_of * (t + threads * (random() % (object_count / kept_of / threads)));
        Transaction txn;
        if (random() % 3 == 0) {
          txn.remove(ch->cid, numbered(n));
          mine[n].clear();
        }
        const uint64_t offset = random() % 15 * 4096 + random() % 2 * 100;
        bufferlist data = content((uint64_t(t) << 32) + round, 1 + random() % 4000);
        txn.write(ch->cid, numbered(n), offset, data.length(), data);
        std::string& now = mine[n];
        now.resize(std::max<size_t>(now.size(), offset + data.length()));
        now.replace(offset, data.length(), data.to_str());
        if (random() % 4 == 0)
          txn.clone(ch->cid, numbered(n), snapshot_of_object(n, 1 + random() % 3));
        commit(ch, std::move(txn));
        EXPECT_TRUE(same(to_bl(now), read(ch, numbered(n)))) << n;
      }
    });
  }
  for (int round = 0; round < 6; ++round) {
    EXPECT_EQ(0, compaction().start(100));
    wait_for_end();
  }
  done = true;
  for (std::thread& writer : writers)
    writer.join();
  for (int round = 0; round < 2; ++round) {
    for (const auto& mine : expected) {
      for (const auto& [n, data] : mine)
        EXPECT_TRUE(same(to_bl(data), read(ch, numbered(n)))) << n;
    }
    remount({&ch});
  }
}

TEST_F(StoreCompaction, NothingIsMovedWhereThatGainsNothing)
{
  write(ch, numbered(0), 0, content(0, object_bytes));
  wait_durable(ch);
  const auto p = compact(100);
  EXPECT_EQ(0u, p.containers_chosen);
  EXPECT_EQ(0u, p.moved_bytes);
  EXPECT_NE("", p.result);
}

TEST_F(StoreCompaction, ADeepScrubFindsWhatWasMovedOnTheDisk)
{
  fragment();
  compact();
  for (int n = 0; n < object_count; n += kept_of) {
    bufferlist bl;
    EXPECT_EQ(int(object_bytes), store->read(ch, numbered(n), 0, object_bytes, bl,
                                             CEPH_OSD_OP_FLAG_BYPASS_CLEAN_CACHE));
    EXPECT_TRUE(same(content(n, object_bytes), bl));
  }
}

namespace {

/// Does something in the compaction's thread, between a look at an object and its move.
class InterruptingThreads : public tablestore::OwnThreads {
 public:
  void hand_over() override
  {
    if (interrupt)
      interrupt();
  }
  std::function<void()> interrupt;
};

class InterruptingSurroundings : public tablestore::OsdSurroundings {
 public:
  using OsdSurroundings::OsdSurroundings;
  tablestore::Threads& threads() override { return interrupting; }
  InterruptingThreads interrupting;
};

}  // namespace

class StoreCompactionInterrupted : public StoreCompaction {
 protected:
  std::unique_ptr<ObjectStore> new_store() override
  {
    around = std::make_shared<InterruptingSurroundings>(g_ceph_context, dir);
    return std::make_unique<TableStore>(g_ceph_context, dir, around);
  }
  /// Runs it with `interrupt` when the first blocks have been read, and not yet been moved.
  void compact_with(const std::function<void()>& interrupt)
  {
    bool done = false;
    around->interrupting.interrupt = [&] {
      if (!std::exchange(done, true))
        interrupt();
    };
    compact();
    compaction().stop();   // before `done` goes
    EXPECT_TRUE(done);
    around->interrupting.interrupt = {};
  }
  void change(int n) { write(ch, numbered(n), 4 * KiB, content(5000 + n, 5000)); }
  static bufferlist changed(int n)
  {
    constexpr uint64_t rest = 4 * KiB + 5000;
    bufferlist bl = content(n, 4 * KiB);
    bl.append(content(5000 + n, 5000));
    bl.append(content(n, object_bytes - rest, rest));
    return bl;
  }
  std::shared_ptr<InterruptingSurroundings> around;
};

TEST_F(StoreCompactionInterrupted, ItCanBeStoppedAndEndsWithTheMount)
{
  EXPECT_EQ(-EINVAL, compaction().start(0));
  EXPECT_EQ(-EINVAL, compaction().start(101));
  fragment();
  std::promise<void> asked;
  around->interrupting.interrupt = [goes_on = asked.get_future().share()] { goes_on.wait(); };
  EXPECT_EQ(0, compaction().start(50));
  EXPECT_EQ(-EALREADY, compaction().start(50));
  asked.set_value();
  compaction().stop();
  EXPECT_FALSE(compaction().progress().running);
  EXPECT_EQ(std::set<uint32_t>(), parts().engine.closed_containers());
  expect_kept();
  EXPECT_EQ(0, compaction().start(50));
  remount({&ch});
  expect_kept();
}

/// Which a store that stands still, as on a full disk, gives to nobody.
TEST_F(StoreCompactionInterrupted, ItEndsThoughOthersHaveAllOfTheThrottle)
{
  fragment();
  set("tablestore_throttle_ops", "1");
  Handle other = make_collection(pg(2));
  wait_durable(other);
  const auto throttled = [this] {
    return store->get_perf_counters()->get_tavg_ns(tablestore::l_tablestore_txc_throttle_lat).first;
  };
  std::promise<void> reached, goes_on;
  bool has_reached = false;
  around->interrupting.interrupt = [&] {
    if (std::exchange(has_reached, true))
      return;
    reached.set_value();
    goes_on.get_future().wait();
  };
  EXPECT_EQ(0, compaction().start(50));
  reached.get_future().wait();
  {
    // Who waits for the lock has been let in by the throttle.
    std::unique_lock l{parts().collections.find(pg(2))->lock};
    const uint64_t before = throttled();
    auto writer = std::async(std::launch::async, [&] { touch(other, object("other", 2)); });
    EXPECT_TRUE(eventually([&] { return throttled() > before; }));
    auto stopped = std::async(std::launch::async, [&] { compaction().stop(); });
    std::this_thread::sleep_for(std::chrono::seconds(1));   // it says so, and waits
    goes_on.set_value();
    EXPECT_EQ(std::future_status::ready, stopped.wait_for(std::chrono::minutes(3)));
    l.unlock();
    writer.get();
    stopped.get();
  }
  around->interrupting.interrupt = {};
  other.reset();
  remount({&ch});
  expect_kept();
}

TEST_F(StoreCompactionInterrupted, WhatIsChangedBetweenReadAndMoveStaysChanged)
{
  fragment();
  compact_with([&] {
    for (int n = 0; n < object_count; n += kept_of)
      change(n);
  });
  for (int again = 0; again < 2; ++again) {
    for (int n = 0; n < object_count; n += kept_of)
      EXPECT_TRUE(same(changed(n), read(ch, numbered(n)))) << n;
    remount({&ch});
  }
}

TEST_F(StoreCompactionInterrupted, WhatIsRemovedOrMadeAnewBetweenReadAndMoveIsNotThere)
{
  fragment();
  compact_with([&] {
    for (int n = 0; n < object_count; n += kept_of) {
      remove(ch, numbered(n));
      if (n % (2 * kept_of) == 0)
        write(ch, numbered(n), 0, content(5000 + n, object_bytes));
    }
  });
  for (int n = 0; n < object_count; n += kept_of) {
    if (n % (2 * kept_of) == 0)
      EXPECT_TRUE(same(content(5000 + n, object_bytes), read(ch, numbered(n)))) << n;
    else
      EXPECT_FALSE(store->exists(ch, numbered(n))) << n;
  }
}

TEST_F(StoreCompactionInterrupted, ClonesThatChangeBetweenReadAndMoveStayChanged)
{
  fragment();
  for (int n = 0; n < object_count; n += kept_of) {
    Transaction t;
    t.clone(ch->cid, numbered(n), snapshot_of_object(n, 1));
    commit(ch, std::move(t));
  }
  compact_with([&] {
    for (int n = 0; n < object_count; n += kept_of) {
      const bool is_even = n % (2 * kept_of) == 0;
      if (n % 3 > 0)
        change(n);
      Transaction t;
      if (is_even)
        t.clone(ch->cid, numbered(n), snapshot_of_object(n, 2));
      if (is_even && n % 3 == 0)
        t.remove(ch->cid, snapshot_of_object(n, 1));
      queue(ch, std::move(t));
    }
  });
  for (int again = 0; again < 2; ++again) {
    for (int n = 0; n < object_count; n += kept_of) {
      const bool is_even = n % (2 * kept_of) == 0;
      const bufferlist before = content(n, object_bytes);
      const bufferlist now = n % 3 > 0 ? changed(n) : before;
      EXPECT_TRUE(same(now, read(ch, numbered(n)))) << n;
      if (is_even)
        EXPECT_TRUE(same(now, read(ch, snapshot_of_object(n, 2)))) << n;
      if (!is_even || n % 3 > 0)
        EXPECT_TRUE(same(before, read(ch, snapshot_of_object(n, 1)))) << n;
    }
    remount({&ch});
  }
}

TEST_F(StoreCompactionInterrupted, ACollectionMayGoBetweenReadAndMove)
{
  fragment();
  compact_with([&] {
    Transaction t;
    for (int n = 0; n < object_count; n += kept_of)
      t.remove(ch->cid, numbered(n));
    t.remove_collection(ch->cid);
    queue(ch, std::move(t));
  });
  ch = make_collection(pg(1));
}
