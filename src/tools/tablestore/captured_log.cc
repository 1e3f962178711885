// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "tools/tablestore/captured_log.h"

#include <fstream>
#include <regex>

#include <sys/mman.h>
#include <unistd.h>

#include "common/ceph_context.h"
#include "log/Log.h"

namespace tablestore_tool {

CapturedLog::CapturedLog()
  : fd(::memfd_create("log", MFD_CLOEXEC)),
    name(fd < 0 ? "/dev/null" : "/proc/self/fd/" + std::to_string(fd))
{
}

CapturedLog::~CapturedLog()
{
  if (fd >= 0)
    ::close(fd);
}

std::string error_in(const std::string& line)
{
  // time thread level text
  static const std::regex error("\\S+ +[0-9a-f]+ +-1 (.*)");
  std::smatch found;
  return std::regex_match(line, found, error) ? found[1].str() : std::string();
}

std::string CapturedLog::last_error(CephContext* cct) const
{
  cct->_log->flush();
  std::ifstream in(name);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (const std::string error = error_in(line); !error.empty())
      last = error;
  }
  return last;
}

}  // namespace tablestore_tool
