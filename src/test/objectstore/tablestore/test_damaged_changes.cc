// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Changes of objects of which something cannot be read. A transaction has no way to fail; what is
// lost stays lost, and the rest of the object, and the OSD, live on.

#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/object_data_fixture.h"

namespace tablestore {

class DamagedChanges : public ObjectDataFixture {
 protected:
  static constexpr uint64_t size = 100000;
  static constexpr uint64_t rotten = 20480;   ///< a block of "a"

  /// An object with one rotten block.
  void make_rotten(const std::string& name = "a")
  {
    write(name, 0, pattern(size, 1));
    rot(name, rotten);
  }
  void rot(const std::string& name, uint64_t offset)
  {
    engine->drain();
    cache->clear();
    uint64_t at = 0;
    for (const MappedExtent& e : extents(name)) {
      if (offset < at + e.physical.length_bytes())
        return damage(e.physical, offset - at);
      at += e.physical.length_bytes();
    }
    FAIL() << "no block at " << offset;
  }
  /// The row of an object's inline data is another one.
  void rot_inline(const std::string& name)
  {
    replace_row(Family::data, inline_key(object(name)->nid));
    evict(name);
  }
  void rot_shard(const std::string& name, uint32_t index)
  {
    replace_row(Family::object, shard_key(object(name)->nid, index));
    evict(name);
  }
  void replace_row(Family family, const std::string& key,
                   const std::string& value = "not what it was")
  {
    engine->drain();
    auto damaging = std::make_shared<Txn>();
    damaging->put(family, key, value);
    commit(damaging);
  }
  int error_of(const std::string& name, uint64_t offset, uint64_t length)
  {
    ceph::buffer::list out;
    return std::min(0, data->read(object(name), offset, length, out, 0));
  }
  /// The rotten block fails, before and after a restart; around it are the bytes of `expected`.
  void expect_only_that_block_fails(const std::string& name, const std::string& expected)
  {
    for (bool again : {false, true}) {
      EXPECT_EQ(expected.substr(0, rotten), read(name, 0, rotten));
      for (uint64_t offset = rotten; offset < std::min(rotten + 4096, expected.size());
           offset += 512)
        EXPECT_EQ(-EIO, error_of(name, offset, 1)) << offset;
      if (expected.size() > rotten + 4096) {
        EXPECT_EQ(expected.substr(rotten + 4096), read(name, rotten + 4096, size * 2));
      }
      EXPECT_EQ(-EIO, error_of(name, 0, expected.size()));
      if (!again)
        reopen(false);
    }
    check_ownership();
  }
};

TEST_F(DamagedChanges, APartOfARottenBlockIsOverwritten)
{
  make_rotten();
  std::string expected = pattern(size, 1);
  write("a", rotten + 100, pattern(200, 2));
  expect_only_that_block_fails("a", expected);
  write("a", rotten - 50, pattern(100, 3));     // its head
  expected.replace(rotten - 50, 50, pattern(100, 3).substr(0, 50));
  write("a", rotten + 4000, pattern(1000, 4));  // its tail
  expected.replace(rotten + 4096, 904, pattern(1000, 4).substr(96));
  expect_only_that_block_fails("a", expected);
}

TEST_F(DamagedChanges, AnOverwriteOfAllOfTheBlockHealsIt)
{
  make_rotten();
  write("a", rotten + 100, pattern(200, 2));
  const std::string healthy = pattern(4096, 3);
  write("a", rotten, healthy);
  EXPECT_EQ(std::string(pattern(size, 1)).replace(rotten, 4096, healthy), read_all("a"));
  reopen(false);
  EXPECT_EQ(std::string(pattern(size, 1)).replace(rotten, 4096, healthy), read_all("a"));
}

TEST_F(DamagedChanges, AHoleInPlaceOfTheBlockHealsIt)
{
  make_rotten();
  zero("a", rotten + 10, 20);
  EXPECT_EQ(-EIO, error_of("a", rotten, 1));
  zero("a", rotten - 10, 8192);
  EXPECT_EQ(std::string(pattern(size, 1)).replace(rotten - 10, 8192, std::string(8192, '\0')),
            read_all("a"));
}

TEST_F(DamagedChanges, AClonedLostBlockIsLostInTheCloneToo)
{
  make_rotten();
  const std::string expected = pattern(size, 1);
  write("a", rotten + 100, pattern(200, 2));
  clone_range("a", "b", 0, size, 0);
  expect_only_that_block_fails("b", expected);
  write("a", rotten, pattern(4096, 3));
  EXPECT_EQ(0, error_of("a", 0, size));
  expect_only_that_block_fails("b", expected);
}

TEST_F(DamagedChanges, ACopyOfARottenBlockIsLost)
{
  make_rotten();
  const std::string bytes = pattern(size, 1);
  // Not where blocks begin: it is copied. The bytes of the rotten block lie in two.
  clone_range("a", "b", 1000, size - 1000, 0);
  EXPECT_EQ(bytes.substr(1000, 16384), read("b", 0, 16384));
  EXPECT_EQ(-EIO, error_of("b", 16384, 4096));
  EXPECT_EQ(-EIO, error_of("b", rotten, 1));
  EXPECT_EQ(bytes.substr(1000 + rotten + 4096), read("b", rotten + 4096, size));
  auto txn = begin();
  ASSERT_EQ(0, data->copy_within(*txn, object("a"), rotten, 4096, 50000));
  submit(txn);
  EXPECT_EQ(-EIO, error_of("a", 50000, 1));
  EXPECT_EQ(bytes.substr(57344), read("a", 57344, size));
  check_ownership();
}

TEST_F(DamagedChanges, AnObjectIsCutInTheMiddleOfARottenBlock)
{
  make_rotten();
  truncate("a", rotten + 300);
  expect_only_that_block_fails("a", pattern(size, 1).substr(0, rotten + 300));
  truncate("a", size);
  EXPECT_EQ(-EIO, error_of("a", rotten, 4096));
  EXPECT_EQ(std::string(size - rotten - 4096, '\0'), read("a", rotten + 4096, size));
  truncate("a", rotten);
  EXPECT_EQ(pattern(size, 1).substr(0, rotten), read_all("a"));
}

TEST_F(DamagedChanges, APartOfRottenInlineDataIsOverwritten)
{
  write("a", 0, pattern(1000, 1));
  rot_inline("a");
  write("a", 100, pattern(10, 2));
  for (bool again : {false, true}) {
    EXPECT_EQ(-EIO, error_of("a", 0, 1));
    EXPECT_EQ(-EIO, error_of("a", 100, 10)) << "one checksum";
    if (!again)
      reopen(false);
  }
  EXPECT_EQ(1000u, object("a")->size);
  check_ownership();
  truncate("a", 500);
  EXPECT_EQ(-EIO, error_of("a", 0, 500));
  clone_range("a", "b", 0, 500, 0);
  EXPECT_EQ(-EIO, error_of("b", 0, 500));
  write("a", 0, pattern(500, 3));
  EXPECT_EQ(pattern(500, 3), read_all("a"));
  reopen(false);
  EXPECT_EQ(pattern(500, 3), read_all("a"));
  EXPECT_EQ(-EIO, error_of("b", 0, 500));
}

TEST_F(DamagedChanges, RottenInlineDataBecomesBlocks)
{
  write("a", 0, pattern(5000, 1));
  rot_inline("a");
  write("a", 4500, pattern(50000, 2));
  for (bool again : {false, true}) {
    EXPECT_EQ(-EIO, error_of("a", 0, 1));
    EXPECT_EQ(-EIO, error_of("a", 4499, 1));
    EXPECT_EQ(pattern(50000, 2).substr(8192 - 4500), read("a", 8192, size));
    if (!again)
      reopen(false);
  }
  write("a", 0, pattern(8192, 3));
  EXPECT_EQ(pattern(8192, 3), read("a", 0, 8192));
  check_ownership();
  write("b", 0, pattern(5000, 1));
  rot_inline("b");
  truncate("b", 100000);
  EXPECT_EQ(-EIO, error_of("b", 0, 1));
  EXPECT_EQ(std::string(100000 - 8192, '\0'), read("b", 8192, size));
}

TEST_F(DamagedChanges, OfADamagedPartOfTheExtentMapTheRestIsLost)
{
  write("a", 0, pattern(1 << 20, 1));
  rot_shard("a", 1);
  const uint64_t start = shard_span_bytes;
  write("a", start + 8192, pattern(8192, 2));
  for (bool again : {false, true}) {
    EXPECT_EQ(pattern(1 << 20, 1).substr(0, start), read("a", 0, start));
    EXPECT_EQ(-EIO, error_of("a", start, 8192));
    EXPECT_EQ(pattern(8192, 2), read("a", start + 8192, 8192));
    EXPECT_EQ(-EIO, error_of("a", start + 16384, 1));
    EXPECT_EQ(-EIO, error_of("a", 2 * start - 1, 1));
    EXPECT_EQ(pattern(1 << 20, 1).substr(2 * start), read("a", 2 * start, 1 << 20));
    if (!again)
      reopen(false);
  }
  clone_range("a", "b", 0, 1 << 20, 0);
  EXPECT_EQ(-EIO, error_of("b", start, 1));
  EXPECT_EQ(pattern(8192, 2), read("b", start + 8192, 8192));
  write("a", 0, pattern(1 << 20, 3));
  EXPECT_EQ(pattern(1 << 20, 3), read_all("a"));
}

// Its row may be readable in a moment: only the clone lacks what it says.
TEST_F(DamagedChanges, ACloneTakesNothingFromAnObjectWhoseExtentMapCannotBeReadNow)
{
  const uint64_t start = shard_span_bytes, all = 4 * shard_span_bytes;
  for (const uint64_t to_offset : {uint64_t(0), uint64_t(512)}) {
    SCOPED_TRACE(to_offset);
    write("a", 0, pattern(all, 1));
    engine->drain();
    const std::string key = shard_key(object("a")->nid, 1);
    std::string row;
    ASSERT_TRUE(engine->get(Family::object, key, &row).take());
    rot_shard("a", 1);
    clone_range("a", "b", 0, all, to_offset);
    EXPECT_EQ(-EIO, error_of("a", start, 1));
    replace_row(Family::object, key, row);
    evict("a");
    EXPECT_EQ(pattern(all, 1), read_all("a"));
    // Where it is copied, a block with some lost bytes is lost.
    const uint64_t known = start - to_offset, again = 2 * start + 4096 - to_offset;
    EXPECT_EQ(pattern(all, 1).substr(0, known), read("b", to_offset, known));
    EXPECT_EQ(-EIO, error_of("b", start + 4096, 1));
    EXPECT_EQ(-EIO, error_of("b", 2 * start - 1, 1));
    EXPECT_EQ(pattern(all, 1).substr(again), read("b", again + to_offset, all));
    reopen(false);
    EXPECT_EQ(pattern(all, 1), read_all("a"));
    EXPECT_EQ(-EIO, error_of("b", start + 4096, 1));
    check_ownership();
    remove("b");
    remove("a");
    check_ownership();
  }
}

TEST_F(DamagedChanges, AnObjectWithADamagedExtentMapIsClonedAndCut)
{
  write("a", 0, pattern(1 << 20, 1));
  rot_shard("a", 0);
  clone_range("a", "b", 0, 1 << 20, 0);
  EXPECT_EQ(-EIO, error_of("b", 0, 1));
  EXPECT_EQ(pattern(1 << 20, 1).substr(shard_span_bytes), read("b", shard_span_bytes, 1 << 20));
  write("c", 0, pattern(1 << 20, 1));
  rot_shard("c", 0);
  truncate("c", 10000);   // what is left goes into the onode's row
  EXPECT_EQ(-EIO, error_of("c", 0, 1));
  EXPECT_EQ(-EIO, error_of("c", 9999, 1));
  reopen(false);
  EXPECT_EQ(-EIO, error_of("c", 0, 1));
  write("c", 0, pattern(10000, 2));
  EXPECT_EQ(pattern(10000, 2), read_all("c"));
}

}  // namespace tablestore
