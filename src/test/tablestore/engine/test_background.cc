#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "os/tablestore/engine/container/background.h"
#include "os/tablestore/engine/own_threads.h"
#include "test/tablestore/engine/memory_disk.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint64_t mib = 1 << 20;
constexpr auto long_enough = 5min;

class BackgroundTest : public testing::Test {
 protected:
  void SetUp() override {
    options.container_bytes = 4 * mib;
    options.prepare_ahead_bytes = 3 * mib;
    ASSERT_TRUE(Containers::format(disk).ok());
  }
  void open() {
    containers = std::make_unique<Containers>(disk, options, counters);
    ASSERT_TRUE(containers->open().ok());
    ASSERT_TRUE(containers->allocator().finish_recovery().ok());
  }
  void use_a_slot() {
    ASSERT_TRUE(containers->reserve(4096).ok());
    ASSERT_EQ(containers->allocate(4096).size(), 1u);
  }
  void start() {
    background = std::make_unique<Background>(
        *containers, threads, [this](const Status& status) { error.set_value(status); },
        operations);
    background->start();
  }
  bool await_prepared(uint64_t bytes) {
    const auto deadline = Clock::now() + long_enough;
    while (counters.prepared_bytes < bytes && Clock::now() < deadline) std::this_thread::yield();
    return counters.prepared_bytes >= bytes;
  }

  MemoryDisk disk{64 * mib};
  ContainerOptions options;
  Counters counters;
  std::unique_ptr<Containers> containers;
  std::promise<Status> error;
  std::function<std::optional<uint64_t>()> operations = [] { return 0; };
  OwnThreads threads;
  std::unique_ptr<Background> background;
};

TEST_F(BackgroundTest, PreparesWhatIsInUse) {
  open();
  use_a_slot();
  start();
  EXPECT_TRUE(await_prepared(3 * mib));
  background->stop();
  EXPECT_EQ(counters.prepared_bytes, 3 * mib);
}

TEST_F(BackgroundTest, NoticesDemandThatBeginsLater) {
  open();
  start();
  use_a_slot();
  EXPECT_TRUE(await_prepared(mib));
}

TEST_F(BackgroundTest, KeepsToItsRate) {
  options.prepare_bytes_per_second = 10 * mib;
  open();
  use_a_slot();
  const auto begin = Clock::now();
  start();
  EXPECT_TRUE(await_prepared(3 * mib));
  // The second step is due when the first, of 1 MiB, has paid for itself.
  EXPECT_GE(Clock::now() - begin, 100ms);
}

TEST_F(BackgroundTest, MakesContainersAheadHoweverLongTheNextPieceIsAway) {
  options.prepare_bytes_per_second = 1;
  open();
  use_a_slot();
  start();
  EXPECT_TRUE(await_prepared(mib));
  ASSERT_EQ(counters.containers_created, 1u);
  ASSERT_TRUE(containers->reserve(3 * mib).ok());
  for (uint64_t bytes = 0; bytes < 3 * mib; bytes += 4096) containers->allocate(4096);
  const auto deadline = Clock::now() + long_enough;
  while (counters.containers_created < 2 && Clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(counters.containers_created, 2u);
}

TEST_F(BackgroundTest, StopsAtOnceHoweverLongTheNextStepIsAway) {
  options.prepare_bytes_per_second = 1;
  options.punch_bytes_per_second = 0;
  open();
  use_a_slot();
  start();
  EXPECT_TRUE(await_prepared(mib));
  const auto begin = Clock::now();
  background->stop();
  EXPECT_LT(Clock::now() - begin, long_enough);  // it is 12 days away
  EXPECT_EQ(counters.prepared_bytes, mib);
}

TEST_F(BackgroundTest, AStoreThatIsIdleGetsItsStock) {
  options.stock_bytes = 8 * mib;
  open();
  start();
  EXPECT_TRUE(await_prepared(8 * mib));
  background->stop();
  EXPECT_EQ(counters.prepared_bytes, 8 * mib);
  EXPECT_EQ(counters.containers_created, 2u);
}

// Each look is told of another operation, or of one that is under way.
TEST_F(BackgroundTest, AStoreInUseMakesNoStock) {
  options.stock_bytes = 8 * mib;
  for (bool under_way : {false, true}) {
    open();
    std::atomic<uint64_t> looks{0};
    operations = [&]() -> std::optional<uint64_t> {
      ++looks;
      if (under_way) return std::nullopt;
      return looks;
    };
    start();
    while (looks < 5) std::this_thread::sleep_for(1ms);
    background = nullptr;
    EXPECT_EQ(counters.prepared_bytes, 0u);
    EXPECT_EQ(counters.containers_created, 0u);
  }
}

TEST_F(BackgroundTest, ARateOfZeroTurnsItOff) {
  options.prepare_bytes_per_second = 0;
  options.punch_bytes_per_second = 0;
  open();
  use_a_slot();
  start();
  background->stop();
  EXPECT_EQ(counters.prepared_bytes, 0u);
}

TEST_F(BackgroundTest, TellsAboutAFailingDiskOnceAndRests) {
  open();
  use_a_slot();
  disk.fail(MemoryDisk::Operation::write_zeroes, "containers/", EIO, 5);
  start();
  EXPECT_EQ(error.get_future().get().code(), EIO);
  background->stop();
  EXPECT_EQ(counters.prepared_bytes, 0u);
}

TEST_F(BackgroundTest, AFullFileSystemIsNoError) {
  open();
  use_a_slot();
  disk.fail(MemoryDisk::Operation::write_zeroes, "containers/", ENOSPC, 1);
  start();
  EXPECT_TRUE(await_prepared(mib));
}

TEST_F(BackgroundTest, RemovesIdleContainers) {
  options.quiet_steps = 0;
  options.prepare_bytes_per_second = 0;
  options.prepare_ahead_bytes = 0;
  open();
  ASSERT_TRUE(containers->reserve(12 * mib).ok());
  containers->unreserve(12 * mib);
  start();
  const auto deadline = Clock::now() + long_enough;
  while (counters.containers_removed < 2 && Clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(counters.containers_removed, 2u);
}

TEST_F(BackgroundTest, CanBeStoppedTwiceAndDestroyedRunning) {
  open();
  start();
  background->stop();
  background->stop();
  background = nullptr;
  start();
  background = nullptr;
}

}  // namespace
}  // namespace tablestore
