// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Omap: many keys, ranges, iteration, what it follows and what it must not leave behind.
#include <array>
#include <cstdio>
#include <functional>

#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

using seek_t = ObjectStore::omap_iter_seek_t;
using ret_t = ObjectStore::omap_iter_ret_t;
using Keys = std::vector<std::string>;

class StoreOmap : public StoreFixture {
 protected:
  void SetUp() override
  {
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
    touch(ch, oid);
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }

  static std::string key(int i)
  {
    char name[16];
    ::snprintf(name, sizeof(name), "key%07d", i);
    return name;
  }
  void set_keys(const ghobject_t& o, int from, int to, const std::string& value = "v")
  {
    Transaction t;
    std::map<std::string, bufferlist> keys;
    for (int i = from; i < to; ++i)
      keys[key(i)] = to_bl(value + std::to_string(i));
    t.omap_setkeys(ch->cid, o, keys);
    queue(ch, std::move(t));
  }
  void remove_range(const std::string& first, const std::string& last)
  {
    Transaction t;
    t.omap_rmkeyrange(ch->cid, oid, first, last);
    queue(ch, std::move(t));
  }
  Keys keys_of(const ghobject_t& o, const seek_t& from = seek_t::min_lower_bound(),
               size_t max = SIZE_MAX)
  {
    Keys found;
    const int r = store->omap_iterate(ch, o, from, [&](std::string_view k, std::string_view) {
      found.emplace_back(k);
      return found.size() < max ? ret_t::NEXT : ret_t::STOP;
    });
    EXPECT_EQ(found.size() >= max ? 1 : 0, r);
    return found;
  }
  static Keys range(int from, int to)
  {
    Keys keys;
    for (int i = from; i < to; ++i)
      keys.push_back(key(i));
    return keys;
  }

  Handle ch;
  const ghobject_t oid = object("omap", 1, 0x55);
};

TEST_F(StoreOmap, TwoHundredThousandKeysInOneObject)
{
  constexpr int count = 200000;
  constexpr int batch = 5000;
  for (int i = 0; i < count; i += batch)
    set_keys(oid, i, i + batch);
  EXPECT_EQ(size_t(count), keys_of(oid).size());
  // A page at a time from where the last one ended, as the OSD lists.
  std::string last;
  size_t seen = 0;
  for (;;) {
    Keys page = keys_of(oid, {last, seek_t::UPPER_BOUND}, 10000);
    seen += page.size();
    if (page.size() < 10000)
      break;
    last = page.back();
  }
  EXPECT_EQ(size_t(count), seen);
  remove_range(key(10), key(count - 10));
  EXPECT_EQ(20u, keys_of(oid).size());
  remount({&ch});
  Keys expected = range(0, 10);
  const Keys tail = range(count - 10, count);
  expected.insert(expected.end(), tail.begin(), tail.end());
  EXPECT_EQ(expected, keys_of(oid));
}

TEST_F(StoreOmap, RangeRemovalTakesTheFirstAndLeavesTheLast)
{
  set_keys(oid, 0, 20);
  remove_range(key(5), key(10));
  Keys expected = range(0, 5);
  for (const auto& k : range(10, 20))
    expected.push_back(k);
  EXPECT_EQ(expected, keys_of(oid));
  // Bounds that are no keys, an empty range and one that is the wrong way round.
  remove_range(key(3) + "x", key(12) + "x");
  expected = range(0, 4);
  for (const auto& k : range(13, 20))
    expected.push_back(k);
  EXPECT_EQ(expected, keys_of(oid));
  remove_range(key(2), key(2));
  EXPECT_EQ(expected, keys_of(oid));
  remove_range("", key(1));
  expected.erase(expected.begin());
  EXPECT_EQ(expected, keys_of(oid));
  remount({&ch});
  EXPECT_EQ(expected, keys_of(oid));
}

TEST_F(StoreOmap, RangeRemovalAndSetInOneTransactionLayInOrder)
{
  set_keys(oid, 0, 10);
  Transaction t;
  std::map<std::string, bufferlist> within{{key(5), to_bl("before")}};
  t.omap_setkeys(ch->cid, oid, within);
  t.omap_rmkeyrange(ch->cid, oid, key(2), key(8));
  std::map<std::string, bufferlist> again{{key(4), to_bl("after")}};
  t.omap_setkeys(ch->cid, oid, again);
  queue(ch, std::move(t));
  const Keys expected{key(0), key(1), key(4), key(8), key(9)};
  EXPECT_EQ(expected, keys_of(oid));
  EXPECT_EQ("after", omap(ch, oid)[key(4)]);
  remount({&ch});
  EXPECT_EQ(expected, keys_of(oid));
}

TEST_F(StoreOmap, IterationStartsAtOrAfterTheKey)
{
  set_keys(oid, 0, 10);
  EXPECT_EQ(range(4, 10), keys_of(oid, {key(4), seek_t::LOWER_BOUND}));
  EXPECT_EQ(range(5, 10), keys_of(oid, {key(4), seek_t::UPPER_BOUND}));
  EXPECT_EQ(range(5, 10), keys_of(oid, {key(4) + "x", seek_t::LOWER_BOUND}));
  EXPECT_EQ(range(5, 10), keys_of(oid, {key(4) + "x", seek_t::UPPER_BOUND}));
  EXPECT_EQ(range(0, 10), keys_of(oid, {"", seek_t::LOWER_BOUND}));
  EXPECT_EQ(range(0, 10), keys_of(oid, {"", seek_t::UPPER_BOUND}));
  EXPECT_EQ(Keys(), keys_of(oid, {"z", seek_t::LOWER_BOUND}));
  EXPECT_EQ(range(0, 3), keys_of(oid, seek_t::min_lower_bound(), 3));
}

TEST_F(StoreOmap, KeysAreOrderedAsUnsignedBytes)
{
  const Keys sorted{"!",    "A",    "a",        std::string("a\0b", 3), "aa",
                    "\x7f", "\x80", "\xc3\xa4", "\xff\xff"};
  Transaction t;
  std::map<std::string, bufferlist> keys;
  for (const auto& k : sorted)
    keys[k] = to_bl("v");
  t.omap_setkeys(ch->cid, oid, keys);
  queue(ch, std::move(t));
  EXPECT_EQ(sorted, keys_of(oid));
  remount({&ch});
  EXPECT_EQ(sorted, keys_of(oid));
  std::set<std::string> all;
  EXPECT_EQ(0, store->omap_get_keys(ch, oid, &all));
  EXPECT_EQ(std::set<std::string>(sorted.begin(), sorted.end()), all);
}

TEST_F(StoreOmap, OneVisitorMayIterateWithinAnother)
{
  const ghobject_t inner = object("inner", 1, 0x56);
  touch(ch, inner);
  set_keys(oid, 0, 30);
  set_keys(inner, 0, 5);
  int visits = 0;
  EXPECT_EQ(0, store->omap_iterate(ch, oid, seek_t::min_lower_bound(),
                                   [&](std::string_view, std::string_view) {
    visits += keys_of(inner).size();
    visits += keys_of(oid, seek_t::min_lower_bound(), 2).size();
    return ret_t::NEXT;
  }));
  EXPECT_EQ(30 * 7, visits);
}

TEST_F(StoreOmap, VisitorMayFillATransactionThatIsQueuedAfterwards)
{
  set_keys(oid, 0, 1000);
  Transaction t;
  EXPECT_EQ(0, store->omap_iterate(ch, oid, seek_t::min_lower_bound(),
                                   [&](std::string_view k, std::string_view) {
    if (k.back() != '0')
      t.omap_rmkey(ch->cid, oid, std::string(k));
    return ret_t::NEXT;
  }));
  queue(ch, std::move(t));
  EXPECT_EQ(100u, keys_of(oid).size());
}

TEST_F(StoreOmap, ObjectWithoutOmapIsEmptyAndAMissingOneIsAnError)
{
  EXPECT_TRUE(keys_of(oid).empty());
  EXPECT_EQ("", omap_header(ch, oid));
  const ghobject_t missing = object("missing", 1, 0x57);
  EXPECT_EQ(-ENOENT, store->omap_iterate(ch, missing, seek_t::min_lower_bound(),
                                         [](auto, auto) { return ret_t::NEXT; }));
  bufferlist header;
  std::map<std::string, bufferlist> values;
  EXPECT_EQ(-ENOENT, store->omap_get(ch, missing, &header, &values));
  EXPECT_EQ(-ENOENT, store->omap_get_header(ch, missing, &header));
  EXPECT_EQ(-ENOENT, store->omap_get_values(ch, missing, {"k"}, &values));
}

TEST_F(StoreOmap, HeaderAloneIsKeptAndIsNotAKey)
{
  Transaction t;
  bufferlist header = content(1, 5000);
  t.omap_setheader(ch->cid, oid, header);
  queue(ch, std::move(t));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(content(1, 5000).to_str(), omap_header(ch, oid));
    EXPECT_TRUE(keys_of(oid).empty());
    EXPECT_TRUE(omap(ch, oid).empty());
    if (i == 0)
      remount({&ch});
  }
}

TEST_F(StoreOmap, ClearTakesHeaderAndKeysOfTheSameTransaction)
{
  set_keys(oid, 0, 10);
  Transaction t;
  std::map<std::string, bufferlist> keys{{"new", to_bl("v")}};
  bufferlist header = to_bl("header");
  t.omap_setkeys(ch->cid, oid, keys);
  t.omap_setheader(ch->cid, oid, header);
  t.omap_clear(ch->cid, oid);
  queue(ch, std::move(t));
  EXPECT_TRUE(keys_of(oid).empty());
  EXPECT_EQ("", omap_header(ch, oid));

  Transaction after;
  after.omap_clear(ch->cid, oid);
  after.omap_setkeys(ch->cid, oid, keys);
  queue(ch, std::move(after));
  EXPECT_EQ(Keys{"new"}, keys_of(oid));
  remount({&ch});
  EXPECT_EQ(Keys{"new"}, keys_of(oid));
}

TEST_F(StoreOmap, OmapFollowsRename)
{
  const ghobject_t moved = object("moved", 1, 0x55);
  set_keys(oid, 0, 1000);
  Transaction t;
  bufferlist header = to_bl("header");
  t.omap_setheader(ch->cid, oid, header);
  t.collection_move_rename(ch->cid, oid, ch->cid, moved);
  queue(ch, std::move(t));
  // The name is free: its next object has nothing of the old one's.
  touch(ch, oid);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(range(0, 1000), keys_of(moved));
    EXPECT_EQ("header", omap_header(ch, moved));
    EXPECT_TRUE(keys_of(oid).empty());
    EXPECT_EQ("", omap_header(ch, oid));
    if (i == 0)
      remount({&ch});
  }
  remove(ch, moved);
  EXPECT_TRUE(keys_of(oid).empty());
}

TEST_F(StoreOmap, TemporaryObjectIsRenamedWithItsOmap)
{
  // How a recovered object gets its place.
  const ghobject_t temp = temp_object("temp", 1, 0x55);
  touch(ch, temp);
  set_keys(temp, 0, 100);
  Transaction t;
  t.remove(ch->cid, oid);
  t.collection_move_rename(ch->cid, temp, ch->cid, oid);
  queue(ch, std::move(t));
  EXPECT_EQ(range(0, 100), keys_of(oid));
  EXPECT_FALSE(store->exists(ch, temp));
  remount({&ch});
  EXPECT_EQ(range(0, 100), keys_of(oid));
  set_keys(oid, 100, 110);
  EXPECT_EQ(range(0, 110), keys_of(oid));
}

TEST_F(StoreOmap, CloneCopiesKeysAndHeaderAndBothGoTheirWay)
{
  if (store_type() == "bluestore")
    GTEST_SKIP() << "clones the header of before the transaction";
  const ghobject_t copy = object("copy", 1, 0x55);
  set_keys(oid, 0, 3000);
  Transaction t;
  bufferlist header = to_bl("header");
  t.omap_setheader(ch->cid, oid, header);
  t.clone(ch->cid, oid, copy);
  queue(ch, std::move(t));
  remove_range(key(0), key(1000));
  set_keys(copy, 3000, 3001);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(range(0, 3001), keys_of(copy));
    EXPECT_EQ(range(1000, 3000), keys_of(oid));
    EXPECT_EQ("header", omap_header(ch, copy));
    if (i == 0)
      remount({&ch});
  }
}

TEST_F(StoreOmap, RemovedObjectLeavesNoOmapToItsSuccessor)
{
  for (int round = 0; round < 20; ++round) {
    set_keys(oid, 0, 100);
    remove(ch, oid);
    touch(ch, oid);
    EXPECT_TRUE(keys_of(oid).empty());
  }
  set_keys(oid, 5, 6);
  remount({&ch});
  EXPECT_EQ(range(5, 6), keys_of(oid));
}

TEST_F(StoreOmap, LargeValuesAreKept)
{
  Transaction t;
  std::map<std::string, bufferlist> keys{{"big", content(1, 3 * MiB)}, {"empty", bufferlist()}};
  t.omap_setkeys(ch->cid, oid, keys);
  queue(ch, std::move(t));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(omap(ch, oid)["big"] == content(1, 3 * MiB).to_str());
    EXPECT_EQ("", omap(ch, oid)["empty"]);
    if (i == 0)
      remount({&ch});
  }
}

TEST_F(StoreOmap, TrimmedLogOfAPg)
{
  // What every client write does to the PG's own object: add one key, rewrite one, trim some.
  Keys expected;
  for (int i = 0; i < 2000; ++i) {
    Transaction t;
    std::map<std::string, bufferlist> keys{{key(i), content(i, 200)},
                                           {"_fastinfo", content(i, 180)}};
    t.omap_setkeys(ch->cid, oid, keys);
    if (i % 100 == 99)
      t.omap_rmkeyrange(ch->cid, oid, key(0), key(i - 99));
    queue(ch, std::move(t));
    if (i % 250 == 0) {
      auto now = omap(ch, oid);
      EXPECT_EQ(content(i, 200).to_str(), now[key(i)]);
      EXPECT_EQ(content(i, 180).to_str(), now["_fastinfo"]);
    }
  }
  expected = range(1900, 2000);
  expected.insert(expected.begin(), "_fastinfo");
  EXPECT_EQ(expected, keys_of(oid));
  remount({&ch});
  EXPECT_EQ(expected, keys_of(oid));
}

/// What removals of omap are in the table.
class StoreOmapRemovals : public StoreOmap {
 protected:
  static constexpr int threshold = 10;

  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "of TableStore alone";
    set("rocksdb_delete_range_threshold", std::to_string(threshold));
    StoreOmap::SetUp();
  }
  void TearDown() override
  {
    if (is_tablestore())
      StoreOmap::TearDown();
  }
  void fill(const ghobject_t& o, int keys)
  {
    touch(ch, o);
    set_keys(o, 0, keys);
    ch->flush();
  }
  /// Ranges that were erased row by row, their rows, and deletions of ranges.
  std::array<uint64_t, 3> counted()
  {
    ch->flush();
    const auto& c = dynamic_cast<TableStore&>(*store).parts().engine.counters();
    return {c.listed_ranges, c.listed_rows, c.range_deletions};
  }
  using Counted = std::array<uint64_t, 3>;
};

TEST_F(StoreOmapRemovals, FewKeysAreErasedOneByOne)
{
  fill(oid, threshold - 2);
  bufferlist header = to_bl("header");
  Transaction t;
  t.omap_setheader(ch->cid, oid, header);
  queue(ch, std::move(t));
  ch->flush();
  remove_range(key(1), key(3));
  EXPECT_EQ((Counted{1, 2, 0}), counted());
  remove(ch, oid);
  EXPECT_EQ((Counted{2, 2 + threshold - 3, 0}), counted());
}

TEST_F(StoreOmapRemovals, ManyKeysAreErasedAsARange)
{
  fill(oid, threshold);
  Transaction t;
  t.omap_clear(ch->cid, oid);
  queue(ch, std::move(t));
  EXPECT_EQ((Counted{0, 0, 1}), counted());
  EXPECT_TRUE(keys_of(oid).empty());
}

TEST_F(StoreOmapRemovals, OneOfAnObjectOfTheSameTransactionLeavesNothing)
{
  const ghobject_t temp = object("temp", 1, 0x55);
  Transaction t;
  std::map<std::string, bufferlist> keys{{"k", to_bl("v")}};
  t.touch(ch->cid, temp);
  t.omap_setkeys(ch->cid, temp, keys);
  t.remove(ch->cid, temp);
  queue(ch, std::move(t));
  EXPECT_EQ((Counted{1, 0, 0}), counted());
}

/// An object that has left the cache is loaded from its row, and the row of one whose omap alone
/// was changed does not say so. Nothing here waits before it reads: the rows of the change are on
/// their way, and the race is met in nearly every round.
class StoreOmapWithoutCache : public StoreOmap {
 protected:
  static constexpr int rounds = 300;

  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "flush_cache() of other stores waits, or does nothing";
    StoreOmap::SetUp();
  }

  /// Keys 0 to 9 with a value that names the round, and the header the same; all in the table.
  void fill(int round)
  {
    Transaction t;
    std::map<std::string, bufferlist> keys;
    for (int i = 0; i < 10; ++i)
      keys[key(i)] = to_bl("old" + std::to_string(round));
    bufferlist header = to_bl("old" + std::to_string(round));
    t.omap_setkeys(ch->cid, oid, keys);
    t.omap_setheader(ch->cid, oid, header);
    queue(ch, std::move(t));
    ch->flush();
  }
  /// Queues the change and drops the object from the cache at once.
  void change(const std::function<void(Transaction&)>& add)
  {
    Transaction t;
    add(t);
    queue(ch, std::move(t));
    store->flush_cache(nullptr);
  }
};

TEST_F(StoreOmapWithoutCache, KeysThatWereSetAreRead)
{
  fill(0);
  for (int round = 0; round < rounds; ++round) {
    const std::string value = "new" + std::to_string(round);
    change([&](Transaction& t) {
      std::map<std::string, bufferlist> keys{{key(1), to_bl(value)}};
      t.omap_setkeys(ch->cid, oid, keys);
    });
    std::map<std::string, bufferlist> values;
    ASSERT_EQ(0, store->omap_get_values(ch, oid, {key(1)}, &values));
    ASSERT_EQ(value, values[key(1)].to_str()) << round;
  }
}

TEST_F(StoreOmapWithoutCache, HeaderThatWasSetIsRead)
{
  fill(0);
  for (int round = 0; round < rounds; ++round) {
    const std::string value = "new" + std::to_string(round);
    change([&](Transaction& t) {
      bufferlist header = to_bl(value);
      t.omap_setheader(ch->cid, oid, header);
    });
    ASSERT_EQ(value, omap_header(ch, oid)) << round;
  }
}

TEST_F(StoreOmapWithoutCache, KeysThatWereRemovedAreGone)
{
  for (int round = 0; round < rounds / 3; ++round) {
    fill(round);
    change([&](Transaction& t) { t.omap_rmkeys(ch->cid, oid, {key(2), key(3)}); });
    std::set<std::string> found;
    ASSERT_EQ(0, store->omap_check_keys(ch, oid, {key(1), key(2), key(3)}, &found));
    ASSERT_EQ(std::set<std::string>{key(1)}, found) << round;
  }
}

TEST_F(StoreOmapWithoutCache, RangeThatWasRemovedIsGone)
{
  for (int round = 0; round < rounds / 3; ++round) {
    fill(round);
    change([&](Transaction& t) { t.omap_rmkeyrange(ch->cid, oid, key(2), key(9)); });
    ASSERT_EQ((Keys{key(0), key(1), key(9)}), keys_of(oid)) << round;
  }
}

TEST_F(StoreOmapWithoutCache, ClearedOmapIsEmptyAndTakesNewKeys)
{
  for (int round = 0; round < rounds / 3; ++round) {
    fill(round);
    change([&](Transaction& t) { t.omap_clear(ch->cid, oid); });
    ASSERT_TRUE(keys_of(oid).empty()) << round;
    ASSERT_EQ("", omap_header(ch, oid)) << round;
    change([&](Transaction& t) {
      std::map<std::string, bufferlist> keys{{"new", to_bl("v")}};
      t.omap_clear(ch->cid, oid);
      t.omap_setkeys(ch->cid, oid, keys);
    });
    ASSERT_EQ(Keys{"new"}, keys_of(oid)) << round;
  }
}

TEST_F(StoreOmapWithoutCache, CloneHasEveryChangeOfItsSource)
{
  const ghobject_t copy = object("copy", 1, 0x55);
  const auto clone = [&](Transaction& t) { t.clone(ch->cid, oid, copy); };
  for (int round = 0; round < rounds / 3; ++round) {
    fill(round);
    const std::string value = "new" + std::to_string(round);
    change([&](Transaction& t) {
      std::map<std::string, bufferlist> keys{{key(0), to_bl(value)}};
      t.omap_setkeys(ch->cid, oid, keys);
    });
    change(clone);
    ASSERT_EQ(value, omap(ch, copy)[key(0)]) << round;
    change([&](Transaction& t) {
      bufferlist header = to_bl(value);
      t.omap_setheader(ch->cid, oid, header);
    });
    change(clone);
    ASSERT_EQ(value, omap_header(ch, copy)) << round;
    change([&](Transaction& t) { t.omap_rmkeys(ch->cid, oid, {key(1), key(2)}); });
    change(clone);
    ASSERT_EQ(8u, keys_of(copy).size()) << round;
    change([&](Transaction& t) { t.omap_rmkeyrange(ch->cid, oid, key(3), key(9)); });
    change(clone);
    ASSERT_EQ((Keys{key(0), key(9)}), keys_of(copy)) << round;
    change([&](Transaction& t) { t.omap_clear(ch->cid, oid); });
    change(clone);
    ASSERT_TRUE(keys_of(copy).empty()) << round;
    ASSERT_EQ("", omap_header(ch, copy)) << round;
  }
}
