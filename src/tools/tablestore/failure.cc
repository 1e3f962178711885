// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "tools/tablestore/failure.h"

#include <cerrno>

#include "common/errno.h"

namespace tablestore_tool {

Exit exit_of(int r)
{
  switch (-r) {
  case EBUSY: return exit_in_use;
  case ENOENT: return exit_no_store;
  case ENOSPC: return exit_no_space;
  case ECANCELED: return exit_interrupted;
  case EINVAL: return exit_usage;
  default: return exit_failed;
  }
}

void require(int r, const std::string& what)
{
  if (r >= 0)
    return;
  if (r == -ECANCELED)
    throw Failure(exit_interrupted, what + ": interrupted");
  throw Failure(exit_of(r), what + ": " + cpp_strerror(r), Failure::Reason::is_in_the_log);
}

}  // namespace tablestore_tool
