// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The bytes that are written: random ones, so that nothing can be compressed or deduplicated.
#pragma once

#include <cstdint>
#include <memory>

#include "include/buffer.h"

namespace store_bench {

/// Owns a pool of random bytes that all data is taken from without copying. Each slice has a
/// buffer object of its own, as data from the network has: a checksum that Ceph remembers with a
/// buffer is then never found there. Immutable; any thread.
class Payload {
 public:
  static constexpr uint64_t block = 4096;

  explicit Payload(uint64_t longest_bytes);

  /// The content of object `number` at an offset of it, as long as it was written only once.
  ceph::buffer::list of(uint64_t number, uint64_t offset, uint64_t length) const;
  /// Whether `bl` begins as of() does; a few bytes are compared.
  bool begins(const ceph::buffer::list& bl, uint64_t number, uint64_t offset) const;
  /// Any bytes.
  ceph::buffer::list random(uint64_t seed, uint64_t length) const { return of(seed, 0, length); }

 private:
  char* at(uint64_t number, uint64_t offset) const;

  struct Free {
    void operator()(char* memory) const { ::free(memory); }
  };
  uint64_t blocks;
  std::unique_ptr<char, Free> memory;
};

}  // namespace store_bench
