// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The bytes that are written: no block of them comes twice, and none can be compressed.
#pragma once

#include <cstdint>
#include <vector>

#include "include/buffer.h"

namespace store_bench {

/// Makes all data, at the speed of a copy: a place in a small pool of random words that the
/// processor's cache keeps, each xored with a key of the block. Each piece has memory of its own,
/// as data from the network has: a checksum that Ceph remembers with a buffer is never found
/// there. Immutable; any thread.
class Payload {
 public:
  static constexpr uint64_t block = 4096;

  Payload();

  /// The content of object `number` at an offset of it, as long as it was written only once.
  ceph::buffer::list of(uint64_t number, uint64_t offset, uint64_t length) const;
  /// Whether `bl` begins as of() does; a few bytes are compared.
  bool begins(const ceph::buffer::list& bl, uint64_t number, uint64_t offset) const;
  /// Any bytes.
  ceph::buffer::list random(uint64_t seed, uint64_t length) const { return of(seed, 0, length); }

 private:
  void fill(char* out, uint64_t number, uint64_t offset, uint64_t length) const;
  void fill_in_block(char* out, uint64_t key, uint64_t offset, uint64_t length) const;

  std::vector<uint64_t> pool;
};

}  // namespace store_bench
