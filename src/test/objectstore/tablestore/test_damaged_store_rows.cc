// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Rows about the store as a whole that are damaged. What follows from other rows does not stop a
// mount, and fsck and repair work on a store that does not mount.
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/home/store_meta.h"
#include "os/tablestore/object/onode.h"
#include "os/tablestore/rows/row_codec.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"

using namespace tablestore;
using namespace tablestore_test;

class StoreDamagedRows : public StoreRowsFixture {
 protected:
  uint64_t nid_of(const ghobject_t& oid)
  {
    ObjectContents object;
    object.decode(row(Family::object, onode_key(oid)));
    return object.nid;
  }
  void expect_repaired()
  {
    EXPECT_GT(store->fsck(false), 0);
    EXPECT_EQ(0, store->repair(false));
    EXPECT_EQ(0, store->fsck(true));
    expect_objects_whole();
    EXPECT_EQ(std::string(), alert("TABLESTORE_ROWS_DAMAGED"));
  }
  /// With objects of its own, of which none has the number of one that was there.
  void expect_new_objects_harm_nothing()
  {
    for (int n = 0; n < 20; ++n) {
      const ghobject_t oid = object("new " + std::to_string(n), 1, 0x30);
      Transaction t;
      bufferlist data = content(n + 10, n % 2 ? 200 : 300 * KiB);
      std::map<std::string, bufferlist> keys{{"key", to_bl("of a new one")}};
      t.write(ch->cid, oid, 0, data.length(), data);
      t.omap_setkeys(ch->cid, oid, keys);
      queue(ch, std::move(t));
    }
    remount({&ch});
    EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
    EXPECT_TRUE(same(content(2, 300), read(ch, small)));
    EXPECT_EQ("value", omap(ch, small)["key"]);
  }
};

TEST_F(StoreDamagedRows, OfPoolStatisticsAreCountedByRepair)
{
  store_statfs_t before, after;
  bool per_pool_omap;
  ASSERT_EQ(0, store->pool_statfs(1, &before, &per_pool_omap));
  damage_rows([](Txn& txn) { txn.put(Family::super, pool_stats_key(1), "odd"); });
  EXPECT_GT(store->fsck(false), 0) << "of a store that does not know its pools";
  for (int round = 0; round < 2; ++round) {
    mount_again();
    EXPECT_NE(std::string::npos, alert("TABLESTORE_ROWS_DAMAGED").find("--op repair"));
    write(ch, object("new", 1, 0x30), 0, content(3, 100 * KiB));
    close();
  }
  mount_again();
  remove(ch, object("new", 1, 0x30));
  close();
  expect_repaired();
  ASSERT_EQ(0, store->pool_statfs(1, &after, &per_pool_omap));
  EXPECT_EQ(before.data_stored, after.data_stored);
  EXPECT_EQ(before.allocated, after.allocated);
  close();
  damage_rows([](Txn& txn) {
    txn.put(Family::super, pool_stats_key(1), "odd");
    txn.put(Family::super, pool_stats_key(7) + "x", "a bad key");
  });
  expect_repaired();
}

TEST_F(StoreDamagedRows, OfTheNumbersOfObjectsAreCountedFromThese)
{
  const std::string key = meta_key("nid_max");
  for (const char* value : {"", "bad", "12345678"}) {
    SCOPED_TRACE(value);
    damage_rows([&](Txn& txn) {
      if (*value)
        CopiedRow::put(txn, key, value);
      else
        CopiedRow::erase(txn, key);
    });
    EXPECT_EQ(1, store->fsck(false));
    mount_again();
    EXPECT_NE(std::string(), alert("TABLESTORE_ROWS_DAMAGED"));
    expect_new_objects_harm_nothing();
    EXPECT_EQ(std::string(), alert("TABLESTORE_ROWS_DAMAGED")) << "the new bound is a row";
  }
  damage_both(key);
  expect_repaired();
}

TEST_F(StoreDamagedRows, TheBoundIsAboveNumbersThatOnlyOtherRowsHave)
{
  const uint64_t in_shard = 5ull << 20, in_data = 7ull << 20, in_omap = 9ull << 20;
  damage_rows([&](Txn& txn) {
    CopiedRow::erase(txn, meta_key("nid_max"));
    txn.put(Family::object, shard_key(in_shard, 3), "extents");
    txn.put(Family::data, inline_key(in_data), "data");
    txn.put(Family::omap, omap_key(omap_prefix(3, in_omap), "key"), "value");
    txn.put(Family::omap, omap_key(omap_prefix(4, 8), "key"), "value");
  });
  mount_again();
  const ghobject_t oid = object("new", 1, 0x30);
  write(ch, oid, 0, content(3, 100));
  EXPECT_GT(nid_of(oid), in_omap);
  EXPECT_GT(store->fsck(false), 0);
  EXPECT_EQ(0, store->repair(false));
  mount_again();
}

TEST_F(StoreDamagedRows, TheBoundOfARepairIsAboveNumbersOfRowsThatItKeeps)
{
  expect_clean = false;
  const ghobject_t pgmeta = ghobject_t::make_pgmeta(1, 0, shard_id_t::NO_SHARD);
  const uint64_t in_omap = 9ull << 20;
  const std::string log_entry = omap_key(omap_prefix(-1, in_omap), "key");
  damage_rows([&](Txn& txn) {
    CopiedRow::put(txn, meta_key("nid_max"), "bad");
    txn.put(Family::object, onode_key(pgmeta), "bad");
    txn.put(Family::omap, log_entry, "value");
  });
  EXPECT_GT(store->repair(false), 0);
  EXPECT_TRUE(has_row(Family::omap, log_entry));
  mount_again();
  const ghobject_t oid = object("new", 1, 0x30);
  write(ch, oid, 0, content(3, 100));
  EXPECT_GT(nid_of(oid), in_omap);
  mount_again();
}

TEST_F(StoreDamagedRows, ABoundThatIsTooLowIsFoundAndRaised)
{
  const ghobject_t high = object("high", 1, 0x20);
  touch(ch, high);
  ObjectContents contents;
  contents.decode(row(Family::object, onode_key(high)));
  contents.nid = 3ull << 20;
  damage_rows([&](Txn& txn) { txn.put(Family::object, onode_key(high), contents.encode()); });
  EXPECT_EQ(1, store->fsck(false));
  expect_repaired();
  expect_new_objects_harm_nothing();
  EXPECT_GT(nid_of(object("new 0", 1, 0x30)), 3ull << 20);
  mount_again();
}

TEST_F(StoreDamagedRows, OfTheStoreItselfIsMadeAnew)
{
  close();
  // Larger inline data than any mount from now on allows, until its row says so.
  set("tablestore_inline_max", "65536");
  mount_again();
  const ghobject_t inlined = object("inline", 1, 0x20);
  write(ch, inlined, 0, content(4, 60000));
  close();
  set("tablestore_inline_max", "2048");
  damage_both(meta_key("store"));
  EXPECT_EQ(1, store->fsck(false));
  mount_again();
  EXPECT_NE(std::string(), alert("TABLESTORE_ROWS_DAMAGED"));
  write(ch, inlined, 60000, content(4, 10000, 60000));
  EXPECT_TRUE(same(content(4, 70000), read(ch, inlined)));
  remount({&ch});
  EXPECT_EQ(std::string(), alert("TABLESTORE_ROWS_DAMAGED")) << "mount has written it";
  remove(ch, inlined);
  close();
  damage_both(meta_key("store"));
  expect_repaired();
}

TEST_F(StoreDamagedRows, AKeyThatIsNoObjectDoesNotHideTheOthersNorKeepTheCollection)
{
  damage_rows([&](Txn& txn) { txn.put(Family::object, onode_key(small) + "x", "row"); });
  mount_again();
  EXPECT_EQ(2u, list(ch).size());
  Transaction t;
  t.remove(ch->cid, large);
  t.remove(ch->cid, small);
  t.remove_collection(ch->cid);
  commit(ch, std::move(t));
  close();
  EXPECT_EQ(1, store->fsck(false));
  EXPECT_EQ(0, store->repair(false));
}

TEST_F(StoreDamagedRows, OfACollectionStopsTheMountButNotFsckAndRepair)
{
  make_eight();
  damage_both(collection_key(of_eight));
  EXPECT_EQ(-EIO, store->mount());
  EXPECT_EQ(1, store->fsck(false));
  EXPECT_EQ(0, store->repair(false));
  EXPECT_EQ(0, store->fsck(true));
  expect_objects_whole();
  expect_of_eight_whole();
}

TEST_F(StoreDamagedRows, OfACollectionIsNotGuessed)
{
  // Its only placement group here: nobody knows how many the pool has.
  expect_clean = false;
  Handle other = make_collection(pg(2));
  const ghobject_t oid = object("object", 2, 0x10);
  write(other, oid, 0, content(5, 5000));
  wait_durable(other);
  other.reset();
  damage_both(collection_key(pg(1)));
  EXPECT_EQ(1, store->fsck(false));
  EXPECT_EQ(1, store->repair(false));
  EXPECT_EQ(1, store->fsck(true));
  EXPECT_EQ(-EIO, store->mount());
  // The others can be exported.
  ASSERT_EQ(0, store->mount_readonly());
  EXPECT_FALSE(store->collection_exists(pg(1)));
  other = store->open_collection(pg(2));
  ASSERT_TRUE(other);
  EXPECT_TRUE(same(content(5, 5000), read(other, oid)));
  other.reset();
  EXPECT_EQ(0, store->umount_readonly());
}

TEST_F(StoreDamagedRows, AKeyThatNamesNoCollectionIsErasedByRepair)
{
  damage_rows([](Txn& txn) { CopiedRow::put(txn, "Cno collection", "row"); });
  EXPECT_EQ(1, store->fsck(false));
  mount_again();
  EXPECT_NE(std::string(), alert("TABLESTORE_ROWS_DAMAGED"));
  close();
  expect_repaired();
}

TEST_F(StoreDamagedRows, OfTwoThatDifferTheCopyCounts)
{
  CollectionNode wrong;
  wrong.bits = 17;
  ceph::buffer::list bl;
  wrong.encode(bl);
  damage_rows([&](Txn& txn) { txn.put(Family::super, collection_key(pg(1)), bl.to_str()); });
  EXPECT_EQ(1, store->fsck(false));
  mount_again();
  EXPECT_EQ(0, store->collection_bits(ch));
  EXPECT_NE(std::string(), alert("TABLESTORE_ROWS_DAMAGED"));
  close();
  EXPECT_EQ(0, store->fsck(true)) << "the mount has written it";
  expect_objects_whole();
}

// ---- stores of versions before copies

class StoreWithoutCopies : public StoreDamagedRows {
 protected:
  /// As an older program leaves a store; some copies are of a time before that.
  void make_old()
  {
    damage_rows([](Txn& txn) {
      const auto [first, last] = all_copies_range();
      txn.erase_range(Family::object, first, last);
      StoreMeta meta;
      meta.version = 1;
      meta.inline_bound = 64 * KiB;
      ceph::buffer::list bl;
      meta.encode(bl);
      txn.put(Family::super, meta_key("store"), bl.to_str());
    });
  }
  void add_stale_copies()
  {
    damage_rows([](Txn& txn) {
      CollectionNode node;
      node.bits = 5;
      for (const coll_t& cid : {pg(1), pg(9)})
        put_row(txn, cid, node);
      txn.erase(Family::super, collection_key(pg(9)));
      node.bits = 0;
      ceph::buffer::list bl;
      node.encode(bl);
      txn.put(Family::super, collection_key(pg(1)), bl.to_str());
    });
  }
};

TEST_F(StoreWithoutCopies, GetsThemByItsFirstMount)
{
  make_old();
  EXPECT_EQ(0, store->fsck(true));
  mount_again();
  EXPECT_EQ(std::string(), alert("TABLESTORE_ROWS_DAMAGED"));
  close();
  for (const std::string& key :
       {collection_key(pg(1)), meta_key("store"), meta_key("nid_max")})
    EXPECT_TRUE(has_row(Family::object, copy_key(key))) << key;
  damage_row(Family::super, collection_key(pg(1)));
  expect_objects_whole();
}

TEST_F(StoreWithoutCopies, DoesNotBelieveThoseOfAnEarlierTime)
{
  make_old();
  add_stale_copies();
  EXPECT_EQ(0, store->fsck(true));
  EXPECT_EQ(0, store->repair(true));
  expect_objects_whole();
  EXPECT_EQ(0, store->collection_bits(ch));
  EXPECT_FALSE(store->collection_exists(pg(9)));
  close();
  EXPECT_EQ(0, store->fsck(true));
  EXPECT_FALSE(has_row(Family::object, copy_key(collection_key(pg(9)))));
}

TEST_F(StoreWithoutCopies, LosesNothingByADamagedRowOfItsOwn)
{
  for (const char* name : {"store", "nid_max"}) {
    make_old();
    damage_row(Family::super, meta_key(name));
    EXPECT_EQ(1, store->fsck(false));
    EXPECT_EQ(0, store->repair(false));
    EXPECT_EQ(0, store->fsck(true));
    make_old();
    damage_row(Family::super, meta_key(name));
    mount_again();
    EXPECT_NE(std::string(), alert("TABLESTORE_ROWS_DAMAGED"));
    expect_new_objects_harm_nothing();
    for (int n = 0; n < 20; ++n)
      remove(ch, object("new " + std::to_string(n), 1, 0x30));
  }
}

TEST_F(StoreDamagedRows, OfTheMetaCollectionHoldsNothingThatIsNotKnown)
{
  Handle meta = make_collection(coll_t::meta());
  const ghobject_t oid = object("osdmap", -1, 0x10);
  write(meta, oid, 0, content(5, 5000));
  wait_durable(meta);
  meta.reset();
  damage_both(collection_key(coll_t::meta()));
  EXPECT_EQ(1, store->fsck(false));
  mount_again();
  EXPECT_NE(std::string(), alert("TABLESTORE_ROWS_DAMAGED"));
  meta = store->open_collection(coll_t::meta());
  ASSERT_TRUE(meta);
  EXPECT_TRUE(same(content(5, 5000), read(meta, oid)));
  meta.reset();
  close();
  EXPECT_EQ(0, store->fsck(true)) << "the mount has written it";
  damage_both(collection_key(coll_t::meta()));
  expect_repaired();
}

// ---- rows that a newer version has written, in a store that this one should not have

class StoreNewerRows : public StoreRowsFixture {
 protected:
  static std::string from_the_future()
  {
    ValueWriter out;
    out.bytes("what nobody knows yet");
    return out.finish(9, 9);
  }
  /// As Ceph frames it: rows of collections, and of the store.
  static std::string framed_by_ceph()
  {
    bufferlist bl;
    ENCODE_START(9, 9, bl);
    ceph::encode(uint64_t(1), bl);
    ceph::encode(uint64_t(2), bl);
    ENCODE_FINISH(bl);
    return bl.to_str();
  }
  /// No check goes on, and no repair changes anything.
  void expect_refused(Family family, const std::string& key, const std::string& value)
  {
    SCOPED_TRACE(key);
    const std::string before = row(family, key);
    const std::string orphan = inline_key(1ull << 50);
    const bool is_copied = key.starts_with('C') || key.starts_with('M');
    const auto put = [&](Txn& txn, const std::string& bytes) {
      is_copied ? CopiedRow::put(txn, key, bytes) : txn.put(family, key, bytes);
    };
    damage_rows([&](Txn& txn) {
      put(txn, value);
      txn.put(Family::data, orphan, "that a repair would erase");
    });
    EXPECT_EQ(-EOPNOTSUPP, store->fsck(false));
    EXPECT_EQ(-EOPNOTSUPP, store->fsck(true));
    EXPECT_EQ(-EOPNOTSUPP, store->quick_fix());
    EXPECT_EQ(-EOPNOTSUPP, store->repair(true));
    EXPECT_EQ(value, row(family, key));
    EXPECT_TRUE(has_row(Family::data, orphan));
    damage_rows([&](Txn& txn) {
      put(txn, before);
      txn.erase(Family::data, orphan);
    });
  }
  int outcome(const std::function<void(Transaction&)>& f)
  {
    Transaction t;
    f(t);
    try {
      store->queue_transaction(ch, std::move(t));
    } catch (int error) {
      return error;
    }
    return 0;
  }
};

TEST_F(StoreNewerRows, AreRefusedByFsckAndLeftByRepair)
{
  Transaction t;
  t.clone(ch->cid, large, object("copy", 1, 0x10));
  commit(ch, std::move(t));
  expect_refused(Family::object, onode_key(large), from_the_future());
  expect_refused(Family::object, first_key(Family::object, all_shards_range()), from_the_future());
  expect_refused(Family::super, first_key(Family::super, reference_maps_range()),
                 from_the_future());
  expect_refused(Family::super, collection_key(pg(1)), framed_by_ceph());
  expect_refused(Family::super, meta_key("store"), framed_by_ceph());
  expect_objects_whole();
}

TEST_F(StoreNewerRows, OfTheStoreOrACollectionRefuseTheMount)
{
  for (const std::string& key : {collection_key(pg(1)), meta_key("store")}) {
    const std::string before = row(Family::super, key);
    damage_rows([&](Txn& txn) { CopiedRow::put(txn, key, framed_by_ceph()); });
    EXPECT_EQ(-EOPNOTSUPP, store->mount());
    EXPECT_EQ(-EOPNOTSUPP, store->mount_readonly());
    EXPECT_EQ(framed_by_ceph(), row(Family::super, key));
    damage_rows([&](Txn& txn) { CopiedRow::put(txn, key, before); });
  }
  expect_objects_whole();
}

TEST_F(StoreNewerRows, OfAnObjectAreAnErrorToReadersAndToChanges)
{
  set("objectstore_debug_throw_on_failed_txc", "true");
  expect_clean = false;
  for (const std::string& key :
       {onode_key(large), first_key(Family::object, all_shards_range())}) {
    const std::string before = row(Family::object, key);
    damage_rows([&](Txn& txn) { txn.put(Family::object, key, from_the_future()); });
    mount_again();
    bufferlist bl, page = content(9, 4096);
    EXPECT_EQ(-EIO, store->read(ch, large, 0, 10, bl));
    EXPECT_TRUE(store->exists(ch, large));
    EXPECT_EQ(-EOPNOTSUPP, outcome([&](Transaction& t) {
      t.write(ch->cid, large, 0, page.length(), page);
    }));
    EXPECT_TRUE(same(content(2, 300), read(ch, small)));
    close();
    EXPECT_EQ(from_the_future(), row(Family::object, key));
    damage_rows([&](Txn& txn) { txn.put(Family::object, key, before); });
  }
  expect_objects_whole();
}
