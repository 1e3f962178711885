// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/TableStore.h"

#include "common/debug.h"
#include "common/errno.h"
#include "include/scope_guard.h"
#include "include/stringify.h"
#include "os/tablestore/engine/format/release.h"
#include "os/tablestore/home/osd_surroundings.h"
#include "os/tablestore/mounted_store.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

using namespace tablestore;

namespace {

Collection& of(ObjectStore::CollectionHandle& c) { return *static_cast<Collection*>(c.get()); }

}  // namespace

TableStore::TableStore(CephContext* cct, const std::string& path,
                       std::shared_ptr<Surroundings> surroundings)
  : ObjectStore(cct, path),
    home(cct, path,
         surroundings ? std::move(surroundings) : std::make_shared<OsdSurroundings>(cct, path))
{
}

TableStore::~TableStore()
{
  ceph_assert(!store || !home.surroundings->threads().run_by_themselves());
}

MountedStore& TableStore::parts()
{
  ceph_assert(store);
  return *store;
}

// ---- life cycle

int TableStore::mkfs()
{
  dout(1) << __func__ << dendl;
  ceph_assert(!store);
  home.options.load();
  std::string type;
  if ((read_meta("type", &type) > 0 || !type.empty()) && type != get_type()) {
    derr << __func__ << " this directory holds a store of type " << type
         << "; give another one, or empty it first" << dendl;
    return -EINVAL;
  }
  int r = home.dir.open(StoreDir::Open::create);
  if (r < 0)
    return r;
  auto close_dir = make_scope_guard([this] { home.dir.close(); });

  uuid_d old_fsid;
  r = home.dir.read_fsid(&old_fsid);
  if (r == 0) {
    if (!fsid.is_zero() && fsid != old_fsid) {
      derr << __func__ << " the store here has fsid " << old_fsid << ", not " << fsid << dendl;
      return -EINVAL;
    }
    fsid = old_fsid;
    dout(1) << __func__ << " already there, fsid " << fsid << dendl;
    return 0;
  }
  if (r != -ENOENT)
    return r;

  r = home.format(&fsid);
  if (r < 0)
    return r;
  // Now, after it has flushed files.
  if (home.devices.fast_commits() > 0) {
    derr << __func__ << " " << fast_commit_warning(path) << dendl;
    return -EOPNOTSUPP;
  }
  r = write_meta("type", get_type());
  if (r < 0) {
    derr << __func__ << " cannot write " << path << "/type: " << cpp_strerror(r) << dendl;
    return r;
  }
  // Last: a directory with an fsid is a complete store.
  r = home.dir.write_fsid(fsid);
  dout(1) << __func__ << " fsid " << fsid << " = " << r << dendl;
  return r;
}

int TableStore::open(OpenFor purpose)
{
  static constexpr const char* purposes[] = {"for use", "for reading", "to check", "to repair"};
  dout(1) << __func__ << " " << purposes[int(purpose)] << dendl;
  if (store) {
    derr << __func__ << " is mounted already" << dendl;
    return -EBUSY;
  }
  home.options.load();
  int r = home.dir.open(is_read_only(purpose) ? StoreDir::Open::reading : StoreDir::Open::use);
  if (r < 0)
    return r;
  r = home.dir.read_fsid(&fsid);
  if (r == -ENOENT)
    derr << __func__ << " the fsid file is empty: where there is a label (ceph-tablestore-tool "
         << "show-label), run ceph-tablestore-tool prime; else mkfs did not complete: run it again"
         << dendl;
  if (r == 0)
    r = MountedStore::open(home, fsid, injected, purpose, &store);
  if (r < 0)
    home.dir.close();
  return r;
}

int TableStore::check_at_mount()
{
  using CheckAtMount = StoreOptions::CheckAtMount;
  const CheckAtMount wanted = home.options.check_at_mount();
  if (wanted == CheckAtMount::none)
    return 0;
  const int r = fsck(wanted == CheckAtMount::deep);
  if (r > 0)
    derr << __func__ << " the store has " << r << " errors, and tablestore_fsck_on_mount is set: "
         << "run ceph-objectstore-tool --op repair" << dendl;
  return r > 0 ? -EIO : r;
}

int TableStore::mount()
{
  if (int r = check_at_mount(); r < 0)
    return r;
  int r = open(OpenFor::use);
  if (r == 0 && parts().engine.needs_adoption()) {
    derr << __func__ << " a part of this store's log was lost, and which blocks objects own is"
         << " not known: run ceph-objectstore-tool --op repair with tablestore_accept_log_loss"
         << dendl;
    umount();
    return -EIO;
  }
  return r;
}

int TableStore::mount_readonly() { return open(OpenFor::reading); }

void TableStore::prepare_for_fast_shutdown()
{
  dout(1) << __func__ << dendl;
  if (store)
    store->engine.vouch();
}

int TableStore::umount()
{
  dout(1) << __func__ << dendl;
  const int r = parts().close();
  store.reset();
  home.dir.close();
  return r;
}

int TableStore::check(const CheckOptions& options, CheckResult* result)
{
  if (store) {
    derr << __func__ << " not while the store is mounted" << dendl;
    return -EBUSY;
  }
  if (int r = open(options.repair ? OpenFor::repair : OpenFor::check); r < 0)
    return r;
  const int checked = store->check(options, result);
  const int unmounted = umount();
  return checked < 0 ? checked : unmounted < 0 ? unmounted : checked;
}

bool TableStore::test_mount_in_use() { return StoreDir::in_use(path); }

void TableStore::collect_metadata(std::map<std::string, std::string>* pm)
{
  home.devices.collect_metadata(pm);
  (*pm)["tablestore_release"] = TABLESTORE_RELEASE;
  (*pm)["tablestore_min_alloc_size"] = stringify(get_min_alloc_size());
  (*pm)["tablestore_inline_max"] = stringify(home.options.inline_max_bytes);
}

// ---- space and statistics

int TableStore::statfs(store_statfs_t* buf, osd_alert_list_t* alerts)
{
  buf->reset();
  if (alerts)
    alerts->clear();
  if (store)
    store->statistics.statfs(buf, alerts);
  return 0;
}

int TableStore::pool_statfs(uint64_t pool_id, store_statfs_t* buf, bool* per_pool_omap)
{
  buf->reset();
  *per_pool_omap = true;
  parts().statistics.pool_statfs(int64_t(pool_id), buf);
  return 0;
}

objectstore_perf_stat_t TableStore::get_cur_stats() { return parts().statistics.latencies(); }

void TableStore::refresh_perf_counters()
{
  if (store)
    store->statistics.refresh_counters();
}

int TableStore::flush_cache(std::ostream*) { return parts().drop_caches(); }

void TableStore::dump_perf_counters(ceph::Formatter* f) { parts().statistics.dump_counters(f); }
void TableStore::dump_cache_stats(ceph::Formatter* f) { parts().statistics.dump_caches(f); }
void TableStore::dump_cache_stats(std::ostream& os) { parts().statistics.dump_caches(os); }
void TableStore::get_db_statistics(ceph::Formatter* f) { parts().statistics.dump_table(f); }

void TableStore::generate_db_histogram(ceph::Formatter* f)
{
  parts().statistics.dump_rows_by_size(f);
}

int TableStore::compact()
{
  dout(1) << __func__ << dendl;
  const Status s = parts().engine.compact();
  if (!s.ok())
    derr << __func__ << " " << s.what() << dendl;
  return -s.code();
}

// ---- collections

ObjectStore::CollectionHandle TableStore::open_collection(const coll_t& cid)
{
  return parts().collections.find(cid);
}

ObjectStore::CollectionHandle TableStore::create_new_collection(const coll_t& cid)
{
  return parts().collections.create_new(cid);
}

void TableStore::set_collection_commit_queue(const coll_t& cid, ContextQueue* commit_queue)
{
  parts().collections.set_commit_queue(cid, commit_queue);
}

int TableStore::set_collection_opts(CollectionHandle& c, const pool_opts_t& opts)
{
  // Those for a store are about compression and the kind of checksum: nothing that this store has a
  // choice of. Said once, because the OSD calls it for each placement group, and does not say it.
  std::string compression;
  const bool compresses =
      opts.get(pool_opts_t::COMPRESSION_MODE, &compression) && compression != "none";
  const bool matters = compresses || opts.is_set(pool_opts_t::CSUM_TYPE) ||
      opts.is_set(pool_opts_t::CSUM_MAX_BLOCK) || opts.is_set(pool_opts_t::CSUM_MIN_BLOCK);
  if (matters && !said_options.exchange(true)) {
    derr << "the pool of " << c->cid << " asks for "
         << (compresses ? "compression" : "another kind of checksum")
         << ": TableStore does not compress, and has crc32c of each block of 4 KiB; the option has "
         << "no effect" << dendl;
  }
  return -EOPNOTSUPP;
}

int TableStore::list_collections(std::vector<coll_t>& ls)
{
  for (const auto& c : parts().collections.all())
    ls.push_back(c->cid);
  return 0;
}

bool TableStore::collection_exists(const coll_t& cid)
{
  return parts().collections.find(cid) != nullptr;
}

int TableStore::collection_empty(CollectionHandle& c, bool* empty)
{
  return parts().listing.is_empty(of(c), empty);
}

int TableStore::collection_bits(CollectionHandle& c)
{
  std::shared_lock l{of(c).lock};
  return of(c).node.bits;
}

int TableStore::collection_list(CollectionHandle& c, const ghobject_t& start,
                                const ghobject_t& end, int max, std::vector<ghobject_t>* ls,
                                ghobject_t* next)
{
  return parts().listing.list(of(c), start, end, max, ls, next);
}

// ---- objects

bool TableStore::exists(CollectionHandle& c, const ghobject_t& oid)
{
  return parts().objects.exists(of(c), oid);
}

int TableStore::stat(CollectionHandle& c, const ghobject_t& oid, struct stat* st, bool)
{
  return parts().objects.stat(of(c), oid, st);
}

int TableStore::read(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t len,
                     bufferlist& bl, uint32_t op_flags)
{
  return parts().objects.read(of(c), oid, offset, len, bl, op_flags);
}

int TableStore::readv(CollectionHandle& c, const ghobject_t& oid, interval_set<uint64_t>& m,
                      bufferlist& bl, uint32_t op_flags)
{
  return parts().objects.readv(of(c), oid, m, bl, op_flags);
}

int TableStore::fiemap(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t len,
                       std::map<uint64_t, uint64_t>& destmap)
{
  return parts().objects.fiemap(of(c), oid, offset, len, destmap);
}

int TableStore::fiemap(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t len,
                       bufferlist& bl)
{
  std::map<uint64_t, uint64_t> map;
  int r = fiemap(c, oid, offset, len, map);
  if (r >= 0)
    ceph::encode(map, bl);
  return r;
}

int TableStore::getattr(CollectionHandle& c, const ghobject_t& oid, const char* name,
                        bufferptr& value)
{
  return parts().objects.get_attr(of(c), oid, name, value);
}

int TableStore::getattrs(CollectionHandle& c, const ghobject_t& oid,
                         std::map<std::string, bufferptr, std::less<>>& aset)
{
  return parts().objects.get_attrs(of(c), oid, aset);
}

int TableStore::dump_onode(CollectionHandle& c, const ghobject_t& oid,
                           const std::string& section_name, ceph::Formatter* f)
{
  return parts().objects.dump(of(c), oid, section_name, f);
}

// ---- omap

int TableStore::omap_get(CollectionHandle& c, const ghobject_t& oid, bufferlist* header,
                         std::map<std::string, bufferlist>* out)
{
  return parts().omap.get(of(c), oid, header, out);
}

int TableStore::omap_get_header(CollectionHandle& c, const ghobject_t& oid, bufferlist* header,
                                bool)
{
  return parts().omap.get_header(of(c), oid, header);
}

int TableStore::omap_get_keys(CollectionHandle& c, const ghobject_t& oid,
                              std::set<std::string>* keys)
{
  return parts().omap.get_keys(of(c), oid, keys);
}

int TableStore::omap_get_values(CollectionHandle& c, const ghobject_t& oid,
                                const std::set<std::string>& keys,
                                std::map<std::string, bufferlist>* out)
{
  return parts().omap.get_values(of(c), oid, keys, out);
}

int TableStore::omap_check_keys(CollectionHandle& c, const ghobject_t& oid,
                                const std::set<std::string>& keys, std::set<std::string>* out)
{
  return parts().omap.check_keys(of(c), oid, keys, out);
}

int TableStore::omap_iterate(
    CollectionHandle& c, const ghobject_t& oid, omap_iter_seek_t start_from,
    std::function<omap_iter_ret_t(std::string_view, std::string_view)> visitor)
{
  return parts().omap.iterate(of(c), oid, start_from, visitor);
}

// ---- changes

int TableStore::queue_transactions(CollectionHandle& c, std::vector<Transaction>& tls,
                                   TrackedOpRef, ThreadPool::TPHandle* handle)
{
  parts().txns.queue(of(c), tls, handle);
  return 0;
}
