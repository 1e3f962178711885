// Transactions that are committed by the thread that submits them.
#include <chrono>
#include <thread>

#include "disk_wrapper.h"
#include "engine_fixture.h"
#include "os/tablestore/engine/commit/lending.h"

namespace tablestore {
namespace {

constexpr uint64_t always_us = 1'000'000'000;  // no flush takes longer

class CommitHereTest : public EngineFixture {
 protected:
  CommitHereTest() {
    options.quick_flush_us = always_us;
    options.vouch_after_ms = 0;  // the voucher would take the lane for a moment
  }

  static std::shared_ptr<Txn> row(const std::string& key) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, key, "v");
    return txn;
  }

  // One by one, until the lane lends itself, as it does when its thread has gone to sleep.
  template <typename Probe = Txn>
  bool is_lent_within(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
      for (int alone = 0; alone < 10; ++alone) engine->drain();
      auto txn = std::make_shared<Probe>();
      txn->put(Family::object, "probe", "v");
      if (engine->submit_here(txn)) {
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

// Where its queue is empty, nothing but the lane itself says that it is taken.
TEST_F(CommitHereTest, ALaneThatIsTakenIsNotLent) {
  format();
  open();
  ASSERT_TRUE(is_lent_within(std::chrono::minutes(1)));
  class GreedyTxn : public Txn {
   public:
    GreedyTxn(Engine& engine, std::shared_ptr<Txn> next) : engine_(engine), next_(next) {}
    void durable() noexcept override { got_it = engine_.submit_here(next_); }
    bool got_it = false;

   private:
    Engine& engine_;
    const std::shared_ptr<Txn> next_;
  };
  for (int i = 0; i < 20; ++i) {
    auto txn = std::make_shared<GreedyTxn>(*engine, row("next" + std::to_string(i)));
    txn->put(Family::object, "first", "v");
    if (engine->submit_here(txn)) engine->commit_here();
    for (int round = 0; round < 2; ++round) engine->drain();  // `txn`, and the next one after it
    ASSERT_FALSE(txn->got_it);
    EXPECT_EQ(get(Family::object, "next" + std::to_string(i)), "v");
  }
}

// What is asked of the lane while it is taken: the next group is the lane's own again.
TEST_F(CommitHereTest, ACheckpointAndADiscardWaitForTheLane) {
  format();
  open();
  ASSERT_TRUE(is_lent_within(std::chrono::minutes(1)));
  class NotedTxn : public Txn {
   public:
    void durable() noexcept override { is_durable = true; }
    std::atomic<bool> is_durable = false;
  };
  auto txn = std::make_shared<NotedTxn>();
  txn->put(Family::object, "k", "v");
  ASSERT_TRUE(engine->submit_here(txn));
  std::atomic<int> begun = 0;
  std::thread checkpoint([&] {
    ++begun;
    EXPECT_TRUE(engine->checkpoint().ok());
    EXPECT_TRUE(txn->is_durable) << "the checkpoint did not wait for the lane";
  });
  std::thread discard([&] {
    Txn given_up;
    write(given_up, 5, 1);
    ++begun;
    engine->abandon(given_up);
    EXPECT_TRUE(txn->is_durable) << "the discard did not wait for the lane";
  });
  while (begun < 2) std::this_thread::yield();
  // Time for those that do not wait to be back.
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
    // A group of the largest size does not fit beside it, at any time.
    const bool lent = engine->submit_here(txn);
    if (lent) engine->commit_here();
    ASSERT_FALSE(lent) << i;
    engine->drain();
  }
  EXPECT_GT(engine->counters().checkpoints, 0u);
  EXPECT_EQ(get(Family::data, "k"), value);
}

// A thread that holds its PG's lock must not wait until a table that stalls takes rows again.
TEST_F(CommitHereTest, NobodyDoesWhereTheTableIsFarBehind) {
  options.log_bytes = 64 << 20;
  options.segment_bytes = 16 << 20;
  format();
  open();
  class StuckTxn : public Txn {
   public:
    void applied() noexcept override { released.wait(false); }
    std::atomic<bool> released = false;
  };
  auto stuck = std::make_shared<StuckTxn>();
  engine->submit(stuck);
  bool lent = false;  // before the table is far behind
  for (int i = 0; i < 20000 && !lent; ++i) {
    auto txn = std::make_shared<AwaitedTxn>();
    txn->put(Family::object, "k", "v");
    lent = engine->submit_here(txn);
    if (lent)
      engine->commit_here();
    else
      txn->wait_durable();
  }
  EXPECT_TRUE(lent);
  for (int i = 0; i < 4; ++i) {  // the applier takes up to 16 MiB of them
    auto txn = std::make_shared<AwaitedTxn>();
    txn->put(Family::data, "k", std::string(4500 << 10, 'v'));
    engine->submit(txn);
    txn->wait_durable();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the lane has come to rest
  lent = engine->submit_here(row("k"));
  EXPECT_FALSE(lent);
  stuck->released = true;
  stuck->released.notify_all();
  if (lent) engine->commit_here();
  engine->drain();
}

// Its flushes are quick, whatever the real one below is busy with.
class UnflushedDisk : public DiskWrapper {
 public:
  using DiskWrapper::DiskWrapper;

 protected:
  std::unique_ptr<File> wrap(const std::string&, std::unique_ptr<File> file) override {
    return std::make_unique<UnflushedFile>(std::move(file));
  }

 private:
  class UnflushedFile : public FileWrapper {
   public:
    using FileWrapper::FileWrapper;
    Status flush() override { return {}; }
  };
};

// The thread of the lane gets a processor sooner than others do.
TEST_F(CommitHereTest, NobodyDoesForAWhileAfterItTookTooLong) {
  options.quick_flush_us = 40'000;
  disk = std::make_unique<UnflushedDisk>(std::shared_ptr<Disk>(std::move(disk)));
  format();
  open();
  // Slow where the thread that made it commits it; the lane's thread is as quick as ever.
  class SlowHereTxn : public Txn {
   public:
    void durable() noexcept override {
      if (std::this_thread::get_id() == maker_)
        std::this_thread::sleep_for(std::chrono::milliseconds(420));
    }

   private:
    const std::thread::id maker_ = std::this_thread::get_id();
  };
  // How long nobody gets the lane is a least time, which a busy machine makes only longer.
  for (int lent = 0; lent < 20; ++lent) {
    const auto before = std::chrono::steady_clock::now();
    const uint64_t slow_ones = engine->counters().groups_here;
    ASSERT_TRUE(is_lent_within<SlowHereTxn>(std::chrono::minutes(1)));
    ASSERT_GT(engine->counters().groups_here, slow_ones);
    const auto took = std::chrono::steady_clock::now() - before;
    if (took >= Lending::pause_where_slow) return;
  }
  FAIL() << "the lane lends itself again and again, however long that takes";
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
