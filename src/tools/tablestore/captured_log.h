// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <string>

#include "include/common_fwd.h"

namespace tablestore_tool {

/// What the store says in its log: kept, so that the tool can tell in one line why something
/// failed, and says nothing else.
class CapturedLog {
 public:
  CapturedLog();
  ~CapturedLog();
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  /// For the option log_file.
  const std::string& path() const { return name; }
  /// The last error, without the time and what else stands before it; empty where there is none.
  std::string last_error(CephContext* cct) const;

 private:
  const int fd;
  const std::string name;
};

/// What a line of the log says, where it is an error; else empty.
std::string error_in(const std::string& line);

}  // namespace tablestore_tool
