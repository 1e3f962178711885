// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <memory>
#include <set>

#include "include/uuid.h"
#include "os/ObjectStore.h"
#include "os/tablestore/check/check_options.h"
#include "os/tablestore/home/store_home.h"
#include "os/tablestore/object/error_injection.h"

namespace tablestore {
class MountedStore;
enum class OpenFor;
}

/// The ObjectStore that lives in a directory. Design: doc/dev/tablestore.rst.
///
/// The face of its parts to Ceph: the life cycle is here, all else in MountedStore. Any thread may
/// call it; mkfs, mount, umount and fsck are for one thread, while no other is in the store.
class TableStore : public ObjectStore {
 public:
  /// `surroundings` = null: those of an OSD.
  TableStore(CephContext* cct, const std::string& path,
             std::shared_ptr<tablestore::Surroundings> surroundings = nullptr);
  ~TableStore() override;

  /// The parts of a mounted store: for tools and tests.
  tablestore::MountedStore& parts();

  // ---- the store as a whole
  std::string get_type() override { return "tablestore"; }
  bool test_mount_in_use() override;
  int mkfs() override;
  int mkjournal() override { return 0; }
  bool needs_journal() override { return false; }
  bool wants_journal() override { return false; }
  bool allows_journal() override { return false; }
  int mount() override;
  int umount() override;
  void prepare_for_fast_shutdown() override;
  int mount_readonly() override;
  int umount_readonly() override { return umount(); }
  void set_fsid(uuid_d u) override { fsid = u; }
  uuid_d get_fsid() override { return fsid; }
  uint64_t get_min_alloc_size() const override { return tablestore::block_bytes; }
  bool has_builtin_csum() const override { return true; }
  bool can_sort_nibblewise() override { return true; }
  int validate_hobject_key(const hobject_t& obj) const override { return 0; }
  unsigned get_max_attr_name_length() override { return 256; }
  uint64_t estimate_objects_overhead(uint64_t num_objects) override { return num_objects * 300; }

  int fsck(bool deep) override { return check({.deep = deep}); }
  int repair(bool deep) override { return check({.deep = deep, .repair = true}); }
  int quick_fix() override { return check({.repair = true}); }
  /// The number of errors that are left, or an error. Without repair nothing on the disk changes.
  int check(const tablestore::CheckOptions& options, tablestore::CheckResult* result = nullptr);

  // ---- the disks under the directory
  int get_devices(std::set<std::string>* names) override { return home.devices.devices(names); }
  bool is_rotational() override { return home.devices.is_rotational(); }
  bool is_journal_rotational() override { return home.devices.is_rotational(); }
  int get_numa_node(int* node, std::set<int>* nodes, std::set<std::string>* failed) override
  {
    return home.devices.numa_node(node, nodes, failed);
  }
  void collect_metadata(std::map<std::string, std::string>* pm) override;

  // ---- space and statistics
  int statfs(store_statfs_t* buf, osd_alert_list_t* alerts = nullptr) override;
  int pool_statfs(uint64_t pool_id, store_statfs_t* buf, bool* per_pool_omap) override;
  objectstore_perf_stat_t get_cur_stats() override;
  void refresh_perf_counters() override;
  const PerfCounters* get_perf_counters() const override { return &home.logger; }
  int flush_cache(std::ostream* os = nullptr) override;
  void dump_perf_counters(ceph::Formatter* f) override;
  void dump_cache_stats(ceph::Formatter* f) override;
  void dump_cache_stats(std::ostream& os) override;
  void get_db_statistics(ceph::Formatter* f) override;
  void generate_db_histogram(ceph::Formatter* f) override;
  int compact() override;

  // ---- collections
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

  // ---- objects
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

  // ---- omap
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

  // ---- changes
  int queue_transactions(CollectionHandle& ch, std::vector<Transaction>& tls,
                         TrackedOpRef op = TrackedOpRef(),
                         ThreadPool::TPHandle* handle = nullptr) override;

 private:
  int open(tablestore::OpenFor purpose);
  /// tablestore_fsck_on_mount: 0, or an error.
  int check_at_mount();

  tablestore::StoreHome home;
  tablestore::ErrorInjection injected{home.options.inject_read_errors};
  std::atomic<bool> said_options{false};   ///< that pools' options have no effect
  uuid_d fsid;
  std::unique_ptr<tablestore::MountedStore> store;   ///< between mount and umount
};
