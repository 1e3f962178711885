// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/child_program.h"

#include <csignal>
#include <cstring>
#include <iostream>
#include <map>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/ceph_assert.h"
#include "include/compat.h"

namespace tablestore_test {

namespace {

constexpr const char* child_flag = "--tablestore-test-child";
constexpr int child_report_fd = 3;

std::map<std::string, ChildFunction>& programs()
{
  static std::map<std::string, ChildFunction> known;
  return known;
}

}  // namespace

ChildProgram::ChildProgram(const char* name, ChildFunction function)
{
  programs()[name] = function;
}

bool is_child(int argc, char** argv)
{
  return argc > 3 && ::strcmp(argv[1], child_flag) == 0;
}

int run_child(int argc, char** argv)
{
  const auto p = programs().find(argv[2]);
  if (p == programs().end()) {
    std::cerr << "no child program " << argv[2] << std::endl;
    return 2;
  }
  return p->second(argv[3], child_report_fd);
}

Child::Child(const std::string& program, const std::string& dir,
             const std::vector<std::string>& options)
{
  std::vector<std::string> words = {"ceph_test_tablestore", child_flag, program, dir};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> argv;
  for (auto& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);

  int fds[2];
  ceph_assert(::pipe2(fds, O_CLOEXEC) == 0);
  pid = ::fork();
  ceph_assert(pid >= 0);
  if (pid == 0) {
    // dup2() onto itself would leave FD_CLOEXEC set.
    if (fds[1] == child_report_fd)
      ::fcntl(child_report_fd, F_SETFD, 0);
    else
      ::dup2(fds[1], child_report_fd);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  VOID_TEMP_FAILURE_RETRY(::close(fds[1]));
  report_fd = fds[0];
}

Child::~Child()
{
  if (pid > 0) {
    kill();
    wait();
  }
  VOID_TEMP_FAILURE_RETRY(::close(report_fd));
}

void Child::kill()
{
  if (pid > 0)
    ::kill(pid, SIGKILL);
}

int Child::wait()
{
  int status = 0;
  ceph_assert(TEMP_FAILURE_RETRY(::waitpid(pid, &status, 0)) == pid);
  pid = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace tablestore_test
