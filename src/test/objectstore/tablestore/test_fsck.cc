// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What fsck finds and repair mends. The damage is done to the rows, through an engine of our own.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "os/tablestore/TableStore.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "os/tablestore/mounted_store.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/txn/txn_context.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"

using namespace tablestore;
using namespace tablestore_test;

class StoreFsck : public StoreRowsFixture {
 protected:
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

TEST_F(StoreFsck, AStoreWithErrorsIsRefusedWhereEachMountChecks)
{
  set("tablestore_fsck_on_mount", "true");
  remount({&ch});   // a good one mounts
  damage_rows([&](Txn& txn) { txn.put(Family::object, shard_key(unused_nid, 3), "extents"); });
  EXPECT_EQ(-EIO, store->mount());
  EXPECT_EQ(0, store->repair(false));
  mount_again();
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

TEST_F(StoreFsck, RepairFreesNothingWhileAnExtentMapCannotBeRead)
{
  std::string key, good;
  damage([&](Engine& engine) {
    const auto [first, last] = all_shards_range();
    auto it = engine.iterate(Family::object, first, last);
    it->seek(first);
    ASSERT_TRUE(it->valid());
    key = it->key();
    good = it->value();
  });
  damage_row(Family::object, key);
  EXPECT_GT(store->fsck(false), 0);
  EXPECT_GT(store->repair(false), 0);
  // Its shards and blocks are all still there.
  damage_rows([&](Txn& txn) { txn.put(Family::object, key, good); });
  EXPECT_EQ(0, store->fsck(true));
  expect_objects_whole();
}

TEST_F(StoreFsck, RepairGivesUpWhatADamagedObjectHadAndTheObjectStaysAnError)
{
  store_statfs_t before, after;
  bool per_pool_omap;
  remove(ch, small);
  ASSERT_EQ(0, store->pool_statfs(1, &before, &per_pool_omap));
  EXPECT_GT(before.allocated, 0u);
  damage_onode(large);
  EXPECT_GT(store->fsck(false), 0);
  EXPECT_EQ(1, store->repair(false)) << "nobody can bring its data back from here";
  EXPECT_EQ(1, store->fsck(true));
  mount_again();
  EXPECT_EQ(1u, list(ch).size());
  struct stat st;
  EXPECT_EQ(-EIO, store->stat(ch, large, &st, true));
  ASSERT_EQ(0, store->pool_statfs(1, &after, &per_pool_omap));
  EXPECT_EQ(0u, after.allocated);
  remove(ch, large);
  write(ch, large, 0, content(3, MiB));
  EXPECT_TRUE(same(content(3, MiB), read(ch, large)));
}

TEST_F(StoreFsck, RepairKeepsAllOfADamagedObjectThatNoOtherOsdHas)
{
  const ghobject_t pgmeta = ghobject_t::make_pgmeta(1, 0, shard_id_t::NO_SHARD);
  Transaction t;
  std::map<std::string, bufferlist> keys{{"log", to_bl("entry")}};
  t.touch(ch->cid, pgmeta);
  t.omap_setkeys(ch->cid, pgmeta, keys);
  commit(ch, std::move(t));
  const std::string key = onode_key(pgmeta), second = own_onode_key(key);
  const std::string good = row(Family::object, key);
  EXPECT_EQ(good, row(Family::super, second));
  // Of one row repair has a second, and of the second the first.
  for (const auto& [family, which] : {std::pair(Family::object, key),
                                      std::pair(Family::super, second)}) {
    damage_row(family, which);
    EXPECT_GT(store->fsck(false), 0);
    EXPECT_EQ(0, store->repair(false));
    EXPECT_EQ(good, row(family, which));
  }
  damage_onode(pgmeta);
  damage_row(Family::super, second);
  EXPECT_GT(store->repair(false), 0);
  damage_rows([&](Txn& txn) {
    txn.put(Family::object, key, good);
    txn.put(Family::super, second, good);
  });
  EXPECT_EQ(0, store->fsck(true));
  mount_again();
  EXPECT_EQ("entry", omap(ch, pgmeta)["log"]);
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
    CopiedRow::put(*txn, key, "no collection");
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
  EXPECT_EQ(2u, changed);   // the groups that begin an epoch, with which the engine opens
  damage_rows([&](Txn& txn) { txn.put(Family::super, key, whole); });
  expect_objects_whole();
}

TEST_F(StoreFsck, ReferencesThatAreMissingOrDamagedAreCountedFromTheExtents)
{
  const ghobject_t copy = object("copy", 1, 0x10);
  for (const bool missing : {true, false}) {
    SCOPED_TRACE(missing);
    Transaction t;
    t.clone(ch->cid, large, copy);
    commit(ch, std::move(t));
    write(ch, copy, 300000, content(4, 100000));
    wait_durable(ch);
    damage([&](Engine& engine) {
      const auto [first, last] = reference_maps_range();
      auto txn = std::make_shared<Txn>();
      auto it = engine.iterate(Family::super, first, last);
      it->seek(first);
      ASSERT_TRUE(it->valid());
      for (; it->valid(); it->next()) {
        if (missing)
          txn->erase(Family::super, it->key());
        else
          txn->put(Family::super, it->key(), "garbage");
      }
      // And something else to repair, which must not wait for it.
      txn->put(Family::data, inline_key(unused_nid), "data");
      engine.submit(txn);
      engine.drain();
    });
    expect_repairable();
    expect_objects_whole();
    EXPECT_TRUE(same(content(1, 300000), read(ch, copy, 0, 300000)));
    EXPECT_TRUE(same(content(4, 100000), read(ch, copy, 300000, 100000)));
    remove(ch, copy);
    wait_durable(ch);
    EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
  }
}

TEST_F(StoreFsck, BlocksOfObjectsThatAreFreeToTheAllocatorAreTakenFromIt)
{
  std::vector<Extent> owned;
  {
    auto& parts = static_cast<TableStore&>(*store).parts();
    for (const auto& [index, shard] : parts.onodes.get(large)->shards) {
      for (const MappedExtent& e : shard.extents)
        owned.push_back(e.physical);
    }
  }
  ASSERT_FALSE(owned.empty());
  damage_rows([&](Txn& txn) { txn.free(owned.front()); });
  expect_repairable();
  expect_objects_whole();
  for (int n = 0; n < 50; ++n)
    write(ch, object("new " + std::to_string(n), 1, 0x30), 0, content(n + 100, 200 * KiB));
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
}

TEST_F(StoreFsck, BlocksOfAnObjectWithADamagedExtentMapAreTakenFromTheAllocatorToo)
{
  std::string damaged;
  Extent owned;
  {
    const OnodeRef o = static_cast<TableStore&>(*store).parts().onodes.get(large);
    owned = o->shards.at(0).extents.front().physical;
    damaged = shard_key(o->nid, 1);
  }
  const std::string good = row(Family::object, damaged);
  damage_rows([&](Txn& txn) {
    txn.put(Family::object, damaged, "garbage");
    txn.free(owned);
  });
  EXPECT_GT(store->repair(false), 0);
  damage_rows([&](Txn& txn) { txn.put(Family::object, damaged, good); });
  EXPECT_EQ(0, store->fsck(true));
  expect_objects_whole();
}

TEST_F(StoreFsck, QuickFixRepairs)
{
  damage_rows([&](Txn& txn) { txn.put(Family::data, inline_key(unused_nid), "data"); });
  EXPECT_EQ(0, store->quick_fix());
  EXPECT_EQ(0, store->fsck(true));
  expect_objects_whole();
}

TEST_F(StoreFsck, MountedStoreIsRefused)
{
  EXPECT_EQ(-EBUSY, store->fsck(false));
  EXPECT_EQ(-EBUSY, store->repair(true));
}

// Two at once: recovery has cut off a part of the log that the table was ahead of, and of one
// object it cannot be told which blocks it has.
TEST_F(StoreFsck, ALossOfTheLogWithADamagedExtentMapIsRepairedToAUsableStore)
{
  expect_clean = false;
  damage([&](Engine& engine) {
    ObjectContents object;
    object.decode(row(engine, Family::object, onode_key(large)));
    auto txn = std::make_shared<Txn>();
    // What a shard says that the log does not: the allocator takes these blocks for free.
    for (const uint32_t index : {1, 3}) {
      ExtentShard shard;
      bufferlist bl;
      bl.append(row(engine, Family::object, shard_key(object.nid, index)));
      auto p = bl.cbegin();
      shard.decode(p);
      for (const MappedExtent& e : shard.extents)
        txn->free(e.physical);
    }
    txn->put(Family::object, shard_key(object.nid, 1), "damaged");
    txn->put(Family::super, engine_rows::ownership_unknown(), "");
    engine.submit(txn);
    engine.drain();
  });
  EXPECT_EQ(-EIO, store->mount());
  EXPECT_EQ(-EIO, store->repair(false)) << "nobody has accepted the loss";
  set("tablestore_accept_log_loss", "true");
  EXPECT_EQ(-EIO, store->mount()) << "before the repair";
  EXPECT_EQ(1, store->repair(false));
  set("tablestore_accept_log_loss", "false");
  mount_again();
  // New objects take what is free, and nothing of the others.
  for (unsigned n = 0; n < 20; ++n)
    write(ch, object("new " + std::to_string(n), 1, 0x30), 0, content(10 + n, 300 * KiB));
  for (int round = 0; round < 2; ++round) {
    bufferlist bl;
    EXPECT_EQ(-EIO, store->read(ch, large, shard_span_bytes, 10, bl));
    EXPECT_TRUE(same(content(1, shard_span_bytes), read(ch, large, 0, shard_span_bytes)));
    EXPECT_TRUE(same(content(1, 512 * KiB, 512 * KiB), read(ch, large, 512 * KiB, 512 * KiB)));
    for (unsigned n = 0; n < 20; ++n) {
      EXPECT_TRUE(same(content(10 + n, 300 * KiB),
                       read(ch, object("new " + std::to_string(n), 1, 0x30))));
    }
    remount({&ch});
  }
  // As recovery from another OSD does it.
  remove(ch, large);
  write(ch, large, 0, content(1, MiB));
  close();
  EXPECT_EQ(0, store->repair(false));
  EXPECT_EQ(0, store->fsck(true));
  expect_objects_whole();
}
