// The end of a store whose file system is full: it comes, and costs nothing that was acknowledged.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>

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
    options.end_patience_ms = 2000;
    options.reporter.log = [](Reporter::Level, const std::string&) {};
    ASSERT_NO_FATAL_FAILURE(format_flaky());
  }
  // More rows than the log has room for, while the table takes none.
  void fill() {
    flaky->set_full(true);
    for (int i = 0; i < submitted; ++i) {
      auto txn = std::make_shared<CountedTxn>(durable);
      txn->put(Family::object, "k" + std::to_string(i), std::string(256 << 10, 'v'));
      engine->submit(std::move(txn));
    }
    const auto end = std::chrono::steady_clock::now() + 30s;
    for (int before = -1; std::chrono::steady_clock::now() < end;) {
      if (durable == before && before > 0) return;
      before = durable;
      std::this_thread::sleep_for(500ms);  // of nothing that gets on
    }
    FAIL() << "the store never stands still";
  }
  template <typename Call>
  auto in_time(Call call) {
    auto outcome = std::async(std::launch::async, call);
    if (outcome.wait_for(30s) != std::future_status::ready) {
      std::fputs("it waits for ever\n", stderr);
      std::abort();  // nothing ends it
    }
    return outcome.get();
  }

  static constexpr int submitted = 100;
  std::atomic<int> durable = 0;
};

TEST_F(EndWhenFullTest, VouchingEnds) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_LT(durable, submitted);
  EXPECT_FALSE(in_time([&] { return engine->vouch(); }));
}

TEST_F(EndWhenFullTest, ClosingEndsAndLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(fill());
  EXPECT_EQ(in_time([&] { return engine->close().code(); }), ETIMEDOUT);
  EXPECT_TRUE(in_time([&] {
    engine.reset();
    return true;
  }));
  flaky->set_full(false);
  ASSERT_NO_FATAL_FAILURE(open_flaky());
  for (int i = 0; i < durable; ++i) EXPECT_TRUE(get(Family::object, "k" + std::to_string(i))) << i;
}

// What waits goes on when there is space, and the end waits for it.
TEST_F(EndWhenFullTest, ClosingWaitsWhereItGetsOn) {
  ASSERT_NO_FATAL_FAILURE(fill());
  flaky->set_full(false);
  const auto start = std::chrono::steady_clock::now();
  while (durable < submitted && std::chrono::steady_clock::now() < start + 30s)
    std::this_thread::sleep_for(1ms);
  const Status s = engine->close();
  EXPECT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(durable, submitted);
}

// The log is recycled after a flush of the table, which has to have happened.
TEST_F(EndWhenFullTest, AFlushThatComesAfterwardsIsWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(fill());
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
