#include "os/tablestore/engine/thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

namespace tablestore {

namespace {

// struct sched_attr of the kernel's first version; not every libc has it.
struct SchedAttr {
  uint32_t size = sizeof(SchedAttr);
  uint32_t policy = 0;  // SCHED_OTHER
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;  // of SCHED_OTHER: the slice
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};
static_assert(sizeof(SchedAttr) == 48);

constexpr uint64_t shortest_slice_ns = 100'000;
constexpr int background_nice = 5;

bool get_attr(SchedAttr* attr) {
  return ::syscall(SYS_sched_getattr, 0, attr, sizeof(*attr), 0) == 0;
}

bool ask_for_short_slices() {
  SchedAttr attr;
  if (!get_attr(&attr)) return false;
  if (attr.policy != 0) return false;  // the operator has chosen something else
  attr.runtime_ns = shortest_slice_ns;
  if (::syscall(SYS_sched_setattr, 0, &attr, 0) != 0) return false;
  return get_attr(&attr) && attr.runtime_ns == shortest_slice_ns;  // an older kernel says 0
}

thread_local bool takes_short_turns = false;
thread_local std::chrono::steady_clock::time_point last_yield;

}  // namespace

void name_thread(const char* name) { ::pthread_setname_np(::pthread_self(), name); }

void wake_up_soon() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // ns
  ask_for_short_slices();
}

bool take_short_turns() { return takes_short_turns = ask_for_short_slices(); }

void yield_turn() {
  if (!takes_short_turns) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_yield < std::chrono::nanoseconds(shortest_slice_ns)) return;
  last_yield = now;
  ::sched_yield();
}

void leave_room_for_others() {
  // Of the thread alone. What the operator has made nicer stays so.
  if (::getpriority(PRIO_PROCESS, 0) < background_nice)
    ::setpriority(PRIO_PROCESS, 0, background_nice);
}

}  // namespace tablestore
