// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// What fsck finds of shared extents, and what it keeps in memory meanwhile.
#include <algorithm>
#include <random>

#include "global/global_context.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/check/fsck.h"
#include "os/tablestore/mounted_store.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"

using namespace tablestore;
using namespace tablestore_test;

class StoreFsckReferences : public StoreRowsFixture {
 protected:
  void clone(const ghobject_t& from, const ghobject_t& to)
  {
    Transaction t;
    t.clone(ch->cid, from, to);
    commit(ch, std::move(t));
  }
  /// Changes the first row of references.
  void change_references(const std::function<void(ReferenceMap&)>& change)
  {
    damage([&](Engine& engine) {
      const auto [first, last] = reference_maps_range();
      auto it = engine.iterate(Family::super, first, last);
      it->seek(first);
      ASSERT_TRUE(it->valid());
      ReferenceMap map;
      ASSERT_TRUE(decode_reference_map_key(it->key(), &map.container, &map.first_block));
      map.decode(it->value());
      change(map);
      auto txn = std::make_shared<Txn>();
      txn->put(Family::super, it->key(), map.encode());
      engine.submit(txn);
      engine.drain();
    });
  }
  ObjectContents contents(const ghobject_t& oid)
  {
    ObjectContents found;
    found.decode(row(Family::object, onode_key(oid)));
    return found;
  }
  /// fsck finds so many errors, repair mends them, and nothing is left.
  void expect_repairable(int errors)
  {
    EXPECT_EQ(errors, store->fsck(false));
    EXPECT_EQ(0, store->repair(false));
    EXPECT_EQ(0, store->fsck(true));
  }
  void expect_clones_whole()
  {
    expect_objects_whole();
    EXPECT_TRUE(same(content(1, MiB), read(ch, copy)));
    // With the right counts, the last one to go frees everything: TearDown's fsck sees it.
    remove(ch, large);
    EXPECT_TRUE(same(content(1, MiB), read(ch, copy)));
    remove(ch, copy);
  }
  uint64_t fsck_memory()
  {
    MountedStore& parts = static_cast<TableStore&>(*store).parts();
    Fsck fsck(g_ceph_context, parts.engine, parts.data, parts.lost_names,
              parts.collections.all(), CollectionRows{}, 0, {});
    EXPECT_EQ(0, fsck.run());
    return fsck.memory_bytes();
  }

  const ghobject_t copy = object("copy", 1, 0x10);
};

TEST_F(StoreFsckReferences, ThatAreTooFewAreCountedAnew)
{
  clone(large, copy);
  change_references([](ReferenceMap& map) { --map.runs.begin()->second.references; });
  expect_repairable(1);
  expect_clones_whole();
}

TEST_F(StoreFsckReferences, ThatLackSomeOfTheBlocksAreCountedAnew)
{
  clone(large, copy);
  change_references([](ReferenceMap& map) {
    ASSERT_EQ(1u, map.runs.size());
    ReferenceMap::Run& run = map.runs.begin()->second;
    ASSERT_GT(run.blocks, 3u);
    run.blocks -= 3;
  });
  expect_repairable(3);   // the statistics and the blocks, too, which the row says are not there
  expect_clones_whole();
}

TEST_F(StoreFsckReferences, OfAnExtentThatIsNotSharedAreErased)
{
  Extent owned;
  {
    auto& parts = static_cast<TableStore&>(*store).parts();
    owned = parts.onodes.get(large)->shards.begin()->second.extents.front().physical;
  }
  ReferenceMap map(owned.container, owned.block);
  map.runs[owned.block] = {owned.blocks, 1};
  const std::string key = reference_map_key(owned.container, owned.block);
  damage_rows([&](Txn& txn) { txn.put(Family::super, key, map.encode()); });
  EXPECT_GE(store->fsck(false), 1);
  EXPECT_EQ(0, store->repair(false));
  EXPECT_EQ(0, store->fsck(true));
  EXPECT_FALSE(has_row(Family::super, key));
  expect_objects_whole();
}

// In the order of keys, a temp object, and one of another hash, are elsewhere.
TEST_F(StoreFsckReferences, OfObjectsThatAreFarApartAreCountedTogether)
{
  Transaction t;
  const ghobject_t temp = temp_object("temp", 1, 0x10), far = object("far", 1, 0x77);
  for (const ghobject_t& oid : {copy, temp})
    t.clone(ch->cid, large, oid);
  t.try_rename(ch->cid, copy, far);
  commit(ch, std::move(t));
  close();
  EXPECT_EQ(0, store->fsck(false));
  change_references([](ReferenceMap& map) { ++map.runs.begin()->second.references; });
  expect_repairable(1);
  mount_again();
  remove(ch, temp);
  remove(ch, large);
  EXPECT_TRUE(same(content(1, MiB), read(ch, far)));
  remove(ch, far);
}

// The two objects of the first hash agree with the row by themselves; so do those of the second,
// where there are two.
TEST_F(StoreFsckReferences, ThatSeemRightAtFirstAreCountedWithThoseThatComeLater)
{
  const ghobject_t head = object("head", 1, 0x40), clone_of_it = object("clone", 1, 0x40);
  for (const unsigned twins : {1, 2}) {
    SCOPED_TRACE(twins);
    write(ch, head, 0, content(3, 60000));
    clone(head, clone_of_it);
    const auto twin = [](unsigned n) { return object("twin " + std::to_string(n), 1, 0x41); };
    ObjectContents same_blocks = contents(clone_of_it);
    damage_rows([&](Txn& txn) {
      for (unsigned n = 0; n < twins; ++n) {
        same_blocks.nid += 1000;
        txn.put(Family::object, onode_key(twin(n)), same_blocks.encode());
      }
    });
    expect_repairable(2);   // the pool's statistics, too
    expect_objects_whole();
    for (const ghobject_t& oid : {head, clone_of_it}) {
      remove(ch, oid);
      EXPECT_TRUE(same(content(3, 60000), read(ch, twin(0))));
    }
    for (unsigned n = 0; n < twins; ++n)
      remove(ch, twin(n));
    wait_durable(ch);
  }
}

TEST_F(StoreFsckReferences, OfBlocksThatTwoObjectsOfOneHashHaveAreMade)
{
  const ghobject_t head = object("head", 1, 0x40), twin = object("twin", 1, 0x40);
  for (const bool same_number : {false, true}) {
    SCOPED_TRACE(same_number);
    write(ch, head, 0, content(3, 60000));
    wait_durable(ch);
    ObjectContents same_blocks = contents(head);
    same_blocks.nid += same_number ? 0 : 1000;
    damage_rows([&](Txn& txn) {
      txn.put(Family::object, onode_key(twin), same_blocks.encode());
    });
    EXPECT_GE(store->fsck(false), 1);
    EXPECT_EQ(0, store->repair(false));
    EXPECT_EQ(0, store->fsck(true));
    mount_again();
    remove(ch, head);
    EXPECT_TRUE(same(content(3, 60000), read(ch, twin)));
    write(ch, twin, 5000, content(4, 5000));
    remove(ch, twin);
    wait_durable(ch);
  }
}

// As an owner would leave it that took an extent for its own too early.
TEST_F(StoreFsckReferences, OfAnOwnerThatDoesNotShareAreMadeAnew)
{
  clone(large, copy);
  const uint64_t nid = contents(large).nid;
  damage([&](Engine& engine) {
    const std::string key = shard_key(nid, 1);
    ExtentShard shard;
    bufferlist bl;
    bl.append(row(engine, Family::object, key));
    auto p = bl.cbegin();
    shard.decode(p);
    auto txn = std::make_shared<Txn>();
    for (MappedExtent& e : shard.extents) {
      ASSERT_TRUE(e.shared);
      ReferenceMap map(e.physical.container, e.map_block);
      map.runs[e.physical.block] = {e.physical.blocks, 1};
      txn->put(Family::super, reference_map_key(map.container, map.first_block), map.encode());
      e.shared = false;
      e.map_block = 0;
    }
    txn->put(Family::object, key, shard.encode());
    engine.submit(txn);
    engine.drain();
  });
  EXPECT_GE(store->fsck(false), 1);
  EXPECT_EQ(0, store->repair(false));
  EXPECT_EQ(0, store->fsck(true));
  expect_clones_whole();
}

// Objects of other hashes cannot share: a split would take them apart.
TEST_F(StoreFsckReferences, OfBlocksThatObjectsOfOtherHashesHaveAreNotMade)
{
  const ghobject_t head = object("head", 1, 0x40), twin = object("twin", 1, 0x41);
  write(ch, head, 0, content(3, 100000));
  ObjectContents same_blocks = contents(head);
  same_blocks.nid += 1000;
  damage_rows([&](Txn& txn) {
    txn.put(Family::object, onode_key(twin), same_blocks.encode());
  });
  EXPECT_GE(store->repair(false), 1);
  EXPECT_GE(store->fsck(false), 1);
  EXPECT_EQ(same_blocks.encode(), row(Family::object, onode_key(twin)));
  damage_rows([&](Txn& txn) { txn.erase(Family::object, onode_key(twin)); });
  EXPECT_EQ(0, store->repair(false)) << "the statistics counted the twin, too";
  EXPECT_EQ(0, store->fsck(true));
  mount_again();
  EXPECT_TRUE(same(content(3, 100000), read(ch, head)));
}

TEST_F(StoreFsckReferences, TakeMemoryByTheObjectAndNotByTheBlock)
{
  constexpr unsigned heads = 1500;
  unsigned made = 0;
  const auto make_heads = [&] {
    for (unsigned end = made + heads; made < end; ++made) {
      Transaction t;
      const uint32_t hash = (made + 1) * 0x9e3779b1u;
      const ghobject_t head = object("head " + std::to_string(made), 1, hash);
      bufferlist data = content(made, 64 * KiB);
      t.write(ch->cid, head, 0, data.length(), data);
      t.clone(ch->cid, head, object("clone " + std::to_string(made), 1, hash));
      queue(ch, std::move(t));
    }
    wait_durable(ch);
  };
  make_heads();
  const uint64_t before = fsck_memory();
  make_heads();
  const uint64_t more = fsck_memory() - before;
  // Two objects, and 16 blocks, each of which has a bit in some bitmaps.
  EXPECT_LE(more, heads * (2 * 17 + 16)) << more / heads << " bytes for each clone";
  RecordProperty("bytes_for_each_clone", std::to_string(more / heads));
}

TEST_F(StoreFsckReferences, OfOneHeadTakeNoMemoryHoweverManyItsClonesAre)
{
  constexpr unsigned clones = 6000, of_one_txn = 200;
  unsigned made = 0;
  const auto make_clones = [&] {
    for (unsigned n = 0; n < clones; n += of_one_txn) {
      Transaction t;
      for (unsigned i = 0; i < of_one_txn; ++i)
        t.clone(ch->cid, large, object("clone " + std::to_string(made++), 1, 0x10));
      queue(ch, std::move(t));
    }
    wait_durable(ch);
  };
  make_clones();
  const uint64_t before = fsck_memory();
  make_clones();
  const uint64_t more = fsck_memory() - before;
  EXPECT_LE(more, clones * 17) << more / clones << " bytes for each clone";
}

TEST(TableStoreReferenceCounts, AddUpToRunsOfEqualCounts)
{
  using Run = ReferenceCounts::Run;
  ReferenceCounts counts(std::pmr::get_default_resource());
  EXPECT_TRUE(counts.runs().empty());
  const auto add = [&](uint32_t container, uint32_t name, uint32_t block, uint32_t blocks) {
    counts.add(Run{container, name, block, blocks, 1, 5});
  };
  for (int i = 0; i < 10000; ++i)
    add(3, 100, 100, 8);
  add(3, 100, 102, 2);
  add(3, 100, 104, 4);
  add(3, 100, 102, 2);
  add(3, 100, 104, 4);
  add(2, 100, 107, 1);
  add(3, 50, 90, 10);
  const auto runs = counts.runs();
  EXPECT_EQ((std::vector<Run>{{2, 100, 107, 1, 1, 5},
                              {3, 50, 90, 10, 1, 5},
                              {3, 100, 100, 2, 10000, 5},
                              {3, 100, 102, 6, 10002, 5}}),
            std::vector<Run>(runs.begin(), runs.end()));
}

TEST(TableStoreReferenceCounts, EqualACountBlockByBlock)
{
  using Run = ReferenceCounts::Run;
  std::mt19937 random(3);
  ReferenceCounts counts(std::pmr::get_default_resource());
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> expected;
  for (int i = 0; i < 30000; ++i) {
    const uint32_t container = random() % 2, name = random() % 3 * 10;
    const uint32_t block = name + random() % 30, blocks = 1 + random() % 12;
    counts.add(Run{container, name, block, blocks, 1, 0});
    for (uint32_t b = block; b < block + blocks; ++b)
      ++expected[{container, name, b}];
    if (i % 10000 == 0)
      (void)counts.runs();
  }
  uint64_t blocks = 0;
  for (const Run& run : counts.runs()) {
    for (uint32_t b = run.block; b < run.block + run.blocks; ++b, ++blocks)
      ASSERT_EQ((expected[{run.container, run.name, b}]), run.references);
  }
  EXPECT_EQ(expected.size(), blocks);
}
