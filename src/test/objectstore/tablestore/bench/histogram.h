// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Latencies of any number of operations in constant space, each known to 1.6 per cent.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace store_bench {

/// Buckets of equal width within each power of two. Not thread-safe: one per thread, merged later.
class Histogram {
 public:
  void add(uint64_t ns)
  {
    const size_t i = index(ns);
    if (i >= buckets.size())
      buckets.resize(i + 1);
    ++buckets[i];
    ++total;
    sum += ns;
    largest = std::max(largest, ns);
  }

  void merge(const Histogram& other)
  {
    if (buckets.size() < other.buckets.size())
      buckets.resize(other.buckets.size());
    for (size_t i = 0; i < other.buckets.size(); ++i)
      buckets[i] += other.buckets[i];
    total += other.total;
    sum += other.sum;
    largest = std::max(largest, other.largest);
  }

  uint64_t count() const { return total; }
  uint64_t max_ns() const { return largest; }
  double mean_ns() const { return total ? double(sum) / total : 0; }

  /// The latency that `share` (0 to 1) of all operations did not exceed.
  double quantile_ns(double share) const
  {
    if (total == 0)
      return 0;
    const uint64_t rank = std::min<uint64_t>(total - 1, share * total);
    uint64_t seen = 0;
    for (size_t i = 0; i < buckets.size(); ++i) {
      seen += buckets[i];
      if (seen > rank)
        return std::min<double>(largest, (lower(i) + lower(i + 1)) / 2.0);
    }
    return largest;
  }

 private:
  static constexpr unsigned steps = 64;   // per power of two

  static size_t index(uint64_t ns)
  {
    if (ns < steps)
      return ns;
    const unsigned shift = std::bit_width(ns) - std::bit_width(uint64_t(steps));
    return shift * steps + (ns >> shift);
  }

  static uint64_t lower(size_t i)
  {
    if (i < 2 * steps)
      return i;
    const unsigned shift = i / steps - 1;
    return uint64_t(i - shift * steps) << shift;
  }

  std::vector<uint64_t> buckets;
  uint64_t total = 0;
  uint64_t sum = 0;
  uint64_t largest = 0;
};

}  // namespace store_bench
