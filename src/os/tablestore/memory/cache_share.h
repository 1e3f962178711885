// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/PriorityCache.h"

namespace tablestore {

/// What PriorityCache::Manager sees of a cache that counts its bytes by age (AgeBins): OnodeCache,
/// DataCache. What was used of late asks with a higher priority than what was used long ago, in all
/// caches. Called from one thread at a time.
///
/// It decides nothing: the cache is resized by MemoryBudget. Nothing is asked for at the last
/// priority, because the manager gives back what it grants there, and divides it by ratio.
template <typename Cache>
class CacheShare : public PriorityCache::PriCache {
 public:
  using Priority = PriorityCache::Priority;

  CacheShare(Cache& cache, std::string name) : cache(cache), name(std::move(name)) {}

  int64_t request_cache_bytes(Priority pri, uint64_t /*total_cache*/) const override
  {
    if (pri == Priority::PRI0 || pri > oldest_priority)
      return 0;
    const int64_t wanted = pri == oldest_priority
        ? bytes_beyond(bins[pri - 1])
        : int64_t(cache.bytes_used_within(uint32_t(bins[pri - 1]), uint32_t(bins[pri])));
    return std::max<int64_t>(0, wanted - given[pri]);
  }
  int64_t get_cache_bytes(Priority pri) const override { return given[pri]; }
  int64_t get_cache_bytes() const override
  {
    int64_t sum = 0;
    for (const int64_t bytes : given)
      sum += bytes;
    return sum;
  }
  void set_cache_bytes(Priority pri, int64_t bytes) override { given[pri] = bytes; }
  void add_cache_bytes(Priority pri, int64_t bytes) override { given[pri] += bytes; }
  int64_t commit_cache_size(uint64_t total_cache) override
  {
    committed = PriorityCache::get_chunk(get_cache_bytes(), total_cache);
    return committed;
  }
  int64_t get_committed_size() const override { return committed; }

  double get_cache_ratio() const override { return ratio; }
  void set_cache_ratio(double r) override { ratio = r; }
  std::string get_cache_name() const override { return name; }

  void shift_bins() override { cache.shift_bins(); }
  /// Ends of the bins of PRI1 and on; the last of them is followed by all that is older.
  void import_bins(const std::vector<uint64_t>& ends) override
  {
    for (size_t pri = 1; pri < oldest_priority; ++pri)
      bins[pri] = std::max(bins[pri - 1], pri - 1 < ends.size() ? ends[pri - 1] : 0);
    cache.set_bin_count(uint32_t(bins[oldest_priority - 1]));
  }
  void set_bins(Priority pri, uint64_t end_bin) override
  {
    if (pri == Priority::PRI0 || pri >= oldest_priority)
      return;
    bins[pri] = end_bin;
    cache.set_bin_count(uint32_t(*std::max_element(bins.begin(), bins.end())));
  }
  uint64_t get_bins(Priority pri) const override { return pri < oldest_priority ? bins[pri] : 0; }

 private:
  static constexpr Priority oldest_priority = Priority::PRI10;

  int64_t bytes_beyond(uint64_t bin) const
  {
    const uint64_t younger = cache.bytes_used_within(0, uint32_t(bin));
    return int64_t(cache.bytes()) - int64_t(younger);
  }

  Cache& cache;
  const std::string name;
  std::array<int64_t, Priority::LAST + 1> given{};
  std::array<uint64_t, Priority::LAST + 1> bins{};
  int64_t committed = 0;
  double ratio = 0;
};

}  // namespace tablestore
