// The end of a store whose file system is full: it comes, and costs nothing that was acknowledged.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <vector>

#include "flaky_fixture.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

class EndWhenFullTest : public FlakyFixture {
 protected:
  class CountedTxn : public Txn {
   public:
    explicit CountedTxn(std::atomic<int>& count) : count_(count) {}
    void durable() noexcept override { ++count_; }

   private:
    std::atomic<int>& count_;
  };

  void SetUp() override {
    FlakyFixture::SetUp();
    options.reporter.log = [](Reporter::Level, const std::string&) {};
  }
  // More rows than the log of a new store has room for, while the table takes none.
  void format_and_fill() {
    ASSERT_NO_FATAL_FAILURE(format_flaky());
    std::vector<Written> objects;
    for (int i = 0; i < submitted; ++i) {
      auto txn = std::make_shared<Txn>();
      objects.push_back(write(*txn, 1, i));
      commit(std::move(txn));
    }
    flaky->set_full(true);
    for (int i = 0; i < submitted; ++i) {
      auto txn = std::make_shared<CountedTxn>(durable);
      txn->put(Family::object, "k" + std::to_string(i), std::string(256 << 10, 'v'));
      for (const Extent& e : objects[i].extents) txn->free(e);
      engine->submit(std::move(txn));
    }
    const auto end = std::chrono::steady_clock::now() + long_enough;
    for (int before = -1; std::chrono::steady_clock::now() < end;) {
      if (durable == before && before > 0) return;
      before = durable;
      std::this_thread::sleep_for(500ms);  // of nothing that gets on
    }
    FAIL() << "the store never stands still";
  }
  uint64_t number(const std::string& wanted) {
    for (const auto& [name, value] : engine->statistics())
      if (name == wanted) return value;
    ADD_FAILURE() << "no " << wanted;
    return 0;
  }
  // Rows of one transaction after the other, until so much of the log is left.
  void fill_log_but_for(uint64_t blocks, int* keys) {
    const uint64_t last = options.log_bytes / block_bytes - blocks;
    for (uint64_t used; (used = number("log_used_bytes") / block_bytes) < last;) {
      const uint64_t group_blocks = std::min<uint64_t>(last - used, 32);
      auto txn = std::make_shared<AwaitedTxn>();
      txn->put(Family::object, "k" + std::to_string((*keys)++),
               std::string((group_blocks - 1) * block_bytes + 1000, 'v'));
      engine->submit(txn);
      txn->wait_durable();
    }
    ASSERT_EQ(number("log_used_bytes") / block_bytes, last);
  }
  void start_until_refused(uint64_t blocks_left) {
    options.vouch_after_ms = 0;
    options.memtable_bytes = 4 * options.log_bytes;  // they take all that is replayed
    ASSERT_NO_FATAL_FAILURE(format_flaky());
    flaky->set_full(true);
    int keys = 0;
    ASSERT_NO_FATAL_FAILURE(fill_log_but_for(blocks_left, &keys));
    uint64_t starts = 0;
    for (Status refused; refused.ok();) {
      engine.reset();
      ASSERT_LE(starts, blocks_left);
      auto opened = Engine::open(*flaky, options);
      if (opened.ok()) {
        engine = opened.take();
        ++starts;
        continue;
      }
      refused = opened.status();
      EXPECT_EQ(refused.code(), ENOSPC) << refused.what();
    }
    EXPECT_EQ(starts, blocks_left / 2);
    flaky->set_full(false);
    ASSERT_NO_FATAL_FAILURE(open_flaky());
    for (int i = 0; i < keys; ++i)
      EXPECT_TRUE(get(Family::object, "k" + std::to_string(i))) << i;
  }
  template <typename Call>
  auto in_time(Call call) {
    auto outcome = std::async(std::launch::async, call);
    if (outcome.wait_for(long_enough) != std::future_status::ready) {
      std::fputs("it waits for ever\n", stderr);
      std::abort();  // nothing ends it
    }
    return outcome.get();
  }

  static constexpr int submitted = 100;
  static constexpr auto long_enough = 10min;
  static constexpr uint64_t short_patience_ms = 2000;
  std::atomic<int> durable = 0;
};

TEST_F(EndWhenFullTest, VouchingEnds) {
  options.end_patience_ms = short_patience_ms;
  ASSERT_NO_FATAL_FAILURE(format_and_fill());
  ASSERT_LT(durable, submitted);
  EXPECT_FALSE(in_time([&] { return engine->vouch(); }));
}

TEST_F(EndWhenFullTest, ClosingEndsAndLosesNothing) {
  options.end_patience_ms = short_patience_ms;
  ASSERT_NO_FATAL_FAILURE(format_and_fill());
  EXPECT_EQ(in_time([&] { return engine->close().code(); }), ETIMEDOUT);
  EXPECT_TRUE(in_time([&] {
    engine.reset();
    return true;
  }));
  flaky->set_full(false);
  ASSERT_NO_FATAL_FAILURE(open_flaky());
  for (int i = 0; i < durable; ++i) EXPECT_TRUE(get(Family::object, "k" + std::to_string(i))) << i;
}

// Nobody but clients waits for space for ever: not who wants what was freed, nor an operator.
TEST_F(EndWhenFullTest, WhatWaitsForSomethingEnds) {
  options.end_patience_ms = short_patience_ms;
  options.memtable_bytes = 256 << 10;  // so that soon no row is applied
  ASSERT_NO_FATAL_FAILURE(format_and_fill());
  EXPECT_GT(number("pending_free_bytes"), 0u);
  EXPECT_EQ(in_time([&] { return engine->reserve(options.capacity_bytes * 2).code(); }), ENOSPC);
  EXPECT_FALSE(in_time([&] { return engine->wait_released(); }));
  EXPECT_FALSE(in_time([&] { return engine->settle_log_loss(); }));
  for (int i = 0; i < 5; ++i)  // by the last one the checkpoint in the background waits as well
    EXPECT_EQ(in_time([&] { return engine->checkpoint().code(); }), ESHUTDOWN);
}

// What is freed comes back also while no rows can be applied.
TEST_F(EndWhenFullTest, WhatIsFreedIsReleasedWhileTheTableTakesNothing) {
  options.log_bytes = 64 << 20;
  options.memtable_bytes = 256 << 10;
  options.vouch_after_ms = 0;
  ASSERT_NO_FATAL_FAILURE(format_flaky());
  auto object = std::make_shared<Txn>();
  const Written written = write(*object, 1, 1);
  commit(std::move(object));
  flaky->set_full(true);
  for (int i = 0; i < 40; ++i) {  // more than memtables take
    auto rows = std::make_shared<Txn>();
    rows->put(Family::object, "rows" + std::to_string(i), std::string(256 << 10, 'v'));
    engine->submit(std::move(rows));
  }
  auto removal = std::make_shared<AwaitedTxn>();
  removal->put(Family::object, "k", "v");
  for (const Extent& e : written.extents) removal->free(e);
  engine->submit(removal);
  EXPECT_TRUE(in_time([&] { return engine->wait_released(); }));
  EXPECT_EQ(number("pending_free_bytes"), 0u);
  EXPECT_FALSE(removal->is_applied());
}

// Each start writes two groups more, in a log that nothing recycles.
TEST_F(EndWhenFullTest, StartsOverwriteNothingOfAFullLog) {
  ASSERT_NO_FATAL_FAILURE(start_until_refused(16));
}

TEST_F(EndWhenFullTest, StartsOverwriteNothingOfAFullLogWithAPlaceForOne) {
  ASSERT_NO_FATAL_FAILURE(start_until_refused(17));
}

// What waits goes on when there is space, and the end waits for it.
TEST_F(EndWhenFullTest, ClosingWaitsWhereItGetsOn) {
  ASSERT_NO_FATAL_FAILURE(format_and_fill());
  flaky->set_full(false);
  const auto start = std::chrono::steady_clock::now();
  while (durable < submitted && std::chrono::steady_clock::now() < start + long_enough)
    std::this_thread::sleep_for(1ms);
  const Status s = engine->close();
  EXPECT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(durable, submitted);
}

// The log is recycled after a flush of the table, which has to have happened.
TEST_F(EndWhenFullTest, AFlushThatComesAfterwardsIsWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(format_and_fill());
  flaky->set_full(false);
  in_time([&] {
    engine->drain();
    return true;
  });
  flaky->slow_makes(300ms);
  for (int round = 0; round < 3; ++round) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, "round " + std::to_string(round), "value");
    commit(std::move(txn));
    const int made = flaky->made();
    const Status s = in_time([&] { return engine->checkpoint(); });
    EXPECT_TRUE(s.ok()) << s.what();
    EXPECT_GT(flaky->made(), made);
  }
}

}  // namespace
}  // namespace tablestore
