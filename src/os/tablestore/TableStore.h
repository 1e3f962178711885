// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <memory>
#include <set>
#include <shared_mutex>
#include <thread>
#include <unordered_map>

#include "common/Finisher.h"
#include "common/Throttle.h"
#include "common/perf_counters.h"
#include "include/uuid.h"
#include "os/ObjectStore.h"
#include "os/tablestore/collection/collection.h"
#include "os/tablestore/home/device_info.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/error_injection.h"
#include "os/tablestore/object/onode_cache.h"
#include "os/tablestore/home/options.h"
#include "os/tablestore/seams.h"
#include "os/tablestore/home/store_dir.h"
#include "os/tablestore/txn/txn_context.h"

namespace tablestore {
class AdminCommands;
class DataCache;
class NidAllocator;
class ObjectData;
class PoolTotals;
class ReferenceMaps;
class SpaceGate;
class StoreStepper;
class TxnBuilder;
struct TxnScan;
}

/// The ObjectStore that lives in a directory. Design: doc/dev/tablestore.rst.
///
/// Owns everything between mount and umount: the engine, the caches above it, and the collections.
/// Called from any thread. Locks, in the order in which they may be taken:
///
///   1 locks of collections (Collection::lock), several only through CollectionLocks
///   2 coll_lock: the two maps of collections
///   3 the mutexes inside of the parts, which are leaves
///
/// The engine's commit lane calls txn_durable() and txn_applied() and takes none of 1 and 2. So a
/// thread may wait for the lane while it holds them.
class TableStore : public ObjectStore, private tablestore::TxnListener {
 public:
  TableStore(CephContext* cct, const std::string& path, tablestore::StoreSeams seams = {});
  ~TableStore() override;

  // ---- the store as a whole (TableStore.cc)
  std::string get_type() override { return "tablestore"; }
  bool test_mount_in_use() override;
  int mkfs() override;
  int mkjournal() override { return 0; }
  bool needs_journal() override { return false; }
  bool wants_journal() override { return false; }
  bool allows_journal() override { return false; }
  int mount() override;
  int umount() override;
  int mount_readonly() override;
  int umount_readonly() override { return umount(); }
  void set_fsid(uuid_d u) override { fsid = u; }
  uuid_d get_fsid() override { return fsid; }
  uint64_t get_min_alloc_size() const override { return tablestore::block_bytes; }
  bool has_builtin_csum() const override { return true; }
  bool can_sort_nibblewise() override { return true; }
  int validate_hobject_key(const hobject_t& obj) const override { return 0; }
  unsigned get_max_attr_name_length() override { return 256; }
  uint64_t estimate_objects_overhead(uint64_t num_objects) override;

  // ---- fsck.cc
  int fsck(bool deep) override;
  int repair(bool deep) override;
  int quick_fix() override;

  // ---- the disks under the directory
  int get_devices(std::set<std::string>* names) override { return devices.devices(names); }
  bool is_rotational() override { return devices.is_rotational(); }
  bool is_journal_rotational() override { return devices.is_rotational(); }
  int get_numa_node(int* node, std::set<int>* nodes, std::set<std::string>* failed) override
  {
    return devices.numa_node(node, nodes, failed);
  }
  void collect_metadata(std::map<std::string, std::string>* pm) override;

  // ---- space and statistics (space.cc)
  int statfs(store_statfs_t* buf, osd_alert_list_t* alerts = nullptr) override;
  int pool_statfs(uint64_t pool_id, store_statfs_t* buf, bool* per_pool_omap) override;
  objectstore_perf_stat_t get_cur_stats() override;
  void refresh_perf_counters() override;
  const PerfCounters* get_perf_counters() const override { return logger; }
  int flush_cache(std::ostream* os = nullptr) override;
  void dump_perf_counters(ceph::Formatter* f) override;
  void dump_cache_stats(ceph::Formatter* f) override;
  void dump_cache_stats(std::ostream& os) override;
  void get_db_statistics(ceph::Formatter* f) override;
  void generate_db_histogram(ceph::Formatter* f) override;
  int compact() override;

  // ---- collections (collections.cc)
  CollectionHandle open_collection(const coll_t& cid) override;
  CollectionHandle create_new_collection(const coll_t& cid) override;
  void set_collection_commit_queue(const coll_t& cid, ContextQueue* commit_queue) override;
  int set_collection_opts(CollectionHandle& c, const pool_opts_t& opts) override;
  int list_collections(std::vector<coll_t>& ls) override;
  bool collection_exists(const coll_t& c) override;
  int collection_empty(CollectionHandle& c, bool* empty) override;
  int collection_bits(CollectionHandle& c) override;
  int collection_list(CollectionHandle& c, const ghobject_t& start, const ghobject_t& end,
                      int max, std::vector<ghobject_t>* ls, ghobject_t* next) override;

  // ---- objects (reads.cc)
  bool exists(CollectionHandle& c, const ghobject_t& oid) override;
  int stat(CollectionHandle& c, const ghobject_t& oid, struct stat* st,
           bool allow_eio = false) override;
  int read(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t len,
           ceph::buffer::list& bl, uint32_t op_flags = 0) override;
  int readv(CollectionHandle& c, const ghobject_t& oid, interval_set<uint64_t>& m,
            ceph::buffer::list& bl, uint32_t op_flags = 0) override;
  int fiemap(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t len,
             ceph::buffer::list& bl) override;
  int fiemap(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t len,
             std::map<uint64_t, uint64_t>& destmap) override;
  int getattr(CollectionHandle& c, const ghobject_t& oid, const char* name,
              ceph::buffer::ptr& value) override;
  int getattrs(CollectionHandle& c, const ghobject_t& oid,
               std::map<std::string, ceph::buffer::ptr, std::less<>>& aset) override;
  int dump_onode(CollectionHandle& c, const ghobject_t& oid, const std::string& section_name,
                 ceph::Formatter* f) override;
  void inject_data_error(const ghobject_t& oid) override { injected.add_data_error(oid); }
  void inject_mdata_error(const ghobject_t& oid) override { injected.add_metadata_error(oid); }

  // ---- omap (omap_reads.cc)
  int omap_get(CollectionHandle& c, const ghobject_t& oid, ceph::buffer::list* header,
               std::map<std::string, ceph::buffer::list>* out) override;
  int omap_get_header(CollectionHandle& c, const ghobject_t& oid, ceph::buffer::list* header,
                      bool allow_eio = false) override;
  int omap_get_keys(CollectionHandle& c, const ghobject_t& oid,
                    std::set<std::string>* keys) override;
  int omap_get_values(CollectionHandle& c, const ghobject_t& oid,
                      const std::set<std::string>& keys,
                      std::map<std::string, ceph::buffer::list>* out) override;
  int omap_check_keys(CollectionHandle& c, const ghobject_t& oid,
                      const std::set<std::string>& keys, std::set<std::string>* out) override;
  int omap_iterate(CollectionHandle& c, const ghobject_t& oid, omap_iter_seek_t start_from,
                   std::function<omap_iter_ret_t(std::string_view, std::string_view)> visitor)
      override;

  // ---- changes (transaction.cc)
  int queue_transactions(CollectionHandle& ch, std::vector<Transaction>& tls,
                         TrackedOpRef op = TrackedOpRef(),
                         ThreadPool::TPHandle* handle = nullptr) override;

 private:
  friend class tablestore::AdminCommands;
  friend class tablestore::StoreStepper;
  friend class tablestore::TxnBuilder;
  using Collection = tablestore::Collection;
  using CollectionRef = tablestore::CollectionRef;
  using OnodeRef = tablestore::OnodeRef;

  static Collection* collection_of(CollectionHandle& c)
  {
    return static_cast<Collection*>(c.get());
  }

  // ---- life cycle
  int check(bool deep, bool for_repair);
  int check_rows(bool deep, bool for_repair);
  int open_all(bool read_only);
  int open_disk(std::shared_ptr<tablestore::Disk>* out);
  int open_engine();
  int open_above_engine();
  int load_collections();
  int load_meta(bool read_only);
  void close_all();
  tablestore::EngineOptions engine_options();
  std::function<void()> lane_step();
  std::function<bool()> hasten();
  tablestore::Reporter make_reporter();
  int format_engine();
  void tick();
  void tick_until_stopped();

  // ---- collections
  CollectionRef get_collection(const coll_t& cid);
  int list_range(Collection& c, const std::string& low, const std::string& high,
                 const std::string& range_end, size_t max, std::vector<ghobject_t>* ls,
                 ghobject_t* next, bool* done);

  // ---- objects
  /// The onode of `oid`, loaded where it is not in memory. 0 and an onode that may not exist, or
  /// -EIO. The caller holds the collection's lock.
  int load_onode(const Collection& c, const ghobject_t& oid, OnodeRef* out);
  /// The same for an object that must exist: else -ENOENT.
  int find_onode(const Collection& c, const ghobject_t& oid, OnodeRef* out);
  /// An object that is being read: its collection is locked, shared, as long as this lives.
  struct ObjectInUse {
    Collection& c;
    std::shared_lock<ceph::shared_mutex> lock;
    OnodeRef o;
    int r = 0;  ///< of find_onode()
  };
  ObjectInUse use_object(CollectionHandle& ch, const ghobject_t& oid);
  int read_object(Collection& c, const ghobject_t& oid, const OnodeRef& o, uint64_t offset,
                  uint64_t length, ceph::buffer::list& bl, uint32_t op_flags);

  // ---- omap
  struct OmapView {
    bool has_omap = false;
    std::string prefix;
    std::shared_lock<ceph::shared_mutex> lock;   ///< the collection's
  };
  /// Where the object's rows are; what was queued for them is in the table. They do not change
  /// while view->lock is held.
  int view_omap(CollectionHandle& c, const ghobject_t& oid, OmapView* view);
  /// Calls the visitor for each key, without the lock.
  int visit_omap(OmapView& view,
                 const std::function<void(std::string_view, std::string_view)>& visitor);
  int visit_omap_rows(OmapView& view, const std::pair<std::string, std::string>& range,
                      const std::function<void(std::string_view, std::string_view)>& visitor);
  int read_omap_header(const OmapView& view, ceph::buffer::list* header);

  // ---- transactions
  std::vector<CollectionRef> find_collections(const std::vector<coll_t>& cids);
  void throttle(tablestore::TxnContext& txc, ThreadPool::TPHandle* handle);
  void unthrottle(const tablestore::TxnContext& txc);
  int reserve_space(tablestore::TxnContext& txc, uint64_t bytes, ThreadPool::TPHandle* handle);
  /// 0, or an error, and nothing is changed. `commits_here`: whether the caller can call
  /// Engine::commit_here(), and then, whether he has to.
  int build_and_submit(Collection& ch, const std::shared_ptr<tablestore::TxnContext>& txc,
                       std::vector<Transaction>& tls, tablestore::TxnScan& scan,
                       bool* commits_here);
  void queue_callbacks(ContextQueue* queue, std::list<Context*>& contexts);
  [[noreturn]] void fail(int r, const std::string& what);
  void txn_durable(tablestore::TxnContext& txc) override;
  void txn_applied(tablestore::TxnContext& txc) override;
  void group_durable();

  const tablestore::StoreSeams seams;
  tablestore::StoreOptions options;
  const tablestore::DeviceInfo devices;
  tablestore::StoreDir dir;
  PerfCounters* logger = nullptr;
  uuid_d fsid;
  bool mounted = false;
  bool read_only = false;
  bool has_fast_commits = false;     ///< DeviceInfo::fast_commits(), when it was mounted
  uint64_t inline_bound_bytes = 0;   ///< no inline data is larger, whatever the option says now

  // Between mount and umount. The order is that of construction.
  std::shared_ptr<tablestore::Disk> disk;
  std::unique_ptr<tablestore::Engine> engine;
  std::unique_ptr<tablestore::DataCache> data_cache;
  std::unique_ptr<tablestore::OnodeCache> onodes;
  std::unique_ptr<tablestore::ReferenceMaps> reference_maps;
  std::unique_ptr<tablestore::ObjectData> data;
  std::unique_ptr<tablestore::NidAllocator> nids;
  std::unique_ptr<tablestore::PoolTotals> pools;
  std::unique_ptr<tablestore::SpaceGate> space;
  std::unique_ptr<tablestore::AdminCommands> admin;
  tablestore::ErrorInjection injected;

  ceph::shared_mutex coll_lock = ceph::make_shared_mutex("TableStore::coll_lock");
  std::unordered_map<coll_t, CollectionRef> coll_map;
  std::unordered_map<coll_t, CollectionRef> new_coll_map;   ///< made, not yet in a transaction

  Throttle throttle_bytes;
  Throttle throttle_ops;
  Finisher finisher;

  /// Of the group whose transactions the commit lane declares durable; the lane's own.
  struct {
    std::vector<std::pair<ContextQueue*, std::list<Context*>>> callbacks;   ///< null: the finisher
    uint64_t bytes = 0;
    uint64_t ops = 0;
  } durable_group;

  /// Once a second: caches to their size, counters.
  std::thread ticker;
  ceph::mutex tick_mutex = ceph::make_mutex("TableStore::tick_mutex");
  ceph::condition_variable tick_cond;
  bool tick_stop = false;
  PerfCounters::avg_tracker<uint64_t> commit_latency_ns;   ///< under tick_mutex

  /// Transactions that objectstore_blackhole swallowed: never durable, until umount.
  ceph::mutex blackhole_mutex = ceph::make_mutex("TableStore::blackhole_mutex");
  std::vector<std::shared_ptr<tablestore::TxnContext>> blackholed;
};
