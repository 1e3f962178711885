// How free space is cut up: what an operator is told of it.
#include <gtest/gtest.h>

#include "os/tablestore/engine/container/allocator.h"

namespace tablestore {
namespace {

constexpr uint32_t container_blocks = 2048;  // 8 MiB

class FreeSpaceTest : public ::testing::Test {
 protected:
  // A container of 4 KiB slots in which rows own what `owned` sets.
  void add(uint32_t id, unsigned slot_class, const BlockBitmap& owned) {
    const BlockBitmap written(container_blocks);
    allocator.add_container(id, slot_class, container_blocks, written);
    for (uint32_t chunk = 0; chunk < owned.chunks(); ++chunk)
      allocator.load(id, chunk, owned.chunk(chunk), 0);
  }
  void ready() { ASSERT_TRUE(allocator.finish_recovery().ok()); }
  static BlockBitmap every_second() {
    BlockBitmap owned(container_blocks);
    for (uint32_t block = 0; block < container_blocks; block += 2) owned.set(block, 1);
    return owned;
  }

  const BlockBitmap nothing{container_blocks};
  Allocator allocator;
};

TEST_F(FreeSpaceTest, EmptyContainersAreNotFragmented) {
  add(1, 0, nothing);
  add(2, 4, nothing);
  ready();
  const FreeSpace space = allocator.free_space();
  EXPECT_EQ(space.blocks, 2 * container_blocks);
  EXPECT_DOUBLE_EQ(space.score, 0);
  EXPECT_EQ(space.classes[4].bins[11].runs, 1u);
  EXPECT_EQ(space.classes[4].largest_blocks, container_blocks);
}

TEST_F(FreeSpaceTest, SingleBlocksAreTheWorstFragmentation) {
  add(1, 0, every_second());
  add(2, 4, nothing);
  ready();
  const FreeSpace space = allocator.free_space();
  EXPECT_DOUBLE_EQ(space.classes[0].score, 1);
  EXPECT_DOUBLE_EQ(space.classes[4].score, 0);
  EXPECT_GT(space.score, 0.2);
  EXPECT_LT(space.score, 0.5);
  EXPECT_EQ(space.classes[0].bins[0].runs, container_blocks / 2);
}

TEST_F(FreeSpaceTest, AFullStoreIsNotFragmented) {
  BlockBitmap all(container_blocks);
  all.set(0, container_blocks);
  add(1, 0, all);
  ready();
  EXPECT_DOUBLE_EQ(allocator.free_space().score, 0);
  EXPECT_EQ(allocator.free_space().blocks, 0u);
}

TEST_F(FreeSpaceTest, PunchedBlocksAreFreeAndBlocksOnTheirWayAreNot) {
  BlockBitmap punched(container_blocks);
  punched.set(1024, 1024);
  allocator.add_container(1, 0, container_blocks, punched, punched);
  ready();
  ASSERT_TRUE(allocator.reserve(10));
  unsigned wanted;
  ASSERT_FALSE(allocator.allocate(10, true, &wanted).empty());
  std::vector<tablestore::Run> runs;
  allocator.visit_free_runs([&](unsigned, const tablestore::Run& run) { runs.push_back(run); });
  EXPECT_EQ(runs, (std::vector<tablestore::Run>{{1, 10, container_blocks - 10}}));
}

TEST_F(FreeSpaceTest, TheTableHasEachContainer) {
  add(3, 0, every_second());
  add(7, 10, nothing);
  ready();
  const std::vector<ContainerUsage> table = allocator.usage_by_container();
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].container, 3u);
  EXPECT_EQ(table[0].owned_blocks, container_blocks / 2);
  EXPECT_EQ(table[0].free_blocks, container_blocks / 2);
  EXPECT_EQ(table[1].slot_class, 10u);
  EXPECT_EQ(table[1].free_blocks, container_blocks);
}

// The numbers of BlueStore's own Allocator::get_fragmentation_score().
TEST(FragmentationScoreTest, TwoHalvesAreWorthLessThanTheWhole) {
  FragmentationScore halves(256), whole(256);
  halves.add(128);
  halves.add(128);
  whole.add(256);
  EXPECT_DOUBLE_EQ(whole.score(), 0);
  // (1 - 1 / 1.2) / (1 - 1 / 1.2^8): 1 MiB is eight doublings of a block.
  EXPECT_NEAR(halves.score(), 0.2172, 0.0001);
}

}  // namespace
}  // namespace tablestore
