#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "os/tablestore/engine/container/prepare_pace.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;
using Duration = PreparePace::Duration;

constexpr uint64_t mib = 1 << 20;

// A disk that writes so much in a second, and takes so long for a flush.
struct ModelDisk {
  uint64_t bytes_per_second;
  Duration flush;

  Duration takes(uint64_t bytes) const {
    const std::chrono::duration<double> seconds(double(bytes) / double(bytes_per_second));
    return std::chrono::duration_cast<Duration>(seconds) + flush;
  }
};

class PreparePaceTest : public testing::Test {
 protected:
  // So many pieces; the rest after the last of them.
  Duration prepare(unsigned pieces, const ModelDisk& disk, bool is_behind = false) {
    Duration rest{};
    for (unsigned i = 0; i < pieces; ++i) {
      const uint64_t bytes = pace.piece_bytes();
      const Duration took = disk.takes(bytes);
      rest = pace.wrote(bytes, took, is_behind);
      longest_piece = std::max(longest_piece, took);
      share = std::chrono::duration<double>(took) / std::chrono::duration<double>(took + rest);
      rate = double(bytes) / std::chrono::duration<double>(took + rest).count();
    }
    return rest;
  }

  PreparePace pace{1000 * mib, 64 * mib};
  Duration longest_piece{};
  double share = 0;  // of the disk's time, around the last piece
  double rate = 0;   // bytes per second
};

constexpr ModelDisk fast{2000 * mib, 200us}, slow{100 * mib, 5ms}, busy{20 * mib, 30ms};

TEST_F(PreparePaceTest, AFastDiskIsUsedForHalfOfTheTimeInLongPieces) {
  prepare(10, fast);
  EXPECT_EQ(pace.piece_bytes(), 8 * mib);
  EXPECT_NEAR(share, 0.5, 0.1);
  EXPECT_GT(rate, 900.0 * mib);
}

TEST_F(PreparePaceTest, ASlowDiskIsLeftToOthers) {
  prepare(10, slow);
  EXPECT_EQ(pace.piece_bytes(), mib);
  EXPECT_LT(share, 0.25);
}

TEST_F(PreparePaceTest, ABusyDiskStillMore) {
  prepare(10, busy);
  EXPECT_NEAR(share, 1 / 9.0, 0.001);
}

// The flush of a client's commit may be behind it.
TEST_F(PreparePaceTest, APieceIsNotLongForLong) {
  prepare(10, fast);
  prepare(4, slow);
  longest_piece = {};
  prepare(10, slow);
  EXPECT_LE(longest_piece, slow.takes(mib));
  EXPECT_EQ(pace.piece_bytes(), mib);
}

TEST_F(PreparePaceTest, WhatIsLessThanAPieceSaysNothingOfLargerOnes) {
  for (unsigned i = 0; i < 10; ++i) pace.wrote(mib / 2, 300us, false);
  EXPECT_EQ(pace.piece_bytes(), mib);
}

TEST_F(PreparePaceTest, NeverMoreThanItsRate) {
  pace = PreparePace(10 * mib, 64 * mib);
  prepare(10, fast);
  EXPECT_NEAR(rate, 10.0 * mib, mib / 10);
}

TEST_F(PreparePaceTest, WhatIsInVainIsLeftMoreAndMore) {
  const auto until_it_rests = [&] {
    uint64_t bytes = 0;
    for (;;) {
      bytes += pace.piece_bytes();
      if (const Duration rest = prepare(1, fast, true); rest >= 1s) {
        EXPECT_NEAR(bytes, 256 * mib, 8 * mib);
        return rest;
      }
    }
  };
  for (const Duration rest : {1s, 2s, 4s, 8s, 16s, 16s}) EXPECT_EQ(until_it_rests(), rest);
  prepare(1, fast, false);
  EXPECT_EQ(until_it_rests(), 1s);
}

TEST_F(PreparePaceTest, ToKeepAheadForAMomentIsEnough) {
  for (unsigned i = 0; i < 100; ++i) {
    EXPECT_LT(prepare(31, fast, true), 1s);
    prepare(1, fast, false);
  }
}

TEST_F(PreparePaceTest, AContainerThatWasMadeIsNoPiece) {
  EXPECT_EQ(pace.wrote(0, 1s, true), 0s);
  EXPECT_EQ(pace.piece_bytes(), mib);
}

TEST_F(PreparePaceTest, LooksAgainSoonWhereItWasUsedUpJustBefore) {
  for (unsigned i = 0; i < 99; ++i) EXPECT_EQ(pace.nothing_to_do(), 10ms);
  EXPECT_EQ(pace.nothing_to_do(), 100ms);
  EXPECT_EQ(pace.nothing_to_do(), 100ms);
  prepare(1, fast);
  EXPECT_EQ(pace.nothing_to_do(), 10ms);
}

}  // namespace
}  // namespace tablestore
