// Parts of a vector of memory pieces.
#pragma once

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tablestore {

inline uint64_t iov_bytes(const std::vector<iovec>& iov) {
  uint64_t bytes = 0;
  for (const iovec& piece : iov) bytes += piece.iov_len;
  return bytes;
}

// What is left when the first `bytes` have been written.
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

// Cuts a vector of memory pieces, which must stay, into consecutive parts.
class IovCutter {
 public:
  explicit IovCutter(std::span<const iovec> iov) : iov_(iov) {}
  // Appends the next `bytes` to `out`.
  void cut(uint64_t bytes, std::vector<iovec>* out) {
    while (bytes > 0) {
      const iovec& v = iov_[index_];
      const size_t piece = std::min<uint64_t>(bytes, v.iov_len - used_);
      out->push_back({static_cast<std::byte*>(v.iov_base) + used_, piece});
      bytes -= piece;
      used_ += piece;
      if (used_ == v.iov_len) {
        ++index_;
        used_ = 0;
      }
    }
  }

 private:
  std::span<const iovec> iov_;
  size_t index_ = 0;
  size_t used_ = 0;
};

}  // namespace tablestore
