// What this thread has read and written by system calls; what goes through a ring is not counted.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace tablestore {

// "syscr" (reads) or "syscw" (writes).
inline uint64_t io_calls(const std::string& which) {
  std::ifstream io("/proc/thread-self/io");
  std::string name;
  uint64_t value = 0;
  while (io >> name >> value)
    if (name == which + ":") return value;
  ADD_FAILURE() << "the kernel does not count system calls";
  return 0;
}

}  // namespace tablestore
