// Memory aligned for direct I/O.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

inline constexpr uint64_t round_up_to_block(uint64_t bytes) {
  return (bytes + block_bytes - 1) / block_bytes * block_bytes;
}

// A block-aligned, owning, resizable-by-replacement piece of memory. Not initialised.
class BlockMemory {
 public:
  BlockMemory() = default;
  explicit BlockMemory(size_t bytes)
      : data_(static_cast<std::byte*>(std::aligned_alloc(block_bytes, round_up_to_block(bytes)))),
        size_(round_up_to_block(bytes)) {
    if (!data_ && bytes) throw std::bad_alloc();
  }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<std::byte> span() { return {data_.get(), size_}; }
  std::span<const std::byte> span() const { return {data_.get(), size_}; }
  void zero() { std::memset(data_.get(), 0, size_); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

}  // namespace tablestore
