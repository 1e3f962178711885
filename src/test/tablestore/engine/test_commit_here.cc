// Transactions that are committed by the thread that submits them.
#include <chrono>
#include <thread>

#include "engine_fixture.h"

namespace tablestore {
namespace {

constexpr uint64_t always_us = 1'000'000'000;  // no flush takes longer

class CommitHereTest : public EngineFixture {
 protected:
  CommitHereTest() { options.quick_flush_us = always_us; }

  static std::shared_ptr<Txn> row(const std::string& key) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, key, "v");
    return txn;
  }

  // One by one, until the lane lends itself, as it does when its thread has gone to sleep.
  bool is_lent_within(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
      for (int alone = 0; alone < 10; ++alone) engine->drain();
      if (engine->submit_here(row("probe"))) {
        engine->commit_here();
        return true;
      }
    }
    return false;
  }
};

class WhereTxn : public Txn {
 public:
  void durable() noexcept override { thread = std::this_thread::get_id(); }
  std::thread::id thread;
};

TEST_F(CommitHereTest, WhoFindsNothingElseUnderWayCommitsAlone) {
  format();
  open();
  ASSERT_TRUE(is_lent_within(std::chrono::minutes(1)));
  const uint64_t groups = engine->counters().groups;
  const uint64_t flushes = engine->counters().flushes;
  Written written;
  for (int i = 0; i < 20; ++i) {
    auto txn = std::make_shared<WhereTxn>();
    txn->put(Family::object, "k" + std::to_string(i), "v");
    written = write(*txn, 3, uint64_t(i));
    // Nobody else is there, and the lane's thread sleeps until it is told.
    ASSERT_TRUE(engine->submit_here(txn)) << i;
    engine->commit_here();
    EXPECT_EQ(txn->thread, std::this_thread::get_id());
  }
  EXPECT_EQ(engine->counters().groups, groups + 20);
  EXPECT_GE(engine->counters().groups_here, 21u);
  EXPECT_GE(engine->counters().flushes, flushes + 20);
  crash_and_open();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(get(Family::object, "k" + std::to_string(i)), "v");
  expect_data(written.extents, 19);
}

TEST_F(CommitHereTest, WhatComesMeanwhileIsCommittedToo) {
  format();
  open();
  ASSERT_TRUE(is_lent_within(std::chrono::minutes(1)));
  const uint64_t transactions = engine->counters().transactions;
  ASSERT_TRUE(engine->submit_here(row("first")));
  // The lane is taken: nobody else gets it, and nobody is told of what is queued.
  EXPECT_FALSE(engine->submit_here(row("second")));
  engine->submit(row("third"));
  EXPECT_EQ(engine->counters().transactions, transactions);
  engine->commit_here();
  engine->drain();
  EXPECT_GE(engine->counters().transactions, transactions + 3);
  crash_and_open();
  for (const char* key : {"first", "second", "third"}) EXPECT_EQ(get(Family::object, key), "v");
}

// What is asked of the lane while it is taken: the next group is the lane's own again.
TEST_F(CommitHereTest, ACheckpointAndADiscardWaitForTheLane) {
  format();
  open();
  ASSERT_TRUE(is_lent_within(std::chrono::minutes(1)));
  ASSERT_TRUE(engine->submit_here(row("k")));
  std::thread checkpoint([this] { EXPECT_TRUE(engine->checkpoint().ok()); });
  std::thread discard([this] {
    Txn given_up;
    write(given_up, 5, 1);
    engine->abandon(given_up);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  engine->commit_here();
  checkpoint.join();
  discard.join();
  crash_and_open();
  EXPECT_EQ(get(Family::object, "k"), "v");
}

TEST_F(CommitHereTest, NobodyDoesWhereAFlushTakesLong) {
  options.quick_flush_us = 0;
  format();
  open();
  for (int i = 0; i < 50; ++i) {
    ASSERT_FALSE(engine->submit_here(row("k")));
    engine->drain();
  }
  EXPECT_EQ(engine->counters().groups_here, 0u);
}

TEST_F(CommitHereTest, NobodyDoesWhereTheLogMightBeFull) {
  options.log_bytes = 2 << 20;
  options.segment_bytes = 1 << 20;
  options.group_bytes_max = 2 << 20;
  format();
  open();
  const std::string value(500 << 10, 'v');
  for (int i = 0; i < 200; ++i) {
    auto txn = row("k");
    txn->put(Family::data, "k", value);
    if (engine->submit_here(txn)) engine->commit_here();
    engine->drain();
  }
  EXPECT_GT(engine->counters().checkpoints, 0u);
  EXPECT_EQ(get(Family::data, "k"), value);
}

// The thread of the lane gets a processor sooner than others do.
TEST_F(CommitHereTest, NobodyDoesForAWhileAfterItTookTooLong) {
  options.quick_flush_us = 40'000;
  format();
  open();
  class SlowTxn : public Txn {
    void durable() noexcept override {
      std::this_thread::sleep_for(std::chrono::milliseconds(420));
    }
  };
  ASSERT_TRUE(is_lent_within(std::chrono::minutes(1)));
  // One alone, of which nothing follows, and then a row of them.
  ASSERT_TRUE(engine->submit_here(std::make_shared<SlowTxn>()));
  engine->commit_here();
  EXPECT_TRUE(is_lent_within(std::chrono::milliseconds(300)));
  int lent = 0;
  while (lent < 50 && engine->submit_here(std::make_shared<SlowTxn>())) {
    engine->commit_here();
    ++lent;
  }
  EXPECT_LT(lent, 20);
  EXPECT_FALSE(is_lent_within(std::chrono::milliseconds(300)));
  EXPECT_TRUE(is_lent_within(std::chrono::minutes(1)));
}

// Some that wait for their commits, some that do not, and checkpoints: nothing is lost, nothing is
// twice, and nothing stands still.
TEST_F(CommitHereTest, ManyThreadsAtOnce) {
  options.log_bytes = 32 << 20;
  options.segment_bytes = 8 << 20;
  options.group_bytes_max = 256 << 10;
  format();
  open();
  ASSERT_TRUE(is_lent_within(std::chrono::minutes(1)));
  constexpr int threads = 4, rounds = 300;
  std::atomic<int> durable = 0;
  class CountedTxn : public Txn {
   public:
    explicit CountedTxn(std::atomic<int>& durable) : durable_(durable) {}
    void durable() noexcept override { ++durable_; }

   private:
    std::atomic<int>& durable_;
  };
  std::vector<std::thread> running;
  char sequencers[threads];
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        auto txn = std::make_shared<CountedTxn>(durable);
        txn->sequencer = &sequencers[t];
        txn->put(Family::object, std::to_string(t), std::to_string(i));
        txn->put(Family::data, std::to_string(t), std::string(20000, char('a' + i % 26)));
        if (i % 5 == 0)
          engine->submit(txn);
        else if (engine->submit_here(txn))
          engine->commit_here();
        // Alone for a while, then all together.
        std::this_thread::sleep_for(std::chrono::microseconds(i / 50 % 2 ? 0 : 300 * t));
      }
    });
  for (auto& thread : running) thread.join();
  engine->drain();
  EXPECT_EQ(durable, threads * rounds);
  crash_and_open();
  for (int t = 0; t < threads; ++t)
    EXPECT_EQ(get(Family::object, std::to_string(t)), std::to_string(rounds - 1));
}

}  // namespace
}  // namespace tablestore
