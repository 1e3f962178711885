// What is left of a vector of memory pieces, when a part of it has been written.
#pragma once

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tablestore {

inline uint64_t iov_bytes(const std::vector<iovec>& iov) {
  uint64_t bytes = 0;
  for (const iovec& piece : iov) bytes += piece.iov_len;
  return bytes;
}

// Drops the first `bytes`.
inline void iov_advance(std::vector<iovec>* iov, uint64_t bytes) {
  size_t whole = 0;
  while (whole < iov->size() && (*iov)[whole].iov_len <= bytes) bytes -= (*iov)[whole++].iov_len;
  iov->erase(iov->begin(), iov->begin() + whole);
  if (bytes) {
    iov->front().iov_base = static_cast<std::byte*>(iov->front().iov_base) + bytes;
    iov->front().iov_len -= bytes;
  }
}

// How many pieces one system call takes.
inline int iov_count(const std::vector<iovec>& iov) {
  return static_cast<int>(std::min<size_t>(iov.size(), IOV_MAX));
}

}  // namespace tablestore
