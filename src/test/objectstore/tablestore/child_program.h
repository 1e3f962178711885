// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace tablestore_test {

/// What runs in another process on a store's directory; `report_fd` goes to the parent. Returns the
/// exit status.
///
/// The process is this program, executed anew: a fork alone would have no threads, and locks that
/// threads of the parent hold.
using ChildFunction = int (*)(const std::string& dir, int report_fd);

/// Makes a function known under a name: `static const ChildProgram p{"name", &function};`
struct ChildProgram {
  ChildProgram(const char* name, ChildFunction function);
};

/// main() calls it first: whether this process is such a child, and then its function.
bool is_child(int argc, char** argv);
int run_child(int argc, char** argv);

/// A running child. Its destructor kills it if it still runs.
class Child {
 public:
  /// `options` are command line options of Ceph ("--tablestore-prepare-rate=0").
  Child(const std::string& program, const std::string& dir,
        const std::vector<std::string>& options = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Where the child's reports are read.
  int fd() const { return report_fd; }
  void kill();
  /// The exit status, or minus the signal that ended it.
  int wait();

 private:
  pid_t pid = -1;
  int report_fd = -1;
};

}  // namespace tablestore_test
