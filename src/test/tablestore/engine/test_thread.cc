#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "os/tablestore/engine/thread.h"

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

uint64_t slice_ns() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attr = {};
  EXPECT_EQ(::syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0), 0);
  return attr.runtime;
}

// An older kernel knows of no slices, and says 0.
TEST(Thread, TakesShortTurnsByItself) {
  const uint64_t before = slice_ns();
  std::thread([before] {
    take_short_turns();
    EXPECT_EQ(slice_ns(), before > 0 ? 100'000u : 0u);
    yield_turn();
  }).join();
  EXPECT_EQ(slice_ns(), before);
}

}  // namespace
}  // namespace tablestore
