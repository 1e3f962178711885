// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Objects by number: their names, hashes and random choices among them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <numeric>

#include "common/hobject.h"

namespace store_bench {

constexpr int64_t pool = 2;

/// splitmix64: a fixed random number for each x.
inline uint64_t mix(uint64_t x)
{
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A stream of random numbers, the same for every store.
class Random {
 public:
  explicit Random(uint64_t seed) : state(mix(seed)) {}
  uint64_t operator()() { return mix(state++); }
  uint64_t below(uint64_t bound) { return (*this)() % bound; }

 private:
  uint64_t state;
};

/// All numbers below `count`, each once: the i-th in an order that jumps about.
inline uint64_t jumping(uint64_t i, uint64_t count)
{
  uint64_t step = uint64_t(double(count) * 0.6180339887) | 1;
  while (std::gcd(step, count) != 1)
    step += 2;
  return uint64_t(static_cast<unsigned __int128>(i) * step % count);
}

/// Object `number` of placement group `pg` out of `pgs`, a power of two. The name is as long as a
/// block device's.
inline ghobject_t object_name(uint64_t number, uint32_t pg, uint32_t pgs,
                              snapid_t snap = CEPH_NOSNAP)
{
  char name[48];
  std::snprintf(name, sizeof(name), "rbd_data.5e0f1d2c3b4a.%016llx",
                static_cast<unsigned long long>(number));
  const uint32_t hash = (uint32_t(mix(number)) & ~(pgs - 1)) | pg;
  return ghobject_t(hobject_t(object_t(name), "", snap, hash, pool, ""));
}

}  // namespace store_bench
