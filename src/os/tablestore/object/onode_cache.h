// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <unordered_map>

#include "common/ceph_mutex.h"
#include "os/tablestore/object/age_bins.h"
#include "os/tablestore/object/onode.h"

namespace tablestore {

/// All onodes in memory, of all collections together, so that split and merge move nothing. An
/// object has at most one Onode at a time; one that does not exist (exists == false) stands for "no
/// such object".
///
/// An onode stays while somebody holds a reference, as a transaction that changed it does until it
/// is applied (ObjectTxn::touch); of the others the least recently used go first when the budget is
/// exceeded.
///
/// Thread-safe: sharded by the object's hash, one mutex a shard. The contents of an onode are not
/// guarded here.
class OnodeCache {
 public:
  explicit OnodeCache(uint64_t bytes_max);
  ~OnodeCache();

  /// Null where it is not in memory.
  OnodeRef get(const ghobject_t& oid);
  /// Adds; where somebody else was faster, returns theirs.
  OnodeRef add(OnodeRef onode);
  /// Tells its size anew, after it was loaded or changed; the caller holds its collection's lock.
  void update_size(const OnodeRef& onode);

  /// Drops an onode that a failed transaction has changed, so that it is loaded anew from its row.
  /// The caller holds its collection's lock, unique; what other transactions changed there is
  /// applied. A reader that waits without that lock may still hold a reference: it asks again.
  void forget(const OnodeRef& onode);
  /// Drops all that can be dropped.
  void clear();
  void resize(uint64_t bytes_max);
  uint64_t bytes() const;
  uint64_t count() const;

  // By age, for MemoryBudget: AgeBins.
  uint64_t bytes_used_within(uint32_t begin_bin, uint32_t end_bin) const;
  void shift_bins();
  void set_bin_count(uint32_t count);

  struct Usage {
    uint64_t hits = 0;
    uint64_t misses = 0;
  };
  Usage usage() const;

 private:
  static constexpr size_t shard_count = 16;
  struct Entry {
    OnodeRef onode;
    uint64_t bytes = 0;
    std::list<Entry*>::iterator position;
    AgeBins::Bin bin;
  };
  struct Hash {
    size_t operator()(const ghobject_t* oid) const { return std::hash<ghobject_t>{}(*oid); }
  };
  struct Equal {
    bool operator()(const ghobject_t* a, const ghobject_t* b) const { return *a == *b; }
  };
  struct alignas(64) Shard {
    mutable ceph::mutex mutex = ceph::make_mutex("TableStore::OnodeCache::mutex");
    std::unordered_map<const ghobject_t*, Entry, Hash, Equal> entries;  ///< by the onode's own oid
    std::list<Entry*> lru;                                              ///< front = used last
    uint64_t bytes = 0;
    AgeBins bins;
    Usage counted;
  };

  Shard& shard_of(const ghobject_t& oid);
  /// Its bytes leave the shard's counts.
  static void take_out(Shard& shard, Entry& entry);
  /// Drops what exceeds `bytes_max`; looks at no more than `looks` entries.
  void trim(Shard& shard, uint64_t bytes_max, size_t looks, std::list<OnodeRef>& dropped);

  std::array<Shard, shard_count> shards;
  std::atomic<uint64_t> shard_bytes_max;
};

/// About what an onode takes in memory with all its shards loaded.
uint64_t onode_memory_bytes(const Onode& onode);

}  // namespace tablestore
