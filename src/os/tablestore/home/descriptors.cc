// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace tablestore {

namespace {

constexpr uint64_t table_min = 20;     // RocksDB takes no less
constexpr uint64_t table_max = 1000;
constexpr uint64_t others = 24;        // with the log, of a store alone in its process
constexpr uint64_t containers_min = 4;

}  // namespace

OpenFilesLimits open_files_limits(uint64_t descriptors)
{
  const uint64_t half = descriptors / 2;
  return {unsigned(std::clamp(descriptors / 4, table_min, table_max)),
          std::max(half > others ? half - others : 0, containers_min)};
}

uint64_t raise_descriptors()
{
  struct rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return 1024;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
      return before;
  }
  return limit.rlim_cur;
}

}  // namespace tablestore
