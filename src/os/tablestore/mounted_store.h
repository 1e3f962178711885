// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <memory>
#include <optional>

#include "include/uuid.h"
#include "os/tablestore/check/fsck.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/collection/listing.h"
#include "os/tablestore/collection/lost_names.h"
#include "os/tablestore/compaction/container_compaction.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/troubles.h"
#include "os/tablestore/home/slow_ops.h"
#include "os/tablestore/home/store_home.h"
#include "os/tablestore/home/store_meta.h"
#include "os/tablestore/memory/memory_budget.h"
#include "os/tablestore/object/damaged_objects.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/object/erased_rows.h"
#include "os/tablestore/object/error_injection.h"
#include "os/tablestore/object/nid_allocator.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/objects.h"
#include "os/tablestore/object/onode_cache.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/object/spurious_reads.h"
#include "os/tablestore/omap/omap_reader.h"
#include "os/tablestore/operate/admin.h"
#include "os/tablestore/operate/statistics.h"
#include "os/tablestore/operate/ticker.h"
#include "os/tablestore/space/pool_totals.h"
#include "os/tablestore/space/space_gate.h"
#include "os/tablestore/txn/commit_callbacks.h"
#include "os/tablestore/txn/txn_queue.h"
#include "os/tablestore/txn/txn_throttle.h"

namespace tablestore {

/// What a store is opened for. To check and to repair it, also where rows of collections are
/// damaged, without which it is no store to an OSD. For reading and to check, nothing on the disk
/// changes: what the log says beyond the table is replayed in memory.
enum class OpenFor { use, reading, check, repair };
inline bool is_read_only(OpenFor purpose)
{
  return purpose == OpenFor::reading || purpose == OpenFor::check;
}

/// A store between mount and umount: all its parts. The order of the members is that in which they
/// are made; they are destroyed from the last to the first.
///
/// Called from any thread. Locks, in the order in which they may be taken:
///
///   1 locks of collections (Collection::lock), several only through CollectionLocks
///   2 the lock of Collections
///   3 the mutexes inside of the other parts, which are leaves
///
/// The engine's commit lane calls CommitCallbacks, which takes none of 1 and 2. So a thread may
/// wait for the lane while it holds them.
class MountedStore {
 public:
  /// The home's directory is open. 0 and the store, or an error, after a log line.
  static int open(StoreHome& home, const uuid_d& fsid, ErrorInjection& injected,
                  OpenFor purpose, std::unique_ptr<MountedStore>* out);
  /// Without close() before it, as the end of the process: what is not durable is lost.
  ~MountedStore() = default;
  /// Umount. No call may follow.
  /// -ETIMEDOUT: transactions that nobody was told of are given up.
  int close();

  /// What is done once a second: caches get their sizes, counters are brought up to date.
  void tick();
  int drop_caches();
  /// While nobody else uses the store: the number of errors that are left, -EIO, or -ECANCELED.
  int check(const CheckOptions& options, CheckResult* result = nullptr);

 private:
  /// The engine, and what it needs to be opened.
  struct Foundation {
    Foundation(StoreHome& home, std::shared_ptr<Disk> disk);
    const std::shared_ptr<Disk> disk;
    const std::shared_ptr<Troubles> troubles;   ///< of this mount
    SpuriousReads spurious_reads;
    SlowOps slow_ops;
    TxnThrottle throttle;
    CommitCallbacks callbacks;
    Reporter reporter;
    std::shared_ptr<rocksdb::Cache> table_cache;   ///< null: the engine's own
    std::unique_ptr<Engine> engine;   ///< calls the callbacks
  };
  static int open_engine(StoreHome& home, const uuid_d& fsid, OpenFor purpose,
                         std::unique_ptr<Foundation>* out);
  /// What has to be known before the other parts are made.
  struct Found {
    TxnQueue::Limits limits{};
    uint64_t nid_max = 0;
    bool has_copies = false;                 ///< of its own rows
    bool gets_copies = false;                ///< with `mended`
    std::vector<std::string> damaged_rows;   ///< in words, where others could take their place
    /// Such rows anew, to be queued when all else has been found well.
    std::shared_ptr<Txn> mended = std::make_shared<Txn>();
  };
  static int find(StoreHome& home, Foundation& foundation, OpenFor purpose, Found* found);
  MountedStore(StoreHome& home, std::unique_ptr<Foundation> foundation, const Found& found,
               ErrorInjection& injected);
  int load(OpenFor purpose, Found& found);
  int load_collections(OpenFor purpose, Found& found);
  void mend_collections(Found& found);
  void write_mended();
  void start();

  StoreHome& home;
  CephContext* const cct;
  const std::unique_ptr<Foundation> foundation;

 public:
  Engine& engine;
  DataCache data_cache;
  OnodeCache onodes;
  DamagedObjects damaged;
  ErasedRows erased;
  LostNames lost_names;
  ReferenceMaps reference_maps;
  ObjectData data;
  NidAllocator nids;
  PoolTotals pools;
  SpaceGate gate;
  Collections collections;
  Listing listing;
  Objects objects;
  OmapReader omap;
  TxnQueue txns;
  ContainerCompaction compaction;
  MemoryBudget memory;
  Statistics statistics;

  /// False: rows of collections are damaged, and objects may be in others than are known.
  bool knows_all_collections() const;

 private:
  bool all_collections_known = true;
  CollectionRows collection_rows;
  std::shared_ptr<Txn> mended;   ///< rows that no mount for use has written yet
  std::optional<AdminCommands> admin;
  std::optional<Ticker> ticker;
};

}  // namespace tablestore
