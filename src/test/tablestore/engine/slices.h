// The time slice of a thread, as the kernel says it.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace tablestore {

// 0 is the calling thread. In nanoseconds; 0 where the kernel knows of no slices (before Linux
// 6.12), or does not say.
inline uint64_t slice_ns(pid_t thread) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attr = {};
  ::syscall(SYS_sched_getattr, thread, &attr, sizeof(attr), 0);
  return attr.policy == 0 ? attr.runtime : 0;
}

}  // namespace tablestore
