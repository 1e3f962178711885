#include <gtest/gtest.h>

#include <chrono>

#include "os/tablestore/engine/container/pace.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t mib = 1 << 20;

class PaceTest : public testing::Test {
 protected:
  void pieces(unsigned count, std::chrono::microseconds took) {
    for (unsigned i = 0; i < count; ++i) pace.wrote(mib, took);
  }
  Pace pace{50 * mib, 1000 * mib};
};

TEST_F(PaceTest, BeginsInBetween) { EXPECT_EQ(pace.bytes_per_second(), 250 * mib); }

TEST_F(PaceTest, WhatIsWrittenPaysForItself) {
  Pace fixed(10 * mib, 10 * mib);
  EXPECT_EQ(fixed.wrote(mib, 1ms), 100ms);
  EXPECT_EQ(fixed.wrote(5 * mib, 1s), 500ms);
}

TEST_F(PaceTest, AnIdleDiskIsUsed) {
  pieces(20, 500us);
  EXPECT_EQ(pace.bytes_per_second(), 1000 * mib);
}

TEST_F(PaceTest, ABusyDiskIsLeftToOthersAndTakenAgain) {
  pieces(20, 500us);
  pieces(20, 1500us);
  EXPECT_EQ(pace.bytes_per_second(), 50 * mib);
  pieces(20, 600us);
  EXPECT_EQ(pace.bytes_per_second(), 1000 * mib);
}

// A disk that has become slower for good, as one whose writes are not cached any more.
TEST_F(PaceTest, WhatADiskOnceCouldIsForgotten) {
  pieces(20, 500us);
  pieces(64 + 64, 1500us);
  EXPECT_EQ(pace.bytes_per_second(), 50 * mib);
  pieces(64, 1500us);
  EXPECT_EQ(pace.bytes_per_second(), 1000 * mib);
}

TEST_F(PaceTest, SmallPiecesSayNothing) {
  pieces(20, 500us);
  for (unsigned i = 0; i < 100; ++i) pace.wrote(4096, 1ms);
  EXPECT_EQ(pace.bytes_per_second(), 1000 * mib);
}

}  // namespace
}  // namespace tablestore
