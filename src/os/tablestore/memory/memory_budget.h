// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/PriorityCache.h"
#include "common/ceph_mutex.h"
#include "common/ceph_time.h"
#include "include/common_fwd.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/home/options.h"
#include "os/tablestore/memory/cache_share.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/object/onode_cache.h"

namespace tablestore {

/// Sizes the store's three caches: blocks of the table, onodes, data. All else that takes memory in
/// an OSD, the store's memtables, bitmaps and data in flight included, is not for choice, and the
/// caches make room for it.
///
/// By itself as BlueStore does: PriorityCache::Manager compares what the process has mapped with
/// osd_memory_target, and divides what is left among the caches, first to what was used last.
/// Where tablestore_cache_size is set, their sum is that, in fixed shares. So it is too where
/// threads do not run by themselves: what happens there must not depend on the process's memory.
///
/// Thread-safe.
class MemoryBudget {
 public:
  struct Parts {
    CephContext* cct;
    const StoreOptions& options;
    Engine& engine;
    OnodeCache& onodes;
    DataCache& data;
    std::shared_ptr<rocksdb::Cache> table_cache;   ///< make_table_cache(); null: the engine's own
  };
  explicit MemoryBudget(Parts parts);

  /// A cache that the manager can size.
  static std::shared_ptr<rocksdb::Cache> make_table_cache(CephContext* cct, uint64_t bytes);

  /// Once a second: follows the options, what is in use, and what the process takes.
  void tick();

 private:
  void share_fixed(uint64_t bytes);
  void follow_target();
  void start_manager(uint64_t cache_max);
  void apply(uint64_t table_bytes, uint64_t onode_bytes, uint64_t data_bytes);
  uint64_t cache_max() const;

  const Parts parts;
  ceph::mutex mutex = ceph::make_mutex("TableStore::MemoryBudget::mutex");
  const std::shared_ptr<PriorityCache::PriCache> table_share;   ///< null: see Parts
  const std::shared_ptr<CacheShare<OnodeCache>> onode_share;
  const std::shared_ptr<CacheShare<DataCache>> data_share;
  std::optional<PriorityCache::Manager> manager;   ///< while it is the target that is followed
  MemoryLimits limits;   ///< that the manager has been told
  ceph::coarse_mono_time next_resize, next_shift;
};

}  // namespace tablestore
