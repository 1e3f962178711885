// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// A transaction that fails in its middle, where that is thrown rather than fatal: as if it had
// never been queued.
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

class StoreFailedTransaction : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "other stores leave what was applied before the failure";
    set("objectstore_debug_throw_on_failed_txc", "true");
    StoreFixture::SetUp();
    ch = make_collection(pg(1), 0);
    write(ch, large, 0, content(1, MiB));
    write(ch, small, 0, content(2, 300));
    Transaction t;
    bufferlist value = to_bl("before");
    std::map<std::string, bufferlist> keys{{"key", value}};
    t.setattr(ch->cid, large, "attr", value);
    t.omap_setkeys(ch->cid, large, keys);
    t.omap_setheader(ch->cid, large, value);
    t.clone(ch->cid, large, copy);
    commit(ch, std::move(t));
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }

  /// The error that the transaction throws, once something that must fail is added to it.
  int fail(Transaction&& t)
  {
    bufferlist value = to_bl("x");
    t.setattr(ch->cid, object("missing", 1, hash), "attr", value);
    try {
      store->queue_transaction(ch, std::move(t));
    } catch (int error) {
      return error;
    }
    return 0;
  }
  void expect_unchanged()
  {
    EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
    EXPECT_TRUE(same(content(1, MiB), read(ch, copy)));
    EXPECT_TRUE(same(content(2, 300), read(ch, small)));
    for (const auto& oid : {large, copy}) {
      EXPECT_EQ("before", attr(ch, oid, "attr"));
      EXPECT_EQ("before", omap(ch, oid)["key"]);
      EXPECT_EQ(1u, omap(ch, oid).size());
      EXPECT_EQ("before", omap_header(ch, oid));
    }
    EXPECT_EQ(3u, list(ch).size());
    EXPECT_EQ(1u, store_collections().size());
  }
  void expect_unchanged_for_good()
  {
    expect_unchanged();
    remount({&ch});
    expect_unchanged();
  }
  std::vector<coll_t> store_collections()
  {
    std::vector<coll_t> all;
    store->list_collections(all);
    return all;
  }

  static constexpr uint32_t hash = 0x10;
  Handle ch;
  const ghobject_t large = object("large", 1, hash);
  const ghobject_t copy = object("copy", 1, hash);
  const ghobject_t small = object("small", 1, 0x20);
};

TEST_F(StoreFailedTransaction, DataIsAsItWas)
{
  Transaction t;
  bufferlist a = content(3, 2 * MiB), b = content(4, 200), c = content(5, 100000);
  t.write(ch->cid, large, 1000, a.length(), a);
  t.write(ch->cid, small, 10, b.length(), b);
  t.write(ch->cid, small, 200, c.length(), c);
  t.zero(ch->cid, copy, 4096, 300000);
  t.truncate(ch->cid, copy, 5000);
  t.write(ch->cid, object("new", 1, 0x30), 0, c.length(), c);
  EXPECT_EQ(-ENOENT, fail(std::move(t)));
  expect_unchanged_for_good();
}

TEST_F(StoreFailedTransaction, ClonesAndRemovesAreUndone)
{
  Transaction t;
  bufferlist a = content(3, 5000);
  t.clone(ch->cid, large, object("second copy", 1, hash));
  t.write(ch->cid, large, 0, a.length(), a);
  t.remove(ch->cid, copy);
  t.clone(ch->cid, large, copy);
  t.remove(ch->cid, large);
  t.remove(ch->cid, small);
  t.write(ch->cid, small, 0, a.length(), a);
  EXPECT_EQ(-ENOENT, fail(std::move(t)));
  expect_unchanged_for_good();
  // What is shared is still counted right: TearDown's fsck sees what these leave.
  remove(ch, large);
  EXPECT_TRUE(same(content(1, MiB), read(ch, copy)));
  remove(ch, copy);
}

TEST_F(StoreFailedTransaction, FirstCloneIsUndone)
{
  write(ch, small, 0, content(6, 70000));
  Transaction t;
  t.clone(ch->cid, small, object("small copy", 1, 0x20));
  EXPECT_EQ(-ENOENT, fail(std::move(t)));
  EXPECT_TRUE(same(content(6, 70000), read(ch, small)));
  // Again, and for good this time.
  Transaction again;
  again.clone(ch->cid, small, object("small copy", 1, 0x20));
  queue(ch, std::move(again));
  remove(ch, small);
  EXPECT_TRUE(same(content(6, 70000), read(ch, object("small copy", 1, 0x20))));
  remount({&ch});
  EXPECT_TRUE(same(content(6, 70000), read(ch, object("small copy", 1, 0x20))));
}

TEST_F(StoreFailedTransaction, AttributesOmapAndRenameAreUndone)
{
  Transaction t;
  bufferlist value = to_bl("after");
  std::map<std::string, bufferlist> keys{{"key", value}, {"other", value}};
  t.setattr(ch->cid, large, "attr", value);
  t.rmattrs(ch->cid, copy);
  t.omap_setkeys(ch->cid, large, keys);
  t.omap_clear(ch->cid, copy);
  t.omap_setheader(ch->cid, large, value);
  t.collection_move_rename(ch->cid, small, ch->cid, object("renamed", 1, 0x20));
  t.touch(ch->cid, small);
  EXPECT_EQ(-ENOENT, fail(std::move(t)));
  expect_unchanged_for_good();
}

TEST_F(StoreFailedTransaction, CollectionsAreUndone)
{
  const coll_t child = pg(1, 1);
  Handle child_handle = store->create_new_collection(child);
  Transaction t;
  t.create_collection(child, 1);
  t.split_collection(ch->cid, 1, 1, child);
  EXPECT_EQ(-ENOENT, fail(std::move(t)));
  EXPECT_EQ(0, store->collection_bits(ch));
  EXPECT_FALSE(store->collection_exists(child));
  expect_unchanged();
  // The handle is as good as new.
  Transaction again;
  again.create_collection(child, 1);
  again.split_collection(ch->cid, 1, 1, child);
  queue(ch, std::move(again));
  EXPECT_TRUE(store->collection_exists(child));
  EXPECT_EQ(1, store->collection_bits(ch));
}

TEST_F(StoreFailedTransaction, ACollectionIsNotReplaced)
{
  const coll_t cid = pg(2);
  Handle old_handle = make_collection(cid, 0);
  Handle new_handle = store->create_new_collection(cid);
  const auto replace = [&] {
    Transaction t;
    t.remove_collection(cid);
    t.create_collection(cid, 3);
    return t;
  };
  EXPECT_EQ(-ENOENT, fail(replace()));
  EXPECT_EQ(old_handle, store->open_collection(cid));
  EXPECT_EQ(0, store->collection_bits(old_handle));
  touch(old_handle, object("o", 2));
  EXPECT_EQ(1u, list(old_handle).size());
  remove(old_handle, object("o", 2));
  // Now for good.
  queue(ch, replace());
  EXPECT_EQ(new_handle, store->open_collection(cid));
  EXPECT_EQ(3, store->collection_bits(new_handle));
}

TEST_F(StoreFailedTransaction, CallbacksNeverRun)
{
  struct Flag : public Context {
    explicit Flag(int* runs) : runs(runs) {}
    void finish(int) override { ++*runs; }
    int* runs;
  };
  int runs = 0;
  Transaction t;
  t.touch(ch->cid, object("new", 1, 0x30));
  t.register_on_commit(new Flag(&runs));
  t.register_on_applied(new Flag(&runs));
  t.register_on_applied_sync(new Flag(&runs));
  EXPECT_EQ(-ENOENT, fail(std::move(t)));
  wait_durable(ch);
  EXPECT_EQ(0, runs);
  expect_unchanged_for_good();
}
