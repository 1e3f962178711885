#include "os/tablestore/engine/io/file_lease.h"

#include <fcntl.h>
#include <signal.h>

#include <cerrno>

namespace tablestore {

int FileLease::take() {
  // The kernel sends SIGIO to who holds a lease that is wanted, which would end the process. This
  // signal is ignored where nobody asks for it, and a moment later none is sent: is_wanted() asks.
  if (::fcntl(fd_, F_SETSIG, SIGURG) != 0) return errno;
  if (::fcntl(fd_, F_SETLEASE, F_WRLCK) != 0) return errno;
  ::fcntl(fd_, F_SETOWN, 0);
  held_ = true;
  return 0;
}

bool FileLease::is_wanted() const { return ::fcntl(fd_, F_GETLEASE) != F_WRLCK; }

void FileLease::give_back() {
  if (held_) ::fcntl(fd_, F_SETLEASE, F_UNLCK);
  held_ = false;
}

}  // namespace tablestore
