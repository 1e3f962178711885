// The last group is vouched for once nothing more comes: what rots afterwards costs its block, not
// the transactions of the group.
#include <fstream>
#include <thread>

#include "engine_fixture.h"
#include "test/tablestore/sim/stepped_threads.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

class VouchingTest : public EngineFixture {
 protected:
  uint64_t statistic(const std::string& wanted) {
    for (const auto& [name, value] : engine->statistics())
      if (name == wanted) return value;
    ADD_FAILURE() << "no statistic " << wanted;
    return 0;
  }
  bool happens(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + 5min;
    while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return done();
  }
  // Some transactions, each with a row and a block. Returns what the last one wrote.
  Written submit_some(int transactions) {
    Written written;
    std::shared_ptr<AwaitedTxn> last;
    for (int i = 0; i < transactions; ++i) {
      last = std::make_shared<AwaitedTxn>();
      put_row(*last);
      written = write(*last, 1, uint64_t(i));
      engine->submit(last);
    }
    wait_durable(*last);
    return written;
  }
  // The same as one transaction, which is one group, with one block.
  Written submit_as_one(int rows) {
    auto txn = std::make_shared<AwaitedTxn>();
    for (int i = 0; i < rows; ++i) put_row(*txn);
    const Written written = write(*txn, 1, 0);
    engine->submit(txn);
    wait_durable(*txn);
    return written;
  }
  void expect_all_rows() {
    for (int i = 0; i < submitted_; ++i)
      EXPECT_EQ(get(Family::object, "k" + std::to_string(i)), "v") << i;
  }
  // One bit of what lies there.
  void rot(const Extent& e) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(directory + "/containers")) {
      if (entry.path().filename() != std::to_string(e.container)) continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(std::streamoff(e.offset_bytes()));
      const char byte = char(file.get() ^ 1);
      file.seekp(std::streamoff(e.offset_bytes()));
      file.put(byte);
      ASSERT_TRUE(file.good());
    }
  }

  std::shared_ptr<sim::SteppedThreads> threads;  // null: threads run by themselves

 private:
  void put_row(Txn& txn) { txn.put(Family::object, "k" + std::to_string(submitted_++), "v"); }
  void wait_durable(const AwaitedTxn& txn) {
    while (!txn.is_durable()) {
      if (threads) threads->step("commit");
      std::this_thread::yield();
    }
  }

  int submitted_ = 0;
};

TEST_F(VouchingTest, RotInWhatAnIdleStoreWroteLastCostsOneBlock) {
  format();
  open();
  const Written w = submit_as_one(8);  // in several groups, the first may be what is vouched for
  EXPECT_TRUE(happens([&] { return statistic("vouching_groups") > 0; }));
  engine.reset();
  rot(w.extents.at(0));
  open();
  expect_all_rows();
}

TEST_F(VouchingTest, AnIdleStoreDoesItOnceAndSoon) {
  EXPECT_LE(EngineOptions().vouch_after_ms, 100u);
  EXPECT_EQ(options.vouch_after_ms, EngineOptions().vouch_after_ms);
  format();
  open();
  uint64_t rounds = 0;
  for (auto took = std::chrono::steady_clock::duration::max(); took > 1s;) {
    ASSERT_LT(++rounds, 60u) << "never within a second";
    submit_some(1);
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(happens([&] { return statistic("vouching_groups") == rounds; }));
    took = std::chrono::steady_clock::now() - start;
  }
  const uint64_t log_bytes = statistic("log_bytes");
  std::this_thread::sleep_for(400ms);  // several times as long as it takes
  EXPECT_EQ(statistic("vouching_groups"), rounds);
  EXPECT_EQ(statistic("log_bytes"), log_bytes);
}

TEST_F(VouchingTest, WhatTwoGroupsVouchForCanBeHandedOutAgain) {
  threads = std::make_shared<sim::SteppedThreads>();
  options.threads = threads;
  format();
  open();
  auto txn = std::make_shared<Txn>();
  for (const Extent& e : submit_some(1).extents) txn->free(e);
  engine->submit(txn);
  threads->step("commit");
  EXPECT_EQ(statistic("pending_free_bytes"), block_bytes);
  EXPECT_TRUE(threads->step("vouch"));
  EXPECT_EQ(statistic("pending_free_bytes"), block_bytes);
  submit_some(1);
  threads->step("commit");
  EXPECT_EQ(statistic("pending_free_bytes"), block_bytes);
  EXPECT_TRUE(threads->step("vouch"));
  EXPECT_EQ(statistic("pending_free_bytes"), 0u);
  EXPECT_FALSE(threads->step("vouch"));
}

TEST_F(VouchingTest, WhereThereIsWorkTheNextGroupDoesIt) {
  threads = std::make_shared<sim::SteppedThreads>();
  options.threads = threads;
  format();
  open();
  EXPECT_FALSE(threads->step("vouch"));  // the beginning of an epoch vouches for all before
  submit_some(1);
  auto next = std::make_shared<Txn>();
  next->put(Family::object, "next", "v");
  engine->submit(next);
  EXPECT_FALSE(threads->step("vouch"));
  threads->step("commit");
  const uint64_t flushes = engine->counters().flushes, groups = engine->counters().groups;
  EXPECT_TRUE(threads->step("vouch"));
  // What nobody waits for is none of theirs.
  EXPECT_EQ(engine->counters().flushes, flushes);
  EXPECT_EQ(engine->counters().groups, groups);
  engine->drain();
  crash_and_open();
  expect_all_rows();
  EXPECT_EQ(get(Family::object, "next"), "v");
}

// As before the end of a process that nobody waits for.
TEST_F(VouchingTest, IsDoneWhenItIsAskedFor) {
  options.vouch_after_ms = 0;  // never by itself
  format();
  open();
  const Written w = submit_some(8);
  engine->vouch();
  EXPECT_EQ(statistic("vouching_groups"), 1u);
  engine->vouch();
  EXPECT_EQ(statistic("vouching_groups"), 1u);
  engine.reset();
  rot(w.extents.at(0));
  open();
  expect_all_rows();
}

// A checkpoint that does not come to its end, as on a full disk, leaves a log that is replayed.
TEST_F(VouchingTest, IsDoneBeforeTheCheckpointOfAnOrderlyEnd) {
  options.vouch_after_ms = 0;
  format();
  open();
  submit_some(3);
  ASSERT_TRUE(engine->close().ok());
  EXPECT_EQ(statistic("vouching_groups"), 1u);
  engine.reset();
  open();
  EXPECT_EQ(engine->counters().recovered_groups, 0u);
  expect_all_rows();
}

// The lane is lent, captured and stopped at any moment, with the voucher between them.
TEST_F(VouchingTest, GoesOnBesideAllThatTakesTheLane) {
  options.vouch_after_ms = 1;
  options.quick_flush_us = 1'000'000'000;
  format();
  open();
  const auto end = std::chrono::steady_clock::now() + 2s;
  std::thread checkpoints([&] {
    while (std::chrono::steady_clock::now() < end) {
      EXPECT_TRUE(engine->checkpoint().ok());
      std::this_thread::sleep_for(3ms);
    }
  });
  int done = 0;
  do {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, "k", std::to_string(done));
    write(*txn, 1, 1);
    if (engine->submit_here(txn)) engine->commit_here();
    if (done % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(done % 40 * 100));
    if (done % 7 == 0) engine->vouch();
    ++done;
  } while (std::chrono::steady_clock::now() < end);
  checkpoints.join();
  EXPECT_GT(statistic("vouching_groups"), 0u);
  engine->drain();
  crash_and_open();
  EXPECT_EQ(get(Family::object, "k"), std::to_string(done - 1));
}

}  // namespace
}  // namespace tablestore
