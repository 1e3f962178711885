// System calls, repeated while a signal interrupts them.
#pragma once

#include <unistd.h>

#include <cerrno>

namespace tablestore {

// `call` returns -1 and sets errno, as system calls do.
template <typename Call>
auto uninterrupted(Call call) {
  for (;;) {
    auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

// Data, and the metadata without which it could not be read. 0 or an errno.
inline int flush_file(int fd) {
  return uninterrupted([fd] { return ::fdatasync(fd); }) == 0 ? 0 : errno;
}

}  // namespace tablestore
