// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/payload.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "test/objectstore/tablestore/bench/object_names.h"

namespace store_bench {

namespace {

constexpr uint64_t word = sizeof(uint64_t);
constexpr uint64_t places = 8192;            // in the pool: 64 KiB
constexpr uint64_t compared_bytes = 64;
constexpr uint64_t blocks_of_object = uint64_t(1) << 20;   // a factor that keeps objects apart

static_assert(std::endian::native == std::endian::little, "the key's bytes are in this order");

}  // namespace

// A block longer than the places: what begins at the last of them goes on there.
Payload::Payload() : pool(places + Payload::block / word + 1)
{
  for (uint64_t i = 0; i < pool.size(); ++i)
    pool[i] = mix(i);
}

void Payload::fill_in_block(char* out, uint64_t key, uint64_t offset, uint64_t length) const
{
  const char* in = reinterpret_cast<const char*>(&pool[mix(key) % places]) + offset;
  const uint64_t turned = std::rotr(key, int(offset % word) * 8);
  const uint64_t whole = length - length % word;
  for (uint64_t i = 0; i < whole; i += word) {
    uint64_t w;
    std::memcpy(&w, in + i, word);
    w ^= turned;
    std::memcpy(out + i, &w, word);
  }
  for (uint64_t i = whole; i < length; ++i)
    out[i] = in[i] ^ char(turned >> (i % word * 8));
}

void Payload::fill(char* out, uint64_t number, uint64_t offset, uint64_t length) const
{
  while (length > 0) {
    const uint64_t key = mix(mix(number) + offset / block % blocks_of_object);
    const uint64_t part = std::min(length, block - offset % block);
    fill_in_block(out, key, offset % block, part);
    out += part;
    offset += part;
    length -= part;
  }
}

// Aligned as the network's is: a store that writes directly need not copy.
ceph::buffer::list Payload::of(uint64_t number, uint64_t offset, uint64_t length) const
{
  ceph::buffer::ptr data(length < block ? ceph::buffer::create(length)
                                        : ceph::buffer::create_page_aligned(length));
  fill(data.c_str(), number, offset, length);
  ceph::buffer::list bl;
  bl.append(std::move(data));
  return bl;
}

bool Payload::begins(const ceph::buffer::list& bl, uint64_t number, uint64_t offset) const
{
  char found[compared_bytes], wanted[compared_bytes];
  const uint64_t length = std::min<uint64_t>(bl.length(), compared_bytes);
  bl.begin().copy(length, found);
  fill(wanted, number, offset, length);
  return std::memcmp(found, wanted, length) == 0;
}

}  // namespace store_bench
