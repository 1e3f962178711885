// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Everything is readable when queue_transactions() returns, and later operations of a transaction
// see the earlier ones. Nothing here waits for a commit before it reads.
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

namespace {

constexpr int rounds = 40;
constexpr uint32_t hash = 0x1234;

}  // namespace

class StoreReadYourWrites : public StoreFixture {
 protected:
  void SetUp() override
  {
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }
  static void set_attr(Transaction& t, const coll_t& cid, const ghobject_t& oid,
                       const std::string& name, const std::string& value)
  {
    bufferlist bl = to_bl(value);
    t.setattr(cid, oid, name, bl);
  }
  static void set_key(Transaction& t, const coll_t& cid, const ghobject_t& oid,
                      const std::string& key, const std::string& value)
  {
    std::map<std::string, bufferlist> keys{{key, to_bl(value)}};
    t.omap_setkeys(cid, oid, keys);
  }

  Handle ch;
  const ghobject_t a = object("a", 1, hash);
  const ghobject_t b = object("b", 1, hash);
};

TEST_F(StoreReadYourWrites, DataIsReadBeforeItIsDurable)
{
  // Sizes around everything: the table's limit, blocks, extents of a whole shard.
  const uint64_t sizes[] = {1, 100, 2047, 2048, 2049, 4095, 4096, 4097, 65536, 300000, MiB + 5};
  for (int round = 0; round < 6; ++round) {
    for (uint64_t size : sizes) {
      Transaction t;
      bufferlist bl = content(round * 100 + size, size);
      t.truncate(ch->cid, a, 0);
      t.write(ch->cid, a, 0, size, bl);
      queue(ch, std::move(t));
      EXPECT_TRUE(same(bl, read(ch, a))) << size;
      EXPECT_EQ(size, size_of(ch, a));
    }
  }
}

// An OSD takes the address of what it gets, also where that is nothing.
TEST_F(StoreReadYourWrites, AnAttributeOfNothingIsOne)
{
  Transaction t;
  const std::map<std::string, bufferlist, std::less<>> attributes{{"a", {}}, {"b", to_bl("b")},
                                                                  {"c", {}}};
  t.create(ch->cid, a);
  t.setattrs(ch->cid, a, attributes);
  set_attr(t, ch->cid, a, "d", "");
  queue(ch, std::move(t));
  for (const char* name : {"a", "c", "d"}) {
    bufferptr value;
    ASSERT_EQ(0, store->getattr(ch, a, name, value)) << name;
    EXPECT_NE(nullptr, value.c_str());
    EXPECT_EQ(0u, value.length());
  }
  EXPECT_EQ("b", attr(ch, a, "b"));
}

TEST_F(StoreReadYourWrites, OverwritesInOneTransactionLayInOrder)
{
  for (int round = 0; round < rounds; ++round) {
    Transaction t;
    bufferlist whole = content(round, 20000), middle = content(round + 100, 5000);
    bufferlist head = content(round + 200, 10), tail = content(round + 300, 777);
    t.write(ch->cid, a, 0, 20000, whole);
    t.write(ch->cid, a, 6000, 5000, middle);
    t.write(ch->cid, a, 0, 10, head);
    t.zero(ch->cid, a, 12000, 1000);
    t.write(ch->cid, a, 20000, 777, tail);
    queue(ch, std::move(t));

    bufferlist expected = content(round + 200, 10);
    expected.append(content(round, 5990, 10));
    expected.append(content(round + 100, 5000));
    expected.append(content(round, 1000, 11000));
    expected.append_zero(1000);
    expected.append(content(round, 7000, 13000));
    expected.append(content(round + 300, 777));
    EXPECT_TRUE(same(expected, read(ch, a))) << round;
  }
}

TEST_F(StoreReadYourWrites, AttributesAreReadBeforeTheyAreDurable)
{
  touch(ch, a);
  for (int round = 0; round < rounds; ++round) {
    const std::string value = "value" + std::to_string(round);
    Transaction t;
    set_attr(t, ch->cid, a, "_", value);
    set_attr(t, ch->cid, a, "only" + std::to_string(round), "");
    if (round > 0)
      t.rmattr(ch->cid, a, "only" + std::to_string(round - 1));
    queue(ch, std::move(t));
    EXPECT_EQ(value, attr(ch, a, "_"));
    EXPECT_EQ("", attr(ch, a, "only" + std::to_string(round)));
    std::map<std::string, bufferptr, std::less<>> all;
    EXPECT_EQ(0, store->getattrs(ch, a, all));
    EXPECT_EQ(2u, all.size());
    bufferptr none;
    EXPECT_EQ(-ENODATA, store->getattr(ch, a, "missing", none));
  }
  Transaction t;
  t.rmattrs(ch->cid, a);
  queue(ch, std::move(t));
  std::map<std::string, bufferptr, std::less<>> all;
  EXPECT_EQ(0, store->getattrs(ch, a, all));
  EXPECT_TRUE(all.empty());
}

TEST_F(StoreReadYourWrites, OmapIsReadBeforeItIsDurable)
{
  touch(ch, a);
  std::map<std::string, std::string> expected;
  for (int round = 0; round < rounds; ++round) {
    Transaction t;
    const std::string key = "k" + std::to_string(100 + round);
    set_key(t, ch->cid, a, key, "v" + std::to_string(round));
    expected[key] = "v" + std::to_string(round);
    if (round >= 3) {
      const std::string old = "k" + std::to_string(100 + round - 3);
      t.omap_rmkey(ch->cid, a, old);
      expected.erase(old);
    }
    bufferlist header = to_bl("header" + std::to_string(round));
    t.omap_setheader(ch->cid, a, header);
    queue(ch, std::move(t));
    EXPECT_EQ(expected, omap(ch, a));
    EXPECT_EQ("header" + std::to_string(round), omap_header(ch, a));
    std::set<std::string> found;
    EXPECT_EQ(0, store->omap_check_keys(ch, a, {key, "missing"}, &found));
    EXPECT_EQ(std::set<std::string>{key}, found);
    std::map<std::string, bufferlist> values;
    EXPECT_EQ(0, store->omap_get_values(ch, a, {key, "missing"}, &values));
    ASSERT_EQ(1u, values.size());
    EXPECT_EQ("v" + std::to_string(round), values[key].to_str());
  }
}

TEST_F(StoreReadYourWrites, ListingSeesCreatesAndRemovesAtOnce)
{
  for (int round = 0; round < rounds; ++round) {
    touch(ch, a);
    write(ch, b, 0, content(round, 6000));
    EXPECT_EQ((std::vector<ghobject_t>{a, b}), list(ch));
    remove(ch, a);
    EXPECT_EQ(std::vector<ghobject_t>{b}, list(ch));
    bool empty = true;
    EXPECT_EQ(0, store->collection_empty(ch, &empty));
    EXPECT_FALSE(empty);
    remove(ch, b);
    EXPECT_TRUE(list(ch).empty());
    EXPECT_EQ(0, store->collection_empty(ch, &empty));
    EXPECT_TRUE(empty);
  }
}

TEST_F(StoreReadYourWrites, RemovedObjectIsGoneAtOnce)
{
  for (int round = 0; round < rounds; ++round) {
    write(ch, a, 0, content(round, round % 2 ? 100 : 50000));
    remove(ch, a);
    EXPECT_FALSE(store->exists(ch, a));
    struct stat st;
    bufferlist bl;
    EXPECT_EQ(-ENOENT, store->stat(ch, a, &st));
    EXPECT_EQ(-ENOENT, store->read(ch, a, 0, 0, bl));
    std::set<std::string> keys;
    EXPECT_EQ(-ENOENT, store->omap_get_keys(ch, a, &keys));
  }
}

TEST_F(StoreReadYourWrites, RemoveAndCreateInOneTransactionStartsClean)
{
  for (int round = 0; round < rounds; ++round) {
    Transaction make;
    bufferlist bl = content(round, 30000);
    make.write(ch->cid, a, 0, bl.length(), bl);
    set_attr(make, ch->cid, a, "old", "attr");
    set_key(make, ch->cid, a, "old", "key");
    bufferlist header = to_bl("old header");
    make.omap_setheader(ch->cid, a, header);
    queue(ch, std::move(make));

    Transaction again;
    again.remove(ch->cid, a);
    again.touch(ch->cid, a);
    set_key(again, ch->cid, a, "new", "key");
    queue(ch, std::move(again));
    EXPECT_EQ(0u, size_of(ch, a));
    EXPECT_EQ(0u, read(ch, a).length());
    EXPECT_EQ("error -61", attr(ch, a, "old"));
    EXPECT_EQ((std::map<std::string, std::string>{{"new", "key"}}), omap(ch, a));
    EXPECT_EQ("", omap_header(ch, a));
  }
  remount({&ch});
  EXPECT_EQ(0u, size_of(ch, a));
  EXPECT_EQ("error -61", attr(ch, a, "old"));
  EXPECT_EQ((std::map<std::string, std::string>{{"new", "key"}}), omap(ch, a));
  EXPECT_EQ("", omap_header(ch, a));
}

TEST_F(StoreReadYourWrites, CreateAndRemoveInOneTransactionLeavesNothing)
{
  if (store_type() == "bluestore")
    GTEST_SKIP() << "leaves the omap";
  for (int round = 0; round < rounds; ++round) {
    Transaction t;
    bufferlist bl = content(round, round % 2 ? 100 : 100000);
    t.write(ch->cid, a, 0, bl.length(), bl);
    set_key(t, ch->cid, a, "k", "v");
    t.remove(ch->cid, a);
    queue(ch, std::move(t));
    EXPECT_FALSE(store->exists(ch, a));
  }
  remount({&ch});
  EXPECT_TRUE(list(ch).empty());
}

TEST_F(StoreReadYourWrites, CloneSeesEarlierOperationsOfItsTransaction)
{
  if (store_type() == "bluestore")
    GTEST_SKIP() << "clones the omap of before the transaction";
  for (int round = 0; round < rounds; ++round) {
    Transaction t;
    const uint64_t size = round % 2 ? 1000 : 70000;
    bufferlist bl = content(round, size);
    t.truncate(ch->cid, a, 0);
    t.write(ch->cid, a, 0, size, bl);
    set_attr(t, ch->cid, a, "_", std::to_string(round));
    set_key(t, ch->cid, a, "k" + std::to_string(round), "v");
    bufferlist header = to_bl("h" + std::to_string(round));
    t.omap_setheader(ch->cid, a, header);
    t.clone(ch->cid, a, b);
    // After the clone: not for it.
    bufferlist later = content(round + 500, 50);
    t.write(ch->cid, a, 0, 50, later);
    set_attr(t, ch->cid, a, "_", "later");
    set_key(t, ch->cid, a, "later", "v");
    queue(ch, std::move(t));

    EXPECT_TRUE(same(bl, read(ch, b))) << round;
    EXPECT_EQ(std::to_string(round), attr(ch, b, "_"));
    EXPECT_EQ("h" + std::to_string(round), omap_header(ch, b));
    auto keys = omap(ch, b);
    EXPECT_EQ(1u, keys.count("k" + std::to_string(round)));
    EXPECT_EQ("later", attr(ch, a, "_"));
    EXPECT_TRUE(same(later, read(ch, a, 0, 50)));
    EXPECT_EQ(1u, omap(ch, a).count("later"));

    Transaction clear;
    clear.remove(ch->cid, a);
    queue(ch, std::move(clear));
    EXPECT_TRUE(same(bl, read(ch, b))) << round;
    EXPECT_EQ(0u, keys.count("later"));
  }
}

TEST_F(StoreReadYourWrites, CloneReplacesAllOfItsTarget)
{
  if (store_type() == "bluestore")
    GTEST_SKIP() << "keeps omap of the same transaction";
  Transaction t;
  bufferlist big = content(1, 300000), small = content(2, 10);
  t.write(ch->cid, b, 0, big.length(), big);
  set_attr(t, ch->cid, b, "old", "x");
  set_key(t, ch->cid, b, "old", "x");
  bufferlist header = to_bl("old");
  t.omap_setheader(ch->cid, b, header);
  t.write(ch->cid, a, 0, small.length(), small);
  t.clone(ch->cid, a, b);
  queue(ch, std::move(t));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(same(small, read(ch, b)));
    EXPECT_EQ(10u, size_of(ch, b));
    EXPECT_EQ("error -61", attr(ch, b, "old"));
    EXPECT_TRUE(omap(ch, b).empty());
    EXPECT_EQ("", omap_header(ch, b));
    if (i == 0)
      remount({&ch});
  }
}

TEST_F(StoreReadYourWrites, LaterWritesToTheSourceDoNotReachTheClone)
{
  for (uint64_t size : {500, 2048, 10000, 400000}) {
    Transaction t;
    bufferlist bl = content(size, size);
    t.remove(ch->cid, b);
    t.remove(ch->cid, a);
    t.write(ch->cid, a, 0, size, bl);
    set_key(t, ch->cid, a, "k", "old");
    queue(ch, std::move(t));
    Transaction clone;
    clone.clone(ch->cid, a, b);
    queue(ch, std::move(clone));
    write(ch, a, size / 3, content(size + 1, size / 3));
    Transaction more;
    set_key(more, ch->cid, a, "k", "new");
    more.truncate(ch->cid, a, size / 2);
    queue(ch, std::move(more));
    EXPECT_TRUE(same(bl, read(ch, b)));
    EXPECT_EQ("old", omap(ch, b)["k"]);
    EXPECT_EQ("new", omap(ch, a)["k"]);
    EXPECT_EQ(size / 2, size_of(ch, a));
    remount({&ch});
    EXPECT_TRUE(same(bl, read(ch, b)));
    EXPECT_EQ("old", omap(ch, b)["k"]);
  }
}

TEST_F(StoreReadYourWrites, RenameCarriesEverythingAndFreesTheName)
{
  for (int round = 0; round < rounds; ++round) {
    Transaction t;
    bufferlist bl = content(round, 9000), next = content(round + 50, 100);
    t.write(ch->cid, a, 0, bl.length(), bl);
    set_attr(t, ch->cid, a, "_", "moved");
    set_key(t, ch->cid, a, "k", "moved");
    t.collection_move_rename(ch->cid, a, ch->cid, b);
    t.write(ch->cid, a, 0, next.length(), next);
    queue(ch, std::move(t));
    EXPECT_TRUE(same(bl, read(ch, b)));
    EXPECT_EQ("moved", attr(ch, b, "_"));
    EXPECT_EQ("moved", omap(ch, b)["k"]);
    EXPECT_TRUE(same(next, read(ch, a)));
    EXPECT_EQ("error -61", attr(ch, a, "_"));
    EXPECT_TRUE(omap(ch, a).empty());
    Transaction clear;
    clear.remove(ch->cid, a);
    clear.remove(ch->cid, b);
    queue(ch, std::move(clear));
  }
}

TEST_F(StoreReadYourWrites, TryRenameOfAMissingObjectDoesNothing)
{
  if (store_type() == "memstore")
    GTEST_SKIP() << "aborts";
  write(ch, b, 0, content(1, 100));
  Transaction t;
  t.try_rename(ch->cid, a, b);
  queue(ch, std::move(t));
  EXPECT_TRUE(same(content(1, 100), read(ch, b)));
  EXPECT_FALSE(store->exists(ch, a));
}

// What is cached is counted by its length; it must not keep much more memory than that.
TEST_F(StoreReadYourWrites, AnAttributeDoesNotKeepItsTransaction)
{
  if (!is_tablestore())
    GTEST_SKIP() << "memory is each store's own matter";
  Transaction t;
  t.touch(ch->cid, a);
  set_attr(t, ch->cid, a, "_", std::string(250, 'v'));
  set_key(t, ch->cid, a, "large", std::string(100000, 'k'));
  set_attr(t, ch->cid, a, "snapset", std::string(35, 's'));
  queue(ch, std::move(t));
  for (const auto& [name, length] : {std::pair("_", 250u), std::pair("snapset", 35u)}) {
    bufferptr value;
    ASSERT_EQ(0, store->getattr(ch, a, name, value));
    EXPECT_EQ(length, value.length());
    EXPECT_EQ(length, value.raw_length());
  }
}
