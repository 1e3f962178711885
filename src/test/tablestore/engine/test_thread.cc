#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "os/tablestore/engine/thread.h"
#include "test/tablestore/engine/slices.h"

namespace tablestore {
namespace {

int niceness() { return ::getpriority(PRIO_PROCESS, 0); }

TEST(Thread, LeavesRoomForOthersByItself) {
  const int before = niceness();
  std::thread([before] {
    leave_room_for_others();
    EXPECT_EQ(niceness(), std::max(before, 5));
    leave_room_for_others();
    EXPECT_EQ(niceness(), std::max(before, 5));
  }).join();
  EXPECT_EQ(niceness(), before);
}

TEST(Thread, TakesShortTurnsByItself) {
  const uint64_t before = slice_ns(0);
  std::thread([before] {
    const bool granted = take_short_turns();
    EXPECT_EQ(slice_ns(0), granted ? 100'000 : before);
    yield_turn();
  }).join();
  EXPECT_EQ(slice_ns(0), before);
}

}  // namespace
}  // namespace tablestore
