#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
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

}  // namespace
}  // namespace tablestore
