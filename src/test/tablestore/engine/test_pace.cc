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
  // A piece so small that it says nothing.
  double mib_per_second() {
    const std::chrono::duration<double> rest = pace.wrote(64 << 10, 1ms);
    return 1.0 / 16 / rest.count();
  }
  Pace pace{50 * mib, 1000 * mib};
};

TEST_F(PaceTest, BeginsInBetween) { EXPECT_NEAR(mib_per_second(), 250, 1); }

TEST_F(PaceTest, WhatIsWrittenPaysForItself) {
  Pace fixed(10 * mib, 10 * mib);
  EXPECT_EQ(fixed.wrote(mib, 1ms), 100ms);
  EXPECT_EQ(fixed.wrote(5 * mib, 1s), 500ms);
}

TEST_F(PaceTest, AnIdleDiskIsUsed) {
  pieces(20, 500us);
  EXPECT_NEAR(mib_per_second(), 1000, 1);
}

TEST_F(PaceTest, ABusyDiskIsLeftToOthersAndTakenAgain) {
  pieces(20, 500us);
  pieces(20, 1500us);
  EXPECT_NEAR(mib_per_second(), 50, 1);
  pieces(20, 600us);
  EXPECT_NEAR(mib_per_second(), 1000, 1);
}

// A disk that has become slower for good, as one whose writes are not cached any more.
TEST_F(PaceTest, WhatADiskOnceCouldIsForgotten) {
  pieces(20, 500us);
  pieces(44 + 64, 1500us);  // the rest of this window, and the next
  EXPECT_NEAR(mib_per_second(), 50, 1);
  pieces(64, 1500us);
  EXPECT_NEAR(mib_per_second(), 1000, 1);
}

TEST_F(PaceTest, SmallPiecesSayNothing) {
  pieces(20, 500us);
  for (unsigned i = 0; i < 100; ++i) pace.wrote(4096, 1ms);
  EXPECT_NEAR(mib_per_second(), 1000, 1);
}

}  // namespace
}  // namespace tablestore
