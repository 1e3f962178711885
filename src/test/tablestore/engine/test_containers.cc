#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <random>
#include <thread>

#include "os/tablestore/engine/container/containers.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "test/tablestore/engine/containers_fixture.h"

namespace tablestore {
namespace {

using LastFree = Allocator::LastFree;
using Operation = MemoryDisk::Operation;

constexpr uint64_t mib = container_test_mib;

class ContainersTest : public ContainersFixture {};

TEST_F(ContainersTest, AnUnformattedDirectoryIsRefused) {
  disk = std::make_unique<MemoryDisk>(64 * mib);
  EXPECT_EQ(open().code(), ENOENT);
}

TEST_F(ContainersTest, TheFirstReservationMakesAContainerOfItsClass) {
  open_empty();
  EXPECT_EQ(containers->file_bytes(), 0u);
  EXPECT_EQ(take(64 << 10), (std::vector<Extent>{{0, 0, 16}}));
  EXPECT_EQ(files("04"), (std::vector<std::string>{"0"}));
  EXPECT_EQ(containers->file_bytes(), 4 * mib);
  EXPECT_EQ(counters.containers_created, 1u);
  EXPECT_TRUE(containers->exists(0));
  EXPECT_FALSE(containers->exists(1));
}

TEST_F(ContainersTest, AContainerIsWholeAndDurableBeforeItIsUsed) {
  open_empty();
  ASSERT_TRUE(containers->reserve(1).ok());
  EXPECT_EQ(disk->take_calls(),
            (std::vector<MemoryDisk::Call>{{Operation::allocate, "containers/00/0", 0, 4 * mib},
                                           {Operation::flush, "containers/00/0"},
                                           {Operation::sync_dir, "containers/00"}}));
}

TEST_F(ContainersTest, BytesAreRoundedUpToBlocks) {
  open_empty();
  ASSERT_TRUE(containers->reserve(4097).ok());
  EXPECT_EQ(usage().reserved_blocks, 2u);
  containers->unreserve(4097);
  EXPECT_EQ(usage().reserved_blocks, 0u);
}

TEST_F(ContainersTest, WhatWasWrittenIsReadBackAlsoAfterAReopen) {
  open_empty();
  const auto extents = take(64 << 10);
  write(extents[0], 'x');
  own(extents);
  ASSERT_TRUE(open(extents).ok());
  BlockMemory memory(8192);
  const Extent part{extents[0].container, extents[0].block + 3, 2};
  ASSERT_TRUE(containers->read(part, memory.span()).ok());
  EXPECT_EQ(memory.data()[0], std::byte('x'));
  EXPECT_EQ(memory.data()[8191], std::byte('x'));
  EXPECT_EQ(usage().owned_blocks, 16u);
  EXPECT_FALSE(containers->allocator().is_unwritten(extents[0]));
  EXPECT_EQ(usage().classes[4].unwritten_free_blocks, 1024u - 16u);
}

TEST_F(ContainersTest, BlocksThatAreNotThereCannotBeRead) {
  open_empty();
  const std::vector<Extent> extents = take(block_bytes);
  ASSERT_EQ(extents.size(), 1u);
  const uint32_t container = extents[0].container;
  const uint32_t blocks = uint32_t(options.container_bytes / block_bytes);
  BlockMemory memory(2 * block_bytes);
  EXPECT_TRUE(containers->read({container, blocks - 2, 2}, memory.span()).ok());
  EXPECT_EQ(containers->read({container, blocks - 1, 2}, memory.span()).code(), EIO);
  EXPECT_EQ(containers->read({container, UINT32_MAX, 2}, memory.span()).code(), EIO);
  EXPECT_EQ(containers->read({container + 1, 0, 2}, memory.span()).code(), EIO);
}

TEST_F(ContainersTest, OpenFlushesBeforeItBelievesThatAnExtentIsWritten) {
  open_empty();
  take(4096);
  containers = nullptr;
  disk->take_calls();
  open_empty();
  const auto calls = disk->take_calls();
  ASSERT_FALSE(calls.empty());
  EXPECT_EQ(calls[0], (MemoryDisk::Call{Operation::flush, "containers/00/0"}));
}

// --- damage and crashes

TEST_F(ContainersTest, AFileThatWasBeingMadeIsRemovedWhenTheStoreIsInUse) {
  open_empty();
  take(4096);
  containers = nullptr;
  disk->truncate("containers/00/0", mib);
  open_empty();
  EXPECT_FALSE(containers->exists(0));
  EXPECT_EQ(files("00").size(), 1u);
  prepare_all();
  EXPECT_TRUE(files("00").empty());
  EXPECT_EQ(take(4096)[0].container, 1u);
}

TEST_F(ContainersTest, ACutFileThatHoldsDataIsNamedAndNotTouched) {
  open_empty();
  const auto extents = take(4096);
  containers = nullptr;
  disk->truncate("containers/00/0", mib);
  disk->take_calls();
  const Status s = open(extents);
  EXPECT_EQ(s.code(), EIO);
  EXPECT_NE(s.what().find("containers/*/0"), std::string::npos) << s.what();
  EXPECT_TRUE(disk->take_calls().empty());
}

TEST_F(ContainersTest, AFileThatIsTooLongIsDamage) {
  open_empty();
  take(4096);
  containers = nullptr;
  disk->truncate("containers/00/0", 5 * mib);
  const Status s = open();
  EXPECT_EQ(s.code(), EIO);
  EXPECT_NE(s.what().find("containers/00/0"), std::string::npos) << s.what();
}

TEST_F(ContainersTest, TwoFilesOfOneNumberAreDamage) {
  open_empty();
  take(4096);
  containers = nullptr;
  auto copy = disk->open("containers/05/0", OpenMode::create_new);
  ASSERT_TRUE((*copy)->allocate(0, 4 * mib).ok());
  *copy = nullptr;
  EXPECT_EQ(open().code(), EIO);
}

TEST_F(ContainersTest, OtherFilesAreLeftAlone) {
  for (const char* name : {"x", "007", "-1", "4294967295", "99999999999999999999"}) {
    ASSERT_TRUE(disk->open(std::string("containers/00/") + name, OpenMode::create_new).ok());
  }
  open_empty();
  prepare_all();
  EXPECT_EQ(files("00").size(), 5u);
  EXPECT_EQ(take(4096)[0].container, 0u);
}

// As many as there are, and in as many threads as it likes. One file by itself, too: not
// every file system empties the disk's cache where its journal has nothing to commit.
TEST_F(ContainersTest, OpenFlushesOnceForAllWhereTheDiskCan) {
  for (const unsigned threads : {1u, 4u}) {
    options.open_threads = threads;
    make_disk(64 * mib);
    open_empty();
    const auto extents = take(24 * mib);
    for (const Extent& extent : extents) write(extent, 7);
    disk->can_flush_all(true);
    disk->take_calls();
    ASSERT_TRUE(open(extents).ok());
    const auto calls = disk->take_calls();
    EXPECT_EQ(std::ranges::count(calls, Operation::flush_all, &MemoryDisk::Call::operation), 1);
    EXPECT_EQ(std::ranges::count(calls, Operation::flush, &MemoryDisk::Call::operation), 1);
    EXPECT_EQ(containers->allocator().containers().size(), 6u);
    for (const Extent& extent : extents)
      EXPECT_FALSE(containers->allocator().is_unwritten(extent));
    disk->fail(Operation::flush_all, "", EIO);
    EXPECT_EQ(open(extents).code(), EIO);
  }
}

TEST_F(ContainersTest, AFailingFlushFailsTheOpen) {
  open_empty();
  take(4096);
  containers = nullptr;
  disk->fail(Operation::flush, "containers/00/0", EIO);
  EXPECT_EQ(open().code(), EIO);
}

// --- space

TEST_F(ContainersTest, AReservationThatCannotBeMetMakesNothing) {
  options.capacity_bytes = 16 * mib;
  open_empty();
  const Status s = containers->reserve(17 * mib);
  EXPECT_EQ(s.code(), ENOSPC);
  EXPECT_NE(s.what().find("17.0 MiB"), std::string::npos) << s.what();
  EXPECT_EQ(s.what().find('\n'), std::string::npos);
  EXPECT_EQ(counters.containers_created, 0u);
  EXPECT_TRUE(containers->reserve(16 * mib).ok());
  EXPECT_EQ(containers->file_bytes(), 16 * mib);
  EXPECT_EQ(containers->reserve(1).code(), ENOSPC);
  containers->unreserve(16 * mib);
  EXPECT_TRUE(containers->reserve(1).ok());
}

TEST_F(ContainersTest, TheReserveOfOthersIsLeftOnTheFileSystem) {
  make_disk(32 * mib);
  open_empty();
  lack(0, 10 * mib);
  EXPECT_EQ(containers->free_bytes(), 20 * mib);
  EXPECT_EQ(containers->reserve(21 * mib).code(), ENOSPC);
  EXPECT_TRUE(containers->reserve(20 * mib).ok());
  EXPECT_GE(disk->space()->available_bytes, 10 * mib);
}

TEST_F(ContainersTest, WhatOthersTakeOnTheFileSystemCountsAtOnce) {
  make_disk(32 * mib);
  open_empty();
  EXPECT_EQ(containers->free_bytes(), 32 * mib);
  disk->set_other_bytes(30 * mib);
  EXPECT_EQ(containers->free_bytes(), 0u);
  EXPECT_EQ(containers->reserve(1).code(), ENOSPC);
}

TEST_F(ContainersTest, SpaceThatCannotBeAskedForForAMomentIsAskedForAgain) {
  disk->fail(Operation::space, "", EIO, 2);
  open_empty();
  disk->fail(Operation::space, "", EIO, 2);
  EXPECT_TRUE(containers->reserve(1).ok());
  disk->fail(Operation::space, "", EIO, 2);
  take(64 << 10);
  uint64_t bytes = 0;
  disk->fail(Operation::space, "", EIO, 2);
  EXPECT_TRUE(containers->prepare_step(&bytes).ok());
}

TEST_F(ContainersTest, AFileSystemThatIsFullerThanItSaysLeavesNoFile) {
  open_empty();
  disk->fail(Operation::allocate, "containers/", ENOSPC, 2);  // reserve() tries once more
  EXPECT_EQ(containers->reserve(1).code(), ENOSPC);
  EXPECT_TRUE(files("00").empty());
  EXPECT_TRUE(containers->reserve(1).ok());
}

TEST_F(ContainersTest, AnErrorOfTheDiskIsNotTakenForAFullOne) {
  open_empty();
  disk->fail(Operation::flush, "containers/", EIO);
  EXPECT_EQ(containers->reserve(1).code(), EIO);
}

TEST_F(ContainersTest, ARareClassSplitsLargerSlots) {
  open_empty();
  take(64 << 10);
  EXPECT_EQ(take(4096), (std::vector<Extent>{{0, 16, 1}}));
  EXPECT_TRUE(files("00").empty());
}

TEST_F(ContainersTest, AClassInDemandGetsContainersOfItsOwn) {
  open_empty();
  take(64 << 10);
  for (int i = 0; i < 150; ++i) take(4096);
  EXPECT_EQ(files("00").size(), 1u);
  EXPECT_EQ(usage().classes[0].containers, 1u);
}

TEST_F(ContainersTest, ARequestIsNotMadeUpOfSmallerSlotsWhileThereIsRoom) {
  open_empty();
  take(4096);
  EXPECT_EQ(take(64 << 10).size(), 1u);
  EXPECT_EQ(files("04").size(), 1u);
}

TEST_F(ContainersTest, InTheLastEighthARequestTakesWhateverIsFree) {
  options.capacity_bytes = 8 * mib;
  options.container_bytes = 8 * mib;
  open_empty();
  take(4096);
  EXPECT_EQ(take(64 << 10).size(), 16u);
}

TEST_F(ContainersTest, AnErrorMetByAllocateIsReportedByTheNextStep) {
  open_empty();
  take(4096);
  disk->fail(Operation::flush, "containers/04", EIO);
  EXPECT_EQ(take(64 << 10).size(), 16u);
  uint64_t bytes = 0;
  const auto done = containers->prepare_step(&bytes);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.status().code(), EIO);
}

// Whatever the mix, what statfs promised can be had, to the last container.
class ContainersFill : public ContainersTest, public testing::WithParamInterface<uint32_t> {};

TEST_P(ContainersFill, ASmallStoreCanBeFilledWithAnyMix) {
  options.capacity_bytes = 64 * mib;
  open_empty();
  std::mt19937 random(GetParam());
  const uint64_t largest = 1ull << (GetParam() * 3 % 12);  // in blocks
  std::vector<std::vector<Extent>> owned;
  uint64_t data = 0;
  for (int lap = 0; lap < 4; ++lap) {
    for (;;) {
      const uint64_t bytes = (1 + random() % largest) * block_bytes;
      const uint64_t free = containers->free_bytes();
      const Status s = containers->reserve(bytes);
      ASSERT_EQ(s.ok(), bytes <= free) << s.what();
      if (!s.ok()) break;
      owned.push_back(containers->allocate(bytes));
      own(owned.back());
      data += bytes;
      uint64_t moved = 0;
      if (random() % 8 == 0) { ASSERT_TRUE(containers->prepare_step(&moved).ok()); }
      if (random() % 8 == 0) { ASSERT_TRUE(containers->shrink_step(&moved).ok()); }
    }
    const uint64_t rest = containers->free_bytes();
    EXPECT_LT(rest, largest * block_bytes);
    EXPECT_EQ(data + rest, 64 * mib);
    while (owned.size() > 3) {
      std::swap(owned[random() % owned.size()], owned.back());
      for (const Extent& extent : owned.back()) data -= extent.length_bytes();
      give_up(owned.back());
      owned.pop_back();
      if (random() % 4 == 0) shrink_all();
      if (lap % 2 && data < 32 * mib) break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mixes, ContainersFill, testing::Range(0u, 8u));

// --- preparing

TEST_F(ContainersTest, NothingIsPreparedForAClassThatIsNotInUse) {
  open_empty();
  EXPECT_EQ(prepare_all(), 0);
  ASSERT_TRUE(containers->reserve(4096).ok());
  EXPECT_EQ(prepare_all(), 0);
}

TEST_F(ContainersTest, AClassInUseIsPreparedAsFarAsToldAndNoFurther) {
  open_empty();
  take(4096);
  EXPECT_GT(prepare_all(), 0);
  const auto sums = usage().classes[0];
  EXPECT_EQ((sums.free_blocks - sums.unwritten_free_blocks) * block_bytes, 2 * mib);
  EXPECT_EQ(counters.prepared_bytes, 2 * mib);
  EXPECT_FALSE(containers->allocator().is_unwritten(take(4096)[0]));
}

TEST_F(ContainersTest, LargeSlotsAreNotPrepared) {
  open_empty();
  take(128 << 10);
  EXPECT_EQ(prepare_all(), 0);
}

TEST_F(ContainersTest, PreparedBlocksAreFlushedBeforeTheyCountAsWritten) {
  open_empty();
  take(4096);
  disk->take_calls();
  uint64_t bytes = 0;
  EXPECT_EQ(*containers->prepare_step(&bytes), Worked::yes);
  EXPECT_EQ(bytes, mib);
  EXPECT_EQ(disk->take_calls(),
            (std::vector<MemoryDisk::Call>{{Operation::write_zeroes, "containers/00/0", 4096, mib},
                                           {Operation::flush, "containers/00/0"}}));
}

TEST_F(ContainersTest, APieceIsAsMuchAsIsAskedForAndLackedWithOneFlush) {
  options.container_bytes = 16 * mib;
  open_empty();
  take(4096);
  disk->take_calls();
  PreparePace::Piece piece;
  EXPECT_EQ(*containers->prepare_step(&piece, mib + mib / 2), Worked::yes);
  EXPECT_EQ(piece.bytes, mib + mib / 2);
  EXPECT_EQ(disk->take_calls().size(), 2u);
  EXPECT_EQ(*containers->prepare_step(&piece, 8 * mib), Worked::yes);
  EXPECT_EQ(piece.bytes, mib / 2);
  EXPECT_EQ(*containers->prepare_step(&piece, 8 * mib), Worked::nothing_to_do);
  EXPECT_EQ(piece.bytes, 0u);
}

TEST_F(ContainersTest, ASlotThatIsUsedCostsNoFlush) {
  open_empty();
  take(4096);
  EXPECT_GT(prepare_all(), 0);
  disk->take_calls();
  for (int i = 0; i < 63; ++i) {
    take(4096);
    EXPECT_EQ(prepare_all(), 0);
  }
  EXPECT_TRUE(disk->take_calls().empty());
  take(4096);
  EXPECT_EQ(prepare_all(), 1);
}

TEST_F(ContainersTest, WhatIsTakenUnpreparedIsAFirstTouch) {
  open_empty();
  take(4096);
  EXPECT_EQ(containers->first_touch_bytes(), 4096u);
  EXPECT_GT(prepare_all(), 0);
  for (int i = 0; i < 10; ++i) take(4096);
  EXPECT_EQ(containers->first_touch_bytes(), 4096u);
  take(256 << 10);  // nothing is prepared for it
  EXPECT_EQ(containers->first_touch_bytes(), 4096u);
}

TEST_F(ContainersTest, ClassesArePreparedByTurns) {
  open_empty();
  for (int i = 0; i < 150; ++i) take(4096);
  take(64 << 10);
  const auto prepared = [&](unsigned slot_class) {
    return GrowthPolicy::prepared_blocks(usage(), slot_class) * block_bytes;
  };
  uint64_t bytes = 0;
  ASSERT_TRUE(containers->prepare_step(&bytes).ok());
  EXPECT_EQ(prepared(0), mib);
  ASSERT_TRUE(containers->prepare_step(&bytes).ok());
  EXPECT_EQ(prepared(4), mib);
  ASSERT_TRUE(containers->prepare_step(&bytes).ok());
  EXPECT_EQ(prepared(0), 2 * mib);
}

TEST_F(ContainersTest, AStepOfNoBytesMakesContainersAndWritesNothing) {
  options.container_bytes = 8 * mib;
  open_empty();
  take(64 << 10);
  while (usage().free_blocks * block_bytes >= mib) take(64 << 10);
  const uint64_t made = counters.containers_created;
  PreparePace::Piece piece;
  EXPECT_EQ(*containers->prepare_step(&piece, 0), Worked::yes);
  EXPECT_EQ(counters.containers_created, made + 1);
  EXPECT_EQ(*containers->prepare_step(&piece, 0), Worked::nothing_to_do);
  EXPECT_EQ(piece.bytes, 0u);
  EXPECT_EQ(counters.prepared_bytes, 0u);
}

TEST_F(ContainersTest, AFullFileSystemStopsPreparingWithoutHarm) {
  open_empty();
  take(4096);
  disk->fail(Operation::write_zeroes, "containers/", ENOSPC);
  const uint64_t free = usage().free_blocks;
  EXPECT_EQ(prepare_all(), 0);
  EXPECT_EQ(usage().free_blocks, free);
  EXPECT_EQ(counters.prepared_bytes, 0u);
  EXPECT_GT(prepare_all(), 0);
}

TEST_F(ContainersTest, AFailingDiskStopsPreparing) {
  open_empty();
  take(4096);
  disk->fail(Operation::flush, "containers/", EIO);
  uint64_t bytes = 0;
  EXPECT_EQ(containers->prepare_step(&bytes).status().code(), EIO);
  EXPECT_TRUE(containers->allocator().is_unwritten(take(4096)[0]));
}

// A flush that has failed has dropped what it was for, whatever the error is called: the next one
// of that file says nothing about it.
TEST_F(ContainersTest, AFlushThatFindsNoSpaceIsAFailingDisk) {
  open_empty();
  disk->fail(Operation::flush, "containers/", ENOSPC);
  EXPECT_EQ(containers->reserve(4096).code(), EIO);
  open_empty();
  take(4096);
  disk->fail(Operation::flush, "containers/", ENOSPC);
  uint64_t bytes = 0;
  EXPECT_EQ(containers->prepare_step(&bytes).status().code(), EIO);
  disk->fail(Operation::sync_dir, "containers/", ENOSPC);
  EXPECT_EQ(containers->reserve(8 * mib).code(), EIO);
}

// It may have dropped what others wrote, which are about to acknowledge it.
TEST_F(ContainersTest, AFlushThatFailsIsToldAtOnce) {
  open_empty();
  std::vector<std::string> told;
  containers->on_failed_flush([&told](const Status& s) { told.push_back(s.what()); });
  disk->fail(Operation::flush, "containers/", EIO);
  EXPECT_EQ(containers->reserve(4096).code(), EIO);
  EXPECT_EQ(told.size(), 1u);
  disk->fail(Operation::sync_dir, "containers/", EIO);
  EXPECT_EQ(containers->reserve(4096).code(), EIO);
  EXPECT_EQ(told.size(), 2u);

  take(4096);
  disk->fail(Operation::flush, "containers/", EIO);
  uint64_t bytes = 0;
  EXPECT_EQ(containers->prepare_step(&bytes).status().code(), EIO);
  EXPECT_EQ(told.size(), 3u);
}

// allocate() goes on with what there is, and does not come back with an error.
TEST_F(ContainersTest, AFlushThatFailsInAllocateIsToldAtOnce) {
  make_free_large(4);
  unsigned told = 0;
  containers->on_failed_flush([&told](const Status&) { ++told; });
  disk->fail(Operation::sync_dir, "containers/", EIO);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(take(64 << 10).empty());
  EXPECT_EQ(told, 1u);
}

TEST_F(ContainersTest, AContainerIsMadeAheadOfUse) {
  open_empty();
  for (int i = 0; i < 60; ++i) take(64 << 10);
  ASSERT_EQ(counters.containers_created, 1u);
  EXPECT_GT(prepare_all(), 0);
  EXPECT_EQ(counters.containers_created, 2u);
  EXPECT_EQ(files("04").size(), 2u);
}

TEST_F(ContainersTest, NoClassTakesTheLastEighthForItself) {
  options.capacity_bytes = 16 * mib;
  open_empty();
  for (int i = 0; i < 63; ++i) take(64 << 10);   // 1 of 4 containers
  for (int i = 0; i < 1024; ++i) take(4096);
  prepare_all();
  EXPECT_LE(containers->file_bytes(), 16 * mib);
  EXPECT_TRUE(containers->reserve(containers->free_bytes()).ok());
}

// --- shrinking

TEST_F(ContainersTest, AnIdleContainerIsRemovedAfterAWhile) {
  open_empty();
  const auto extents = take(12 * mib);
  own(extents);
  ASSERT_EQ(counters.containers_created, 3u);
  EXPECT_EQ(shrink_all(), 0);
  give_up(extents);
  EXPECT_EQ(shrink_all(), 2);
  EXPECT_EQ(counters.containers_removed, 2u);  // one is kept: its class is in use
  EXPECT_EQ(containers->file_bytes(), 4 * mib);
  EXPECT_EQ(disk->used_bytes(), 4 * mib);
  EXPECT_EQ(files("10").size(), 1u);
  containers->allocator().begin_capture();
  EXPECT_EQ(containers->allocator().take_gone(100).size(), 2u);
}

TEST_F(ContainersTest, AContainerInUseIsNotQuiet) {
  open_empty();
  const auto extents = take(12 * mib);
  own(extents);
  give_up(extents);
  uint32_t used = 0;
  for (int i = 0; i < 10; ++i) {
    const Extent extent = take(4 * mib)[0];
    if (i) { EXPECT_EQ(extent.container, used); }
    used = extent.container;
    containers->allocator().give_back(extent);
    uint64_t bytes = 0;
    ASSERT_TRUE(containers->shrink_step(&bytes).ok());
  }
  EXPECT_EQ(counters.containers_removed, 2u);
}

TEST_F(ContainersTest, FreeRunsOfHalfDeadContainersArePunchedAndRestoredOnDemand) {
  options.container_bytes = 8 * mib;
  options.capacity_bytes = 64 * mib;
  open_empty();
  std::vector<std::vector<Extent>> owned;
  for (int i = 0; i < 16; ++i) own(owned.emplace_back(take(4 * mib)));
  for (int i = 0; i < 16; i += 2) give_up(owned[i]);  // half of each container
  EXPECT_GT(shrink_all(), 0);
  // 32 MiB are free; the class keeps one container's worth.
  EXPECT_EQ(counters.punched_bytes, 24 * mib);
  EXPECT_EQ(containers->file_bytes(), 40 * mib);
  EXPECT_EQ(disk->used_bytes(), 40 * mib);
  EXPECT_EQ(containers->free_bytes(), 32 * mib);
  EXPECT_TRUE(containers->reserve(32 * mib).ok());
  EXPECT_EQ(disk->used_bytes(), 64 * mib);
  EXPECT_EQ(containers->allocate(32 * mib).size(), 8u);
}

// Which a hole in the middle of an extent needs: one more extent.
TEST_F(ContainersTest, WhereThereIsNoSpaceToPunchItIsTriedAgainLater) {
  options.container_bytes = 8 * mib;
  options.capacity_bytes = 64 * mib;
  open_empty();
  std::vector<std::vector<Extent>> owned;
  for (int i = 0; i < 16; ++i) own(owned.emplace_back(take(4 * mib)));
  for (int i = 0; i < 16; i += 2) give_up(owned[i]);
  disk->fail(Operation::punch, "containers/", ENOSPC, 2);
  const uint64_t free = usage().free_blocks;
  shrink_all();
  EXPECT_EQ(counters.punched_bytes, 0u);
  EXPECT_EQ(usage().free_blocks, free);  // all of it still has its space
  for (int i = 0; i < 100 && counters.punched_bytes < 24 * mib; ++i) shrink_all();
  EXPECT_EQ(counters.punched_bytes, 24 * mib);
  EXPECT_TRUE(containers->reserve(32 * mib).ok());
}

TEST_F(ContainersTest, PunchedSpaceThatOthersTookIsNotPromised) {
  make_disk(16 * mib);
  options.container_bytes = 8 * mib;
  open_empty();
  std::vector<std::vector<Extent>> owned;
  for (int i = 0; i < 4; ++i) own(owned.emplace_back(take(4 * mib)));
  for (int i : {0, 2, 3}) give_up(owned[i]);
  shrink_all();
  const uint64_t punched = counters.punched_bytes + counters.containers_removed * 8 * mib;
  ASSERT_GT(punched, 0u);
  disk->set_other_bytes(punched - mib);
  EXPECT_LE(containers->free_bytes(), 16 * mib - 4 * mib - (punched - mib));
  EXPECT_EQ(containers->reserve(12 * mib).code(), ENOSPC);
  EXPECT_TRUE(containers->reserve(containers->free_bytes()).ok());
}

TEST_F(ContainersTest, HolesStayHolesAtOpenAndGetSpaceOnDemand) {
  options.container_bytes = 8 * mib;
  open_empty();
  take(4 * mib);
  ASSERT_TRUE(containers->file(0).punch(4 * mib, 4 * mib).ok());
  EXPECT_EQ(disk->used_bytes(), 4 * mib);
  open_empty();
  EXPECT_EQ(disk->used_bytes(), 4 * mib);
  EXPECT_EQ(usage().free_blocks, 1024u);
  EXPECT_EQ(usage().punched_blocks, 1024u);
  EXPECT_TRUE(containers->reserve(8 * mib).ok());
  EXPECT_EQ(disk->used_bytes(), 8 * mib);
}

// A copy of a store may have them where there were zeros. What is freed must have its space.
TEST_F(ContainersTest, HolesThatAreOwnedGetSpaceAgain) {
  open_empty();
  const auto owned = take(mib);
  own(owned);
  ASSERT_EQ(owned.size(), 1u);
  ASSERT_TRUE(containers->file(0).punch(owned[0].offset_bytes(), mib / 2).ok());
  EXPECT_EQ(disk->used_bytes(), 7 * mib / 2);
  ASSERT_TRUE(open(owned).ok());
  containers->fill_owned();
  EXPECT_EQ(disk->used_bytes(), 4 * mib);
  EXPECT_EQ(usage().free_blocks, 3 * mib / block_bytes);
  EXPECT_EQ(usage().punched_blocks, 0u);
}

TEST_F(ContainersTest, ARestartTakesNoMoreThanTheCapacity) {
  options.container_bytes = 8 * mib;
  options.capacity_bytes = 64 * mib;
  open_empty();
  std::vector<std::vector<Extent>> owned;
  for (int i = 0; i < 16; ++i) own(owned.emplace_back(take(4 * mib)));
  for (int i = 0; i < 16; i += 2) give_up(owned[i]);
  EXPECT_GT(shrink_all(), 0);
  const uint64_t before = containers->file_bytes();
  std::vector<Extent> kept;
  for (int i = 1; i < 16; i += 2) kept.insert(kept.end(), owned[i].begin(), owned[i].end());
  ASSERT_TRUE(open(kept).ok());
  EXPECT_LE(disk->used_bytes(), before);
  EXPECT_EQ(containers->file_bytes(), disk->used_bytes());
}

TEST_F(ContainersTest, AHoleIsNotFreeWhileTheFileSystemIsFull) {
  make_disk(8 * mib);
  options.container_bytes = 8 * mib;
  open_empty();
  take(4 * mib);
  BlockMemory zeros(4 * mib);
  zeros.zero();
  ASSERT_TRUE(containers->file(0).write(0, zeros.span()).ok());
  ASSERT_TRUE(containers->file(0).punch(4 * mib, 4 * mib).ok());
  disk->set_other_bytes(4 * mib);
  open_empty();
  EXPECT_EQ(usage().free_blocks, 1024u);
  EXPECT_EQ(usage().punched_blocks, 1024u);
  EXPECT_EQ(containers->free_bytes(), 4 * mib);
  disk->set_other_bytes(0);
  EXPECT_TRUE(containers->reserve(8 * mib).ok());
}

// --- containers that change their class

TEST_F(ContainersTest, AFreeContainerOfAnotherClassIsTakenBeforeAFileIsMade) {
  make_free_large(3);
  take_until_reclassed();
  EXPECT_EQ(counters.containers_created, 0u);
  EXPECT_EQ(files("04"), (std::vector<std::string>{"3"}));
  EXPECT_EQ(files("10").size(), 2u);
  EXPECT_EQ(disk->used_bytes(), 12 * mib);
}

TEST_F(ContainersTest, TheNewNameIsDurableBeforeItIsUsed) {
  make_free_large(2);
  disk->take_calls();
  take_until_reclassed();
  EXPECT_EQ(disk->take_calls(),
            (std::vector<MemoryDisk::Call>{{Operation::rename, "containers/10/1"},
                                           {Operation::sync_dir, "containers/04"},
                                           {Operation::sync_dir, "containers/10"},
                                           {Operation::flush, "containers/04/2"}}));
  EXPECT_EQ(containers->file(2).path(), "containers/04/2");
}

TEST_F(ContainersTest, WhatWasWrittenStaysSoInTheOtherClass) {
  make_free_large(2);
  take_until_reclassed();
  const AllocatorUsage::Class sums = usage().classes[4];
  EXPECT_EQ(sums.containers, 1u);
  EXPECT_EQ(sums.unwritten_free_blocks, 0u);
}

TEST_F(ContainersTest, TheContainerWithTheMostWrittenBlocksIsTaken) {
  open_empty();
  const auto a = take(4 * mib), b = take(4 * mib), c = take(4 * mib);
  own(b);
  give_up(b);
  containers->allocator().give_back(a[0]);
  containers->allocator().give_back(c[0]);
  const auto taken = containers->allocator().begin_reclass(4, LastFree::take);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->container, b[0].container);
}

TEST_F(ContainersTest, ForRecoveryOneContainerIsRemovedAndAnotherMade) {
  make_free_large(2);
  take_until_reclassed();
  std::vector<uint32_t> rows;
  containers->allocator().begin_capture();
  for (const auto& gone : containers->allocator().take_gone(100)) rows.push_back(gone.container);
  EXPECT_EQ(rows, (std::vector<uint32_t>{1}));
  EXPECT_EQ(containers->allocator().next_container_id(), 3u);
}

TEST_F(ContainersTest, WhatIsHeldReservedOrPunchedKeepsItsClass) {
  options.capacity_bytes = 4 * mib;
  make_free_large(1);
  ASSERT_TRUE(containers->allocator().can_reclass(4, LastFree::take));
  EXPECT_FALSE(containers->allocator().can_reclass(10, LastFree::take));
  ASSERT_TRUE(containers->reserve(4096).ok());
  EXPECT_FALSE(containers->allocator().can_reclass(4, LastFree::take));
  const auto held = containers->allocate(4096);
  EXPECT_FALSE(containers->allocator().can_reclass(4, LastFree::take));
  containers->allocator().give_back(held[0]);
  EXPECT_TRUE(containers->allocator().can_reclass(4, LastFree::take));
}

TEST_F(ContainersTest, AClassInUseKeepsItsLastFreeContainerWhileAFileCanBeMade) {
  open_empty();
  const auto large = take(4 * mib);  // of a class that is in use from here on
  own(large);
  give_up(large);
  for (int i = 0; i < 9; ++i) own(take(64 << 10));
  EXPECT_EQ(counters.containers_reclassed, 0u);
  EXPECT_EQ(files("10").size(), 1u);
  EXPECT_EQ(files("04").size(), 1u);
}

// There is one free container, of 32 KiB, a class in demand. 64 KiB cannot be had elsewhere; but
// when it is of that class, 32 KiB would take it back.
TEST_F(ContainersTest, ARequestDoesNotPassAContainerBetweenItsClassesForEver) {
  options.capacity_bytes = 8 * mib;
  make_free_large(2);
  std::vector<Extent> owned;  // every second block of the other one
  for (uint32_t block = 0; block < 1024; block += 2) owned.push_back({0, block, 1});
  ASSERT_TRUE(open(owned).ok());
  for (int i = 0; i < 20; ++i) containers->allocator().give_back(take(32 << 10)[0]);
  ASSERT_EQ(counters.containers_reclassed, 1u);
  EXPECT_EQ(blocks_of(take(96 << 10)), 24u);
  EXPECT_EQ(counters.containers_reclassed, 3u);
}

TEST_F(ContainersTest, ARequestOfSeveralContainersGetsThem) {
  make_free_large(3);
  containers->allocator().begin_reclass(4, LastFree::take);  // held from here on
  const auto extents = take(12 * mib);
  EXPECT_EQ(extents.size(), 3u);
  EXPECT_EQ(counters.containers_created, 1u);
}

TEST_F(ContainersTest, ANameThatFindsNoSpaceChangesNothing) {
  make_free_large(2);
  disk->fail(Operation::rename, "containers/10/1", ENOSPC);
  for (int i = 0; i < 9; ++i) own(take(64 << 10));
  EXPECT_EQ(counters.containers_reclassed, 0u);
  EXPECT_EQ(files("10"), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(counters.containers_created, 1u);
  take(4 * mib);  // it can be used as before
  EXPECT_EQ(containers->file(1).path(), "containers/10/1");
}

// Under which name it is now nobody knows; the next attempt would cost the next one.
TEST_F(ContainersTest, WhereNewNamesAreNotDurableNoMoreThanOneContainerIsLost) {
  make_free_large(4);
  const uint64_t before = usage().blocks;
  disk->fail(Operation::sync_dir, "containers/04", EMFILE, 1000);
  for (int i = 0; i < 40; ++i) own(take(64 << 10));
  EXPECT_EQ(usage().blocks + 4 * mib / block_bytes, before);
}

TEST_F(ContainersTest, ARenameThatIsNotPermittedCostsNothing) {
  for (const int error : {EPERM, EACCES, EDQUOT, EROFS}) {
    make_disk(256 * mib);
    make_free_large(2);
    std::vector<int> told;
    containers->on_growth([&](const Status& s) { told.push_back(s.code()); });
    disk->fail(Operation::rename, "containers/10/1", error);
    for (int i = 0; i < 9; ++i) own(take(64 << 10));
    EXPECT_EQ(told, (std::vector<int>{error, 0}));  // a file that can be made does, too
    EXPECT_EQ(usage().blocks * block_bytes, 12 * mib);
    take(4 * mib);
    EXPECT_EQ(containers->file(1).path(), "containers/10/1");
  }
}

TEST_F(ContainersTest, AFailingRenameIsToldAndCostsThatContainer) {
  make_free_large(2);
  int told = 0;
  containers->on_growth([&](const Status& s) { told += s.code() == EIO; });
  disk->fail(Operation::rename, "containers/10/1", EIO);
  for (int i = 0; i < 9; ++i) own(take(64 << 10));
  EXPECT_EQ(told, 1);
  uint64_t bytes = 0;
  EXPECT_TRUE(containers->prepare_step(&bytes).ok());
}

TEST_F(ContainersTest, ARenamedFileThatCannotBeOpenedForAMomentIsOpenedAgain) {
  make_free_large(2);
  disk->fail(Operation::open, "containers/04", EIO, 2);
  take_until_reclassed();
  uint64_t bytes = 0;
  EXPECT_TRUE(containers->prepare_step(&bytes).ok());
}

TEST_F(ContainersTest, ANameThatCannotBeSyncedIsAnErrorWhateverItsKind) {
  make_free_large(2);
  disk->fail(Operation::sync_dir, "containers/04", ENOSPC);
  for (int i = 0; i < 9; ++i) own(take(64 << 10));
  EXPECT_EQ(usage().blocks * block_bytes, 4 * mib);  // nobody is given what may be gone
  uint64_t bytes = 0;
  EXPECT_EQ(containers->prepare_step(&bytes).status().code(), EIO);
}

// --- provisioning

TEST_F(ContainersTest, ProvisionedContainersAreWrittenAndDurable) {
  ASSERT_TRUE(Containers::provision(*disk, 4 * mib, 9 * mib, [](uint64_t) {}).ok());
  EXPECT_EQ(disk->take_calls(),
            (std::vector<MemoryDisk::Call>{
                {Operation::write_zeroes, "containers/10/0", 0, 4 * mib},
                {Operation::flush, "containers/10/0"},
                {Operation::sync_dir, "containers/10"},
                {Operation::write_zeroes, "containers/10/1", 0, 4 * mib},
                {Operation::flush, "containers/10/1"},
                {Operation::sync_dir, "containers/10"}}));
  open_empty();
  EXPECT_EQ(usage().free_blocks * block_bytes, 8 * mib);
  EXPECT_EQ(usage().classes[10].unwritten_free_blocks, 0u);
}

TEST_F(ContainersTest, WhatWasProvisionedIsNotGivenBack) {
  ASSERT_TRUE(Containers::provision(*disk, 4 * mib, 8 * mib, [](uint64_t) {}).ok());
  options.provision_bytes = 9 * mib;
  open_empty();
  const auto extents = take(16 * mib);
  own(extents);
  give_up(extents);
  shrink_all();
  EXPECT_EQ(containers->file_bytes(), 9 * mib);  // one more is punched in part
}

TEST_F(ContainersTest, AllClassesUseWhatWasProvisioned) {
  ASSERT_TRUE(Containers::provision(*disk, 4 * mib, 32 * mib, [](uint64_t) {}).ok());
  options.provision_bytes = options.capacity_bytes = 32 * mib;
  open_empty();
  for (unsigned i = 0; i < 100; ++i) {
    own(take(64 << 10));
    own(take(16 << 10));
    own(take(4 << 10));
  }
  EXPECT_EQ(counters.containers_created, 0u);
  EXPECT_GE(counters.containers_reclassed, 3u);
  EXPECT_EQ(usage().classes[4].unwritten_free_blocks, 0u);
  EXPECT_TRUE(containers->reserve(containers->free_bytes()).ok());
}

// --- threads

TEST_F(ContainersTest, WritersAndStepsShareATightStore) {
  options.capacity_bytes = 16 * mib;
  options.quiet_steps = 0;
  open_empty();
  std::atomic<bool> stop{false};
  std::thread steps([&] {
    uint64_t bytes = 0;
    while (!stop) {
      ASSERT_TRUE(containers->prepare_step(&bytes).ok());
      ASSERT_TRUE(containers->shrink_step(&bytes).ok());
    }
  });
  auto write = [&](uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<Extent>> owned;
    for (int i = 0; i < 1000; ++i) {
      const uint64_t bytes = (1 + random() % 300) * block_bytes;
      if (containers->reserve(bytes).ok()) {
        own(owned.emplace_back(containers->allocate(bytes)));
      } else {
        while (owned.size() > 1) give_up(owned.back()), owned.pop_back();
      }
    }
    for (const auto& extents : owned) give_up(extents);
  };
  std::vector<std::thread> writers;
  for (uint32_t seed = 0; seed < 3; ++seed) writers.emplace_back(write, seed);
  for (std::thread& writer : writers) writer.join();
  stop = true;
  steps.join();
  EXPECT_EQ(usage().owned_blocks, 0u);
  EXPECT_EQ(containers->free_bytes(), 16 * mib);
  EXPECT_TRUE(containers->reserve(16 * mib).ok());
}

// Free space that a step holds for a moment is no reason to refuse a client.
TEST_F(ContainersTest, TheLastBlockCanBeHadWhileSpaceIsPrepared) {
  options.capacity_bytes = 4 * mib;
  open_empty();
  own(take(4096));
  std::promise<void> in_step, go_on;
  disk->before_write_zeroes([&] {
    in_step.set_value();
    go_on.get_future().wait();
  });
  auto step = std::async(std::launch::async, [&] {
    uint64_t bytes = 0;
    return containers->prepare_step(&bytes).ok();
  });
  in_step.get_future().wait();
  auto reserved = std::async(std::launch::async, [&] {
    return containers->reserve(4 * mib - 4096).code();
  });
  // It must wait; that it does takes a moment to be seen.
  EXPECT_EQ(reserved.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  go_on.set_value();
  EXPECT_EQ(reserved.get(), 0);
  EXPECT_TRUE(step.get());
}

}  // namespace
}  // namespace tablestore
