// System calls, repeated while a signal interrupts them.
#pragma once

#include <sys/stat.h>
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

// The same, and whatever the file system has done to the file's blocks until now: what changes the
// inode goes to the journal behind that, and fsync() waits for it. Not syncfs(), which writes back
// what others have in the page cache. 0 or an errno.
inline int flush_moved_file(int fd) {
  const struct timespec now[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  if (::futimens(fd, now) != 0 && uninterrupted([fd] { return ::syncfs(fd); }) != 0) return errno;
  return uninterrupted([fd] { return ::fsync(fd); }) == 0 ? 0 : errno;
}

}  // namespace tablestore
