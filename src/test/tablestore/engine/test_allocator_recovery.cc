// What a checkpoint takes of the allocator, and what a recovery makes of it.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "os/tablestore/engine/container/allocator.h"

namespace tablestore {
namespace {

constexpr uint32_t chunk = BlockBitmap::chunk_blocks;
constexpr uint32_t container_blocks = chunk + 2048;  // two chunks

BlockBitmap with(uint32_t blocks, uint32_t first, uint32_t count) {
  BlockBitmap bitmap(blocks);
  bitmap.set(first, count);
  return bitmap;
}

class AllocatorRecoveryTest : public testing::Test {
 protected:
  void add(uint32_t id, unsigned slot_class = 4) {
    allocator.add_container(id, slot_class, container_blocks, BlockBitmap(container_blocks));
  }
  std::vector<Allocator::OwnedChunk> take_changed() {
    allocator.begin_capture();
    return allocator.take_changed(1000);
  }
  std::vector<Extent> take(uint64_t blocks) {
    EXPECT_TRUE(allocator.reserve(blocks));
    return allocator.allocate(blocks, true, nullptr);
  }
  uint64_t free_blocks() { return allocator.usage().free_blocks; }

  Allocator allocator;
};

// --- checkpoints

TEST_F(AllocatorRecoveryTest, ChangedChunksAreTakenOnce) {
  add(1);
  add(2);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_TRUE(take_changed().empty());
  for (const Extent& e : take(chunk + 16)) allocator.mark_owned(e);
  const auto changed = take_changed();
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0].container, 1u);
  EXPECT_EQ(changed[0].chunk, 0u);
  EXPECT_EQ(changed[0].owned.count(), chunk);
  EXPECT_EQ(changed[1].chunk, 1u);
  EXPECT_EQ(changed[1].owned.blocks(), 2048u);
  EXPECT_EQ(changed[1].owned.count(), 16u);
  EXPECT_TRUE(take_changed().empty());
  allocator.mark_freed({1, chunk - 1, 2});  // of both
  EXPECT_EQ(take_changed().size(), 2u);
}

// Of what changes meanwhile, a capture takes what lies before it, and leaves what lies behind it to
// the next one.
TEST_F(AllocatorRecoveryTest, ACaptureGoesThroughTheContainersOnce) {
  for (uint32_t id = 1; id <= 3; ++id) add(id);
  for (uint32_t id = 1; id <= 3; ++id) allocator.replay_owned({id, 0, 64}, 1);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  allocator.begin_capture();
  auto piece = allocator.take_changed(2);
  ASSERT_EQ(piece.size(), 2u);
  EXPECT_EQ(piece[1].container, 2u);
  allocator.mark_freed({1, 0, 1});
  allocator.mark_freed({2, 0, 1});
  allocator.mark_freed({3, 0, 1});
  piece = allocator.take_changed(2);
  ASSERT_EQ(piece.size(), 1u);
  EXPECT_EQ(piece[0].container, 3u);
  EXPECT_EQ(piece[0].owned.count(), 63u);
  EXPECT_TRUE(allocator.take_changed(2).empty());
  piece = take_changed();
  ASSERT_EQ(piece.size(), 2u);
  EXPECT_EQ(piece[0].container, 1u);
  EXPECT_EQ(piece[0].owned.count(), 63u);
  EXPECT_EQ(piece[1].container, 2u);
}

TEST_F(AllocatorRecoveryTest, ACaptureThatIsGivenUpLeavesTheRestToTheNext) {
  for (uint32_t id = 1; id <= 3; ++id) add(id);
  for (uint32_t id = 1; id <= 3; ++id) allocator.replay_owned({id, 0, 64}, 1);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  allocator.begin_capture();
  ASSERT_EQ(allocator.take_changed(1).size(), 1u);
  const auto rest = take_changed();
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].container, 2u);
}

TEST_F(AllocatorRecoveryTest, WhatIsPutBackIsForTheNextCaptureAlsoOfWhatIsGone) {
  for (uint32_t id = 1; id <= 2; ++id) add(id);
  BlockBitmap owned(container_blocks);
  owned.set(0, 64);
  allocator.load_whole(3, owned);
  allocator.replay_freed({3, 0, 64}, 1);
  for (uint32_t id = 1; id <= 2; ++id) allocator.replay_owned({id, 0, 64}, 1);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  const auto taken = take_changed();
  ASSERT_GE(taken.size(), 3u);
  EXPECT_EQ(taken.back().container, 3u);
  allocator.put_back_changed(taken);
  const auto again = take_changed();
  ASSERT_EQ(again.size(), taken.size());
  EXPECT_EQ(again.front().owned.count(), 64u);
  EXPECT_EQ(again.back().container, 3u);
}

// What was owned when its rows were written last is written as not owned, and only then do they go.
TEST_F(AllocatorRecoveryTest, RowsOfARemovedContainerGoAfterTheCaptureThatFollows) {
  add(1);
  add(2);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  const auto extents = take(16);
  const uint32_t id = extents[0].container;
  for (const Extent& e : extents) allocator.mark_owned(e);
  ASSERT_EQ(take_changed().size(), 1u);
  for (const Extent& e : extents) {
    allocator.mark_freed(e);
    allocator.give_back(e);
  }
  allocator.begin_capture();
  ASSERT_TRUE(allocator.remove_container(id));
  EXPECT_TRUE(allocator.take_gone(1000).empty());  // it was there when this one began
  const auto changed = take_changed();
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].container, id);
  EXPECT_EQ(changed[0].owned, BlockBitmap(chunk));
  const auto gone = allocator.take_gone(1000);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].container, id);
  EXPECT_EQ(gone[0].chunks, 2u);
  EXPECT_TRUE(allocator.take_gone(1000).empty());
  EXPECT_EQ(allocator.containers().size(), 1u);
  EXPECT_EQ(allocator.next_container_id(), 3u);
}

TEST_F(AllocatorRecoveryTest, RowsGoInPieces) {
  for (uint32_t id = 1; id <= 9; ++id) add(id);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  for (uint32_t id = 1; id <= 9; ++id) ASSERT_TRUE(allocator.remove_container(id));
  allocator.begin_capture();
  EXPECT_TRUE(allocator.take_changed(1000).empty());
  size_t rows = 0, pieces = 0;
  for (auto gone = allocator.take_gone(6); !gone.empty(); gone = allocator.take_gone(6)) {
    EXPECT_LE(gone.size(), 2u);
    rows += gone.size();
    ++pieces;
  }
  EXPECT_EQ(rows, 9u);
  EXPECT_EQ(pieces, 5u);
}

// --- recovery

TEST_F(AllocatorRecoveryTest, HoldsWhatTheCheckpointAndTheLogOwn) {
  add(3);
  allocator.load(3, 0, with(chunk, 0, 32), 0);
  allocator.replay_owned({3, 64, 16}, 1);
  allocator.replay_freed({3, 0, 16}, 2);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_EQ(free_blocks(), container_blocks - 32);
  EXPECT_EQ(allocator.usage().owned_blocks, 32u);
  EXPECT_TRUE(allocator.owned_bitmap(3)->all(16, 16));
  EXPECT_TRUE(allocator.owned_bitmap(3)->all(64, 16));
  const auto changed = take_changed();
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].owned, allocator.owned_bitmap(3)->chunk(0));
}

TEST_F(AllocatorRecoveryTest, WhereThereIsNoLongRunNobodyLooksForOne) {
  add(1, 8);
  BlockBitmap first(chunk), second(2048);
  for (BlockBitmap* bitmap : {&first, &second})
    for (uint32_t block = 0; block < bitmap->blocks(); block += 16) bitmap->set(block, 1);
  allocator.load(1, 0, first, 0);
  allocator.load(1, 1, second, 0);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_FALSE(allocator.may_have_run(4));
  EXPECT_TRUE(allocator.may_have_run(3));
}

TEST_F(AllocatorRecoveryTest, ALoadedCheckpointIsNotChanged) {
  add(3);
  allocator.load(3, 0, with(chunk, 0, chunk), 0);
  allocator.load(3, 1, with(2048, 0, 2048), 0);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_EQ(free_blocks(), 0u);
  EXPECT_TRUE(take_changed().empty());
}

// The second chunk is older than the first: of one run, one part is replayed and the other not.
TEST_F(AllocatorRecoveryTest, WhatAChunkHasAlreadyIsNotReplayedOverIt) {
  add(3);
  allocator.load(3, 0, with(chunk, chunk - 8, 8), 12);
  allocator.load(3, 1, with(2048, 100, 8), 0);
  allocator.replay_owned({3, chunk - 8, 16}, 11);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_EQ(allocator.usage().owned_blocks, 24u);
  EXPECT_TRUE(allocator.owned_bitmap(3)->all(chunk - 8, 16));
  const auto changed = take_changed();
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].chunk, 1u);
}

TEST_F(AllocatorRecoveryTest, WhatAChunkHasNotIsReplayedOverIt) {
  add(3);
  allocator.load(3, 0, with(chunk, 0, 8), 12);
  allocator.replay_freed({3, 0, 8}, 12);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_EQ(allocator.usage().owned_blocks, 0u);
}

// A chunk that was emptied meanwhile: what the log says before is not of it.
TEST_F(AllocatorRecoveryTest, AnEmptyChunkIsAsOfATransactionToo) {
  add(3);
  allocator.load(3, 0, BlockBitmap(chunk), 12);
  allocator.replay_freed({3, 0, 8}, 11);
  allocator.replay_owned({3, 0, 4}, 12);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_EQ(allocator.usage().owned_blocks, 4u);
}

TEST_F(AllocatorRecoveryTest, ALogThatContradictsTheCheckpointIsDamage) {
  for (const bool owned : {true, false}) {
    Allocator damaged;
    damaged.add_container(1, 0, container_blocks, BlockBitmap(container_blocks));
    damaged.load(1, 0, with(chunk, 0, owned ? chunk : 0), 12);
    owned ? damaged.replay_owned({1, 9, 1}, 12) : damaged.replay_freed({1, 9, 1}, 12);
    const Status status = damaged.finish_recovery();
    EXPECT_EQ(status.code(), EIO);
    EXPECT_NE(status.what().find("container 1"), std::string::npos) << status.what();
  }
}

TEST_F(AllocatorRecoveryTest, AContainerThatWasEmptiedAndRemovedMayBeInTheLog) {
  allocator.load(7, 1, with(2048, 0, 2), 0);
  allocator.replay_owned({7, 100, 3}, 1);
  allocator.replay_freed({7, chunk, 2}, 2);
  allocator.replay_freed({7, 100, 3}, 3);
  allocator.replay_owned({9, 5000, 1}, 4);
  allocator.replay_freed({9, 5000, 1}, 5);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_TRUE(allocator.containers().empty());
  EXPECT_EQ(allocator.next_container_id(), 10u);
  // Until these are in the table, a recovery may need what it replayed once more.
  const auto changed = take_changed();
  ASSERT_EQ(changed.size(), 4u);
  for (const auto& none : changed) EXPECT_EQ(none.owned.count(), 0u);
  const auto gone = allocator.take_gone(1000);
  ASSERT_EQ(gone.size(), 2u);
  EXPECT_EQ(gone[0].container, 7u);
  EXPECT_EQ(gone[0].chunks, 2u);
}

// The process was killed while it removed one, the next life wrote rows of what it knew of it, and
// then the power went, and with it the removal.
TEST_F(AllocatorRecoveryTest, OneThatWasMissingMayComeBackEmpty) {
  allocator.replay_owned({7, 100, 3}, 1);
  allocator.replay_freed({7, 100, 3}, 2);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  const auto rows = take_changed();
  Allocator next;
  next.add_container(7, 4, container_blocks, BlockBitmap(container_blocks));
  for (const auto& row : rows) next.load(row.container, row.chunk, row.owned, 3);
  const Status status = next.finish_recovery();
  EXPECT_TRUE(status.ok()) << status.what();
}

TEST_F(AllocatorRecoveryTest, AMissingContainerThatHoldsDataIsNamed) {
  allocator.replay_owned({7, 100, 3}, 1);
  const Status status = allocator.finish_recovery();
  EXPECT_EQ(status.code(), EIO);
  EXPECT_NE(status.what().find("containers/*/7, 3 blocks"), std::string::npos) << status.what();
}

TEST_F(AllocatorRecoveryTest, ABlockPastTheEndInTheLogIsDamage) {
  add(1);
  allocator.replay_owned({1, container_blocks - 1, 2}, 1);
  EXPECT_EQ(allocator.finish_recovery().code(), EIO);
}

TEST_F(AllocatorRecoveryTest, ACheckpointOfAnotherSizeIsDamage) {
  for (const uint32_t blocks : {1024u, chunk}) {
    Allocator damaged;
    damaged.add_container(1, 0, container_blocks, BlockBitmap(container_blocks));
    damaged.load(1, 1, with(blocks, 0, 1), 0);
    EXPECT_EQ(damaged.finish_recovery().code(), EIO);
  }
  Allocator past_the_end;
  past_the_end.add_container(1, 0, container_blocks, BlockBitmap(container_blocks));
  past_the_end.load(1, 2, BlockBitmap(2048), 0);
  EXPECT_EQ(past_the_end.finish_recovery().code(), EIO);
}

TEST_F(AllocatorRecoveryTest, OfAnUnknownChunkAllBlocksCountAsOwnedButForWhatTheLogSays) {
  add(1);
  allocator.load(1, 0, with(chunk, 0, 8), 0);
  allocator.load_unknown({{1, 1}});
  allocator.replay_owned({1, chunk - 4, 8}, 1);
  allocator.replay_freed({1, chunk + 100, 1}, 2);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_EQ(allocator.usage().owned_blocks, 8u + 4 + 2048 - 1);
  EXPECT_EQ(take_changed().size(), 2u);
}

// --- rows of the old format

TEST_F(AllocatorRecoveryTest, ARowOfTheOldFormatIsReadAndReplaced) {
  add(1);
  add(2);
  allocator.load_whole(1, with(container_blocks, chunk, 3));
  allocator.load_whole(2, with(container_blocks, chunk - 1, 2));
  // A checkpoint was being made in chunks when the store stopped.
  allocator.load(2, 0, with(chunk, 0, 8), 12);
  allocator.replay_freed({2, chunk - 1, 1}, 11);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_EQ(allocator.owned_bitmap(1)->count(), 3u);
  EXPECT_EQ(allocator.owned_bitmap(2)->count(), 9u);
  allocator.begin_capture();
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> changed;
  for (const auto& c : allocator.take_changed(1000))
    changed[{c.container, c.chunk}] = c.owned.count();
  const std::map<std::pair<uint32_t, uint32_t>, uint32_t> wanted{
      {{1, 1}, 3}, {{2, 0}, 8}, {{2, 1}, 1}};
  EXPECT_EQ(changed, wanted);
  const auto gone = allocator.take_gone(1000);
  ASSERT_EQ(gone.size(), 2u);
  EXPECT_EQ(gone[0].container, 1u);
  EXPECT_EQ(gone[0].chunks, 0u);
}

TEST_F(AllocatorRecoveryTest, ARowOfTheOldFormatOfAnotherSizeIsDamage) {
  add(1);
  allocator.load_whole(1, BlockBitmap(container_blocks / 2));
  EXPECT_EQ(allocator.finish_recovery().code(), EIO);
}

}  // namespace
}  // namespace tablestore
