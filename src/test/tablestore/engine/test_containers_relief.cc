// What containers give back where the rest of the store is short, and what makes growing fail.
#include <cerrno>

#include "test/tablestore/engine/containers_fixture.h"

namespace tablestore {
namespace {

using Operation = MemoryDisk::Operation;

constexpr uint64_t mib = container_test_mib;

class ContainersReliefTest : public ContainersFixture {};

// --- the rest of the store is short of space

TEST_F(ContainersReliefTest, WhatOthersLackNobodyElseGets) {
  make_disk(64 * mib);
  open_empty();
  own(take(24 * mib));
  const auto free = take(20 * mib);
  own(free);
  give_up(free);
  lack(0, 30 * mib);  // of which 20 are there
  EXPECT_EQ(containers->free_bytes(), 10 * mib);
  EXPECT_EQ(containers->reserve(10 * mib + 1).code(), ENOSPC);
  EXPECT_TRUE(containers->reserve(10 * mib).ok());
}

TEST_F(ContainersReliefTest, WhereOthersAreShortContainersGiveBackWhatIsFreeAtOnce) {
  options.container_bytes = 8 * mib;
  make_disk(64 * mib);
  open_empty();
  std::vector<std::vector<Extent>> owned;
  for (int i = 0; i < 12; ++i) own(owned.emplace_back(take(4 * mib)));
  for (int i = 0; i < 12; i += 2) give_up(owned[i]);
  EXPECT_EQ(relieve_all(), 0);  // nobody lacks anything
  lack(0, 20 * mib);            // of which 16 are there
  EXPECT_GT(relieve_all(), 0);
  EXPECT_GE(disk->space()->available_bytes, 20 * mib);
  EXPECT_LE(disk->space()->available_bytes, 21 * mib);
}

TEST_F(ContainersReliefTest, RunsOfAnySizeAreGivenBackWhereOthersAreShort) {
  make_disk(64 * mib);
  open_empty();
  std::vector<std::vector<Extent>> owned;
  for (int i = 0; i < 2048; ++i) own(owned.emplace_back(take(4096)));
  for (int i = 0; i < 2048; i += 2) give_up(owned[i]);
  const uint64_t free = usage().free_blocks * block_bytes;
  lack(0, 64 * mib);
  EXPECT_GT(relieve_all(), 0);
  EXPECT_EQ(usage().free_blocks, 0u);
  EXPECT_GE(counters.punched_bytes + counters.containers_removed * 4 * mib, free);
  EXPECT_EQ(disk->used_bytes(), 1024u * block_bytes);
}

TEST_F(ContainersReliefTest, WhatWasProvisionedIsGivenToOthersThatAreShort) {
  make_disk(40 * mib);
  ASSERT_TRUE(Containers::provision(*disk, 4 * mib, 32 * mib, [](uint64_t) {}).ok());
  options.provision_bytes = 32 * mib;
  open_empty();
  shrink_all();
  EXPECT_EQ(containers->file_bytes(), 32 * mib);
  lack(0, 30 * mib);
  EXPECT_GT(relieve_all(), 0);
  EXPECT_GE(disk->space()->available_bytes, 30 * mib);
  EXPECT_GE(containers->file_bytes(), 6 * mib);
}

// On XFS a hole may want space of its own.
TEST_F(ContainersReliefTest, WhereNothingCanBePunchedAWholeContainerIsGivenBack) {
  options.container_bytes = 8 * mib;
  make_disk(64 * mib);
  open_empty();
  const auto extents = take(8 * mib);
  own(extents);
  give_up(extents);
  disk->fail(Operation::punch, "containers/", ENOSPC, 1000);
  lack(0, 60 * mib);  // of which 56 are there
  uint64_t bytes = 0;
  const auto relieved = containers->relieve_step(0, &bytes);
  ASSERT_TRUE(relieved.ok()) << relieved.status().what();
  EXPECT_EQ(*relieved, Worked::yes);
  EXPECT_EQ(usage().blocks, 0u);
}

TEST_F(ContainersReliefTest, AContainerThatIsAllHolesGivesNothing) {
  options.container_bytes = 8 * mib;
  make_disk(64 * mib);
  open_empty();
  const auto extents = take(8 * mib);
  own(extents);
  give_up(extents);
  for (const uint64_t reserve : {60 * mib, 64 * mib}) {  // half of what it has, and the rest
    lack(0, reserve);
    relieve_all();
  }
  ASSERT_EQ(usage().punched_blocks * block_bytes, 8 * mib);
  uint64_t bytes = 0;
  EXPECT_EQ(*containers->relieve_step(16 * mib, &bytes), Worked::nothing_to_do);
}

TEST_F(ContainersReliefTest, WhatIsReservedIsNotGivenToOthers) {
  make_disk(16 * mib);
  open_empty();
  ASSERT_TRUE(containers->reserve(8 * mib).ok());
  lack(0, 16 * mib);
  relieve_all();
  EXPECT_GE(usage().free_blocks * block_bytes, 8 * mib);
  EXPECT_FALSE(containers->allocate(8 * mib).empty());
}

// --- what makes growing fail, but is no full file system

TEST_F(ContainersReliefTest, AnyErrorOfAFileThatIsMadeIsAStateThatPasses) {
  for (const int error : {EDQUOT, EMFILE, EIO, EACCES}) {
    make_disk(256 * mib);
    open_empty();
    std::vector<int> told;
    containers->on_growth([&](const Status& s) { told.push_back(s.code()); });
    disk->fail(error == EDQUOT ? Operation::allocate : Operation::open, "containers/00", error);
    const uint64_t free = containers->free_bytes();
    EXPECT_EQ(containers->reserve(1).code(), error);
    EXPECT_LT(containers->free_bytes(), free);        // nobody is promised what cannot be had
    uint64_t bytes = 0;
    EXPECT_TRUE(containers->prepare_step(&bytes).ok());
    EXPECT_TRUE(containers->reserve(1).ok());
    EXPECT_EQ(containers->free_bytes(), free);
    EXPECT_EQ(told, (std::vector<int>{error, 0}));
    EXPECT_EQ(files("00").size(), 1u);
  }
}

TEST_F(ContainersReliefTest, AFileThatCouldNotBeMadeIsRemovedLater) {
  open_empty();
  disk->fail(Operation::allocate, "containers/00", EDQUOT);
  disk->fail(Operation::remove, "containers/00", EIO);
  EXPECT_EQ(containers->reserve(1).code(), EDQUOT);
  EXPECT_EQ(files("00").size(), 1u);
  EXPECT_TRUE(containers->reserve(1).ok());  // also where nothing is prepared
  EXPECT_EQ(files("00").size(), 1u);
  prepare_all();
  EXPECT_EQ(files("00").size(), 1u);
}

TEST_F(ContainersReliefTest, AContainerThatCouldNotBeRemovedIsRemovedLater) {
  open_empty();
  const auto extents = take(4 * mib);
  own(extents);
  give_up(extents);
  disk->fail(Operation::remove, "containers/", EPERM, 2);
  lack(0, 256 * mib);
  uint64_t bytes = 0;
  EXPECT_TRUE(containers->relieve_step(0, &bytes).ok());
  EXPECT_EQ(usage().blocks, 0u);
  EXPECT_EQ(disk->used_bytes(), 4 * mib);
  prepare_all();
  EXPECT_EQ(disk->used_bytes(), 4 * mib);
  prepare_all();
  EXPECT_EQ(disk->used_bytes(), 0u);
}

TEST_F(ContainersReliefTest, AHoleThatCannotBePunchedIsAStateThatPasses) {
  open_empty();
  const auto extents = take(12 * mib);
  own(extents);
  give_up(extents);
  int told = 0;
  containers->on_growth([&](const Status& s) { told += s.code() == EIO; });
  disk->fail(Operation::punch, "containers/", EIO, 1000);
  disk->fail(Operation::remove, "containers/", EIO, 1);
  lack(0, 256 * mib);
  uint64_t bytes = 0;
  EXPECT_TRUE(containers->relieve_step(0, &bytes).ok());
  EXPECT_GT(told, 0);
}

}  // namespace
}  // namespace tablestore
