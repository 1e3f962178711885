// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>

namespace tablestore {

/// The heap, which counts what is asked of it: for what a check keeps of a whole store. Not
/// thread-safe.
class CountedMemory : public std::pmr::memory_resource {
 public:
  uint64_t most_bytes() const { return most; }

 private:
  void* do_allocate(size_t bytes, size_t alignment) override
  {
    void* const memory = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    now += bytes;
    most = std::max(most, now);
    return memory;
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override
  {
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
    now -= bytes;
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  uint64_t now = 0;
  uint64_t most = 0;
};

}  // namespace tablestore
