// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/payload.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "test/objectstore/tablestore/bench/object_names.h"

namespace store_bench {

namespace {

constexpr uint64_t pool_bytes = 16 << 20;   // more than a processor's caches keep
constexpr uint64_t compared_bytes = 64;

}  // namespace

// `longest_bytes` more than the pool: what begins at the pool's end goes on there.
Payload::Payload(uint64_t longest_bytes) : blocks(pool_bytes / block)
{
  const uint64_t bytes = pool_bytes + (longest_bytes + block - 1) / block * block;
  memory.reset(static_cast<char*>(std::aligned_alloc(block, bytes)));
  auto* words = reinterpret_cast<uint64_t*>(memory.get());
  for (uint64_t i = 0; i < bytes / sizeof(uint64_t); ++i)
    words[i] = mix(i);
}

char* Payload::at(uint64_t number, uint64_t offset) const
{
  return memory.get() + mix(number) % blocks * block + offset;
}

ceph::buffer::list Payload::of(uint64_t number, uint64_t offset, uint64_t length) const
{
  ceph::buffer::list bl;
  bl.append(ceph::buffer::ptr(ceph::buffer::create_static(length, at(number, offset))));
  return bl;
}

bool Payload::begins(const ceph::buffer::list& bl, uint64_t number, uint64_t offset) const
{
  char found[compared_bytes];
  const uint64_t length = std::min<uint64_t>(bl.length(), compared_bytes);
  bl.begin().copy(length, found);
  return std::memcmp(found, at(number, offset), length) == 0;
}

}  // namespace store_bench
