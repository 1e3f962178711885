// The simulator itself, and the engine in it with fixed seeds.
#include <gtest/gtest.h>

#include "test/tablestore/sim/history.h"

namespace tablestore::sim {
namespace {

TEST(Simulator, OneSeedIsOneHistory) {
  HistoryOptions options;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    histories.choose_base(seed, &options);
    const auto steps = histories.make(seed, options.steps);
    const HistoryResult first = histories.run(steps, options);
    const HistoryResult second = histories.run(steps, options);
    EXPECT_EQ(first.failure, "");
    EXPECT_EQ(first.ios, second.ios);
    EXPECT_EQ(first.crashes, second.crashes);
    EXPECT_EQ(first.crashes_while, second.crashes_while);
    EXPECT_EQ(first.died, second.died);
  }
}

class RandomHistories : public testing::TestWithParam<std::pair<const char*, HistoryOptions>> {};

TEST_P(RandomHistories, EndInAStateThatTheModelAllows) {
  HistoryOptions options = GetParam().second;
  uint64_t crashes = 0;
  for (uint64_t seed = 1000; seed < 1010; ++seed) {
    histories.choose_base(seed, &options);
    const HistoryResult r = histories.run(histories.make(seed, options.steps), options);
    ASSERT_EQ(r.failure, "") << "seed " << seed;
    crashes += r.crashes;
  }
  EXPECT_GT(crashes, 300u);
}

HistoryOptions with(bool errors, bool full, bool damage) {
  HistoryOptions o;
  o.errors = errors, o.full = full, o.damage = damage;
  return o;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, RandomHistories,
    testing::Values(std::pair("crashes", with(false, false, false)),
                    std::pair("errors", with(true, false, false)),
                    std::pair("full", with(false, true, false)),
                    std::pair("damage", with(true, true, true))),
    [](const auto& each) { return std::string(each.param.first); });

}  // namespace
}  // namespace tablestore::sim
