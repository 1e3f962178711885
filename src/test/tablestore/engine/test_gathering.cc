// When a group waits for clients, by a clock that goes as the test says.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "os/tablestore/engine/commit/gathering.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

class GatheringTest : public testing::Test {
 protected:
  // Groups of 8 out of 16, one after the other, while the other 8 wait; `back` of the 8 return, the
  // last of them after `took`, while the next group is made.
  void groups_of_teams(int groups, microseconds took, uint64_t back = 8) {
    for (; groups > 0; --groups) {
      for (uint64_t i = 1; i <= back; ++i)
        gathering.queued(now + took * int64_t(i) / int64_t(back));
      gathering.group_made(now += group, group, 8, 8);
    }
  }

  Gathering gathering{90};
  Gathering::Time now{};
  microseconds group = 400us;
};

TEST_F(GatheringTest, NobodyIsWaitedForBeforeItIsKnownHowLongTheyTake) {
  EXPECT_FALSE(gathering.wait());
  gathering.group_made(now, group, 8, 8);
  EXPECT_FALSE(gathering.wait());
  gathering.queued(now + 10us);
  EXPECT_FALSE(gathering.wait());
}

TEST_F(GatheringTest, WhoComesBackSoonIsWaitedFor) {
  groups_of_teams(10, 100us);
  const auto wait = gathering.wait();
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->queued, 16u);
  EXPECT_EQ(wait->until, now + 360us);   // nine tenths of a group
}

// 8 of 16 were back after 200 us of 400. All 16 would take as long as a group does.
TEST_F(GatheringTest, HalfOfThemSayHowLongAllWouldTake) {
  groups_of_teams(10, 175us);
  EXPECT_TRUE(gathering.wait());
  groups_of_teams(30, 200us);
  EXPECT_FALSE(gathering.wait());
}

TEST_F(GatheringTest, WhoIsNotBackByTheEndOfTheNextGroupIsNotWaitedFor) {
  groups_of_teams(10, 100us);
  ASSERT_TRUE(gathering.wait());
  groups_of_teams(3, 100us, 7);
  EXPECT_FALSE(gathering.wait());
  groups_of_teams(10, 100us);
  EXPECT_TRUE(gathering.wait());
}

TEST_F(GatheringTest, APauseOfAllIsSoonForgotten) {
  groups_of_teams(10, 100us);
  for (uint64_t i = 0; i < 8; ++i) gathering.queued(now + 1h);
  now += 1h + group;
  groups_of_teams(10, 100us);
  EXPECT_TRUE(gathering.wait());
}

TEST_F(GatheringTest, WhoIsBackAtOnceIsNotWaitedForForLong) {
  groups_of_teams(10, 10us);
  ASSERT_TRUE(gathering.wait());
  EXPECT_EQ(gathering.wait()->until, now + 3 * 20us);
}

// Clients that begin together make such teams: the first of them alone, and then the others.
TEST_F(GatheringTest, ASmallPartOfAllSaysNothing) {
  for (int i = 0; i < 10; ++i) {
    gathering.group_made(now += group, group, 1, 15);
    gathering.queued(now + 100us);
    gathering.group_made(now += group, group, 15, 1);
    for (int j = 0; j < 15; ++j) gathering.queued(now + 100us);
  }
  EXPECT_TRUE(gathering.wait());
}

TEST_F(GatheringTest, OneSlowGroupHardlyMakesTheNextWaitLonger) {
  groups_of_teams(10, 100us);
  for (uint64_t i = 0; i < 8; ++i) gathering.queued(now + 100us);
  gathering.group_made(now += 10s, 10s, 8, 8);
  ASSERT_TRUE(gathering.wait());
  EXPECT_LT(gathering.wait()->until, now + 500us);
}

TEST_F(GatheringTest, NorDoesTheFirstOneForLong) {
  gathering.group_made(now += 10s, 10s, 8, 8);
  for (int i = 0; i < 100; ++i) {
    const auto wait = gathering.wait();
    EXPECT_TRUE(!wait || wait->until <= now + 100ms);
    groups_of_teams(1, 100us);
  }
  ASSERT_TRUE(gathering.wait());
  EXPECT_LT(gathering.wait()->until, now + 500us);
}

TEST_F(GatheringTest, APauseOfMonthsIsNoOverflow) {
  groups_of_teams(10, 100us);
  gathering.group_made(now += group, group, 100'000, 0);
  for (int i = 0; i < 100'000; ++i) gathering.queued(now + 10'000h);
  gathering.group_made(now += 10'000h, group, 8, 8);
  groups_of_teams(20, 350us);
  EXPECT_FALSE(gathering.wait());
}

TEST_F(GatheringTest, ItCanBeSwitchedOff) {
  Gathering never(0);
  for (int i = 0; i < 10; ++i) {
    never.group_made(now, group, 1, 1);
    never.queued(now += 1us);
  }
  EXPECT_FALSE(never.wait());
}

// Clients, each with one transaction at a time: after its commit it pauses, and then takes a
// processor for some time to make the next one. A group takes some time, and some more for each.
struct Load {
  const char* what;
  int clients;
  microseconds pause;   // on the average
  microseconds work;
  int processors;
  microseconds group;
  microseconds more;
  int others = 0;         // so many of the clients pause for so long instead
  microseconds others_pause{0};
};

class Clients {
 public:
  Clients(const Load& load, uint64_t percent) : load_(load), gathering_(percent) {
    for (int i = 0; i < load.clients; ++i) pause(i);
  }

  // Transactions until then.
  uint64_t run(Gathering::Time end) {
    while (events_.begin()->first < end) {
      const auto event = events_.begin();
      now_ = event->first;
      const auto act = std::move(event->second);
      events_.erase(event);
      act();
    }
    return done_;
  }
  // From when it was queued to its commit, of one in a hundred longer.
  Gathering::Duration p99() {
    const auto at = latencies_.begin() + int64_t(latencies_.size() * 99 / 100);
    std::nth_element(latencies_.begin(), at, latencies_.end());
    return *at;
  }

 private:
  void after(Gathering::Duration time, std::function<void()> act) {
    events_.emplace(now_ + time, std::move(act));
  }
  Gathering::Duration about(Gathering::Duration time, double spread) {
    std::uniform_real_distribution<> factor(1 - spread, 1 + spread);
    return Gathering::Duration(int64_t(double(time.count()) * factor(random_)));
  }

  void pause(int client) {
    const auto mean = client < load_.others ? load_.others_pause : load_.pause;
    Gathering::Duration time{};
    if (mean.count()) {
      std::exponential_distribution<> pause(1.0 / double(mean.count()));
      time = Gathering::Duration(int64_t(pause(random_) * 1000));
    }
    after(time, [this, client] {
      if (busy_ == load_.processors) {
        waiting_for_processor_.push_back(client);
      } else {
        ++busy_;
        work(client);
      }
    });
  }
  void work(int client) {
    after(about(load_.work, 0.3), [this, client] {
      if (waiting_for_processor_.empty()) {
        --busy_;
      } else {
        work(waiting_for_processor_.front());
        waiting_for_processor_.pop_front();
      }
      gathering_.queued(now_);
      queued_.push_back({client, now_});
      if (state_ == State::idle)
        begin();
      else if (state_ == State::gathers && queued_.size() >= gathered_)
        make_group();
    });
  }
  void begin() {
    const auto wait = gathering_.wait();
    if (!wait || queued_.size() >= wait->queued || wait->until <= now_) return make_group();
    state_ = State::gathers;
    gathered_ = wait->queued;
    after(wait->until - now_, [this, number = groups_] {
      if (state_ == State::gathers && number == groups_) make_group();
    });
  }
  void make_group() {
    state_ = State::writes;
    ++groups_;
    const auto made = std::exchange(queued_, {});
    const auto took = about(load_.group + load_.more * int64_t(made.size()), 0.1);
    after(took, [this, made, took] {
      gathering_.group_made(now_, took, made.size(), queued_.size());
      done_ += made.size();
      for (const auto& [client, queued_at] : made) {
        latencies_.push_back(now_ - queued_at);
        pause(client);
      }
      state_ = State::idle;
      if (!queued_.empty()) begin();
    });
  }

  const Load load_;
  Gathering gathering_;
  std::mt19937 random_{1};
  std::multimap<Gathering::Time, std::function<void()>> events_;
  Gathering::Time now_{};
  enum class State { idle, gathers, writes } state_ = State::idle;
  int busy_ = 0;
  std::deque<int> waiting_for_processor_;
  std::vector<std::pair<int, Gathering::Time>> queued_;
  uint64_t gathered_ = 0, groups_ = 0, done_ = 0;
  std::vector<Gathering::Duration> latencies_;
};

double gain(const Load& load) {
  const Gathering::Time end{3s};
  return double(Clients(load, 90).run(end)) / double(Clients(load, 0).run(end));
}

TEST(GatheringModelTest, ItGainsMuchWhereClientsComeBackSoon) {
  const Load loads[] = {
      {"two clients", 2, 0us, 30us, 2, 300us, 3us},
      {"four clients", 4, 0us, 30us, 2, 300us, 3us},
      {"a disk of 0.6 ms", 16, 0us, 30us, 2, 600us, 10us},
      {"a disk of 2 ms", 16, 0us, 30us, 2, 2000us, 5us},
      {"a network", 16, 100us, 15us, 8, 1000us, 3us},
      {"and many clients", 64, 100us, 2us, 8, 1000us, 3us},
  };
  for (const Load& load : loads) EXPECT_GT(gain(load), 1.3) << load.what;
}

TEST(GatheringModelTest, ItLosesNothingElsewhere) {
  const Load loads[] = {
      {"one client", 1, 0us, 30us, 2, 300us, 3us},
      {"processors near their limit", 16, 0us, 30us, 2, 280us, 3us},
      {"and nearer", 16, 0us, 30us, 2, 150us, 2us},
      {"and at it, many clients", 64, 0us, 25us, 2, 350us, 6us},
      {"much work", 16, 0us, 100us, 2, 300us, 3us},
      {"pauses as long as a group", 16, 300us, 30us, 2, 300us, 3us},
      {"longer ones", 16, 1000us, 30us, 4, 300us, 3us},
      {"on a slow disk", 16, 3000us, 30us, 4, 1000us, 3us},
      {"many clients with pauses", 64, 1000us, 15us, 8, 300us, 3us},
      {"with long ones", 64, 5000us, 15us, 8, 1000us, 3us},
      {"few clients with pauses", 3, 200us, 30us, 2, 300us, 3us},
      {"some", 8, 500us, 20us, 4, 400us, 3us},
      {"one of many is slow", 16, 0us, 30us, 2, 300us, 3us, 1, 5000us},
      {"half of them are", 16, 0us, 30us, 2, 300us, 3us, 8, 5000us},
      {"all but two are", 16, 0us, 30us, 2, 300us, 3us, 14, 5000us},
      {"one of two is", 2, 0us, 30us, 2, 300us, 3us, 1, 2000us},
      {"half of many, a network", 64, 100us, 2us, 8, 1000us, 3us, 32, 20000us},
  };
  for (const Load& load : loads) EXPECT_GT(gain(load), 0.97) << load.what;
}

// Whoever is waited for in vain delays a group by no more than most of another one.
TEST(GatheringModelTest, TheSlowestWaitForOneGroupMoreAtMost) {
  const Load loads[] = {
      {"one of many is slow", 16, 0us, 30us, 2, 300us, 3us, 1, 5000us},
      {"half of them are", 16, 0us, 30us, 2, 300us, 3us, 8, 5000us},
      {"all but two are", 16, 0us, 30us, 2, 300us, 3us, 14, 5000us},
      {"half of many, a network", 64, 100us, 2us, 8, 1000us, 3us, 32, 20000us},
      {"pauses as long as a group", 16, 300us, 30us, 2, 300us, 3us},
      {"much work", 16, 0us, 100us, 2, 300us, 3us},
  };
  for (const Load& load : loads) {
    Clients with(load, 90), without(load, 0);
    with.run(Gathering::Time{3s});
    without.run(Gathering::Time{3s});
    EXPECT_LT(with.p99() - without.p99(), load.group + load.more * load.clients) << load.what;
  }
}

}  // namespace
}  // namespace tablestore
