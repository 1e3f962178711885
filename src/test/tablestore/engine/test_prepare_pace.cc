#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "os/tablestore/engine/container/prepare_pace.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;
using Duration = PreparePace::Duration;

constexpr uint64_t mib = 1 << 20;

Duration time_for(uint64_t bytes, uint64_t bytes_per_second) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(double(bytes) / double(bytes_per_second)));
}

struct ModelDisk {
  uint64_t bytes_per_second;
  Duration flush;
};
constexpr ModelDisk fast{2500 * mib, 200us}, slow{100 * mib, 5ms}, network{500 * mib, 20ms},
    busy{20 * mib, 30ms};

// A preparer and its disk, and requests that take from a stock of 64 MiB, on a clock of their own.
class PreparePaceTest : public testing::Test {
 protected:
  static constexpr uint64_t ahead = 64 * mib;

  void pass(Duration time) {
    now += time;
    const auto taken =
        uint64_t(double(demand) * std::chrono::duration<double>(time).count());
    const uint64_t hits = std::min(stock, taken);
    stock -= hits;
    from_stock += hits;
    first_touches += taken - hits;
  }
  // For so long, as Background does it.
  void run(Duration time, const ModelDisk& disk) {
    prepared = from_stock = pieces = 0;
    longest_write = {};
    const uint64_t before = first_touches;
    for (const auto end = now + time; now < end;) {
      if (pace.is_due(now, first_touches)) {
        if (const uint64_t bytes = std::min(pace.piece_bytes(), ahead - stock); bytes >= mib) {
          const Duration write = time_for(bytes, disk.bytes_per_second);
          pass(write + disk.flush);
          longest_write = std::max(longest_write, write);
          stock += bytes;
          prepared += bytes;
          ++pieces;
          pace.wrote(now, {bytes, write, disk.flush});
        } else {
          pace.nothing_to_do(now);
        }
      }
      pass(std::max<Duration>(std::min<Duration>(pace.wait(now), end - now), 1us));
    }
    const uint64_t all = from_stock + first_touches - before;
    hit_share = all ? double(from_stock) / double(all) : 1;
    rate = double(prepared) / std::chrono::duration<double>(time).count();
  }
  // After such a piece.
  Duration rest(const PreparePace::Piece& piece) {
    pace.wrote(now, piece);
    for (Duration waited{};; waited += 1ms)
      if (pace.is_due(now + waited, first_touches)) return waited;
  }

  PreparePace pace{1000 * mib};
  PreparePace::Time now{1h};
  uint64_t demand = 0;  // bytes per second
  uint64_t stock = 0, first_touches = 0;
  // Of the last run:
  uint64_t prepared = 0, from_stock = 0, pieces = 0;
  double hit_share = 0, rate = 0;
  Duration longest_write{};
};

TEST_F(PreparePaceTest, AnIdleDiskIsUsedAtOnce) {
  run(100ms, fast);
  EXPECT_EQ(stock, ahead);
}

TEST_F(PreparePaceTest, KeepsAheadOfWhatItCanDo) {
  for (const uint64_t rate : {10, 100, 400, 700}) {
    demand = rate * mib;
    run(1s, fast);
    run(10s, fast);
    EXPECT_GT(hit_share, 0.99) << rate;
    EXPECT_NEAR(double(prepared), double(10 * demand), double(ahead));
  }
}

TEST_F(PreparePaceTest, LittleDemandCostsFewFlushes) {
  demand = mib;
  run(1s, fast);
  run(100s, fast);
  EXPECT_LE(pieces, 100u);
  EXPECT_GT(hit_share, 0.99);
}

TEST_F(PreparePaceTest, WhatIsInVainIsLeft) {
  demand = 2000 * mib;
  run(1s, fast);
  run(60s, fast);
  EXPECT_LT(rate, 0.05 * double(demand));
}

TEST_F(PreparePaceTest, ARestEndsWithTheLoad) {
  demand = 2000 * mib;
  run(60s, fast);
  demand = 100 * mib;
  run(300ms, fast);
  run(1s, fast);
  EXPECT_GT(hit_share, 0.99);
}

TEST_F(PreparePaceTest, ADiskThatHasBecomeFasterIsTriedAgain) {
  demand = 400 * mib;
  run(60s, slow);
  EXPECT_LT(hit_share, 0.1);
  run(17s, fast);
  run(1s, fast);
  EXPECT_GT(hit_share, 0.99);
}

TEST_F(PreparePaceTest, ASlowDiskIsLeftToOthers) {
  demand = 5 * mib;
  run(30s, slow);
  EXPECT_GT(hit_share, 0.95);
  EXPECT_LE(longest_write, time_for(mib, slow.bytes_per_second));
  demand = 80 * mib;
  run(60s, slow);
  EXPECT_LT(rate, 0.05 * double(slow.bytes_per_second));
}

TEST_F(PreparePaceTest, AFlushThatTakesLongIsNoWriteThatTakesLong) {
  demand = 60 * mib;
  run(1s, network);
  run(10s, network);
  EXPECT_GT(hit_share, 0.99);
}

TEST_F(PreparePaceTest, ABusyDiskHasItsRest) {
  demand = 0;
  run(10s, busy);
  EXPECT_NEAR(rate, double(busy.bytes_per_second) / 10, double(busy.bytes_per_second) / 30);
}

// As where a snapshot holds the file system still.
TEST_F(PreparePaceTest, ADiskThatStoodStillIsUsedAgainSoon) {
  EXPECT_LE(rest({8 * mib, 120s, 60s}), 1s);
}

TEST_F(PreparePaceTest, PiecesFollowTheDisk) {
  run(10ms, fast);
  EXPECT_EQ(pace.piece_bytes(), 8 * mib);
  for (int i = 0; i < 3; ++i) pace.wrote(now, {pace.piece_bytes(), 20ms, 1ms});
  EXPECT_EQ(pace.piece_bytes(), mib);
  for (int i = 0; i < 10; ++i) pace.wrote(now, {mib / 2, 100us, 1ms});
  EXPECT_EQ(pace.piece_bytes(), mib) << "less than a piece says nothing of larger ones";
}

TEST_F(PreparePaceTest, NeverMoreThanItsRate) {
  pace = PreparePace(10 * mib);
  run(4s, fast);
  EXPECT_LE(prepared, 40 * mib + PreparePace::most_piece_bytes);
  EXPECT_GE(prepared, 36 * mib);
}

// 4 KiB rewritten where there is enough, or a burst that the stock stands: no first touch.
TEST_F(PreparePaceTest, ABurstFromTheStockIsNotInVain) {
  run(1s, fast);
  for (int i = 0; i < 10; ++i) {
    demand = 1500 * mib;
    run(40ms, fast);
    demand = 0;
    run(500ms, fast);
    EXPECT_EQ(stock, ahead);
  }
  EXPECT_EQ(first_touches, 0u);
}

// As where a container is made, or somebody else has the lock.
TEST_F(PreparePaceTest, AWindowWithoutAPieceSaysNothing) {
  EXPECT_TRUE(pace.is_due(now, 0));
  EXPECT_TRUE(pace.is_due(now + 1s, 100 * mib));
  EXPECT_TRUE(pace.is_due(now + 2s, 200 * mib));
}

TEST_F(PreparePaceTest, LooksAgainSoonWhereItWasUsedUpJustBefore) {
  for (unsigned i = 0; i < 9; ++i) {
    pace.nothing_to_do(now);
    EXPECT_EQ(pace.wait(now), 10ms);
  }
  for (unsigned i = 0; i < 2; ++i) {
    pace.nothing_to_do(now);
    EXPECT_EQ(pace.wait(now), 100ms);
  }
  pace.wrote(now, {mib, 1ms, 1ms});
  pace.nothing_to_do(now);
  EXPECT_EQ(pace.wait(now), 10ms);
}

}  // namespace
}  // namespace tablestore
