#include <gtest/gtest.h>

#include <vector>

#include "os/tablestore/engine/container/allocator.h"

namespace tablestore {
namespace {

constexpr uint32_t container_blocks = 2048;  // 8 MiB

BlockBitmap all_unwritten(uint32_t blocks = container_blocks) {
  BlockBitmap bitmap(blocks);
  bitmap.set(0, blocks);
  return bitmap;
}

uint64_t sum(const std::vector<Extent>& extents) {
  uint64_t blocks = 0;
  for (const Extent& extent : extents) blocks += extent.blocks;
  return blocks;
}

std::vector<uint32_t> sizes(const std::vector<Extent>& extents) {
  std::vector<uint32_t> blocks;
  for (const Extent& extent : extents) blocks.push_back(extent.blocks);
  return blocks;
}

class AllocatorTest : public testing::Test {
 protected:
  // Containers 1, 2, ... of these classes, written, after an empty recovery.
  void start(const std::vector<unsigned>& classes, bool written = true) {
    uint32_t id = 0;
    for (unsigned slot_class : classes) {
      allocator.add_container(++id, slot_class, container_blocks,
                              written ? BlockBitmap(container_blocks) : all_unwritten());
    }
    ASSERT_TRUE(allocator.finish_recovery().ok());
  }
  std::vector<Extent> take(uint64_t blocks, bool may_split = true) {
    EXPECT_TRUE(allocator.reserve(blocks));
    unsigned wanted = 99;
    auto extents = allocator.allocate(blocks, may_split, &wanted);
    if (extents.empty()) {
      allocator.unreserve(blocks);
      last_wanted = wanted;
    }
    return extents;
  }
  void own(const std::vector<Extent>& extents) {
    for (const Extent& extent : extents) allocator.mark_owned(extent);
  }
  uint64_t free_blocks() { return allocator.usage().free_blocks; }

  Allocator allocator;
  unsigned last_wanted = 99;
};

TEST_F(AllocatorTest, ARequestIsServedBySlotsWhoseSizesAddUp) {
  start({0, 3, 4});
  const auto extents = take(25, false);  // 100 KiB
  EXPECT_EQ(sizes(extents), (std::vector<uint32_t>{16, 8, 1}));
  EXPECT_EQ(extents[0].container, 3u);
  EXPECT_EQ(extents[1].container, 2u);
  EXPECT_EQ(extents[2].container, 1u);
  EXPECT_EQ(free_blocks(), 3 * container_blocks - 25);
  EXPECT_EQ(allocator.usage().reserved_blocks, 0u);
}

// Far into a container, where a slot was taken beside a piece that was being prepared.
TEST_F(AllocatorTest, WhatWasPreparedWhileSlotsWereTakenBesideItIsFound) {
  constexpr uint32_t blocks = 65536, far = 40000;  // 256 MiB
  allocator.add_container(1, 0, blocks, all_unwritten(blocks));
  ASSERT_TRUE(allocator.finish_recovery().ok());
  for (uint32_t i = 0; i < far; ++i) take(1, false);
  const auto piece = allocator.begin_prepare(0, 256);
  ASSERT_TRUE(piece);
  take(1, false);
  allocator.mark_written(*piece);
  allocator.give_back(*piece);
  const uint64_t before = allocator.usage().classes[0].first_touch_blocks;
  EXPECT_EQ(before, far + 1);
  for (uint32_t i = 0; i < 256; ++i) take(1, false);
  EXPECT_EQ(allocator.usage().classes[0].first_touch_blocks, before);
  take(1, false);
  EXPECT_EQ(allocator.usage().classes[0].first_touch_blocks, before + 1);
}

TEST_F(AllocatorTest, WhatWasWrittenAtTheBeginningIsFoundFromFarAway) {
  constexpr uint32_t blocks = 65536, far = 40000;
  allocator.add_container(1, 0, blocks, all_unwritten(blocks));
  ASSERT_TRUE(allocator.finish_recovery().ok());
  for (uint32_t i = 0; i < far; ++i) take(1, false);
  for (const uint32_t block : {5, 20000}) {  // the second is out of reach
    allocator.mark_written({1, block, 1});
    allocator.give_back({1, block, 1});
  }
  EXPECT_EQ(take(1, false), (std::vector<Extent>{{1, 5, 1}}));
}

TEST_F(AllocatorTest, AttemptsThatFailAreNoFirstTouches) {
  allocator.add_container(1, 2, container_blocks, all_unwritten());
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_TRUE(take(5, false).empty());
  EXPECT_EQ(last_wanted, 0u);
  EXPECT_EQ(allocator.usage().classes[2].first_touch_blocks, 0u);
  EXPECT_FALSE(take(4, false).empty());
  EXPECT_EQ(allocator.usage().classes[2].first_touch_blocks, 4u);
}

TEST_F(AllocatorTest, ALargeRequestTakesSeveralOfTheLargestSlots) {
  start({10, 10, 0});
  const auto extents = take(3 * 1024 + 1, false);
  EXPECT_EQ(sizes(extents), (std::vector<uint32_t>{1024, 1024, 1024, 1}));
  EXPECT_EQ(extents[1], (Extent{1, 1024, 1024}));
}

TEST_F(AllocatorTest, WithoutSplittingAMissingClassTakesNothing) {
  start({4});
  EXPECT_TRUE(take(17, false).empty());
  EXPECT_EQ(last_wanted, 0u);
  EXPECT_EQ(free_blocks(), container_blocks);
  EXPECT_EQ(take(17, true).size(), 2u);
}

TEST_F(AllocatorTest, ConsecutiveRequestsGetNeighbouringSlots) {
  start({4, 4});
  Extent last = take(16)[0];
  for (int i = 0; i < 100; ++i) {
    const Extent next = take(16)[0];
    EXPECT_EQ(next.container, last.container);
    EXPECT_EQ(next.block, last.end());
    last = next;
  }
}

TEST_F(AllocatorTest, PreparedSlotsArePreferred) {
  BlockBitmap unwritten = all_unwritten();
  unwritten.clear(512, 32);
  allocator.add_container(1, 4, container_blocks, all_unwritten());
  allocator.add_container(2, 4, container_blocks, unwritten);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_EQ(take(16), (std::vector<Extent>{{2, 512, 16}}));
  EXPECT_EQ(take(16), (std::vector<Extent>{{2, 528, 16}}));
  const auto third = take(16);
  EXPECT_TRUE(allocator.is_unwritten(third[0]));
  allocator.mark_written(third[0]);
  EXPECT_FALSE(allocator.is_unwritten(third[0]));
}

TEST_F(AllocatorTest, SplittingUsesTheSmallestRunThatFits) {
  start({10});
  const auto first = take(1);
  EXPECT_EQ(first, (std::vector<Extent>{{1, 0, 1}}));
  EXPECT_EQ(take(512), (std::vector<Extent>{{1, 512, 512}}));
  EXPECT_EQ(take(1024, false), (std::vector<Extent>{{1, 1024, 1024}}));
}

TEST_F(AllocatorTest, AReservationCanAlwaysBeTakenFromFragments) {
  start({0});
  std::vector<Extent> taken = take(container_blocks);
  ASSERT_EQ(sum(taken), container_blocks);
  uint32_t freed = 0;
  for (const Extent& extent : taken) {
    for (uint32_t b = extent.block; b < extent.end(); b += 2, ++freed) {
      allocator.give_back({extent.container, b, 1});
    }
  }
  const auto pieces = take(freed);
  EXPECT_EQ(sum(pieces), freed);
  EXPECT_EQ(free_blocks(), 0u);
}

TEST_F(AllocatorTest, PiecesNeverCrossASlot) {
  start({2, 2});
  for (const Extent& extent : take(1024)) {
    EXPECT_EQ(extent.block / 4, (extent.end() - 1) / 4);
  }
}

TEST_F(AllocatorTest, ReservationsNeverPromiseMoreThanIsFree) {
  start({4});
  EXPECT_FALSE(allocator.reserve(container_blocks + 1));
  EXPECT_TRUE(allocator.reserve(container_blocks));
  EXPECT_FALSE(allocator.reserve(1));
  allocator.unreserve(10);
  EXPECT_TRUE(allocator.reserve(10));
}

TEST_F(AllocatorTest, CancelledBlocksAreFreeForEverybody) {
  start({4});
  const auto extents = take(16);
  allocator.give_back(extents[0]);
  EXPECT_EQ(free_blocks(), container_blocks);
  EXPECT_EQ(allocator.usage().reserved_blocks, 0u);
}

TEST_F(AllocatorTest, AFreedBlockIsNotHandedOutBeforeItIsReleased) {
  start({10});
  const auto extents = take(container_blocks);
  own(extents);
  EXPECT_EQ(allocator.usage().owned_blocks, container_blocks);
  allocator.mark_freed({1, 8, 4});
  EXPECT_FALSE(allocator.reserve(1));
  allocator.give_back({1, 8, 4});
  EXPECT_EQ(take(4), (std::vector<Extent>{{1, 8, 4}}));
}

TEST_F(AllocatorTest, AContainerIsKeptWhileItIsUsedOrPromised) {
  start({4});
  const auto extents = take(16);
  EXPECT_FALSE(allocator.remove_container(1));
  allocator.give_back(extents[0]);
  ASSERT_TRUE(allocator.reserve(1));
  EXPECT_FALSE(allocator.remove_container(1));
  EXPECT_EQ(allocator.idle_container({}), std::nullopt);
  allocator.unreserve(1);
  EXPECT_EQ(allocator.idle_container({}), 1u);
  EXPECT_TRUE(allocator.remove_container(1));
  EXPECT_FALSE(allocator.reserve(1));
}

// --- background work

TEST_F(AllocatorTest, ARunThatIsBeingPreparedIsNotHandedOut) {
  start({0}, false);
  const auto run = allocator.begin_prepare(0, 256);
  ASSERT_TRUE(run);
  EXPECT_EQ(*run, (Extent{1, 0, 256}));
  EXPECT_EQ(take(1)[0].block, 256u);
  allocator.mark_written(*run);
  allocator.give_back(*run);
  EXPECT_EQ(take(1)[0].block, 0u);
  EXPECT_EQ(allocator.usage().classes[0].unwritten_free_blocks, container_blocks - 257u);
}

TEST_F(AllocatorTest, PreparingLeavesReservationsAlone) {
  start({0}, false);
  ASSERT_TRUE(allocator.reserve(container_blocks - 3));
  EXPECT_EQ(allocator.begin_prepare(0, 256)->blocks, 3u);
  EXPECT_FALSE(allocator.begin_prepare(0, 256));
}

TEST_F(AllocatorTest, OnlyTheClassIsPrepared) {
  start({0}, false);
  EXPECT_FALSE(allocator.begin_prepare(1, 256));
}

TEST_F(AllocatorTest, APunchedRunIsNotFreeUntilItIsRestored) {
  start({0});
  const auto run = allocator.begin_punch({}, 256, 512);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->blocks, 512u);
  allocator.give_back_punched(*run);
  AllocatorUsage usage = allocator.usage();
  EXPECT_EQ(usage.free_blocks, container_blocks - 512u);
  EXPECT_EQ(usage.classes[0].punched_blocks, 512u);
  EXPECT_FALSE(allocator.reserve(container_blocks));
  EXPECT_FALSE(allocator.begin_restore(1, 4096));
  const auto half = allocator.begin_restore(0, 256);
  ASSERT_TRUE(half);
  EXPECT_EQ(half->blocks, 256u);
  allocator.give_back_punched(*half);  // no space: punched still
  EXPECT_EQ(allocator.usage().punched_blocks, 512u);
  const auto all = allocator.begin_restore(std::nullopt, 4096);
  EXPECT_EQ(*all, *run);
  allocator.give_back(*all);
  usage = allocator.usage();
  EXPECT_EQ(usage.free_blocks, container_blocks);
  EXPECT_EQ(usage.classes[0].unwritten_free_blocks, 512u);
}

TEST_F(AllocatorTest, PunchingLeavesTheSpareAndTheBusy) {
  start({4, 10});
  QuietRule rule;
  rule.min_age = 2;
  EXPECT_FALSE(allocator.begin_punch(rule, 256, 4096));
  allocator.advance_age();
  allocator.advance_age();
  take(16);
  rule.spare_blocks[10] = container_blocks - 255;
  EXPECT_FALSE(allocator.begin_punch(rule, 256, 4096));
  rule.spare_blocks[10] = container_blocks - 300;
  const auto run = allocator.begin_punch(rule, 256, 4096);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->container, 2u);
  EXPECT_EQ(run->blocks, 300u);
}

TEST_F(AllocatorTest, AnIdleContainerIsOneThatItsClassCanSpare) {
  start({4, 4});
  QuietRule rule;
  rule.spare_blocks[4] = container_blocks;
  EXPECT_EQ(allocator.idle_container(rule), 2u);
  take(16);
  EXPECT_EQ(allocator.idle_container(rule), std::nullopt);
  rule.spare_blocks[4] = container_blocks - 16;
  EXPECT_EQ(allocator.idle_container(rule), 2u);
  rule.min_age = 1;
  EXPECT_EQ(allocator.idle_container(rule), std::nullopt);
  allocator.advance_age();
  EXPECT_EQ(allocator.idle_container(rule), 2u);
}

// With ten thousand of them, nobody waits for a look at all.
TEST_F(AllocatorTest, AnIdleContainerIsLookedForAFewAtATime) {
  start(std::vector<unsigned>(200, 4));
  QuietRule rule;
  rule.spare_blocks[4] = 200 * container_blocks;  // none can be spared
  EXPECT_EQ(allocator.idle_container(rule), std::nullopt);  // 200 to 137
  rule.spare_blocks[4] = 0;
  EXPECT_EQ(allocator.idle_container(rule), 136u);
  EXPECT_EQ(allocator.idle_container(rule), 135u);
  for (uint32_t wanted = 134; wanted > 0; --wanted)
    ASSERT_EQ(allocator.idle_container(rule), wanted);
  EXPECT_EQ(allocator.idle_container(rule), 200u);
}

TEST_F(AllocatorTest, HolesFoundAtOpenAreNotFreeUnlessOwned) {
  BlockBitmap holes(container_blocks);
  holes.set(100, 50);
  allocator.add_container(1, 4, container_blocks, all_unwritten(), holes);
  allocator.replay_owned({1, 100, 10}, 1);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_EQ(free_blocks(), container_blocks - 50u);
  EXPECT_EQ(allocator.usage().punched_blocks, 40u);
}

TEST_F(AllocatorTest, DemandFadesWhenOtherClassesAreCalledFor) {
  start({0, 4});
  allocator.give_back(take(16)[0]);
  EXPECT_EQ(allocator.usage().classes[4].recent_slots, 1u);
  for (uint64_t i = 0; i < Allocator::demand_window; ++i) allocator.give_back(take(1)[0]);
  EXPECT_EQ(allocator.usage().classes[4].recent_slots, 0u);
  EXPECT_GT(allocator.usage().classes[0].recent_slots, 0u);
}

// --- I7

using AllocatorDeathTest = AllocatorTest;

TEST_F(AllocatorDeathTest, BrokenRulesStopTheProcess) {
  start({0});
  EXPECT_DEATH(allocator.allocate(1, true, nullptr), "was reserved");
  EXPECT_DEATH(allocator.give_back({1, 0, 1}), "was held");
  EXPECT_DEATH(allocator.mark_owned({1, 0, 1}), "is held");
  EXPECT_DEATH(allocator.mark_freed({1, 0, 1}), "had an owner");
  EXPECT_DEATH(allocator.mark_owned({5, 0, 1}), "container that exists");
  const Extent extent = take(1)[0];
  allocator.mark_owned(extent);
  EXPECT_DEATH(allocator.mark_owned(extent), "one owner");
  EXPECT_DEATH(allocator.give_back(extent), "owned by no row");
  allocator.mark_freed(extent);
  EXPECT_DEATH(allocator.mark_freed(extent), "had an owner");
  allocator.give_back(extent);
  EXPECT_DEATH(allocator.give_back(extent), "was held");
  EXPECT_DEATH(allocator.mark_written(extent), "is held");
}

}  // namespace
}  // namespace tablestore
