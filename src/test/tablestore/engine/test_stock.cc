// Entirely free containers that are written while the store is idle.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

#include "os/tablestore/engine/container/lull.h"
#include "test/tablestore/engine/containers_fixture.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;
using Operation = MemoryDisk::Operation;

constexpr uint64_t mib = container_test_mib;
constexpr uint64_t mib_blocks = mib / block_bytes;
constexpr unsigned largest = slot_classes - 1;

class StockTest : public ContainersFixture {
 protected:
  void SetUp() override {
    ContainersFixture::SetUp();
    options.stock_bytes = 8 * mib;
  }
  // So many containers of the largest class, written and free.
  void have_free(int count) {
    const auto extents = take(count * 4 * mib);
    own(extents);
    give_up(extents);
  }
  Result<Worked> step(bool is_idle, uint64_t most_bytes = mib) {
    PreparePace::Piece piece;
    return containers->prepare_step(&piece, most_bytes, is_idle);
  }
  uint64_t written_whole_bytes() {
    return (usage().whole_blocks() - whole_unwritten_blocks()) * block_bytes;
  }
  uint64_t whole_unwritten_blocks() {
    uint64_t blocks = 0;
    for (const AllocatorUsage::Class& of : usage().classes) blocks += of.whole_unwritten_blocks;
    return blocks;
  }
};

TEST_F(StockTest, AnIdleStoreGetsItsStockAndNoMore) {
  open_empty();
  EXPECT_EQ(prepare_all(), 2 + 8);
  EXPECT_EQ(counters.containers_created, 2u);
  EXPECT_EQ(counters.prepared_bytes, 8 * mib);
  EXPECT_EQ(written_whole_bytes(), 8 * mib);
  EXPECT_EQ(prepare_all(), 0);
}

TEST_F(StockTest, NothingIsMadeWhereSomebodyWantsTheDiskOrItIsNotDue) {
  open_empty();
  EXPECT_EQ(*step(false), Worked::nothing_to_do);
  EXPECT_EQ(*step(true, 0), Worked::nothing_to_do);
  EXPECT_EQ(counters.containers_created, 0u);
  EXPECT_EQ(*step(true), Worked::yes);
}

TEST_F(StockTest, TheClassesInUseComeFirst) {
  open_empty();
  take(4096);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(*step(true), Worked::yes);
  EXPECT_EQ(GrowthPolicy::prepared_blocks(usage(), 0), 2 * mib_blocks);
  EXPECT_EQ(usage().containers(), 1u);
}

TEST_F(StockTest, AllClassesUseIt) {
  open_empty();
  prepare_all();
  counters.containers_created = 0;
  for (int i = 0; i < 9; ++i)
    for (const Extent& extent : take(64 << 10))
      EXPECT_FALSE(containers->allocator().is_unwritten(extent));
  EXPECT_EQ(counters.containers_reclassed, 1u);
  EXPECT_EQ(counters.containers_created, 0u);
  EXPECT_FALSE(containers->allocator().is_unwritten(take(128 << 10)[0]));
}

TEST_F(StockTest, WhatWasTakenIsMadeAgain) {
  open_empty();
  prepare_all();
  own(take(4 * mib));
  EXPECT_EQ(prepare_all(), 2 + 8);
  EXPECT_EQ(written_whole_bytes(), 12 * mib);  // one is kept by the class, which is in use now
  EXPECT_EQ(shrink_all(), 0);
}

TEST_F(StockTest, WhatIsFreeAndWrittenIsStockWhateverItsClass) {
  open_empty();
  for (int i = 0; i < 9; ++i) own(take(64 << 10));  // a container of their own
  std::vector<std::vector<Extent>> owned;
  for (int i = 0; i < 192; ++i) own(owned.emplace_back(take(64 << 10)));
  for (const auto& extents : owned) give_up(extents);
  const uint64_t there = usage().whole_blocks();
  ASSERT_GE(there, 12 * mib_blocks);  // of which one is kept by the class
  prepare_all();
  EXPECT_EQ(usage().whole_blocks(), there);
  EXPECT_EQ(usage().classes[largest].containers, 0u);
}

TEST_F(StockTest, WhatAClassInUseHasFreeIsWrittenFirst) {
  open_empty();
  for (int i = 0; i < 3; ++i) own(take(mib));  // of one container of 4
  ASSERT_EQ(usage().classes[8].unwritten_free_blocks, mib_blocks);
  EXPECT_EQ(*step(true), Worked::yes);
  EXPECT_EQ(usage().classes[8].unwritten_free_blocks, 0u);
  EXPECT_EQ(usage().containers(), 1u);
}

TEST_F(StockTest, TheContainerThatLacksLeastIsWrittenNext) {
  open_empty();
  ASSERT_TRUE(containers->reserve(12 * mib).ok());
  containers->unreserve(12 * mib);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(whole_unwritten_blocks(), (12 - i) * mib_blocks);
    EXPECT_EQ(*step(true), Worked::yes);
  }
  // One of them is done: whoever takes it, takes nothing unwritten.
  const auto taken = containers->allocator().begin_reclass(0, Allocator::LastFree::take);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(containers->allocator().is_unwritten({taken->container, 0, taken->blocks}));
}

TEST_F(StockTest, APieceIsFlushedBeforeItCountsAsWritten) {
  open_empty();
  EXPECT_EQ(*step(true), Worked::yes);  // a container
  disk->take_calls();
  EXPECT_EQ(*step(true), Worked::yes);
  EXPECT_EQ(disk->take_calls(),
            (std::vector<MemoryDisk::Call>{{Operation::write_zeroes, "containers/10/0", 0, mib},
                                           {Operation::flush, "containers/10/0"}}));
}

TEST_F(StockTest, OnASmallDiskItIsAnEighthOfAll) {
  options.capacity_bytes = 32 * mib;
  open_empty();
  prepare_all();
  EXPECT_EQ(containers->file_bytes(), 4 * mib);
}

// --- given back

TEST_F(StockTest, ItIsKeptAndWhatIsMoreIsGivenBack) {
  open_empty();
  have_free(6);
  shrink_all();
  // With the last of its class, and with the one that it may vary by.
  EXPECT_EQ(usage().whole_blocks(), 16 * mib_blocks);
  prepare_all();
  shrink_all();
  EXPECT_EQ(counters.containers_created, 6u);
  EXPECT_EQ(counters.containers_removed, 2u);
}

// Where most of what is free is in pieces, these are no stock; and what is made is not removed.
TEST_F(StockTest, NothingIsMadeAndGivenBackInTurn) {
  open_empty();
  std::vector<std::vector<Extent>> owned;
  for (int i = 0; i < 64; ++i) own(owned.emplace_back(take(2 * mib)));
  for (int i = 0; i < 64; i += 2) give_up(owned[i]);
  // Not only the last one of the class has been in use.
  for (int i = 0; i < 3; ++i) prepare_all(), shrink_all();
  EXPECT_EQ(written_whole_bytes(), 8 * mib);
  const uint64_t created = counters.containers_created, prepared = counters.prepared_bytes;
  const uint64_t punched = counters.punched_bytes, removed = counters.containers_removed;
  for (int i = 0; i < 3; ++i) prepare_all(), shrink_all();
  EXPECT_EQ(counters.containers_created, created);
  EXPECT_EQ(counters.prepared_bytes, prepared);
  EXPECT_EQ(counters.punched_bytes, punched);
  EXPECT_EQ(counters.containers_removed, removed);
}

// The stock is in containers of the largest class, but no spare of it: a part of what is free in
// pieces stays as it is, whether there is a stock or not.
TEST_F(StockTest, WhatItsClassHasInPiecesIsGivenBackAsWithoutAStock) {
  uint64_t punched[2];
  for (bool with_stock : {false, true}) {
    make_disk(512 * mib);
    options.stock_bytes = with_stock ? 32 * mib : 0;
    open_empty();
    std::vector<std::vector<Extent>> owned;
    for (int i = 0; i < 32; ++i) {
      owned.push_back(take(4 * mib));
      own(owned.back());
    }
    for (const auto& extents : owned) give_up({{extents[0].container, 0, 512}});
    prepare_all();
    const uint64_t before = counters.punched_bytes;
    shrink_all();
    punched[with_stock] = counters.punched_bytes - before;
  }
  EXPECT_GT(punched[0], 0u);
  EXPECT_NEAR(double(punched[1]), double(punched[0]), double(8 * mib));
}

TEST_F(StockTest, NothingIsPunchedInIt) {
  open_empty();
  std::vector<std::vector<Extent>> owned;
  for (int i = 0; i < 32; ++i) own(owned.emplace_back(take(4 * mib)));
  // Whole ones come first where something to punch is looked for.
  for (int i = 0; i < 32; ++i)
    give_up(i < 2 ? owned[i] : std::vector<Extent>{{owned[i][0].container, 0, 512}});
  prepare_all();
  const uint64_t whole = usage().whole_blocks();
  shrink_all();
  EXPECT_GT(counters.punched_bytes, 0u);
  EXPECT_EQ(usage().whole_blocks(), whole);
}

TEST_F(StockTest, TheToolThatTrimsTakesItToo) {
  open_empty();
  own(take(4 * mib));
  prepare_all();
  ASSERT_EQ(containers->file_bytes(), 16 * mib);
  run_all(&Containers::punch_step);
  EXPECT_EQ(containers->file_bytes(), 8 * mib);  // its class keeps one
}

TEST_F(StockTest, WhoeverIsShortGetsItAndItIsNotMadeAgainMeanwhile) {
  make_disk(100 * mib);
  open_empty();
  prepare_all();
  lack(0, 100 * mib);
  relieve_all();
  EXPECT_EQ(disk->used_bytes(), 0u);
  lack(0, 101 * mib);
  EXPECT_EQ(prepare_all(), 0);
  lack(0, 0);
  // Not at once: the file system may not have told all, as of a quota.
  EXPECT_EQ(prepare_all(), 0);
  int idle_steps = 2;  // those above
  while (idle_steps < 40'000 && *step(true) == Worked::nothing_to_do) ++idle_steps;
  EXPECT_EQ(idle_steps, 36'000 - 1);
  EXPECT_EQ(prepare_all(), 1 + 8);
}

TEST_F(StockTest, WhatIsPromisedIsNoStock) {
  open_empty();
  ASSERT_TRUE(containers->reserve(8 * mib).ok());
  EXPECT_EQ(prepare_all(), 2 + 8);
  EXPECT_EQ(usage().whole_blocks(), 16 * mib_blocks);
  EXPECT_EQ(shrink_all() + prepare_all(), 0);
  containers->unreserve(8 * mib);
  EXPECT_EQ(prepare_all(), 0);
}

TEST_F(StockTest, WhatIsKeptForTheLastIsNoneEither) {
  options.last_resort_bytes = 8 * mib;
  open_empty();
  containers->refill_last_resort();
  prepare_all();
  EXPECT_EQ(written_whole_bytes(), 8 * mib);
  EXPECT_EQ(shrink_all(), 0);
}

// --- what can go wrong

TEST_F(StockTest, AFullFileSystemIsNoError) {
  open_empty();
  const uint64_t free = containers->free_bytes();
  for (int error : {ENOSPC, EDQUOT, EMFILE}) {
    open_empty();
    disk->fail(Operation::allocate, "containers/", error, 1);
    EXPECT_EQ(prepare_all(), 0);
    EXPECT_EQ(usage().containers(), 0u);
    // Nobody has asked for it, so nobody is told.
    EXPECT_EQ(containers->free_bytes(), free);
    disk->take_calls();
    EXPECT_EQ(prepare_all(), 0);
    EXPECT_TRUE(disk->take_calls().empty());
    EXPECT_TRUE(containers->reserve(mib).ok());
    containers->unreserve(mib);
    make_disk(256 * mib);
  }
}

TEST_F(StockTest, NoSpaceForZerosIsNoError) {
  open_empty();
  disk->fail(Operation::write_zeroes, "containers/", ENOSPC, 1);
  EXPECT_EQ(prepare_all(), 1);
  EXPECT_EQ(whole_unwritten_blocks(), 4 * mib_blocks);
}

TEST_F(StockTest, WhereSpaceCannotBeAskedForNothingIsDone) {
  open_empty();
  have_free(3);
  disk->fail(Operation::space, "", EIO);
  EXPECT_EQ(*step(true), Worked::nothing_to_do);
  EXPECT_EQ(shrink_all(), 0);
}

TEST_F(StockTest, AFailingDiskIsTold) {
  open_empty();
  disk->fail(Operation::write_zeroes, "containers/", EIO, 1);
  EXPECT_EQ(*step(true), Worked::yes);
  EXPECT_EQ(step(true).status().code(), EIO);
  EXPECT_EQ(written_whole_bytes(), 0u);
}

// --- a lull

TEST(LullTest, BeginsAWhileAfterTheLastOperation) {
  Lull lull;
  const Lull::Time begin{1h};
  EXPECT_FALSE(lull.lasts(begin, 7));
  EXPECT_FALSE(lull.lasts(begin + 99ms, 7));
  EXPECT_TRUE(lull.lasts(begin + 100ms, 7));
  EXPECT_TRUE(lull.lasts(begin + 10h, 7));
  EXPECT_FALSE(lull.lasts(begin + 10h, 8));
  EXPECT_FALSE(lull.lasts(begin + 10h + 60ms, 9));
  EXPECT_FALSE(lull.lasts(begin + 10h + 120ms, 9));
  EXPECT_FALSE(lull.lasts(begin + 11h, std::nullopt));
  EXPECT_FALSE(lull.lasts(begin + 11h + 10ms, 9));
  EXPECT_FALSE(lull.lasts(begin + 11h + 109ms, 9));
  EXPECT_TRUE(lull.lasts(begin + 11h + 110ms, 9));
}

}  // namespace
}  // namespace tablestore
