// When the commit lane lends itself, by a clock that goes as the test says.
#include <gtest/gtest.h>

#include "os/tablestore/engine/commit/lending.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

class LendingTest : public testing::Test {
 protected:
  // One transaction after the other. `by_lane` is from one to the next where the lane commits,
  // `by_itself` where the thread that submits them does, which takes it `here`.
  void run(int transactions, microseconds by_lane, microseconds by_itself, microseconds here) {
    while (transactions-- > 0) {
      const bool lent = lending.is_wanted(now);
      if (lent) lending.lend();
      now += lent ? by_itself : by_lane;
      lending.group_made(now, true);
      if (lent) lending.given_back(now, here);
      lent_groups += lent;
      lane_groups += !lent;
    }
  }
  void other_clients_come() { lending.group_made(now += 100us, false); }
  void forget() { lent_groups = lane_groups = 0; }

  Lending lending{200us};
  Lending::Time now{};
  uint64_t lent_groups = 0;
  uint64_t lane_groups = 0;
};

TEST_F(LendingTest, OnlyAfterSeveralAlone) {
  for (int i = 0; i < 20; ++i) {
    other_clients_come();
    run(Lending::after, 150us, 100us, 60us);
  }
  EXPECT_EQ(lent_groups, 0u);
  run(1, 150us, 100us, 60us);
  EXPECT_EQ(lent_groups, 1u);
  other_clients_come();
  run(1, 150us, 100us, 60us);
  EXPECT_EQ(lent_groups, 1u);
}

TEST_F(LendingTest, IsKeptWhereTransactionsFollowSooner) {
  run(100'000, 150us, 100us, 60us);
  EXPECT_GE(lent_groups, 98'000u);
  EXPECT_GT(lane_groups, 500u);  // it looks again now and then
}

// One thread with more to do: it prepares the next transaction while the lane commits.
TEST_F(LendingTest, EndsWhereTheThreadHadMoreToDo) {
  run(1000, 50us, 80us, 50us);
  forget();
  run(100'000, 50us, 80us, 50us);
  EXPECT_LE(lent_groups, 3'000u);
  EXPECT_GT(lent_groups, 0u);
}

// As soon as there is one client again that waits for each of its commits.
TEST_F(LendingTest, ComesBackSoonAfterwards) {
  run(1000, 50us, 80us, 50us);
  forget();
  run(10'000, 150us, 100us, 60us);
  EXPECT_GE(lent_groups, 8'500u);  // after a tenth of a second
}

TEST_F(LendingTest, ThePausesOfAClientAreNoReasonToEndIt) {
  run(10, 1ms, 1ms, 60us);
  forget();
  run(1000, 1ms, 5ms, 60us);
  EXPECT_EQ(lane_groups, 0u);
}

// Those that are never lent, because their data takes longer, do not end it for the others.
TEST_F(LendingTest, SurvivesOthersInBetween) {
  run(20, 150us, 100us, 60us);
  forget();
  for (int i = 0; i < 500; ++i) {
    lending.group_made(now += 500us, true);
    run(1, 150us, 550us, 60us);
  }
  EXPECT_EQ(lent_groups, 500u);
}

TEST_F(LendingTest, NotForASecondWhereItTakesLong) {
  run(10, 150us, 100us, 60us);
  forget();
  run(100, 150us, 3ms, 3ms);
  EXPECT_LT(lent_groups, 20u);
  forget();
  for (const auto end = now + 800ms; now < end;) run(1, 150us, 100us, 60us);
  EXPECT_EQ(lent_groups, 0u);
  for (const auto end = now + 1s; now < end;) run(1, 150us, 100us, 60us);
  EXPECT_GT(lent_groups, 0u);
}

TEST_F(LendingTest, OneThatTookLongSaysNothing) {
  run(200, 150us, 100us, 60us);
  run(1, 150us, 500ms, 500ms);
  forget();
  run(100, 150us, 100us, 60us);
  EXPECT_EQ(lane_groups, 0u);
}

}  // namespace
}  // namespace tablestore
