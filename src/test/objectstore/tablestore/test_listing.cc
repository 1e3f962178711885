// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// collection_list(): order, bounds, pieces.
#include <algorithm>
#include <climits>
#include <random>

#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;
using Objects = std::vector<ghobject_t>;

namespace {

/// Says where two lists of objects begin to differ.
::testing::AssertionResult same(const Objects& expected,
                                const Objects& found)
{
  if (expected == found)
    return ::testing::AssertionSuccess();
  const size_t common = std::min(expected.size(), found.size());
  size_t at = 0;
  while (at < common && expected[at] == found[at])
    ++at;
  auto failure = ::testing::AssertionFailure();
  failure << "expected " << expected.size() << " objects, found " << found.size()
          << "; the first difference is number " << at;
  if (at < expected.size())
    failure << ", expected " << expected[at];
  if (at < found.size())
    failure << ", found " << found[at];
  return failure;
}

}  // namespace

class StoreListing : public StoreFixture {
 protected:
  static constexpr int64_t pool = 3;

  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }

  struct Piece {
    Objects objects;
    ghobject_t next;
  };
  Piece list_range(const ghobject_t& start, const ghobject_t& end, int max)
  {
    Piece piece;
    EXPECT_EQ(0, store->collection_list(ch, start, end, max, &piece.objects, &piece.next));
    return piece;
  }
  /// The whole collection in pieces of `max`, each from where the one before ended.
  Objects list_in_pieces(int max)
  {
    Objects all;
    ghobject_t start;
    while (!start.is_max()) {
      Piece piece = list_range(start, ghobject_t::get_max(), max);
      EXPECT_LE(piece.objects.size(), size_t(max));
      EXPECT_TRUE(!piece.objects.empty() || piece.next.is_max());
      all.insert(all.end(), piece.objects.begin(), piece.objects.end());
      start = piece.next;
    }
    return all;
  }
  /// Makes them in another order than that of the listing.
  void make(Objects oids)
  {
    std::shuffle(oids.begin(), oids.end(), std::mt19937(1));
    Transaction t;
    for (const auto& oid : oids)
      t.touch(ch->cid, oid);
    queue(ch, std::move(t));
  }
  /// Objects of every kind, in the order in which they are to be listed.
  Objects mixed_objects()
  {
    Objects temp;
    Objects normal;
    for (uint32_t hash : {0u, 1u, 0x80000000u, 0x12345678u, 0xfffffffeu, 0xffffffffu}) {
      if (hash != 0xffffffff)
        temp.push_back(temp_object("temp", pool, hash));
      for (const char* name : {"a", "b", "ab", "\x7f", "\x80", "\xff", "\xc3\xa4", "a!b%"}) {
        normal.push_back(object(name, pool, hash));
      }
      for (const char* nspace : {"ns", "\xfe"}) {
        normal.push_back(
            ghobject_t(hobject_t(object_t("x"), "", CEPH_NOSNAP, hash, pool, nspace)));
      }
      for (const char* key : {"key", "zkey"}) {
        normal.push_back(ghobject_t(hobject_t(object_t("x"), key, CEPH_NOSNAP, hash, pool, "")));
      }
      for (uint64_t snap : {uint64_t(1), uint64_t(0x100), uint64_t(CEPH_SNAPDIR)}) {
        normal.push_back(ghobject_t(hobject_t(object_t("a"), "", snap, hash, pool, "")));
      }
      for (uint64_t generation : {1, 255, 256}) {
        ghobject_t oid = object("a", pool, hash);
        oid.generation = generation;
        normal.push_back(oid);
      }
    }
    std::sort(temp.begin(), temp.end());
    std::sort(normal.begin(), normal.end());
    temp.insert(temp.end(), normal.begin(), normal.end());
    return temp;
  }

  Handle ch;
};

TEST_F(StoreListing, OrderIsThatOfTheObjectsWithTemporaryOnesFirst)
{
  ch = make_collection(pg(pool));
  const auto expected = mixed_objects();
  make(expected);
  EXPECT_TRUE(same(expected, list(ch)));
  remount({&ch});
  EXPECT_TRUE(same(expected, list(ch)));
}

TEST_F(StoreListing, PiecesOfAnySizeAddUpToTheWhole)
{
  ch = make_collection(pg(pool));
  const auto expected = mixed_objects();
  make(expected);
  for (int max : {1, 2, 3, 7, int(expected.size()) - 1, int(expected.size())})
    EXPECT_TRUE(same(expected, list_in_pieces(max))) << "max " << max;
}

TEST_F(StoreListing, NextIsTheFirstObjectNotReturned)
{
  ch = make_collection(pg(pool));
  const auto all = mixed_objects();
  make(all);
  for (size_t max = 1; max < all.size(); ++max) {
    Piece piece = list_range(ghobject_t(), ghobject_t::get_max(), max);
    EXPECT_EQ(max, piece.objects.size());
    EXPECT_EQ(all[max], piece.next) << max;
  }
  EXPECT_TRUE(list_range(ghobject_t(), ghobject_t::get_max(), all.size()).next.is_max());
}

TEST_F(StoreListing, StartAndEndBoundTheRange)
{
  ch = make_collection(pg(pool));
  const auto all = mixed_objects();
  make(all);
  const size_t temps = std::count_if(all.begin(), all.end(),
                                     [](const auto& o) { return o.hobj.is_temp(); });
  for (size_t i = temps; i < all.size(); ++i) {
    Piece from = list_range(all[i], ghobject_t::get_max(), INT_MAX);
    EXPECT_TRUE(same(Objects(all.begin() + i, all.end()), from.objects));
    Piece until = list_range(ghobject_t(), all[i], INT_MAX);
    EXPECT_TRUE(same(Objects(all.begin(), all.begin() + i), until.objects));
    EXPECT_EQ(all[i], until.next);
    for (size_t j = i; j < std::min(i + 5, all.size()); ++j) {
      Piece between = list_range(all[i], all[j], INT_MAX);
      EXPECT_TRUE(same(Objects(all.begin() + i, all.begin() + j), between.objects));
    }
  }
}

TEST_F(StoreListing, TemporaryRangeIsListedAlone)
{
  ch = make_collection(pg(pool));
  const auto all = mixed_objects();
  make(all);
  const size_t temps = std::count_if(all.begin(), all.end(),
                                     [](const auto& o) { return o.hobj.is_temp(); });
  // From a temporary object on, up to one.
  Piece from = list_range(all[2], ghobject_t::get_max(), INT_MAX);
  EXPECT_TRUE(same(Objects(all.begin() + 2, all.end()), from.objects));
  Piece between = list_range(all[1], all[temps - 1], INT_MAX);
  EXPECT_TRUE(same(Objects(all.begin() + 1, all.begin() + temps - 1), between.objects));
  EXPECT_EQ(all[temps - 1], between.next);
}

TEST_F(StoreListing, StartNeedNotExist)
{
  ch = make_collection(pg(pool));
  const auto all = mixed_objects();
  make(all);
  for (const auto& oid : all) {
    if (oid.hobj.is_temp())
      continue;
    const ghobject_t boundary = oid.get_boundary();
    const auto first = std::find_if(all.begin(), all.end(), [&](const auto& o) {
      return !o.hobj.is_temp() && o >= boundary;
    });
    EXPECT_TRUE(same(Objects(first, all.end()),
                     list_range(boundary, ghobject_t::get_max(), INT_MAX).objects));
    ghobject_t after = oid;
    after.hobj.oid.name += '\0';
    const auto second = std::find_if(all.begin(), all.end(), [&](const auto& o) {
      return !o.hobj.is_temp() && o >= after;
    });
    EXPECT_TRUE(same(Objects(second, all.end()),
                     list_range(after, ghobject_t::get_max(), INT_MAX).objects));
  }
}

TEST_F(StoreListing, RangesOutsideOfTheCollectionAreEmpty)
{
  ch = make_collection(pg(pool, 1), 1);
  make({object("mine", pool, 1), object("mine too", pool, 3)});
  Handle other = make_collection(pg(pool, 0), 1);
  touch(other, object("not mine", pool, 2));
  EXPECT_EQ(2u, list(ch).size());
  EXPECT_EQ(1u, list(other).size());
  const ghobject_t beyond = object("x", pool + 1, 0);
  EXPECT_TRUE(list_range(beyond, ghobject_t::get_max(), 10).objects.empty());
  const ghobject_t before = object("x", pool - 1, 0);
  EXPECT_EQ(2u, list_range(before, ghobject_t::get_max(), 10).objects.size());
  Piece nothing = list_range(ghobject_t::get_max(), ghobject_t::get_max(), 10);
  EXPECT_TRUE(nothing.objects.empty());
  EXPECT_TRUE(nothing.next.is_max());
}

TEST_F(StoreListing, LastTemporaryObjectIsIncluded)
{
  if (store_type() == "bluestore")
    GTEST_SKIP() << "leaves it out";
  ch = make_collection(pg(pool));
  const Objects both{temp_object("temp", pool, 0xffffffff),
                                     object("normal", pool, 0)};
  make(both);
  EXPECT_EQ(both, list(ch));
  EXPECT_EQ(both, list_in_pieces(1));
}

TEST_F(StoreListing, LastHashOfTheLastCollectionIsIncluded)
{
  ch = make_collection(pg(pool, 0x3ff), 10);
  make({object("last", pool, 0xffffffff), object("first", pool, 0x3ff)});
  EXPECT_EQ(2u, list(ch).size());
  EXPECT_EQ(2u, list_in_pieces(1).size());
  ch = make_collection(coll_t::meta());
  make({object("meta", -1, 0xffffffff)});
  EXPECT_EQ(1u, list(ch).size());
}

TEST_F(StoreListing, ShardsOfErasureCodedPoolsAreApart)
{
  auto of_shard = [](int shard, const char* name) {
    ghobject_t oid = object(name, pool, 0x11);
    oid.shard_id = shard_id_t(shard);
    return oid;
  };
  std::vector<Handle> shards;
  for (int shard : {0, 1, 2}) {
    ch = make_collection(coll_t(spg_t(pg_t(0, pool), shard_id_t(shard))));
    make({of_shard(shard, "a"), of_shard(shard, "b")});
    shards.push_back(ch);
  }
  for (int shard : {0, 1, 2})
    EXPECT_EQ((Objects{of_shard(shard, "a"), of_shard(shard, "b")}),
              list(shards[shard]));
}

TEST_F(StoreListing, UncommittedChangesBetweenPiecesAreSeen)
{
  ch = make_collection(pg(pool));
  Objects all;
  for (uint32_t i = 0; i < 100; ++i)
    all.push_back(object("o" + std::to_string(i), pool, i * 0x01000193));
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); i += 2)
    touch(ch, all[i]);
  wait_durable(ch);
  // One piece at a time: before each, the object after the next appears and the one behind it goes.
  Objects seen;
  ghobject_t start;
  for (size_t i = 0; !start.is_max(); ++i) {
    if (2 * i + 1 < all.size())
      touch(ch, all[2 * i + 1]);
    if (2 * i + 2 < all.size())
      remove(ch, all[2 * i + 2]);
    Piece piece = list_range(start, ghobject_t::get_max(), 1);
    seen.insert(seen.end(), piece.objects.begin(), piece.objects.end());
    start = piece.next;
  }
  Objects expected{all[0]};
  for (size_t i = 1; i < all.size(); i += 2)
    expected.push_back(all[i]);
  // `next` named an object that was gone when the next piece began: nothing else may be skipped.
  EXPECT_TRUE(same(expected, list(ch)));
  for (const auto& oid : seen)
    EXPECT_TRUE(std::find(all.begin(), all.end(), oid) != all.end());
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.end(), std::adjacent_find(seen.begin(), seen.end()));
}

TEST_F(StoreListing, NextMayBeNull)
{
  ch = make_collection(pg(pool));
  make({object("a", pool, 1), object("b", pool, 2)});
  Objects ls;
  EXPECT_EQ(0, store->collection_list(ch, ghobject_t(), ghobject_t::get_max(), 1, &ls, nullptr));
  EXPECT_EQ(1u, ls.size());
}

TEST_F(StoreListing, TenThousandObjectsOfManyTransactions)
{
  ch = make_collection(pg(pool));
  Objects all;
  for (int i = 0; i < 10000; ++i)
    all.push_back(object("object." + std::to_string(i), pool));
  for (size_t i = 0; i < all.size(); i += 100) {
    Transaction t;
    for (size_t j = i; j < i + 100; ++j)
      t.touch(ch->cid, all[j]);
    queue(ch, std::move(t));
  }
  std::sort(all.begin(), all.end());
  EXPECT_TRUE(same(all, list_in_pieces(64)));
  remount({&ch});
  EXPECT_TRUE(same(all, list_in_pieces(300)));
}
