// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <map>

#include "common/ceph_mutex.h"
#include "include/buffer.h"
#include "os/tablestore/engine/format/extent.h"
#include "os/tablestore/object/age_bins.h"

namespace tablestore {

/// Verified blocks of container slots, by physical address, least recently used go first. Direct
/// I/O bypasses the page cache: this is the one cache of object data.
///
/// A physical block's content never changes while it is owned; invalidate() must be called when it
/// is freed or written anew. Thread-safe, sharded by address.
class DataCache {
 public:
  explicit DataCache(uint64_t bytes_max);
  ~DataCache();
  /// All blocks of `extent`, which may be a run over several slots, or nothing.
  bool get(const Run& extent, ceph::buffer::list& out);
  void put(const Run& extent, const ceph::buffer::list& data);
  void invalidate(const Run& extent);
  void clear();
  void resize(uint64_t bytes_max);
  uint64_t bytes() const;

  // By age, for MemoryBudget: AgeBins.
  uint64_t bytes_used_within(uint32_t begin_bin, uint32_t end_bin) const;
  void shift_bins();
  void set_bin_count(uint32_t count);

 private:
  /// Runs are cut at multiples of this, so that each is in one shard.
  static constexpr uint32_t granule_blocks = 64;
  static constexpr size_t shard_count = 16;

  struct CachedRun {
    Run extent;
    ceph::buffer::list data;
    std::list<CachedRun*>::iterator position;
    AgeBins::Bin bin;
  };
  using Runs = std::map<uint64_t, CachedRun>;   ///< by address of the first block

  struct Shard {
    mutable ceph::mutex mutex = ceph::make_mutex("TableStore::DataCache::mutex");
    Runs runs;              ///< never overlap
    std::list<CachedRun*> lru;    ///< front = used last
    AgeBins bins;
    uint64_t bytes = 0;
  };

  static uint64_t address(uint32_t container, uint32_t block)
  {
    return uint64_t(container) << 32 | block;
  }
  Shard& shard_of(const Run& granule);
  /// The part of one granule at the front of `rest`, which then is what remains.
  static Run take_granule(Run& rest);

  bool get_granule(const Run& extent, ceph::buffer::list& out);
  void add_run(Shard& shard, const Run& extent, ceph::buffer::list&& data);
  /// Cuts runs that reach beyond `extent`; what lies outside stays.
  void remove_overlaps(Shard& shard, const Run& extent);
  Runs::iterator remove_run(Shard& shard, Runs::iterator run);
  void trim(Shard& shard);

  std::array<Shard, shard_count> shards;
  std::atomic<uint64_t> shard_bytes_max;
};

}  // namespace tablestore
