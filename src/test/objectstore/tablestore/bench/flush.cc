// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/flush.h"

#include <atomic>
#include <ctime>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int64_t the_disks_own = -1;
std::atomic<int64_t> flush_us{the_disks_own};
std::atomic<uint64_t> passed_on{0}, imitated{0};

int flush(long system_call, int fd)
{
  const int64_t us = flush_us.load(std::memory_order_relaxed);
  if (us == the_disks_own) {
    passed_on.fetch_add(1, std::memory_order_relaxed);
    return int(::syscall(system_call, fd));
  }
  imitated.fetch_add(1, std::memory_order_relaxed);
  const timespec time{.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
  if (us > 0)
    ::nanosleep(&time, nullptr);
  return 0;
}

}  // namespace

// A program's own definitions come before the C library's, for its shared libraries as well.
extern "C" int fdatasync(int fd)
{
  return flush(SYS_fdatasync, fd);
}

extern "C" int fsync(int fd)
{
  return flush(SYS_fsync, fd);
}

namespace store_bench {

void imitate_flush(std::optional<uint64_t> microseconds)
{
  flush_us = microseconds ? int64_t(*microseconds) : the_disks_own;
}

uint64_t flushes_passed_on()
{
  return passed_on.load(std::memory_order_relaxed);
}

uint64_t flushes_imitated()
{
  return imitated.load(std::memory_order_relaxed);
}

}  // namespace store_bench
