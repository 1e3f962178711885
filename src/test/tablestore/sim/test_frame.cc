// The simulators' frame, around a store that is not there.
#include <gtest/gtest.h>

#include <algorithm>

#include "test/tablestore/sim/frame/crash.h"
#include "test/tablestore/sim/frame/verdict.h"
#include "test/tablestore/sim/history.h"

namespace tablestore::sim {
namespace {

constexpr Step::Kind quiet{0}, first{1}, second{2}, ending{3}, dying{4};
constexpr const char* names[] = {"quiet", "first", "second", "ending", "dying"};
constexpr unsigned often[] = {90, 4, 4, 0, 0};

// Fails at a second step that comes after a first one.
class TwoStepsFail : public HistoryRun {
 public:
  void step(const Step& step) override {
    ++result_.transactions;
    if (step.kind == first) armed_ = true;
    if (step.kind == second && armed_) throw Failure{"both"};
    if (step.kind == ending) over_ = true;
    if (step.kind == dying) throw Died{"of it"};
  }
  void finish() override { ++result_.crashes; }

 private:
  bool armed_ = false;
};

const Histories two{
    "the test", names, [](uint64_t) { return std::span<const unsigned>(often); },
    [](uint64_t, HistoryOptions*) {},
    [](const HistoryOptions&) -> std::unique_ptr<HistoryRun> {
      return std::make_unique<TwoStepsFail>();
    }};

std::vector<Step> steps_of(const std::string& text) {
  std::string wrong;
  return two.parse(text, &wrong).value();
}

// Seeds that have found bugs, and those in documents and commits, stay what they are.
TEST(Frame, HistoriesOfASeedStayWhatTheyWere) {
  EXPECT_EQ(histories.print(histories.make(1, 8)),
            "drain:2516265689700432462,drain:387828560950575246,drain:16811588669333006409,"
            "transaction:1372899666868390665,transaction:11717947711864209424,"
            "crash:10259689811308065563,transaction:4088419662272158307,"
            "transaction:4607589428530663833");
  EXPECT_EQ(histories.print(histories.make(2, 8)),
            "bulk:15684088468973760345,transaction:17069087732856008243,"
            "commit:2506651028494935005,prepare:1838224231312793315,"
            "bulk:12651567891252036806,commit:17863737910281200643,"
            "compact:2449328130808507268,bulk:1247449263731090768");
  EXPECT_EQ(histories.print(histories.make(3, 8)),
            "requested:3611203882987592167,huge:6389378623318638229,"
            "commit:6664858249272180068,commit:7796649511920467688,"
            "drain:3064661269460675587,faults:10907489999671605570,"
            "transaction:16843237613732506350,huge:376988225618384471");
}

TEST(Frame, StepsAreReadAsTheyArePrinted) {
  const std::vector<Step> steps = histories.make(5, 120);
  std::string wrong;
  const auto read = histories.parse(histories.print(steps), &wrong);
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::ranges::equal(*read, steps, [](const Step& a, const Step& b) {
    return a.kind == b.kind && a.seed == b.seed;
  }));
}

TEST(Frame, AWordThatIsNoStepIsNamed) {
  std::string wrong;
  for (const char* word : {"nonsense:1", "quiet", ":1", "quie:1", "quieter:1"}) {
    EXPECT_FALSE(two.parse("quiet:1," + std::string(word), &wrong)) << word;
    EXPECT_EQ(wrong, word);
  }
}

TEST(Frame, MinimisedHistoriesKeepTheStepsThatFail) {
  unsigned failing = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Step> steps = two.make(seed, 120);
    if (two.run(steps, {}).failure.empty()) continue;
    ++failing;
    const std::vector<Step> smaller = two.minimise(steps, {}, std::chrono::minutes(1));
    ASSERT_EQ(smaller.size(), 2u);
    EXPECT_EQ(smaller[0].kind, first);
    EXPECT_EQ(smaller[1].kind, second);
    EXPECT_EQ(two.run(smaller, {}).failure,
              "step 1 (second:" + std::to_string(smaller[1].seed) + "): both");
  }
  EXPECT_GT(failing, 10u);
}

TEST(Frame, AHistoryEndsWhereItsStoreIsLost) {
  const HistoryResult r = two.run(steps_of("quiet:1,ending:2,quiet:3,dying:4"), {});
  EXPECT_EQ(r.failure, "");
  EXPECT_EQ(r.transactions, 2u);
  EXPECT_EQ(r.crashes, 1u);
}

TEST(Frame, ADeathIsAFailureOfItsStep) {
  EXPECT_EQ(two.run(steps_of("quiet:1,dying:2"), {}).failure,
            "step 1 (dying:2): the test died: of it");
}

TEST(Frame, RecoveryIsCalmAtLast) {
  unsigned crashes = 0, heals = 0, attempts = 0;
  Random random(7);
  const Reopened r = recover_at_last(
      {}, random,
      {.trace = false,
       .count = [&](const Snapshot&) { ++crashes; },
       .heal = [&] { ++heals; },
       .reopen = [&](const DiskImage&, Random&, bool may_crash, std::optional<Snapshot>* next) {
         EXPECT_FALSE(may_crash && attempts >= 3);
         if (++attempts == 6) return Reopened::recovered;
         *next = Snapshot{};
         return Reopened::again;
       }});
  EXPECT_EQ(r, Reopened::recovered);
  EXPECT_EQ(crashes, 6u);
  EXPECT_EQ(heals, 1u);
}

}  // namespace
}  // namespace tablestore::sim
