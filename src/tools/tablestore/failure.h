// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <stdexcept>
#include <string>

namespace tablestore_tool {

/// Exit codes: scripts go by these, and the man page lists them.
enum Exit {
  exit_done = 0,
  exit_errors = 1,        ///< a check has found errors, or some are left after a repair
  exit_usage = 2,
  exit_in_use = 3,        ///< by an OSD or another tool
  exit_no_store = 4,      ///< there is none in that directory, or no such object or key in it
  exit_failed = 5,        ///< the store cannot be opened, or the disk fails
  exit_no_space = 6,
  exit_interrupted = 130,
};

/// One line for the operator, and an exit code.
class Failure : public std::runtime_error {
 public:
  enum class Reason { is_here, is_in_the_log };
  Failure(Exit code, const std::string& line, Reason reason = Reason::is_here)
    : std::runtime_error(line), code(code), reason(reason)
  {
  }
  const Exit code;
  const Reason reason;
};

/// What a negative errno ends the tool with.
Exit exit_of(int r);
/// Of a function of the store, which has said why in the log: nothing where r is no error.
void require(int r, const std::string& what);

}  // namespace tablestore_tool
