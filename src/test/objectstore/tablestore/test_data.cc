// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The bytes of objects: sizes, holes, the border between the table and containers, shared slots.
#include <climits>

#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

class StoreData : public StoreFixture {
 protected:
  static constexpr uint32_t hash = 0x77;

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

  void truncate(const ghobject_t& oid, uint64_t size)
  {
    Transaction t;
    t.truncate(ch->cid, oid, size);
    queue(ch, std::move(t));
  }
  void zero(const ghobject_t& oid, uint64_t offset, uint64_t length)
  {
    Transaction t;
    t.zero(ch->cid, oid, offset, length);
    queue(ch, std::move(t));
  }
  void clone(const ghobject_t& from, const ghobject_t& to)
  {
    Transaction t;
    t.clone(ch->cid, from, to);
    queue(ch, std::move(t));
  }
  void clone_range(const ghobject_t& from, const ghobject_t& to, uint64_t src, uint64_t length,
                   uint64_t dst)
  {
    Transaction t;
    t.clone_range(ch->cid, from, to, src, length, dst);
    queue(ch, std::move(t));
  }
  interval_set<uint64_t> extents(const ghobject_t& oid, uint64_t offset = 0,
                                 uint64_t length = INT_MAX)
  {
    std::map<uint64_t, uint64_t> m;
    EXPECT_EQ(0, store->fiemap(ch, oid, offset, length, m));
    interval_set<uint64_t> set;
    for (auto [start, len] : m)
      set.insert(start, len);
    return set;
  }
  /// Now and after a remount.
  void expect_kept(const ghobject_t& oid, const bufferlist& expected)
  {
    EXPECT_TRUE(same(expected, read(ch, oid)));
    remount({&ch});
    EXPECT_EQ(expected.length(), size_of(ch, oid));
    EXPECT_TRUE(same(expected, read(ch, oid)));
  }

  Handle ch;
  const ghobject_t a = object("a", 1, hash);
  const ghobject_t b = object("b", 1, hash);
  const ghobject_t c = object("c", 1, hash);
};

TEST_F(StoreData, ObjectsOfMebibytes)
{
  for (uint64_t size : {MiB, 4 * MiB, 16 * MiB}) {
    write(ch, a, 0, content(size, size));
    write(ch, a, size / 2 + 12345, content(size + 1, 100000));
    bufferlist expected = content(size, size / 2 + 12345);
    expected.append(content(size + 1, 100000));
    expected.append(content(size, size / 2 - 112345, size / 2 + 112345));
    expect_kept(a, expected);
    // Pieces from anywhere.
    for (uint64_t offset : {uint64_t(0), uint64_t(1), size / 3, size / 2 + 12340, size - 4097}) {
      bufferlist piece;
      piece.substr_of(expected, offset, std::min<uint64_t>(70001, size - offset));
      EXPECT_TRUE(same(piece, read(ch, a, offset, 70001))) << offset;
    }
    remove(ch, a);
  }
}

TEST_F(StoreData, ReadsEndAtTheEndOfTheObject)
{
  for (uint64_t size : {uint64_t(5), 2 * KiB, 5 * KiB, 300 * KiB + 1}) {
    write(ch, a, 0, content(size, size));
    bufferlist bl;
    EXPECT_EQ(0, store->read(ch, a, size, 10, bl));
    EXPECT_EQ(0u, bl.length());
    EXPECT_EQ(0, store->read(ch, a, size + 100000, 10, bl));
    EXPECT_EQ(3, store->read(ch, a, size - 3, 4096, bl));
    EXPECT_TRUE(same(content(size, 3, size - 3), bl));
    // Nothing asked for from the start on: all of it.
    EXPECT_EQ(int(size), store->read(ch, a, 0, 0, bl));
    EXPECT_TRUE(same(content(size, size), bl));
    remove(ch, a);
  }
}

TEST_F(StoreData, AppendsOfOddSizesCrossFromTheTableToContainers)
{
  bufferlist expected;
  uint64_t seed = 0;
  for (uint64_t step :
       {1, 7, 100, 511, 1400, 28, 1, 1, 1, 4095, 4097, 3, 8191, 65535, 1, 262144, 5}) {
    const bufferlist piece = content(++seed, step);
    write(ch, a, expected.length(), piece);
    expected.append(piece);
    EXPECT_TRUE(same(expected, read(ch, a))) << "after " << expected.length();
  }
  expect_kept(a, expected);
}

TEST_F(StoreData, ManySmallAppends)
{
  bufferlist expected;
  for (int i = 0; i < 400; ++i) {
    const bufferlist piece = content(i, 333);
    write(ch, a, expected.length(), piece);
    expected.append(piece);
  }
  expect_kept(a, expected);
}

TEST_F(StoreData, SizesAroundTheTablesLimit)
{
  const uint64_t limit = 2048;
  set("tablestore_inline_max", std::to_string(limit));
  for (uint64_t size : {limit - 1, limit, limit + 1, uint64_t(4095), uint64_t(4096)}) {
    const ghobject_t oid = object("size" + std::to_string(size), 1, hash);
    // Grows to it, shrinks to it, overwritten at it.
    write(ch, oid, 0, content(1, size));
    EXPECT_TRUE(same(content(1, size), read(ch, oid)));
    write(ch, oid, size, content(2, 10 * KiB));
    truncate(oid, size);
    EXPECT_TRUE(same(content(1, size), read(ch, oid)));
    write(ch, oid, size / 2, content(3, size - size / 2));
    bufferlist expected = content(1, size / 2);
    expected.append(content(3, size - size / 2));
    expect_kept(oid, expected);
    truncate(oid, 1);
    write(ch, oid, 1, content(1, limit * 3, 1));
    expect_kept(oid, content(1, limit * 3 + 1));
  }
}

TEST_F(StoreData, LimitOfTheTableMayChangeBetweenMounts)
{
  set("tablestore_inline_max", "2048");
  write(ch, a, 0, content(1, 1500));
  write(ch, b, 0, content(2, 3000));
  wait_durable(ch);
  ch.reset();
  umount();
  set("tablestore_inline_max", "0");
  reopen();
  ch = store->open_collection(pg(1));
  EXPECT_TRUE(same(content(1, 1500), read(ch, a)));
  write(ch, a, 100, content(3, 100));
  bufferlist expected = content(1, 100);
  expected.append(content(3, 100));
  expected.append(content(1, 1300, 200));
  expect_kept(a, expected);
  ch.reset();
  umount();
  set("tablestore_inline_max", "8192");
  reopen();
  ch = store->open_collection(pg(1));
  write(ch, b, 100, content(4, 100));
  expected = content(2, 100);
  expected.append(content(4, 100));
  expected.append(content(2, 2800, 200));
  expect_kept(b, expected);
}

TEST_F(StoreData, ShrunkAndGrownAgainReadsZeros)
{
  for (uint64_t size : {uint64_t(1500), 10 * KiB, 700 * KiB}) {
    for (uint64_t keep : {uint64_t(0), uint64_t(1), size / 2 - 1, size - 1}) {
      write(ch, a, 0, content(size, size));
      truncate(a, keep);
      truncate(a, size);
      bufferlist expected = content(size, keep);
      expected.append_zero(size - keep);
      EXPECT_TRUE(same(expected, read(ch, a))) << size << " kept " << keep;
      // The gap before a later write is as empty.
      truncate(a, keep);
      write(ch, a, size, content(9, 10));
      expected.append(content(9, 10));
      EXPECT_TRUE(same(expected, read(ch, a))) << size << " kept " << keep;
    }
    remount({&ch});
    bufferlist expected = content(size, size - 1);
    expected.append_zero(1);
    expected.append(content(9, 10));
    EXPECT_TRUE(same(expected, read(ch, a)));
    remove(ch, a);
  }
}

TEST_F(StoreData, HolesReadAsZeros)
{
  write(ch, a, 5 * MiB + 17, content(1, 100));
  bufferlist expected = zeros(5 * MiB + 17);
  expected.append(content(1, 100));
  EXPECT_TRUE(same(expected, read(ch, a)));
  zero(b, 0, 1 * MiB);
  EXPECT_TRUE(same(zeros(1 * MiB), read(ch, b)));
  write(ch, b, 300000, content(2, 50000));
  zero(b, 310001, 9999);
  expected = zeros(300000);
  expected.append(content(2, 10001));
  expected.append_zero(9999);
  expected.append(content(2, 30000, 20000));
  expected.append_zero(MiB - 350000);
  expect_kept(b, expected);
}

TEST_F(StoreData, FiemapNamesWhatWasWrittenAndNothingElse)
{
  if (store_type() == "memstore" || store_type() == "kstore")
    GTEST_SKIP() << "knows no holes";
  // Block by block, so that a store may not round.
  write(ch, a, 64 * KiB, content(1, 16 * KiB));
  write(ch, a, 1 * MiB, content(2, 128 * KiB));
  truncate(a, 4 * MiB);
  interval_set<uint64_t> expected;
  expected.insert(64 * KiB, 16 * KiB);
  expected.insert(1 * MiB, 128 * KiB);
  EXPECT_EQ(expected, extents(a));
  zero(a, 1 * MiB + 32 * KiB, 64 * KiB);
  expected.erase(1 * MiB + 32 * KiB, 64 * KiB);
  EXPECT_EQ(expected, extents(a));
  remount({&ch});
  EXPECT_EQ(expected, extents(a));
  // Only what was asked for.
  interval_set<uint64_t> clipped;
  clipped.insert(70 * KiB, 10 * KiB);
  clipped.insert(1 * MiB, 5000);
  EXPECT_EQ(clipped, extents(a, 70 * KiB, 1 * MiB + 5000 - 70 * KiB));
  EXPECT_TRUE(extents(a, 2 * MiB, 1 * MiB).empty());
  EXPECT_TRUE(extents(a, 5 * MiB, 1 * MiB).empty());

  bufferlist encoded;
  EXPECT_EQ(0, store->fiemap(ch, a, 0, 4 * MiB, encoded));
  std::map<uint64_t, uint64_t> decoded;
  auto p = encoded.cbegin();
  decode(decoded, p);
  interval_set<uint64_t> from_bl;
  for (auto [start, len] : decoded)
    from_bl.insert(start, len);
  EXPECT_EQ(expected, from_bl);
}

TEST_F(StoreData, FiemapOfInlineAndMissingObjects)
{
  if (store_type() == "memstore" || store_type() == "kstore")
    GTEST_SKIP() << "knows no holes";
  write(ch, a, 0, content(1, 700));
  interval_set<uint64_t> expected;
  expected.insert(0, 700);
  EXPECT_EQ(expected, extents(a));
  touch(ch, b);
  EXPECT_TRUE(extents(b).empty());
  std::map<uint64_t, uint64_t> m;
  EXPECT_EQ(-ENOENT, store->fiemap(ch, c, 0, 100, m));
}

TEST_F(StoreData, ReadvEqualsTheReadsOfItsPieces)
{
  write(ch, a, 0, content(1, 900 * KiB));
  zero(a, 100 * KiB, 300 * KiB);
  write(ch, b, 0, content(2, 1000));
  for (int pass = 0; pass < 2; ++pass) {
    for (const auto& oid : {a, b}) {
      interval_set<uint64_t> pieces;
      pieces.insert(0, 10);
      pieces.insert(100, 500);
      if (oid == a) {
        pieces.insert(4095, 2);
        pieces.insert(90 * KiB, 20 * KiB);
        pieces.insert(390 * KiB + 1, 300 * KiB);
      }
      bufferlist expected;
      for (auto p = pieces.begin(); p != pieces.end(); ++p)
        expected.append(read(ch, oid, p.get_start(), p.get_len()));
      bufferlist found;
      EXPECT_EQ(int(expected.length()), store->readv(ch, oid, pieces, found));
      EXPECT_TRUE(same(expected, found));
    }
    remount({&ch});
  }
  interval_set<uint64_t> some;
  some.insert(0, 10);
  bufferlist none;
  EXPECT_EQ(-ENOENT, store->readv(ch, c, some, none));
}

TEST_F(StoreData, ReadvCutsAndDropsPiecesPastTheEnd)
{
  if (store_type() == "bluestore")
    GTEST_SKIP() << "asserts that there are none";
  write(ch, b, 0, content(2, 1000));
  interval_set<uint64_t> pieces;
  pieces.insert(990, 20);
  pieces.insert(2000, 10);
  bufferlist found;
  EXPECT_EQ(10, store->readv(ch, b, pieces, found));
  EXPECT_TRUE(same(content(2, 10, 990), found));
  EXPECT_EQ(1, pieces.num_intervals());
  EXPECT_EQ(990u, pieces.range_start());
  EXPECT_EQ(1000u, pieces.range_end());
}

TEST_F(StoreData, WriteAfterCloneLeavesTheOtherSideAlone)
{
  const uint64_t size = 600 * KiB;
  for (int side = 0; side < 3; ++side) {
    write(ch, a, 0, content(1, size));
    clone(a, b);
    bufferlist of_a = content(1, size), of_b = content(1, size);
    auto overwrite = [&](const ghobject_t& oid, uint64_t seed, bufferlist* expected) {
      write(ch, oid, 100001, content(seed, 50000));
      write(ch, oid, 256 * KiB, content(seed + 1, 4096));
      bufferlist bl = content(1, 100001);
      bl.append(content(seed, 50000));
      bl.append(content(1, 256 * KiB - 150001, 150001));
      bl.append(content(seed + 1, 4096));
      bl.append(content(1, size - 260 * KiB, 260 * KiB));
      *expected = bl;
    };
    if (side != 1)
      overwrite(a, 10, &of_a);
    if (side != 0)
      overwrite(b, 20, &of_b);
    EXPECT_TRUE(same(of_a, read(ch, a))) << side;
    EXPECT_TRUE(same(of_b, read(ch, b))) << side;
    remount({&ch});
    EXPECT_TRUE(same(of_a, read(ch, a))) << side;
    EXPECT_TRUE(same(of_b, read(ch, b))) << side;
    remove(ch, side == 1 ? b : a);
    EXPECT_TRUE(same(side == 1 ? of_a : of_b, read(ch, side == 1 ? a : b))) << side;
    remount({&ch});
    EXPECT_TRUE(same(side == 1 ? of_a : of_b, read(ch, side == 1 ? a : b))) << side;
    remove(ch, side == 1 ? a : b);
  }
}

TEST_F(StoreData, ChainOfClonesSurvivesTheRemovalOfAnyMember)
{
  constexpr int members = 6;
  auto member = [](int i) { return object("member" + std::to_string(i), 1, hash); };
  const uint64_t size = 300 * KiB;
  for (int removed = 0; removed < members; ++removed) {
    write(ch, member(0), 0, content(1, size));
    for (int i = 1; i < members; ++i) {
      clone(member(i - 1), member(i));
      write(ch, member(i), i * 10000, content(i + 100, 5000));
    }
    remove(ch, member(removed));
    if (removed % 2)
      remount({&ch});
    // New data must not land on what a survivor still uses.
    write(ch, c, 0, content(55, 2 * MiB));
    wait_durable(ch);
    bufferlist expected = content(1, size);
    for (int i = 0; i < members; ++i) {
      if (i > 0) {
        bufferlist next;
        next.substr_of(expected, 0, i * 10000);
        next.append(content(i + 100, 5000));
        next.append(content(1, size - i * 10000 - 5000, i * 10000 + 5000));
        expected = next;
      }
      if (i != removed) {
        EXPECT_TRUE(same(expected, read(ch, member(i)))) << i << " without " << removed;
      }
    }
    Transaction t;
    for (int i = 0; i < members; ++i)
      t.remove(ch->cid, member(i));
    t.remove(ch->cid, c);
    queue(ch, std::move(t));
  }
}

TEST_F(StoreData, CloneRangeOfAnyAlignment)
{
  const uint64_t size = 900 * KiB;
  struct Range { uint64_t src, length, dst; };
  const Range ranges[] = {
    {0, 64 * KiB, 0},            {64 * KiB, 64 * KiB, 128 * KiB}, {4096, 4096, 8192},
    {1, 4095, 1},                {100, 10, 100},                  {4095, 2, 8191},
    {256 * KiB - 1, 2, 0},       {200 * KiB, 300 * KiB, 100 * KiB}, {5000, 100000, 700001},
    {0, size, 0},                {size - 1, 1, 2 * MiB},          {0, 1000, 3 * MiB + 7},
  };
  write(ch, a, 0, content(1, size));
  for (const auto& r : ranges) {
    write(ch, b, 0, content(2, 500 * KiB));
    clone_range(a, b, r.src, r.length, r.dst);
    bufferlist expected = content(2, std::min(r.dst, 500 * KiB));
    expected.append_zero(r.dst - expected.length());
    expected.append(content(1, r.length, r.src));
    if (expected.length() < 500 * KiB)
      expected.append(content(2, 500 * KiB - expected.length(), expected.length()));
    EXPECT_TRUE(same(expected, read(ch, b))) << r.src << "+" << r.length << " to " << r.dst;
    // What was shared is no longer when one side is written.
    write(ch, a, r.src, content(3, r.length));
    EXPECT_TRUE(same(expected, read(ch, b))) << r.src << "+" << r.length << " to " << r.dst;
    write(ch, a, r.src, content(1, r.length, r.src));
    remount({&ch});
    EXPECT_TRUE(same(expected, read(ch, b))) << r.src << "+" << r.length << " to " << r.dst;
    EXPECT_TRUE(same(content(1, size), read(ch, a)));
    remove(ch, b);
  }
}

TEST_F(StoreData, CloneRangeOfHolesReplacesWhatWasThere)
{
  write(ch, a, 0, content(1, 64 * KiB));
  write(ch, a, 512 * KiB, content(2, 64 * KiB));
  write(ch, b, 0, content(3, 600 * KiB));
  clone_range(a, b, 32 * KiB, 512 * KiB, 32 * KiB);
  bufferlist expected = content(3, 32 * KiB);
  expected.append(content(1, 32 * KiB, 32 * KiB));
  expected.append_zero(448 * KiB);
  expected.append(content(2, 32 * KiB));
  expected.append(content(3, 56 * KiB, 544 * KiB));
  expect_kept(b, expected);
  // Of a hole only: the target grows to its end.
  clone_range(a, c, 128 * KiB, 100 * KiB, 10 * KiB);
  expect_kept(c, zeros(110 * KiB));
}

TEST_F(StoreData, CloneRangeBetweenSmallObjects)
{
  if (store_type() == "bluestore")
    GTEST_SKIP() << "reads stale data through clones whose source is on its way to the disk";
  write(ch, a, 0, content(1, 1000));
  write(ch, b, 0, content(2, 1500));
  clone_range(a, b, 100, 300, 200);
  bufferlist expected = content(2, 200);
  expected.append(content(1, 300, 100));
  expected.append(content(2, 1000, 500));
  expect_kept(b, expected);
  // From the table into containers and back.
  write(ch, c, 0, content(3, 100 * KiB));
  clone_range(a, c, 0, 1000, 50000);
  bufferlist big = content(3, 50000);
  big.append(content(1, 1000));
  big.append(content(3, 100 * KiB - 51000, 51000));
  expect_kept(c, big);
  clone_range(c, a, 50500, 100, 0);
  expected = content(1, 100, 500);
  expected.append(content(1, 900, 100));
  expect_kept(a, expected);
}

TEST_F(StoreData, SharedRangesAreReturnedWhenTheLastUserGoes)
{
  store_statfs_t before;
  EXPECT_EQ(0, store->statfs(&before));
  write(ch, a, 0, content(1, 4 * MiB));
  for (int i = 0; i < 10; ++i)
    clone(a, object("clone" + std::to_string(i), 1, hash));
  clone_range(a, c, 0, 2 * MiB, 1 * MiB);
  wait_durable(ch);
  if (is_tablestore()) {
    // Eleven objects and a half, and the space of one.
    store_statfs_t shared;
    EXPECT_TRUE(eventually([&] {
      EXPECT_EQ(0, store->statfs(&shared));
      return shared.available < before.available;
    }));
    EXPECT_GE(shared.allocated, int64_t(4 * MiB));
    EXPECT_LT(before.available - shared.available, 24 * MiB);
  }
  remove(ch, a);
  remove(ch, c);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(same(content(1, 4 * MiB), read(ch, object("clone" + std::to_string(i), 1, hash))));
    remove(ch, object("clone" + std::to_string(i), 1, hash));
  }
  wait_durable(ch);
  remount({&ch});
  store_statfs_t after;
  EXPECT_EQ(0, store->statfs(&after));
  if (store_type() != "memstore") {
    EXPECT_EQ(0, after.allocated);
    EXPECT_EQ(0, after.data_stored);
  }
}
