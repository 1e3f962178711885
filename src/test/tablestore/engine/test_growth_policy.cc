#include <gtest/gtest.h>

#include <algorithm>

#include "os/tablestore/engine/container/growth_memory.h"
#include "os/tablestore/engine/container/growth_policy.h"

namespace tablestore {
namespace {

constexpr uint64_t mib = 1 << 20;
constexpr uint64_t mib_blocks = mib / block_bytes;
constexpr unsigned largest = slot_classes - 1;

class GrowthPolicyTest : public testing::Test {
 protected:
  GrowthPolicyTest() {
    options.container_bytes = 4 * mib;
    options.prepare_ahead_bytes = 2 * mib;
  }
  GrowthPolicy policy() const { return GrowthPolicy(options); }
  // Containers of a class that take so much, some of it free.
  void have(unsigned slot_class, uint64_t bytes, uint64_t free_bytes) {
    AllocatorUsage::Class& sums = state.usage.classes[slot_class];
    sums.containers += bytes / options.container_bytes;
    sums.blocks += bytes / block_bytes;
    sums.free_blocks += free_bytes / block_bytes;
    state.usage.blocks += bytes / block_bytes;
    state.usage.free_blocks += free_bytes / block_bytes;
  }
  // Of which every block is free.
  void have_whole(uint64_t bytes, uint64_t unwritten_bytes) {
    have(largest, bytes, bytes);
    state.usage.classes[largest].whole_blocks += bytes / block_bytes;
    state.usage.classes[largest].whole_unwritten_blocks += unwritten_bytes / block_bytes;
  }
  // On a large disk.
  void have_stock_of(uint64_t bytes) {
    options.stock_bytes = bytes;
    state.growable_bytes = 400 * mib;
  }
  void called_for(unsigned slot_class, uint64_t slots) {
    state.usage.classes[slot_class].recent_slots = slots;
  }
  uint64_t growable_bytes(uint64_t available_bytes, const OtherSpace& others = {}) const {
    return policy().state(state.usage, available_bytes, others).growable_bytes;
  }
  NewFile new_file(uint64_t growable_bytes) {
    state.growable_bytes = growable_bytes;
    return policy().new_file(state);
  }

  ContainerOptions options;
  SpaceState state;
};

// --- how much there is

TEST_F(GrowthPolicyTest, ContainersGrowUpToTheReserveOfOthers) {
  const OtherSpace others{.reserve_bytes = 10 * mib};
  EXPECT_EQ(growable_bytes(32 * mib, others), 22 * mib);
  EXPECT_EQ(growable_bytes(10 * mib, others), 0u);
  EXPECT_EQ(growable_bytes(3 * mib, others), 0u);
}

TEST_F(GrowthPolicyTest, ContainersGrowUpToTheCapacity) {
  options.capacity_bytes = 16 * mib;
  have(0, 12 * mib, 0);
  EXPECT_EQ(growable_bytes(100 * mib), 4 * mib);
  EXPECT_EQ(growable_bytes(3 * mib), 3 * mib);
  have(0, 8 * mib, 0);  // the capacity was lowered
  EXPECT_EQ(growable_bytes(100 * mib), 0u);
}

TEST_F(GrowthPolicyTest, TheCapacityIsOfAllThatTheStoreTakes) {
  options.capacity_bytes = 32 * mib;
  have(0, 12 * mib, 8 * mib);
  const OtherSpace others{.taken_bytes = 9 * mib, .reserve_bytes = 5 * mib};
  EXPECT_EQ(growable_bytes(100 * mib, others), 6 * mib);
  EXPECT_EQ(growable_bytes(7 * mib, others), 2 * mib);
  EXPECT_EQ(policy().state(state.usage, 100 * mib, others).short_bytes, 0u);
}

TEST_F(GrowthPolicyTest, WhatOthersLackIsNotPromised) {
  have(0, 12 * mib, 8 * mib);
  state = policy().state(state.usage, 2 * mib, {.reserve_bytes = 5 * mib});
  EXPECT_EQ(state.growable_bytes, 0u);
  EXPECT_EQ(state.short_bytes, 3 * mib);
  EXPECT_EQ(policy().free_bytes(state), 5 * mib);
  EXPECT_TRUE(policy().can_promise(state, 5 * mib_blocks));
  EXPECT_FALSE(policy().can_promise(state, 5 * mib_blocks + 1));
}

TEST_F(GrowthPolicyTest, OthersLackWhatGoesBeyondTheCapacity) {
  options.capacity_bytes = 20 * mib;
  have(0, 12 * mib, 8 * mib);
  const OtherSpace others{.taken_bytes = 9 * mib, .reserve_bytes = 2 * mib};
  EXPECT_EQ(policy().state(state.usage, 100 * mib, others).short_bytes, 3 * mib);
}

TEST_F(GrowthPolicyTest, WhoeverIsShortGetsRunsOfAnySizeTheLargeOnesFirst) {
  const auto little = GrowthPolicy::relief_sizes(1);
  EXPECT_EQ(little[0].min_blocks, mib_blocks);
  EXPECT_EQ(little[0].max_blocks, mib_blocks);
  EXPECT_GT(little[0].min_blocks, little[1].min_blocks);
  EXPECT_EQ(little[2].min_blocks, 1u);
  EXPECT_EQ(GrowthPolicy::relief_sizes(5 * mib)[2].max_blocks, 5 * mib_blocks);
  EXPECT_FALSE(policy().relieves_with_container(4 * mib - 1));
  EXPECT_TRUE(policy().relieves_with_container(4 * mib));
}

TEST_F(GrowthPolicyTest, PunchedSpaceIsTheFileSystems) {
  options.capacity_bytes = 16 * mib;
  have(0, 12 * mib, 0);
  state.usage.punched_blocks = 2 * mib_blocks;
  EXPECT_EQ(GrowthPolicy::file_bytes(state.usage), 10 * mib);
  EXPECT_EQ(growable_bytes(100 * mib), 6 * mib);
}

TEST_F(GrowthPolicyTest, WhatCanGrowIsPunchedRunsAndWholeContainers) {
  have(0, 12 * mib, mib);
  state.usage.punched_blocks = 2 * mib_blocks;
  state.growable_bytes = mib;
  EXPECT_EQ(policy().free_bytes(state), 2 * mib);
  state.growable_bytes = 5 * mib;
  EXPECT_EQ(policy().free_bytes(state), 3 * mib);
  state.growable_bytes = 6 * mib;
  EXPECT_EQ(policy().free_bytes(state), 7 * mib);
}

TEST_F(GrowthPolicyTest, NothingIsMadeForAReservationThatCannotHold) {
  have(0, 4 * mib, 2 * mib);
  state.usage.reserved_blocks = mib_blocks;
  state.growable_bytes = 7 * mib;
  EXPECT_TRUE(policy().can_promise(state, 5 * mib_blocks));
  EXPECT_FALSE(policy().can_promise(state, 5 * mib_blocks + 1));
}

// --- how to grow

TEST_F(GrowthPolicyTest, AReservationMakesTheClassThatWasLacked) {
  EXPECT_EQ(GrowthPolicy::class_for_reservation(3, 1), 3u);
  EXPECT_EQ(GrowthPolicy::class_for_reservation(std::nullopt, 0), 0u);
  EXPECT_EQ(GrowthPolicy::class_for_reservation(std::nullopt, 1), 0u);
  EXPECT_EQ(GrowthPolicy::class_for_reservation(std::nullopt, 31), 4u);
  EXPECT_EQ(GrowthPolicy::class_for_reservation(std::nullopt, 1 << 20), slot_classes - 1);
}

TEST_F(GrowthPolicyTest, AClassThatCalledForAnEighthOfAContainerClaimsOne) {
  called_for(0, 127);
  EXPECT_EQ(policy().claim(state.usage, 0, true), Claim::none);
  called_for(0, 128);
  EXPECT_EQ(policy().claim(state.usage, 0, true), Claim::ordinary);
  called_for(4, 7);
  EXPECT_EQ(policy().claim(state.usage, 4, true), Claim::none);
  called_for(4, 8);
  EXPECT_EQ(policy().claim(state.usage, 4, true), Claim::ordinary);
}

TEST_F(GrowthPolicyTest, OfLargeContainersLessIsEnough) {
  options.container_bytes = 1024 * mib;
  called_for(0, 1023);
  EXPECT_EQ(policy().claim(state.usage, 0, true), Claim::none);
  called_for(0, 1024);
  EXPECT_EQ(policy().claim(state.usage, 0, true), Claim::ordinary);
  called_for(10, 3);
  EXPECT_EQ(policy().claim(state.usage, 10, true), Claim::none);
  called_for(10, 4);  // 16 MiB
  EXPECT_EQ(policy().claim(state.usage, 10, true), Claim::ordinary);
}

TEST_F(GrowthPolicyTest, AClassThatWouldTakePiecesClaimsMost) {
  EXPECT_EQ(policy().claim(state.usage, 4, true), Claim::none);
  EXPECT_EQ(policy().claim(state.usage, 4, false), Claim::pressing);
  called_for(4, 1000);
  EXPECT_EQ(policy().claim(state.usage, 4, false), Claim::pressing);
}

TEST_F(GrowthPolicyTest, TheLastEighthIsForReservations) {
  have(0, 28 * mib, 0);
  EXPECT_EQ(new_file(4 * mib - 1), NewFile::for_nobody);
  EXPECT_EQ(new_file(4 * mib), NewFile::for_reservations);
  EXPECT_EQ(new_file(5 * mib), NewFile::for_any_class);
}

TEST_F(GrowthPolicyTest, RunsAreRestoredInBoundedPieces) {
  state.growable_bytes = 5 * mib + 100;
  EXPECT_EQ(GrowthPolicy::restore_blocks(state), 5 * mib_blocks);
  state.growable_bytes = 1000 * mib;
  EXPECT_EQ(GrowthPolicy::restore_blocks(state), 64 * mib_blocks);
}

// --- what to do ahead of use

TEST_F(GrowthPolicyTest, AClassInUseRunsLowAtHalfOfWhatIsKept) {
  have(4, 4 * mib, mib - block_bytes);
  EXPECT_FALSE(policy().runs_low(state.usage, 4));  // nobody uses it
  called_for(4, 1);
  EXPECT_TRUE(policy().runs_low(state.usage, 4));
  have(4, 0, block_bytes);
  EXPECT_FALSE(policy().runs_low(state.usage, 4));
  options.prepare_ahead_bytes = 100 * mib;  // a container counts as much as is kept
  EXPECT_TRUE(policy().runs_low(state.usage, 4));
  have(4, 0, mib);
  EXPECT_FALSE(policy().runs_low(state.usage, 4));
}

TEST_F(GrowthPolicyTest, AClassInUseIsPreparedAsFarAsToldAndNoFurther) {
  have(4, 8 * mib, 8 * mib);
  AllocatorUsage::Class& sums = state.usage.classes[4];
  sums.unwritten_free_blocks = sums.free_blocks;
  EXPECT_EQ(policy().blocks_to_prepare(state.usage, 4), 0u);
  called_for(4, 1);
  EXPECT_GT(policy().blocks_to_prepare(state.usage, 4), 0u);
  sums.unwritten_free_blocks = 6 * mib_blocks + mib_blocks / 4;
  EXPECT_GT(policy().blocks_to_prepare(state.usage, 4), 0u);
  sums.unwritten_free_blocks = 6 * mib_blocks;
  EXPECT_EQ(policy().blocks_to_prepare(state.usage, 4), 0u);
}

TEST_F(GrowthPolicyTest, LargeSlotsAreNotPrepared) {
  called_for(options.largest_prepared_class, 1);
  called_for(options.largest_prepared_class + 1, 1);
  EXPECT_GT(policy().blocks_to_prepare(state.usage, options.largest_prepared_class), 0u);
  EXPECT_EQ(policy().blocks_to_prepare(state.usage, options.largest_prepared_class + 1), 0u);
}

TEST_F(GrowthPolicyTest, AFewBlocksAreNotWorthAFlush) {
  options.prepare_ahead_bytes = 64 * mib;
  have(0, 128 * mib, 128 * mib);
  called_for(0, 1);
  AllocatorUsage::Class& sums = state.usage.classes[0];
  sums.unwritten_free_blocks = 65 * mib_blocks - 1;
  EXPECT_EQ(policy().blocks_to_prepare(state.usage, 0), 0u);
  sums.unwritten_free_blocks = 65 * mib_blocks;
  EXPECT_EQ(policy().blocks_to_prepare(state.usage, 0), mib_blocks);
}

TEST_F(GrowthPolicyTest, NoMoreIsPreparedAtOnceThanAPartOfAContainer) {
  options.prepare_ahead_bytes = 64 * mib;
  have(0, 128 * mib, 128 * mib);
  called_for(0, 1);
  AllocatorUsage::Class& sums = state.usage.classes[0];
  sums.unwritten_free_blocks = sums.free_blocks;
  for (const uint64_t container : {4, 8, 16, 64}) {
    options.container_bytes = container * mib;
    EXPECT_EQ(policy().blocks_to_prepare(state.usage, 0),
              std::max<uint64_t>(container / 8, 1) * mib_blocks);
  }
}

TEST_F(GrowthPolicyTest, FirstTouchesCountWhereSpaceIsPrepared) {
  state.usage.classes[0].first_touch_blocks = 3;
  state.usage.classes[options.largest_prepared_class].first_touch_blocks = 16;
  state.usage.classes[options.largest_prepared_class + 1].first_touch_blocks = 32;
  EXPECT_EQ(policy().first_touch_bytes(state.usage), 19 * block_bytes);
}

// --- the stock

TEST_F(GrowthPolicyTest, TheStockIsOfWholeContainersAndAnEighthOfAllAtMost) {
  EXPECT_EQ(policy().stock_blocks(state), 0u);
  options.stock_bytes = 10 * mib;
  have(0, 24 * mib, 0);
  state.growable_bytes = 40 * mib - 1;
  EXPECT_EQ(policy().stock_blocks(state), 4 * mib_blocks);
  state.growable_bytes = 400 * mib;
  EXPECT_EQ(policy().stock_blocks(state), 8 * mib_blocks);
  state.growable_bytes = 7 * mib;
  EXPECT_EQ(policy().stock_blocks(state), 0u);
}

TEST_F(GrowthPolicyTest, ThereIsNoStockWhereOthersLackSpaceOrNothingIsPrepared) {
  have_stock_of(8 * mib);
  state.short_bytes = 1;
  EXPECT_EQ(policy().stock_blocks(state), 0u);
  EXPECT_EQ(policy().quiet_rule(state).whole_blocks, 0u);
  state.short_bytes = 0;
  options.prepare_bytes_per_second = 0;
  EXPECT_EQ(policy().stock_blocks(state), 0u);
  EXPECT_EQ(policy().quiet_rule(state).whole_blocks, 0u);
}

TEST_F(GrowthPolicyTest, TheStockIsWrittenAPieceAtATimeAndNoFurtherThanItGoes) {
  have_stock_of(8 * mib);
  EXPECT_EQ(policy().stock_blocks_to_write(state), 0u);
  have_whole(12 * mib, 12 * mib);
  EXPECT_EQ(policy().stock_blocks_to_write(state), mib_blocks);
  AllocatorUsage::Class& sums = state.usage.classes[largest];
  sums.whole_unwritten_blocks = 5 * mib_blocks - 1;  // less than that is not worth a flush
  EXPECT_EQ(policy().stock_blocks_to_write(state), 0u);
  sums.whole_unwritten_blocks = 5 * mib_blocks;
  EXPECT_EQ(policy().stock_blocks_to_write(state), mib_blocks);
  sums.whole_blocks = 4 * mib_blocks + 5;
  sums.whole_unwritten_blocks = 5;
  EXPECT_EQ(policy().stock_blocks_to_write(state), 5u);
  options.container_bytes = 16 * mib;
  options.stock_bytes = 16 * mib;
  sums.whole_blocks = sums.whole_unwritten_blocks = 4 * mib_blocks;
  EXPECT_EQ(policy().stock_blocks_to_write(state), 2 * mib_blocks);
}

TEST_F(GrowthPolicyTest, WhatClassesInUseHaveIsWrittenWhereThereIsToBeAStock) {
  have(8, 8 * mib, 8 * mib);
  state.usage.classes[8].unwritten_free_blocks = 8 * mib_blocks;
  called_for(8, 1);
  EXPECT_EQ(policy().own_blocks_to_write(state, 8), 0u);
  have_stock_of(8 * mib);
  EXPECT_EQ(policy().own_blocks_to_write(state, 8), mib_blocks);
  EXPECT_EQ(policy().own_blocks_to_write(state, 7), 0u);
  state.usage.classes[8].unwritten_free_blocks = mib_blocks - 1;
  EXPECT_EQ(policy().own_blocks_to_write(state, 8), 0u);
  state.usage.classes[8].unwritten_free_blocks = mib_blocks;
  EXPECT_EQ(policy().own_blocks_to_write(state, 8), mib_blocks);
  called_for(8, 0);
  EXPECT_EQ(policy().own_blocks_to_write(state, 8), 0u);
}

TEST_F(GrowthPolicyTest, TheStockGetsAContainerWhereThatIsWantedWhole) {
  have_stock_of(8 * mib);
  EXPECT_TRUE(policy().stock_lacks_container(state));
  have_whole(4 * mib, 0);
  EXPECT_TRUE(policy().stock_lacks_container(state));
  have_whole(4 * mib, 0);
  EXPECT_FALSE(policy().stock_lacks_container(state));
  state.usage.reserved_blocks = 4 * mib_blocks;
  EXPECT_TRUE(policy().stock_lacks_container(state));
  have(0, 8 * mib, 4 * mib);  // which the reservation can have
  EXPECT_FALSE(policy().stock_lacks_container(state));
  called_for(largest, 1);  // its last one it keeps
  EXPECT_TRUE(policy().stock_lacks_container(state));
}

TEST_F(GrowthPolicyTest, TheStockLeavesTheLastEighthToReservations) {
  have_stock_of(8 * mib);
  have(0, 700 * mib, 0);
  state.growable_bytes = 100 * mib;
  EXPECT_FALSE(policy().stock_lacks_container(state));
  state.growable_bytes = 101 * mib;
  EXPECT_TRUE(policy().stock_lacks_container(state));
}

TEST_F(GrowthPolicyTest, MoreIsKeptInStockThanIsMade) {
  EXPECT_EQ(policy().quiet_rule(state).whole_blocks, 0u);
  have_stock_of(8 * mib);
  EXPECT_EQ(policy().quiet_rule(state).whole_blocks, 12 * mib_blocks);
  have_whole(8 * mib, 0);
  called_for(largest, 1);
  EXPECT_EQ(policy().quiet_rule(state).whole_blocks, 16 * mib_blocks);
  state.usage.reserved_blocks = 3;
  EXPECT_EQ(policy().quiet_rule(state).whole_blocks, 16 * mib_blocks + 3);
}

// --- what to give back

TEST_F(GrowthPolicyTest, AClassKeepsAContainerOrWhatIsPreparedOrAnEighth) {
  options.quiet_steps = 7;
  have(4, 80 * mib, 0);
  const QuietRule rule = policy().quiet_rule(state);
  EXPECT_EQ(rule.min_age, 7u);
  EXPECT_EQ(rule.spare_blocks[0], 4 * mib_blocks);
  EXPECT_EQ(rule.spare_blocks[4], 10 * mib_blocks);
  options.prepare_ahead_bytes = 20 * mib;
  EXPECT_EQ(policy().quiet_rule(state).spare_blocks[4], 20 * mib_blocks);
}

TEST_F(GrowthPolicyTest, AClassOutOfUseKeepsNothingOnceThatCanBeTold) {
  called_for(0, 1023);
  EXPECT_EQ(policy().quiet_rule(state).spare_blocks[4], 4 * mib_blocks);
  called_for(0, 1024);
  EXPECT_EQ(policy().quiet_rule(state).spare_blocks[4], 0u);
  EXPECT_EQ(policy().quiet_rule(state).spare_blocks[0], 4 * mib_blocks);
}

TEST_F(GrowthPolicyTest, WhatWasProvisionedIsNotGivenBack) {
  options.provision_bytes = 9 * mib;
  have(0, 16 * mib, 16 * mib);
  EXPECT_TRUE(policy().may_remove_container(state.usage));
  EXPECT_EQ(policy().punch_size(state.usage)->max_blocks, 7 * mib_blocks);
  state.usage.punched_blocks = 4 * mib_blocks;
  EXPECT_FALSE(policy().may_remove_container(state.usage));
  EXPECT_EQ(policy().punch_size(state.usage)->max_blocks, 3 * mib_blocks);
  state.usage.punched_blocks = 6 * mib_blocks + 1;
  EXPECT_FALSE(policy().punch_size(state.usage));
  state.usage.punched_blocks = 10 * mib_blocks;
  EXPECT_FALSE(policy().punch_size(state.usage));
}

TEST_F(GrowthPolicyTest, RunsArePunchedInBoundedPieces) {
  have(0, 400 * mib, 400 * mib);
  EXPECT_EQ(policy().punch_size(state.usage)->min_blocks, mib_blocks);
  EXPECT_EQ(policy().punch_size(state.usage)->max_blocks, 16 * mib_blocks);
}

// --- what is remembered

TEST(GrowthMemoryTest, ALackIsForgottenWhenThatClassGetsAContainer) {
  GrowthMemory memory;
  EXPECT_FALSE(memory.lacked_class());
  memory.note_lacked(0);
  memory.note_container_for(4);
  EXPECT_EQ(memory.lacked_class(), 0u);
  memory.note_container_for(0);
  EXPECT_FALSE(memory.lacked_class());
}

TEST(GrowthMemoryTest, ARefusalIsForgottenWhenSpaceIsGivenBack) {
  GrowthMemory memory;
  memory.note_file(false);
  memory.note_name_refused();
  EXPECT_TRUE(memory.file_refused());
  EXPECT_TRUE(memory.name_refused());
  memory.note_space_given_back();
  EXPECT_FALSE(memory.file_refused());
  EXPECT_FALSE(memory.name_refused());
}

TEST(GrowthMemoryTest, AFileThatWasMadeShowsThatFilesCanBe) {
  GrowthMemory memory;
  memory.note_file(false);
  memory.note_name_refused();
  memory.note_file(true);
  EXPECT_FALSE(memory.file_refused());
  EXPECT_TRUE(memory.name_refused());
}

}  // namespace
}  // namespace tablestore
