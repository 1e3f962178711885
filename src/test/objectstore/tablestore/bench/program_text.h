// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/mman.h>

namespace store_bench {

/// Reads all files that the process has mapped, its program and libraries, back into memory. After
/// the page cache was dropped, code that runs for the first time comes from the disk, and
/// /proc/self/io counts that as the store's reading. Where the kernel refuses a mapping nothing is
/// said: it costs what it cost before, and a phase that has to be hot is judged by its reads.
/// Any thread; nothing may be unmapped meanwhile.
inline void load_mapped_files()
{
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    // 7f0c8000-7f0c9000 r-xp 00001000 fd:00 1234   /usr/lib/libm.so.6
    std::istringstream fields(line);
    uint64_t begin = 0, end = 0, inode = 0;
    char dash = 0;
    std::string rights, offset, device;
    fields >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> std::dec >> inode;
    if (!fields || inode == 0 || rights[0] != 'r')
      continue;
    void* const from = reinterpret_cast<void*>(begin);
    if (::madvise(from, end - begin, MADV_POPULATE_READ) < 0 && errno == EINVAL)
      ::madvise(from, end - begin, MADV_WILLNEED);   // before Linux 5.14
  }
}

}  // namespace store_bench
