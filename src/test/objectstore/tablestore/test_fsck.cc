// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What fsck finds and repair mends. The damage is done to the rows, through an engine of our own.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/txn/txn_context.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore;
using namespace tablestore_test;

class StoreFsck : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "the damage is done to rows of tablestore";
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
    write(ch, large, 0, content(1, MiB));
    write(ch, small, 0, content(2, 300));
    Transaction t;
    std::map<std::string, bufferlist> keys{{"key", to_bl("value")}};
    t.omap_setkeys(ch->cid, small, keys);
    commit(ch, std::move(t));
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }

  /// Runs `damage` on the engine of the store, which is not mounted, and leaves it so.
  void damage(const std::function<void(Engine&)>& f)
  {
    if (mounted) {
      ch.reset();
      umount();
    }
    auto disk = open_file_disk(dir, {});
    ASSERT_TRUE(disk.ok()) << disk.status().what();
    auto engine = Engine::open(**disk, {});
    ASSERT_TRUE(engine.ok()) << engine.status().what();
    f(**engine);
    const Status closed = (*engine)->close();
    ASSERT_TRUE(closed.ok()) << closed.what();
  }
  void damage_rows(const std::function<void(Txn&)>& f)
  {
    damage([&](Engine& engine) {
      auto txn = std::make_shared<Txn>();
      f(*txn);
      engine.submit(txn);
      engine.drain();
    });
  }
  static std::string row(Engine& engine, Family family, const std::string& key)
  {
    std::string value;
    const auto found = engine.get(family, key, &value);
    EXPECT_TRUE(found.ok() && *found);
    return value;
  }
  std::string log_files() const
  {
    std::ostringstream all;
    for (const auto& file : std::filesystem::directory_iterator(dir + "/log"))
      all << std::ifstream(file.path(), std::ios::binary).rdbuf();
    return all.str();
  }
  /// fsck finds it, repair mends it, and nothing is left.
  void expect_repairable()
  {
    EXPECT_GT(store->fsck(false), 0);
    EXPECT_EQ(0, store->repair(false));
    EXPECT_EQ(0, store->fsck(true));
  }
  void mount_again()
  {
    ASSERT_EQ(0, store->mount());
    mounted = true;
    ch = store->open_collection(pg(1));
    ASSERT_TRUE(ch);
  }
  void expect_objects_whole()
  {
    mount_again();
    EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
    EXPECT_TRUE(same(content(2, 300), read(ch, small)));
    EXPECT_EQ("value", omap(ch, small)["key"]);
  }

  Handle ch;
  const ghobject_t large = object("large", 1, 0x10);
  const ghobject_t small = object("small", 1, 0x20);
  const uint64_t unused_nid = 1ull << 50;
};

TEST_F(StoreFsck, RowsThatBelongToNothingAreErased)
{
  damage_rows([&](Txn& txn) {
    txn.put(Family::object, shard_key(unused_nid, 3), "extents");
    txn.put(Family::data, inline_key(unused_nid), "data");
    for (int i = 0; i < 10; ++i)
      txn.put(Family::omap, omap_key(omap_prefix(1, unused_nid), std::to_string(i)), "value");
  });
  EXPECT_EQ(3, store->fsck(false));
  expect_repairable();
  damage([&](Engine& engine) {
    std::string value;
    EXPECT_FALSE(*engine.get(Family::object, shard_key(unused_nid, 3), &value));
    EXPECT_FALSE(*engine.get(Family::data, inline_key(unused_nid), &value));
    EXPECT_FALSE(*engine.get(Family::omap, omap_key(omap_prefix(1, unused_nid), "7"), &value));
  });
  expect_objects_whole();
}

TEST_F(StoreFsck, BlocksThatNothingOwnsAreFreed)
{
  damage([&](Engine& engine) {
    BlockMemory memory(64 * KiB);
    memory.zero();
    ASSERT_TRUE(engine.reserve(memory.size()).ok());
    const iovec iov{memory.data(), memory.size()};
    auto txn = std::make_shared<Txn>();
    std::vector<uint32_t> checksums;
    engine.write(*txn, std::span(&iov, 1), {}, &checksums);
    engine.submit(txn);
    engine.drain();
  });
  expect_repairable();
  expect_objects_whole();
}

TEST_F(StoreFsck, PoolStatisticsAreCountedAnew)
{
  store_statfs_t before, after;
  bool per_pool_omap;
  ASSERT_EQ(0, store->pool_statfs(1, &before, &per_pool_omap));
  damage_rows([](Txn& txn) {
    const int64_t deltas[PoolStats::fields] = {1000, -4096, 7, 1};
    txn.add(pool_stats_key(1), deltas);
    txn.add(pool_stats_key(9), deltas);
  });
  EXPECT_EQ(2, store->fsck(false));
  expect_repairable();
  expect_objects_whole();
  ASSERT_EQ(0, store->pool_statfs(1, &after, &per_pool_omap));
  EXPECT_EQ(before.data_stored, after.data_stored);
  EXPECT_EQ(before.allocated, after.allocated);
}

TEST_F(StoreFsck, SharedReferencesAreCountedAnew)
{
  const ghobject_t copy = object("copy", 1, 0x10);
  Transaction t;
  t.clone(ch->cid, large, copy);
  commit(ch, std::move(t));
  damage([](Engine& engine) {
    const auto [first, last] = reference_maps_range();
    auto txn = std::make_shared<Txn>();
    auto it = engine.iterate(Family::super, first, last);
    it->seek(first);
    ASSERT_TRUE(it->valid());
    ReferenceMap slot;
    slot.decode(it->value());
    for (auto& [block, run] : slot.runs)
      ++run.references;
    txn->put(Family::super, it->key(), slot.encode());
    engine.submit(txn);
    engine.drain();
  });
  EXPECT_EQ(1, store->fsck(false));
  expect_repairable();
  expect_objects_whole();
  EXPECT_TRUE(same(content(1, MiB), read(ch, copy)));
  // With the right counts, the last one to go frees everything: TearDown's fsck sees it.
  remove(ch, large);
  EXPECT_TRUE(same(content(1, MiB), read(ch, copy)));
  remove(ch, copy);
}

TEST_F(StoreFsck, LostDataIsReportedAndNotCalledRepaired)
{
  damage([&](Engine& engine) {
    auto it = engine.iterate(Family::data, {}, {});
    it->seek_to_first();
    ASSERT_TRUE(it->valid());
    auto txn = std::make_shared<Txn>();
    txn->erase(Family::data, it->key());
    engine.submit(txn);
    engine.drain();
  });
  EXPECT_EQ(1, store->fsck(false));
  EXPECT_EQ(1, store->repair(false));
  mount_again();
  bufferlist bl;
  EXPECT_EQ(-EIO, store->read(ch, small, 0, 0, bl));
  // It can be replaced, as recovery does.
  remove(ch, small);
  write(ch, small, 0, content(3, 500));
  EXPECT_TRUE(same(content(3, 500), read(ch, small)));
}

TEST_F(StoreFsck, RepairFreesNothingWhileAnObjectCannotBeRead)
{
  std::string good;
  damage([&](Engine& engine) {
    good = row(engine, Family::object, onode_key(large));
    std::string bad = good;
    bad[bad.size() / 2] ^= 0x10;
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, onode_key(large), bad);
    engine.submit(txn);
    engine.drain();
  });
  EXPECT_GT(store->fsck(false), 0);
  EXPECT_GT(store->repair(false), 0);
  // Its shards and blocks are all still there.
  damage_rows([&](Txn& txn) { txn.put(Family::object, onode_key(large), good); });
  EXPECT_EQ(0, store->fsck(true));
  expect_objects_whole();
}

TEST_F(StoreFsck, BlocksWithTwoOwnersAreFound)
{
  damage([&](Engine& engine) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, onode_key(object("twin", 1, 0x10)),
             row(engine, Family::object, onode_key(large)));
    engine.submit(txn);
    engine.drain();
  });
  EXPECT_GT(store->fsck(false), 0);
  EXPECT_GT(store->repair(false), 0);
  damage_rows([&](Txn& txn) {
    txn.erase(Family::object, onode_key(object("twin", 1, 0x10)));
  });
  // The statistics counted the twin too.
  EXPECT_EQ(0, store->repair(false));
  expect_objects_whole();
}

TEST_F(StoreFsck, AMountThatFailsCommitsNothing)
{
  const std::string key = collection_key(ch->cid);
  std::string whole;
  damage([&](Engine& engine) {
    whole = row(engine, Family::super, key);
    auto txn = std::make_shared<Txn>();
    txn->put(Family::super, key, "no collection");
    engine.submit(txn);
    engine.drain();
  });
  const std::string before = log_files();
  EXPECT_EQ(-EIO, store->mount());
  const std::string after = log_files();
  ASSERT_EQ(before.size(), after.size());
  size_t changed = 0;
  for (size_t at = 0; at < before.size(); at += block_bytes)
    changed += before.compare(at, block_bytes, after, at, block_bytes) != 0;
  EXPECT_EQ(1u, changed);   // the block that begins an epoch, with which the engine opens
  damage_rows([&](Txn& txn) { txn.put(Family::super, key, whole); });
  expect_objects_whole();
}

TEST_F(StoreFsck, MountedStoreIsRefused)
{
  EXPECT_EQ(-EBUSY, store->fsck(false));
  EXPECT_EQ(-EBUSY, store->repair(true));
}
