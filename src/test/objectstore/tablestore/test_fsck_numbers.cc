// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// What fsck finds of numbers of objects, and of rows that go by these.
#include "os/tablestore/check/object_numbers.h"
#include "os/tablestore/object/onode.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"

using namespace tablestore;
using namespace tablestore_test;

class StoreFsckNumbers : public StoreRowsFixture {
 protected:
  void SetUp() override
  {
    StoreRowsFixture::SetUp();
    if (IsSkipped())
      return;
    for (const ghobject_t& oid : {bare, other_bare}) {
      Transaction t;
      t.touch(ch->cid, oid);
      bufferlist value = to_bl("of " + oid.hobj.oid.name);
      t.setattr(ch->cid, oid, "name", value);
      commit(ch, std::move(t));
    }
  }
  ObjectContents contents(const ghobject_t& oid)
  {
    ObjectContents found;
    found.decode(row(Family::object, onode_key(oid)));
    return found;
  }
  void give_number(const ghobject_t& oid, uint64_t nid)
  {
    ObjectContents changed = contents(oid);
    changed.nid = nid;
    damage_rows([&](Txn& txn) { txn.put(Family::object, onode_key(oid), changed.encode()); });
  }
  void expect_repairable(int errors)
  {
    EXPECT_EQ(errors, store->fsck(false));
    EXPECT_EQ(0, store->repair(false));
    EXPECT_EQ(0, store->fsck(true));
  }
  void expect_all_whole()
  {
    expect_objects_whole();
    for (const ghobject_t& oid : {bare, other_bare})
      EXPECT_EQ("of " + oid.hobj.oid.name, attr(ch, oid, "name"));
  }

  const ghobject_t bare = object("bare", 1, 0x50);   ///< without rows of its number
  const ghobject_t other_bare = object("other bare", 1, 0x60);
};

TEST_F(StoreFsckNumbers, OfTwoObjectsWithOneNumberThatHaveNoOtherRowsOneGetsAnother)
{
  give_number(bare, contents(other_bare).nid);
  expect_repairable(1);
  EXPECT_NE(contents(bare).nid, contents(other_bare).nid);
  expect_all_whole();
}

TEST_F(StoreFsckNumbers, AnObjectWithRowsKeepsTheNumberThatAnotherHasToo)
{
  const uint64_t with_omap = contents(small).nid, with_shards = contents(large).nid;
  give_number(bare, with_omap);
  give_number(other_bare, with_shards);
  expect_repairable(2);
  EXPECT_EQ(with_omap, contents(small).nid);
  EXPECT_EQ(with_shards, contents(large).nid);
  expect_all_whole();
  // What is written now goes by the new numbers.
  write(ch, bare, 0, content(7, 300));
  remove(ch, other_bare);
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
  EXPECT_TRUE(same(content(2, 300), read(ch, small)));
  EXPECT_TRUE(same(content(7, 300), read(ch, bare)));
}

TEST_F(StoreFsckNumbers, NewNumbersAreNotThoseOfRowsThatBelongToNothing)
{
  const uint64_t next = std::max(contents(bare).nid, contents(other_bare).nid) + 1;
  give_number(bare, contents(other_bare).nid);
  damage_rows([&](Txn& txn) {
    txn.put(Family::omap, omap_key(omap_prefix(1, next), "key"), "of nobody");
  });
  expect_repairable(2);
  EXPECT_GT(std::max(contents(bare).nid, contents(other_bare).nid), next);
  expect_all_whole();
}

// Which of them the rows belong to nobody can tell, and so they stay.
TEST_F(StoreFsckNumbers, TwoObjectsWithRowsOfOneNumberAreReportedAndKeepThem)
{
  expect_clean = false;
  const ghobject_t twin = object("twin", 1, 0x70);
  const std::string key = onode_key(twin);
  const std::string same_row = row(Family::object, onode_key(small));
  damage_rows([&](Txn& txn) { txn.put(Family::object, key, same_row); });
  EXPECT_EQ(3, store->fsck(false)) << "both, and the pool's statistics";
  EXPECT_EQ(2, store->repair(false));
  EXPECT_EQ(2, store->fsck(false));
  expect_all_whole();
  EXPECT_TRUE(same(content(2, 300), read(ch, twin)));
}

TEST(ObjectNumbersTest, AnEntryCountsTheShardsOfTheLargestObject)
{
  constexpr uint64_t most = object_bytes_max / shard_span_bytes + 1;
  ObjectNumbers::Entry entry;
  entry.shard_rows = most;
  EXPECT_EQ(most, entry.shard_rows);
  EXPECT_TRUE(entry.has_rows());
}

TEST_F(StoreFsckNumbers, ExtentsOfNoPartOfTheirObjectAreErased)
{
  const uint64_t of_large = contents(large).nid, of_bare = contents(bare).nid;
  const std::string good = row(Family::object, shard_key(of_large, 0));
  damage_rows([&](Txn& txn) {
    txn.put(Family::object, shard_key(of_large, 19), good);
    txn.put(Family::object, shard_key(of_bare, 0), good);
  });
  expect_repairable(2);
  EXPECT_FALSE(has_row(Family::object, shard_key(of_large, 19)));
  EXPECT_FALSE(has_row(Family::object, shard_key(of_bare, 0)));
  EXPECT_EQ(good, row(Family::object, shard_key(of_large, 0)));
  expect_all_whole();
}

TEST_F(StoreFsckNumbers, OmapOfAnotherPoolIsErased)
{
  const uint64_t nid = contents(small).nid;
  damage_rows([&](Txn& txn) {
    txn.put(Family::omap, omap_key(omap_prefix(2, nid), "key"), "of no object");
  });
  expect_repairable(1);
  expect_all_whole();
}
