// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Collections and their order, on an engine, without the rest of a store.
#include <chrono>
#include <future>
#include <thread>

#include "global/global_context.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/engine/own_threads.h"
#include "os/tablestore/rows/keys.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {

class CollectionsTest : public EngineFixture {
 protected:
  void SetUp() override
  {
    EngineFixture::SetUp();
    format();
    open();
    collections = std::make_unique<Collections>(g_ceph_context, *engine, threads);
  }
  /// A collection that exists, of so many bits.
  CollectionRef make(const coll_t& cid, uint32_t bits)
  {
    collections->create_new(cid);
    const CollectionRef c = collections->adopt(cid);
    c->node.bits = bits;
    auto txn = std::make_shared<Txn>();
    put_row(*txn, cid, c->node);
    commit(txn);
    return c;
  }

  OwnThreads threads;
  std::unique_ptr<Collections> collections;
  const coll_t cid{spg_t(pg_t(0, 1))};
};

TEST_F(CollectionsTest, AreLoadedFromTheirRows)
{
  make(cid, 5);
  collections->create_new(coll_t(spg_t(pg_t(1, 1))));
  Collections loaded(g_ceph_context, *engine, threads);
  CollectionRows rows;
  ASSERT_TRUE(loaded.load(true, &rows).ok());
  EXPECT_TRUE(rows.lost.empty());
  EXPECT_TRUE(rows.damaged.empty());
  EXPECT_TRUE(rows.is_complete);
  EXPECT_EQ(1u, loaded.all().size());
  ASSERT_TRUE(loaded.find(cid));
  EXPECT_EQ(5u, loaded.find(cid)->node.bits);
}

TEST_F(CollectionsTest, ADamagedRowIsNamedAndMetaDoesNotNeedIts)
{
  make(cid, 33);
  make(coll_t::meta(), 33);
  Collections loaded(g_ceph_context, *engine, threads);
  CollectionRows rows;
  EXPECT_TRUE(loaded.load(true, &rows).ok());
  EXPECT_EQ(2u, rows.lost.size());
  EXPECT_FALSE(loaded.find(cid));
  ASSERT_TRUE(loaded.find(coll_t::meta()));
  EXPECT_EQ(0u, loaded.find(coll_t::meta())->node.bits);
}

/// Whoever waits for the lock of the group that an object was in when he began.
TEST_F(CollectionsTest, AnObjectIsFoundInAGroupThatIsSplitMeanwhile)
{
  make(coll_t::meta(), 0);
  const CollectionRef parent = make(cid, 0);
  const ghobject_t oid(hobject_t(object_t("o"), "", CEPH_NOSNAP, 1, 1, ""));
  ASSERT_EQ(parent, collections->containing(oid));
  std::unique_lock l{parent->lock};
  auto found = std::async(std::launch::async, [&] { return collections->containing(oid); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));   // it waits
  const CollectionRef child = make(coll_t(spg_t(pg_t(1, 1))), 1);
  parent->node.bits = 1;
  l.unlock();
  EXPECT_EQ(child, found.get());
}

TEST_F(CollectionsTest, OneOfTheTwoRowsIsEnough)
{
  for (const Family family : {Family::super, Family::object}) {
    for (const char* bytes : {"", "garbage"}) {
      make(cid, 5);
      const std::string key = collection_key(cid);
      const std::string row = family == Family::super ? key : copy_key(key);
      auto txn = std::make_shared<Txn>();
      if (*bytes)
        txn->put(family, row, bytes);
      else
        txn->erase(family, row);
      commit(txn);
      Collections loaded(g_ceph_context, *engine, threads);
      CollectionRows rows;
      ASSERT_TRUE(loaded.load(true, &rows).ok());
      EXPECT_TRUE(rows.lost.empty());
      ASSERT_EQ(1u, rows.damaged.size());
      EXPECT_EQ(cid, rows.damaged[0].cid);
      ASSERT_TRUE(loaded.find(cid));
      EXPECT_EQ(5u, loaded.find(cid)->node.bits);
      const CollectionRef made = collections->find(cid);
      collections->drop(*made);
    }
  }
}

TEST_F(CollectionsTest, ANewOneExistsOnceItIsAdopted)
{
  const CollectionRef made = collections->create_new(cid);
  EXPECT_FALSE(collections->find(cid));
  EXPECT_EQ(std::vector{made}, collections->find(std::vector{cid}));
  EXPECT_EQ(made, collections->adopt(cid));
  EXPECT_EQ(made, collections->find(cid));
  EXPECT_FALSE(collections->adopt(cid));
  collections->drop(*made);
  EXPECT_FALSE(made->exists);
  EXPECT_FALSE(collections->find(cid));
}

TEST_F(CollectionsTest, ReloadedOnesAreAsTheirRowsSay)
{
  const CollectionRef old = make(cid, 5);
  const CollectionRef fresh = collections->create_new(cid);
  const std::vector<CollectionRef> found = collections->find(std::vector{cid});
  ASSERT_EQ((std::vector{old, fresh}), found);
  // What a transaction does that replaces one by the other, and is not submitted.
  old->node.bits = 6;
  collections->drop(*old);
  EXPECT_EQ(fresh, collections->adopt(cid));
  fresh->node.bits = 7;
  collections->drop(*fresh);

  ASSERT_TRUE(collections->reload(found).ok());
  EXPECT_EQ(old, collections->find(cid));
  EXPECT_EQ(5u, old->node.bits);
  EXPECT_TRUE(old->exists);
  EXPECT_TRUE(fresh->exists);
  EXPECT_EQ(found, collections->find(std::vector{cid}));
}

TEST_F(CollectionsTest, CallbacksKeepTheOrderOfTheirHandle)
{
  struct Nothing : public Context {
    void finish(int) override {}
  };
  Nothing first, second, after;
  OpSequencer osr(threads);
  EXPECT_TRUE(osr.flush_commit(&after));
  EXPECT_EQ(1u, osr.note_queued(*engine, {&first}));
  EXPECT_EQ(2u, osr.note_queued(*engine, {&second}));
  EXPECT_FALSE(osr.flush_commit(&after));
  EXPECT_EQ(std::list<Context*>({&first}), osr.note_durable(1));
  EXPECT_EQ(std::list<Context*>({&second, &after}), osr.note_durable(2));
  EXPECT_FALSE(osr.applied(1));
  osr.note_applied(1);
  osr.note_applied(2);
  osr.flush();
  EXPECT_TRUE(osr.applied(2));
}

}  // namespace tablestore
