// Containers that are to be emptied: nothing new gets there while there is anything elsewhere, and
// they go when they are empty.
#include "test/tablestore/engine/containers_fixture.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

constexpr uint64_t mib = container_test_mib;
constexpr unsigned any_live = 100;

class ClosedContainersTest : public ContainersFixture {
 protected:
  Allocator& allocator() { return containers->allocator(); }
  // One container for each of these, with so many owned blocks at its beginning.
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
  open_with({1024, 250, 10, 200, 500});
  EXPECT_EQ(close(20), (std::set{ids[2], ids[3]}));
  EXPECT_EQ(allocator().closed_live_blocks(), 210u);
  EXPECT_EQ(close(25), (std::set{ids[1], ids[2], ids[3]}));
  EXPECT_EQ(close(0), std::set<uint32_t>());
  EXPECT_EQ(allocator().count_nearly_empty(20), 2u);
}

TEST_F(ClosedContainersTest, NoMoreAreClosedThanOthersHaveRoomFor) {
  make_disk(12 * mib);
  open_with({500, 400, 800});
  // 224 and 624 are free elsewhere while the second is closed; of both, 224.
  EXPECT_EQ(close(any_live), (std::set{ids[1]}));
}

TEST_F(ClosedContainersTest, NoneIsClosedThatMakesNoFewerContainers) {
  open_with({1024, 100});
  EXPECT_EQ(close(any_live), std::set<uint32_t>());
  open_with({1024, 100, 110});  // of which one takes what is in the other
  EXPECT_EQ(close(any_live).size(), 1u);
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
  EXPECT_FALSE(take((4096 - 1830) * block_bytes).empty());
  EXPECT_EQ(allocator().closed(), std::set<uint32_t>());
}

TEST_F(ClosedContainersTest, NothingIsPreparedInThem) {
  open_empty();
  for (uint32_t live : {10, 900}) {
    ids.push_back(take(4 * mib)[0].container);
    allocator().mark_owned({ids.back(), 0, live});
    allocator().give_back({ids.back(), live, 1024 - live});
  }
  ASSERT_EQ(close(10), (std::set{ids[0]}));
  const unsigned largest = slot_classes - 1;
  EXPECT_EQ(usage().classes[largest].unwritten_free_blocks, 124u);
  uint32_t prepared = 0;
  while (const auto run = allocator().begin_prepare(largest, 1024)) {
    EXPECT_EQ(run->container, ids[1]);
    prepared += run->blocks;
  }
  EXPECT_EQ(prepared, 124u);
}

TEST_F(ClosedContainersTest, AnEmptyOneIsRemoved) {
  open_with({10, 20, 900, 900});
  close(10);
  EXPECT_EQ(remove_all_emptied(), 0);
  give_up({{ids[0], 0, 10}});
  lack(0, 256 * mib);
  relieve_all();
  EXPECT_TRUE(containers->exists(ids[0]));  // whoever empties it has to know
  EXPECT_EQ(remove_all_emptied(), 1);
  EXPECT_FALSE(containers->exists(ids[0]));
  EXPECT_EQ(allocator().closed(), (std::set{ids[1]}));
  EXPECT_EQ(disk->used_bytes(), 1820 * block_bytes);
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

class EmptyingTest : public EngineFixture {};

TEST_F(EmptyingTest, AContainerThatTransactionsEmptyGoes) {
  format();
  open();
  const uint32_t blocks = options.container_bytes / block_bytes;
  auto first = std::make_shared<Txn>();
  const Written nearly_empty = write(*first, blocks, 1);
  const Written rather_full = write(*first, blocks, 2);
  const uint32_t container = nearly_empty.extents[0].container;
  ASSERT_NE(container, rather_full.extents[0].container);
  commit(first);
  auto second = std::make_shared<Txn>();
  second->free({container, 10, largest_slot_blocks - 10});
  second->free(nearly_empty.extents[1]);
  Extent half = rather_full.extents[1];
  half.blocks /= 2;
  second->free(half);
  commit(second);

  EXPECT_EQ(engine->close_containers(50), std::set{container});
  EXPECT_EQ(engine->closed_live_bytes(), 10 * block_bytes);
  auto move = std::make_shared<Txn>();
  const Written moved = write(*move, 10, 3);
  move->free({container, 0, 10});
  commit(move);
  for (const Extent& e : moved.extents) EXPECT_NE(e.container, container);
  ASSERT_TRUE(engine->wait_applied());
  EXPECT_EQ(engine->remove_emptied_containers(), 1u);
  EXPECT_EQ(engine->closed_containers(), std::set<uint32_t>());
  EXPECT_EQ(engine->counters().containers_removed, 1u);
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(engine->owned_blocks().contains(container));
    expect_data(moved.extents, 3);
    crash_and_open();
  }
}

TEST_F(EmptyingTest, ClosedContainersAreForgottenWithTheEngine) {
  format();
  open();
  const uint32_t blocks = options.container_bytes / block_bytes;
  auto txn = std::make_shared<Txn>();
  const Written some = write(*txn, blocks, 1), others = write(*txn, blocks, 2);
  commit(txn);
  auto frees = std::make_shared<Txn>();
  frees->free(some.extents[1]);
  frees->free(others.extents[1]);
  commit(frees);
  // Both, where a third one was made ahead meanwhile.
  EXPECT_NE(engine->close_containers(50), std::set<uint32_t>());
  crash_and_open();
  EXPECT_EQ(engine->closed_containers(), std::set<uint32_t>());
}

}  // namespace
}  // namespace tablestore
