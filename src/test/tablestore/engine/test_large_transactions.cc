// Transactions that are too large for the log.
#include "test/tablestore/engine/busy_threads.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

constexpr uint64_t mib = 1 << 20;

class LargeTransactionTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    ASSERT_NO_FATAL_FAILURE(format());
    open();
  }
  // Rows of so many MiB under a prefix.
  static void put_rows(Txn& txn, const std::string& prefix, uint64_t mebibytes) {
    for (uint64_t i = 0; i < mebibytes; ++i)
      txn.put(Family::omap, prefix + std::to_string(i), std::string(mib, char('a' + i % 26)));
  }
  void expect_rows(const std::string& prefix, uint64_t mebibytes) {
    for (uint64_t i = 0; i < mebibytes; ++i) {
      const auto row = get(Family::omap, prefix + std::to_string(i));
      ASSERT_TRUE(row) << prefix << i;
      EXPECT_EQ(*row, std::string(mib, char('a' + i % 26)));
    }
  }
};

TEST_F(LargeTransactionTest, OneThatIsLargerThanTheLogIsDurableAndInItsPlace) {
  auto before = std::make_shared<Txn>();
  before->put(Family::omap, "large0", "before");
  before->put(Family::omap, "small", "before");
  engine->submit(before);
  auto large = std::make_shared<AwaitedTxn>();
  const Written data = write(*large, 300, 7);
  put_rows(*large, "large", 3 * options.log_bytes / mib);
  engine->submit(large);
  auto after = std::make_shared<AwaitedTxn>();
  after->put(Family::omap, "small", "after");
  engine->submit(after);
  after->wait_durable();
  EXPECT_TRUE(large->is_durable());
  for (int life = 0; life < 3; ++life) {
    crash_and_open();
    expect_rows("large", 3 * options.log_bytes / mib);
    EXPECT_EQ(get(Family::omap, "small"), "after");
    expect_data(data.extents, 7);
  }
}

TEST_F(LargeTransactionTest, ItIsDurableWithNothingAfterIt) {
  auto large = std::make_shared<AwaitedTxn>();
  const Written data = write(*large, 3, 7);
  put_rows(*large, "large", options.log_bytes / mib);
  engine->submit(large);
  large->wait_durable();
  crash_and_open();
  expect_rows("large", options.log_bytes / mib);
  expect_data(data.extents, 7);
  EXPECT_EQ(engine->counters().recovered_transactions, 0u);
}

TEST_F(LargeTransactionTest, WhatItFreesIsHandedOutAgain) {
  auto first = std::make_shared<Txn>();
  const Written data = write(*first, 256, 1);
  commit(first);
  const uint64_t owned = engine->space().data_bytes;
  auto large = std::make_shared<AwaitedTxn>();
  for (const Extent& e : data.extents) large->free(e);
  put_rows(*large, "large", options.log_bytes / mib);
  engine->submit(large);
  large->wait_durable();
  EXPECT_EQ(engine->space().data_bytes, owned - 256 * block_bytes);
  auto next = std::make_shared<Txn>();
  const Written again = write(*next, 256, 2);
  commit(next);
  EXPECT_EQ(again.extents, data.extents);
  crash_and_open();
  expect_data(again.extents, 2);
}

TEST_F(LargeTransactionTest, ManyOfThemAndSmallOnesStayInOrder) {
  for (int round = 0; round < 6; ++round) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::omap, "round", std::to_string(round));
    if (round % 2) put_rows(*txn, "large", 3);
    engine->submit(txn);
  }
  engine->drain();
  EXPECT_TRUE(engine->checkpoint().ok());
  EXPECT_EQ(get(Family::omap, "round"), "5");
  close_and_open();
  EXPECT_EQ(get(Family::omap, "round"), "5");
}

// What the checkpoint has seen before is older than what the transaction says.
TEST_F(LargeTransactionTest, OneThatComesBetweenThePiecesOfACheckpointWaitsForItsEnd) {
  engine.reset();
  const auto threads = std::make_shared<BusyThreads>();
  options.threads = threads;
  options.capture_chunks_max = 1;
  open();
  auto first = std::make_shared<Txn>();
  const Written data = write(*first, 3 * options.container_bytes / block_bytes, 1);
  commit(first);
  auto large = std::make_shared<AwaitedTxn>();
  const Written more = write(*large, 64, 2);
  large->free({data.extents.front().container, data.extents.front().block, 1});
  put_rows(*large, "large", options.log_bytes / mib);
  unsigned tries = 0;
  threads->work = [&] {
    if (++tries == 1) engine->submit(large);
    threads->step("commit");
  };
  const Status s = engine->checkpoint();
  ASSERT_TRUE(s.ok()) << s.what();
  threads->work = nullptr;
  EXPECT_GT(tries, 3u);
  EXPECT_FALSE(large->is_durable());
  auto after = std::make_shared<Txn>();
  after->put(Family::omap, "after", "is there");
  commit(after);
  EXPECT_TRUE(large->is_durable());
  const auto owned = engine->owned_blocks();
  engine.reset();
  options.threads = nullptr;
  open();
  EXPECT_EQ(get(Family::omap, "after"), "is there");
  expect_rows("large", options.log_bytes / mib);
  expect_data(more.extents, 2);
  EXPECT_EQ(engine->owned_blocks(), owned);
}

}  // namespace
}  // namespace tablestore
