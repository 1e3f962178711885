// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Collections that are split, merged, removed and made again while transactions on them are on
// their way.
#include <algorithm>

#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

namespace {

constexpr int64_t pool = 7;
constexpr int object_count = 64;

ghobject_t nth(int i)
{
  // Hashes that go to either side of every split here.
  return object("obj" + std::to_string(i), pool, i);
}

}  // namespace

class StoreSplitMerge : public StoreFixture {
 protected:
  void TearDown() override
  {
    parent.reset();
    child.reset();
    StoreFixture::TearDown();
  }

  /// Rewrites object i through a collection: data of either kind, an attribute and omap.
  void rewrite(Handle& ch, int i, uint64_t seed)
  {
    Transaction t;
    bufferlist bl = content(seed + i, size_for(i));
    t.write(ch->cid, nth(i), 0, bl.length(), bl);
    bufferlist value = to_bl(std::to_string(seed));
    t.setattr(ch->cid, nth(i), "seed", value);
    std::map<std::string, bufferlist> keys{{"seed", value}};
    t.omap_setkeys(ch->cid, nth(i), keys);
    queue(ch, std::move(t));
  }
  void expect_object(Handle& ch, int i, uint64_t seed)
  {
    EXPECT_TRUE(same(content(seed + i, size_for(i)), read(ch, nth(i)))) << nth(i);
    EXPECT_EQ(std::to_string(seed), attr(ch, nth(i), "seed"));
    EXPECT_EQ(std::to_string(seed), omap(ch, nth(i))["seed"]);
  }
  static uint64_t size_for(int i) { return i % 3 ? 300 + i : 20000 + i; }

  /// bits -> bits + 1: objects with that bit of the hash set go to the child.
  void split(int bits)
  {
    child = store->create_new_collection(pg(pool, 1 << bits));
    Transaction t;
    t.create_collection(child->cid, bits + 1);
    t.split_collection(parent->cid, bits + 1, 1 << bits, child->cid);
    queue(parent, std::move(t));
  }
  void merge(int bits)
  {
    // As the OSD does it.
    Transaction t;
    spg_t source;
    child->cid.is_pg(&source);
    t.remove(child->cid, source.make_pgmeta_oid());
    t.merge_collection(child->cid, parent->cid, bits);
    t.collection_set_bits(parent->cid, bits);
    child->flush();
    queue(parent, std::move(t));
    child.reset();
  }

  Handle parent;
  Handle child;
};

TEST_F(StoreSplitMerge, SplitTakesUncommittedObjectsAlong)
{
  parent = make_collection(pg(pool));
  for (int i = 0; i < object_count; ++i)
    rewrite(parent, i, 1000);
  split(0);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(1, store->collection_bits(parent));
    EXPECT_EQ(1, store->collection_bits(child));
    EXPECT_EQ(size_t(object_count / 2), list(parent).size());
    EXPECT_EQ(size_t(object_count / 2), list(child).size());
    for (int i = 0; i < object_count; ++i)
      expect_object(i % 2 ? child : parent, i, 1000);
    if (pass == 0)
      remount({&parent, &child});
  }
}

TEST_F(StoreSplitMerge, BothSidesAreWrittenRightAfterASplit)
{
  parent = make_collection(pg(pool));
  for (int i = 0; i < object_count; ++i)
    rewrite(parent, i, 1000);
  split(0);
  for (int i = 0; i < object_count; i += 3)
    rewrite(i % 2 ? child : parent, i, 2000);
  remove(child, nth(1));
  remove(parent, nth(2));
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 3; i < object_count; ++i)
      expect_object(i % 2 ? child : parent, i, i % 3 ? 1000 : 2000);
    EXPECT_EQ(size_t(object_count / 2 - 1), list(parent).size());
    EXPECT_EQ(size_t(object_count / 2 - 1), list(child).size());
    if (pass == 0)
      remount({&parent, &child});
  }
}

TEST_F(StoreSplitMerge, MergeTakesUncommittedObjectsOfBothSides)
{
  parent = make_collection(pg(pool));
  split(0);
  for (int i = 0; i < object_count; ++i)
    rewrite(i % 2 ? child : parent, i, 3000);
  const coll_t source = child->cid;
  merge(0);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_FALSE(store->collection_exists(source));
    EXPECT_FALSE(store->open_collection(source));
    EXPECT_EQ(0, store->collection_bits(parent));
    EXPECT_EQ(size_t(object_count), list(parent).size());
    for (int i = 0; i < object_count; ++i)
      expect_object(parent, i, 3000);
    if (pass == 0)
      remount({&parent});
  }
}

TEST_F(StoreSplitMerge, SplitAndMergeInARowWithoutAWait)
{
  parent = make_collection(pg(pool));
  for (uint64_t round = 1; round <= 10; ++round) {
    for (int i = 0; i < object_count; ++i)
      rewrite(parent, i, round * 1000);
    split(0);
    for (int i = 1; i < object_count; i += 2)
      rewrite(child, i, round * 1000 + 500);
    merge(0);
    for (int i = 0; i < object_count; ++i)
      expect_object(parent, i, i % 2 ? round * 1000 + 500 : round * 1000);
  }
  remount({&parent});
  for (int i = 0; i < object_count; ++i)
    expect_object(parent, i, i % 2 ? 10500 : 10000);
}

TEST_F(StoreSplitMerge, CollectionIsSplitIntoSeveral)
{
  parent = make_collection(pg(pool));
  for (int i = 0; i < object_count; ++i)
    rewrite(parent, i, 1000);
  std::vector<Handle> children;
  Transaction t;
  for (uint32_t ps : {1, 2, 3}) {
    children.push_back(store->create_new_collection(pg(pool, ps)));
    t.create_collection(pg(pool, ps), 2);
    t.split_collection(parent->cid, 2, ps, pg(pool, ps));
  }
  queue(parent, std::move(t));
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<Handle> all{parent};
    all.insert(all.end(), children.begin(), children.end());
    for (int i = 0; i < object_count; ++i)
      expect_object(all[i % 4], i, 1000);
    for (auto& ch : all) {
      EXPECT_EQ(2, store->collection_bits(ch));
      EXPECT_EQ(size_t(object_count / 4), list(ch).size());
    }
    all.clear();
    if (pass == 0)
      remount({&parent, &children[0], &children[1], &children[2]});
  }
}

TEST_F(StoreSplitMerge, SetBitsIsKept)
{
  if (store_type() != "tablestore")
    GTEST_SKIP() << "COLL_SET_BITS does nothing in the other stores";
  parent = make_collection(pg(pool, 1), 4);
  Transaction t;
  t.collection_set_bits(parent->cid, 3);
  queue(parent, std::move(t));
  EXPECT_EQ(3, store->collection_bits(parent));
  touch(parent, object("within three bits", pool, 0x9));
  remount({&parent});
  EXPECT_EQ(3, store->collection_bits(parent));
  EXPECT_EQ(1u, list(parent).size());
}

class StoreRemoveCollection : public StoreFixture {
 protected:
  void SetUp() override
  {
    set("objectstore_debug_throw_on_failed_txc", "true");
    StoreFixture::SetUp();
    ch = make_collection(pg(pool));
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }
  /// What queue_transactions() throws; 0 for nothing.
  int try_queue(Transaction&& t)
  {
    try {
      queue(ch, std::move(t));
    } catch (int error) {
      return error;
    }
    return 0;
  }

  Handle ch;
};

TEST_F(StoreRemoveCollection, WithAnUncommittedObjectIsRefused)
{
  touch(ch, nth(0));
  Transaction t;
  t.remove_collection(ch->cid);
  EXPECT_EQ(-ENOTEMPTY, try_queue(std::move(t)));
  EXPECT_TRUE(store->collection_exists(ch->cid));
  EXPECT_TRUE(store->exists(ch, nth(0)));
  write(ch, nth(1), 0, content(1, 5000));
  EXPECT_TRUE(same(content(1, 5000), read(ch, nth(1))));
}

TEST_F(StoreRemoveCollection, WithAnObjectOfTheSameTransactionIsRefused)
{
  if (store_type() == "bluestore")
    GTEST_SKIP() << "leaves the object in memory";
  Transaction t;
  t.touch(ch->cid, nth(0));
  t.remove_collection(ch->cid);
  EXPECT_EQ(-ENOTEMPTY, try_queue(std::move(t)));
  EXPECT_FALSE(store->exists(ch, nth(0)));
  EXPECT_TRUE(list(ch).empty());
}

TEST_F(StoreRemoveCollection, CountsRemovesOfTheSameTransaction)
{
  for (int i = 0; i < 10; ++i)
    write(ch, nth(i), 0, content(i, 3000));
  remount({&ch});
  Transaction too_few;
  for (int i = 0; i < 9; ++i)
    too_few.remove(ch->cid, nth(i));
  too_few.remove_collection(ch->cid);
  EXPECT_EQ(-ENOTEMPTY, try_queue(std::move(too_few)));
  EXPECT_EQ(10u, list(ch).size());

  Transaction all;
  for (int i = 0; i < 10; ++i)
    all.remove(ch->cid, nth(i));
  all.remove_collection(ch->cid);
  EXPECT_EQ(0, try_queue(std::move(all)));
  EXPECT_FALSE(store->collection_exists(pg(pool)));
  EXPECT_FALSE(store->exists(ch, nth(0)));
}

TEST_F(StoreRemoveCollection, DeadHandleFindsNothing)
{
  touch(ch, nth(0));
  Transaction t;
  t.remove(ch->cid, nth(0));
  t.remove_collection(ch->cid);
  EXPECT_EQ(0, try_queue(std::move(t)));
  struct stat st;
  bufferlist bl;
  std::vector<ghobject_t> ls;
  EXPECT_FALSE(store->exists(ch, nth(0)));
  EXPECT_EQ(-ENOENT, store->stat(ch, nth(0), &st));
  EXPECT_EQ(-ENOENT, store->read(ch, nth(0), 0, 0, bl));
  EXPECT_EQ(-ENOENT, store->collection_list(ch, ghobject_t(), ghobject_t::get_max(), 10, &ls,
                                            nullptr));
  std::vector<coll_t> cids;
  EXPECT_EQ(0, store->list_collections(cids));
  EXPECT_EQ(0, std::count(cids.begin(), cids.end(), pg(pool)));
}

TEST_F(StoreRemoveCollection, CollectionIsMadeAgainRightAfter)
{
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 5; ++i)
      write(ch, nth(i), 0, content(round * 100 + i, i % 2 ? 100 : 9000));
    // Much data takes its time: the new collection must not pass it.
    write(ch, nth(0), 0, content(round, 4 * MiB));
    Transaction t;
    for (int i = 0; i < 5; ++i)
      t.remove(ch->cid, nth(i));
    t.remove_collection(ch->cid);
    ASSERT_EQ(0, try_queue(std::move(t)));
    Handle old = ch;
    ch = make_collection(pg(pool), 0);
    EXPECT_TRUE(list(ch).empty());
    EXPECT_FALSE(store->exists(ch, nth(0)));
    touch(ch, nth(9));
    EXPECT_EQ(std::vector<ghobject_t>{nth(9)}, list(ch));
    remove(ch, nth(9));
    if (round % 5 == 0) {
      old.reset();
      remount({&ch});
      EXPECT_TRUE(list(ch).empty());
    }
  }
  write(ch, nth(3), 0, content(77, 7777));
  remount({&ch});
  EXPECT_EQ(std::vector<ghobject_t>{nth(3)}, list(ch));
  EXPECT_TRUE(same(content(77, 7777), read(ch, nth(3))));
}
