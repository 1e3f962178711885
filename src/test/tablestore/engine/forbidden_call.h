// A system call that fails.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <iterator>
#include <optional>

namespace tablestore {

// A system call fails for the calling thread and those that it starts, as container runtimes do it
// for all; with a command, only where that is its second argument, or another one.
inline void forbid(unsigned system_call, unsigned error, std::optional<unsigned> command = {},
                   size_t argument = 1) {
  const size_t in_arguments =
      offsetof(seccomp_data, args) + argument * sizeof(seccomp_data::args[0]);
  const auto offset = unsigned(command ? in_arguments : offsetof(seccomp_data, nr));
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, command.value_or(system_call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

}  // namespace tablestore
