// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Extents whose last other owner has gone become the object's own again, when it is next written.
#include <algorithm>

#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/object_data_fixture.h"

namespace tablestore {

class UnsharingTest : public ObjectDataFixture {
 protected:
  /// Of one shard, in several extents.
  static constexpr uint64_t bytes = 200 * 1024;

  UnsharingTest() { wide_every = 1; }
  void write_in_pieces(const std::string& name)
  {
    constexpr uint64_t piece = 32 * 1024;
    const std::string data = pattern(bytes, 1);
    for (uint64_t offset = 0; offset < bytes; offset += piece)
      write(name, offset, data.substr(offset, piece));
  }
  unsigned shared_extents(const std::string& name)
  {
    const auto all = extents(name);
    return std::ranges::count_if(all, [](const MappedExtent& e) { return e.shared; });
  }
  unsigned reference_rows()
  {
    engine->drain();
    return rows(Family::super, reference_maps_range());
  }
  uint64_t row_reads() { return references->usage().row_reads; }
  /// Whatever the store has in memory of objects and references is loaded anew.
  void forget_all()
  {
    for (const char* name : {"a", "b"})
      evict(name);
    references->trim();
  }
  void overwrite_block(const std::string& name, unsigned block)
  {
    write(name, block * block_bytes, pattern(block_bytes, ++overwrites));
  }

  uint64_t overwrites = 100;
};

TEST_F(UnsharingTest, OneWriteAfterTheCloneIsGoneMakesAllOfTheShardItsOwn)
{
  write_in_pieces("a");
  ASSERT_GT(extents("a").size(), 1u);
  clone_range("a", "b", 0, bytes, 0);
  const unsigned clones = shared_extents("a");
  EXPECT_EQ(clones, reference_rows());
  remove("b");
  EXPECT_EQ(clones, shared_extents("a")) << "whoever goes does not know who is left";
  EXPECT_EQ(clones, reference_rows());
  overwrite_block("a", 49);
  EXPECT_EQ(0u, shared_extents("a"));
  EXPECT_EQ(0u, reference_rows());
  EXPECT_EQ(clones, references->usage().unshared);
  check_ownership();
  reopen(true);
  EXPECT_EQ(0u, shared_extents("a"));
  EXPECT_EQ(pattern(bytes, 1).substr(0, 49 * block_bytes), read("a", 0, 49 * block_bytes));
  check_ownership();
  remove("a");
  check_ownership();
  EXPECT_EQ(0, totals[PoolStats::allocated_bytes]);
}

TEST_F(UnsharingTest, TheCloneKeepsWhatTheHeadHasOverwritten)
{
  write_in_pieces("a");
  clone_range("a", "b", 0, bytes, 0);
  write("a", 0, pattern(bytes, 2));
  EXPECT_EQ(0u, shared_extents("a"));
  EXPECT_GT(shared_extents("b"), 0u);
  overwrite_block("b", 3);
  EXPECT_EQ(0u, shared_extents("b"));
  EXPECT_EQ(0u, reference_rows());
  EXPECT_EQ(pattern(bytes, 2), read_all("a"));
  check_ownership();
}

TEST_F(UnsharingTest, WhatOthersStillHaveStaysShared)
{
  write_in_pieces("a");
  for (const char* clone : {"b", "c"})
    clone_range("a", clone, 0, bytes, 0);
  const unsigned clones = shared_extents("a");
  remove("b");
  overwrite_block("a", 49);
  EXPECT_EQ(clones, shared_extents("a"));
  EXPECT_EQ(clones, reference_rows());
  check_ownership();
  remove("c");
  overwrite_block("a", 49);
  EXPECT_EQ(0u, shared_extents("a"));
  check_ownership();
}

TEST_F(UnsharingTest, OnlyShardsThatAreWrittenAreLookedAt)
{
  wide_every = 2;   // a is narrow, and b is wide
  write("a", 0, pattern(1 << 20, 1));
  clone_range("a", "b", 0, 1 << 20, 0);
  remove("b");
  const unsigned before = shared_extents("a");
  overwrite_block("a", 0);
  EXPECT_GT(shared_extents("a"), 0u);
  EXPECT_LT(shared_extents("a"), before);
  check_ownership();
  for (unsigned block = shard_span_blocks; block < 256; block += shard_span_blocks)
    overwrite_block("a", block);
  EXPECT_EQ(0u, shared_extents("a"));
  EXPECT_EQ(0u, reference_rows());
  check_ownership();
}

// An erasure-coded write: what it replaces is kept in an object of its own until all have written.
TEST_F(UnsharingTest, AfterARollbackObjectIsGoneNothingIsShared)
{
  for (const unsigned first : {0, 8}) {
    SCOPED_TRACE(first);
    write("a", 0, pattern(128 << 10, 1));   // one extent
    ASSERT_EQ(1u, extents("a").size());
    clone_range("a", "b", first * block_bytes, 4 * block_bytes, first * block_bytes);
    EXPECT_EQ(1u, shared_extents("a"));
    write("a", first * block_bytes, pattern(4 * block_bytes, 2));
    // All but what has the first block, by which the blocks of the other go.
    EXPECT_EQ(first == 0 ? 0u : 1u, shared_extents("a"));
    check_ownership();
    remove("b");
    check_ownership();
    overwrite_block("a", 20);
    EXPECT_EQ(0u, shared_extents("a"));
    EXPECT_EQ(0u, reference_rows());
    check_ownership();
    remove("a");
    check_ownership();
    EXPECT_EQ(0, totals[PoolStats::allocated_bytes]);
    onodes.clear();
  }
}

TEST_F(UnsharingTest, WhatLiesBetweenBlocksOfOthersIsHandedOver)
{
  write("a", 0, pattern(128 << 10, 1));
  ASSERT_EQ(1u, extents("a").size());
  for (const unsigned first : {8, 20})
    clone_range("a", "b", first * block_bytes, 4 * block_bytes, first * block_bytes);
  for (const unsigned first : {8, 20})
    write("a", first * block_bytes, pattern(4 * block_bytes, 2));
  EXPECT_EQ(1u, shared_extents("a")) << "what has the first block";
  EXPECT_EQ(1u, reference_rows());
  check_ownership();
  remove("b");
  overwrite_block("a", 14);
  EXPECT_EQ(0u, shared_extents("a"));
  EXPECT_EQ(0u, reference_rows());
  check_ownership();
}

TEST_F(UnsharingTest, ABlockThatWasKeptForTheNameIsFreedWithTheLastOfTheOthers)
{
  write("a", 0, pattern(128 << 10, 1));
  clone_range("a", "b", 0, 128 << 10, 0);
  overwrite_block("a", 0);
  overwrite_block("b", 0);
  check_ownership();
  const int64_t before = totals[PoolStats::allocated_bytes];
  EXPECT_EQ(int64_t(128 << 10) + 2 * block_bytes, before);
  remove("b");
  overwrite_block("a", 9);
  EXPECT_EQ(0u, reference_rows());
  EXPECT_EQ(int64_t(128 << 10), totals[PoolStats::allocated_bytes]);
  check_ownership();
}

TEST_F(UnsharingTest, WhatIsItsOwnAgainCanBeSharedAgainAtOnce)
{
  write_in_pieces("a");
  for (unsigned round = 0; round < 20; ++round) {
    clone_range("a", "b", 0, bytes, 0);
    if (round % 3 == 0)
      overwrite_block("b", 5);
    remove("b");
    overwrite_block("a", 49);
    ASSERT_EQ(0u, shared_extents("a"));
    if (round % 5 == 4)
      check_ownership();
  }
  clone_range("a", "b", 0, bytes, 0);
  reopen(true);
  EXPECT_EQ(read_all("a"), read_all("b"));
  check_ownership();
}

TEST_F(UnsharingTest, TwoExtentsOfOneObjectWithTheSameBlocksStayShared)
{
  write("a", 0, pattern(64 << 10, 1));
  clone_range("a", "b", 0, 64 << 10, 0);
  clone_range("b", "a", 0, 64 << 10, 64 << 10);
  remove("b");
  overwrite_block("a", 40);
  EXPECT_EQ(2u, shared_extents("a"));
  check_ownership();
  write("a", 64 << 10, pattern(64 << 10, 3));
  EXPECT_EQ(0u, shared_extents("a"));
  EXPECT_EQ(0u, reference_rows());
  EXPECT_EQ(pattern(64 << 10, 1), read("a", 0, 64 << 10));
  check_ownership();
}

TEST_F(UnsharingTest, WhoSharesNothingAsksTheTableForNothing)
{
  write("a", 0, pattern(1 << 20, 1));
  for (unsigned n = 0; n < 20; ++n) {
    forget_all();
    overwrite_block("a", n * 7);
    truncate("a", (1 << 20) - n * 5000);
  }
  EXPECT_EQ(0u, row_reads());
}

TEST_F(UnsharingTest, WhatIsSharedForLongIsLookedAtOnce)
{
  write_in_pieces("a");
  write("b", bytes, pattern(20000, 1));
  clone_range("a", "b", 0, bytes, 0);
  overwrite_block("a", 49);   // from here on it has something of its own
  const unsigned clones = shared_extents("a");
  EXPECT_EQ(0u, row_reads()) << "all of it was in memory";
  forget_all();
  overwrite_block("a", 49);
  EXPECT_EQ(clones, row_reads());
  for (unsigned n = 0; n < 20; ++n) {
    engine->drain();
    references->trim();
    overwrite_block("a", 49);
    overwrite_block("b", 51);
  }
  EXPECT_EQ(clones, row_reads() - clones) << "those of b's extents, once";
  remove("b");
  engine->drain();
  references->trim();
  const uint64_t before = row_reads();
  overwrite_block("a", 49);
  EXPECT_EQ(0u, shared_extents("a"));
  EXPECT_EQ(clones, row_reads() - before);
  check_ownership();
}

TEST_F(UnsharingTest, ReferencesThatAreMissingLeaveTheObjectUsable)
{
  write_in_pieces("a");
  clone_range("a", "b", 0, bytes, 0);
  engine->drain();
  const auto [first, last] = reference_maps_range();
  auto txn = std::make_shared<Txn>();
  txn->erase_range(Family::super, first, last);
  engine->submit(txn);
  forget_all();
  const unsigned clones = shared_extents("a");
  overwrite_block("a", 49);
  EXPECT_GE(shared_extents("a"), clones - 1);
  EXPECT_EQ(pattern(bytes, 1).substr(0, 49 * block_bytes), read("a", 0, 49 * block_bytes));
}

}  // namespace tablestore
