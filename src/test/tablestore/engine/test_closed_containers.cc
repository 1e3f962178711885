// Containers that are to be emptied: nothing new gets there while there is anything elsewhere, and
// they go when they are empty.
#include "test/tablestore/engine/containers_fixture.h"

namespace tablestore {
namespace {

constexpr uint64_t mib = container_test_mib;
constexpr unsigned any_live = 100;

class ClosedContainersTest : public ContainersFixture {
 protected:
  Allocator& allocator() { return containers->allocator(); }
  uint64_t live_in(uint32_t container) { return allocator().owned_bitmap(container)->count(); }
  // Of so many containers, each with `blocks` owned blocks at its beginning.
  void open_with(const std::vector<uint32_t>& live) {
    open_empty();
    std::vector<std::vector<Extent>> all;
    for (size_t i = 0; i < live.size(); ++i) own(all.emplace_back(take(4 * mib)));
    for (size_t i = 0; i < live.size(); ++i) {
      ASSERT_EQ(all[i].size(), 1u);
      ids.push_back(all[i][0].container);
      const uint32_t kept = live[i];
      if (kept < 1024) give_up({{ids[i], kept, 1024 - kept}});
    }
  }
  std::set<uint32_t> close(unsigned max_live_percent) {
    containers->close_containers(max_live_percent);
    return allocator().closed();
  }
  int remove_all_emptied() { return run_all(&Containers::remove_emptied); }

  std::vector<uint32_t> ids;
};

TEST_F(ClosedContainersTest, TheEmptiestAreClosedUpToTheLimit) {
  open_with({1024, 300, 10, 200, 900});
  EXPECT_EQ(close(25), (std::set{ids[2], ids[3]}));
  EXPECT_EQ(allocator().closed_live_blocks(), 210u);
  EXPECT_EQ(close(30), (std::set{ids[1], ids[2], ids[3]}));
  EXPECT_EQ(close(0), std::set<uint32_t>());
}

TEST_F(ClosedContainersTest, NoMoreAreClosedThanOthersHaveRoomFor) {
  make_disk(12 * mib);
  open_with({500, 400, 800});
  // 224 and 624 are free elsewhere while the second is closed; of both, 224.
  EXPECT_EQ(close(any_live), (std::set{ids[1]}));
}

TEST_F(ClosedContainersTest, NoneIsClosedWhereThereWouldNotBeFewerContainers) {
  open_with({1024, 100});
  EXPECT_EQ(close(any_live), std::set<uint32_t>());
  open_with({1024, 100, 100});
  EXPECT_EQ(close(any_live).size(), 2u);
}

TEST_F(ClosedContainersTest, NothingIsHandedOutFromThemWhileThereIsSomethingElsewhere) {
  open_with({10, 20, 900, 900});
  const std::set<uint32_t> closed = close(10);
  ASSERT_EQ(closed.size(), 2u);
  for (uint64_t taken = 0; taken < 248; ++taken)
    for (const Extent& e : take(block_bytes)) EXPECT_FALSE(closed.contains(e.container));
  EXPECT_EQ(allocator().closed(), closed);
}

TEST_F(ClosedContainersTest, WhoHasNoOtherSpaceGetsTheirs) {
  make_disk(16 * mib);
  open_with({10, 20, 900, 900});
  close(10);
  EXPECT_EQ(containers->free_bytes(), (4096 - 1830) * block_bytes);
  EXPECT_FALSE(take((4096 - 1830) * block_bytes).empty());
  EXPECT_EQ(allocator().closed(), std::set<uint32_t>());
}

TEST_F(ClosedContainersTest, TheFullestIsOpenedFirst) {
  make_disk(16 * mib);
  open_with({10, 20, 900, 900});
  close(10);
  EXPECT_FALSE(take(249 * block_bytes).empty());
  EXPECT_EQ(allocator().closed(), (std::set{ids[0]}));
}

TEST_F(ClosedContainersTest, WhatIsPunchedInThemIsRestoredWhereNothingElseIsFree) {
  make_disk(16 * mib);
  open_with({10, 20, 900, 900});
  close(10);
  lack(0, 16 * mib);
  relieve_all();
  EXPECT_EQ(usage().free_blocks, 0u);
  lack(0, 0);
  EXPECT_FALSE(take(1000 * block_bytes).empty());
  EXPECT_EQ(allocator().closed(), std::set<uint32_t>());
}

TEST_F(ClosedContainersTest, NothingIsPreparedInThem) {
  open_empty();
  const auto extents = take(64 * block_bytes);
  const auto others = take(64 * block_bytes);
  own(extents);
  own(others);
  ASSERT_EQ(extents[0].container, others[0].container);
  const uint32_t container = extents[0].container;
  own(take(4 * mib));
  ASSERT_GT(prepare_all(), 0);
  allocator().close_containers(any_live, 1 << 20);
  if (!allocator().closed().contains(container)) GTEST_SKIP() << "is not worth it";
  const uint64_t before = counters.prepared_bytes;
  for (int n = 0; n < 4; ++n) own(take(64 * block_bytes));
  prepare_all();
  for (uint32_t id : allocator().closed()) EXPECT_EQ(live_in(id), 128u);
  EXPECT_GT(counters.prepared_bytes, before);
}

TEST_F(ClosedContainersTest, AnEmptyOneIsRemoved) {
  open_with({10, 20, 900, 900});
  close(10);
  EXPECT_EQ(remove_all_emptied(), 0);
  give_up({{ids[0], 0, 10}});
  EXPECT_EQ(remove_all_emptied(), 1);
  EXPECT_FALSE(containers->exists(ids[0]));
  EXPECT_EQ(allocator().closed(), (std::set{ids[1]}));
  EXPECT_EQ(disk->used_bytes(), 12 * mib);
}

TEST_F(ClosedContainersTest, AnEmptyOneThatIsProvisionedOrPromisedIsOpenedInstead) {
  for (bool provisioned : {false, true}) {
    make_disk(16 * mib);
    options.provision_bytes = provisioned ? 16 * mib : 0;
    ids.clear();
    open_with({10, 20, 900, 900});
    close(10);
    if (!provisioned) {
      ASSERT_TRUE(containers->reserve((4096 - 1830) * block_bytes).ok());
    }
    give_up({{ids[0], 0, 10}});
    EXPECT_EQ(remove_all_emptied(), 1);
    EXPECT_TRUE(containers->exists(ids[0]));
    EXPECT_EQ(allocator().closed(), (std::set{ids[1]}));
  }
}

TEST_F(ClosedContainersTest, AnEmptyOneWithABlockInFlightStays) {
  open_with({10, 20, 900, 900});
  close(10);
  allocator().mark_freed({ids[0], 0, 10});
  EXPECT_EQ(remove_all_emptied(), 0);
  allocator().give_back({ids[0], 0, 10});
  EXPECT_EQ(remove_all_emptied(), 1);
}

TEST_F(ClosedContainersTest, OpenedOnesAreUsedAgain) {
  open_with({10, 900});
  allocator().close_containers(10, 1 << 20);
  ASSERT_EQ(allocator().closed().size(), 1u);
  const AllocatorUsage closed = allocator().usage();
  EXPECT_TRUE(allocator().open_all());
  EXPECT_FALSE(allocator().open_all());
  EXPECT_EQ(allocator().usage().free_blocks, closed.free_blocks);
  EXPECT_EQ(take(2 * mib)[0].container, ids[0]);
}

}  // namespace
}  // namespace tablestore
