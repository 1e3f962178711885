// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <array>
#include <cstdint>

namespace tablestore {

/// Counters of one pool, as the row 'P' keeps them and pool_statfs() shows them.
struct PoolStats {
  enum Field { stored_bytes, allocated_bytes, objects, inline_bytes, fields };
  std::array<int64_t, fields> values{};
  int64_t& operator[](Field f) { return values[f]; }
  int64_t operator[](Field f) const { return values[f]; }
};

/// The pool that statistics and omap prefixes go by: a temp pool counts as its own pool.
inline int64_t normalised_pool(int64_t pool) { return pool < -1 ? -2 - pool : pool; }

}  // namespace tablestore
