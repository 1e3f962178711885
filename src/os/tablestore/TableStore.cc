// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/TableStore.h"

#include <algorithm>

#include "common/Thread.h"
#include "common/debug.h"
#include "common/errno.h"
#include "include/scope_guard.h"
#include "os/tablestore/operate/admin.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/object/nid_allocator.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/space/pool_totals.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/space/space_gate.h"
#include "os/tablestore/stepping.h"
#include "os/tablestore/home/store_meta.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

using namespace tablestore;

namespace {

std::string store_uuid_of(const uuid_d& fsid)
{
  return std::string(fsid.bytes(), 16);
}

}  // namespace

TableStore::TableStore(CephContext* cct, const std::string& path, StoreSeams seams)
  : ObjectStore(cct, path),
    seams(std::move(seams)),
    options(cct),
    devices(path),
    dir(cct, path),
    logger(make_perf_counters(cct)),
    throttle_bytes(cct, "tablestore_throttle_bytes", options.throttle_bytes, false),
    throttle_ops(cct, "tablestore_throttle_ops", options.throttle_ops, false),
    finisher(cct, "tablestore", "fn_tablestore")
{
  options.on_change = [this] {
    throttle_bytes.reset_max(options.throttle_bytes);
    throttle_ops.reset_max(options.throttle_ops);
  };
}

TableStore::~TableStore()
{
  ceph_assert(!mounted || seams.stepped);
  remove_perf_counters(cct, logger);
}

bool TableStore::test_mount_in_use()
{
  return StoreDir::in_use(cct, path);
}

Reporter TableStore::make_reporter()
{
  Reporter reporter;
  reporter.log = [this](Reporter::Level level, const std::string& line) {
    switch (level) {
    case Reporter::Level::error: derr << line << dendl; break;
    case Reporter::Level::warning: dout(0) << line << dendl; break;
    case Reporter::Level::info: dout(1) << line << dendl; break;
    case Reporter::Level::debug: dout(10) << line << dendl; break;
    }
  };
  reporter.fatal = [this](const std::string& line) {
    derr << line << dendl;
    ceph_abort_msg(line);
  };
  return reporter;
}

EngineOptions TableStore::engine_options()
{
  EngineOptions engine_options = options.engine_options();
  engine_options.reporter = make_reporter();
  engine_options.group_durable = [this] { group_durable(); };
  if (seams.stepped)
    engine_options.stepped = [] {};
  if (seams.engine_options)
    seams.engine_options(engine_options);
  return engine_options;
}

/// For what waits for the commit lane; empty where that has a thread.
std::function<void()> TableStore::lane_step()
{
  if (!seams.stepped)
    return {};
  return [this] { EngineStepper(*engine).commit(); };
}

/// OpSequencer's.
std::function<bool()> TableStore::hasten()
{
  if (seams.stepped)
    return [step = lane_step()] { step(); return true; };
  return [this] { engine->hurry(); return false; };
}

int TableStore::open_disk(std::shared_ptr<Disk>* out)
{
  if (seams.disk) {
    *out = seams.disk;
    return 0;
  }
  FileDiskOptions disk_options;
  disk_options.io_uring = options.io_uring;
  disk_options.log = [this](const std::string& line) { dout(0) << line << dendl; };
  auto opened = open_file_disk(path, disk_options);
  if (!opened.ok()) {
    derr << __func__ << " " << opened.status().what() << dendl;
    return -opened.status().code();
  }
  *out = opened.take();
  return 0;
}

// ---- mkfs

int TableStore::mkfs()
{
  dout(1) << __func__ << dendl;
  ceph_assert(!mounted);
  options.load();
  std::string type;
  if (read_meta("type", &type) > 0 || !type.empty()) {
    if (type != get_type()) {
      derr << __func__ << " this directory holds a store of type " << type
           << "; give another one, or empty it first" << dendl;
      return -EINVAL;
    }
  }
  int r = dir.open(true);
  if (r < 0)
    return r;
  auto close_dir = make_scope_guard([this] { dir.close(); });

  uuid_d old_fsid;
  r = dir.read_fsid(&old_fsid);
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

  r = format_engine();
  if (r < 0)
    return r;
  // Now, after it has flushed files.
  if (devices.fast_commits() > 0) {
    derr << __func__ << " " << fast_commit_warning(path) << dendl;
    return -EOPNOTSUPP;
  }
  r = write_meta("type", get_type());
  if (r < 0) {
    derr << __func__ << " cannot write " << path << "/type: " << cpp_strerror(r) << dendl;
    return r;
  }
  // Last: a directory with an fsid is a complete store.
  r = dir.write_fsid(fsid);
  dout(1) << __func__ << " fsid " << fsid << " = " << r << dendl;
  return r;
}

int TableStore::format_engine()
{
  std::shared_ptr<Disk> new_disk;
  if (int r = open_disk(&new_disk); r < 0)
    return r;

  // A label without an fsid file: an mkfs that was interrupted between the two.
  EngineOptions engine_options = this->engine_options();
  if (new_disk->exists("label").ok() && *new_disk->exists("label")) {
    auto engine_there = Engine::open(*new_disk, engine_options);
    if (!engine_there.ok()) {
      derr << __func__ << " a damaged store is here: " << engine_there.status().what() << dendl;
      return -engine_there.status().code();
    }
    const std::string uuid = (*engine_there)->store_uuid();
    if (fsid.is_zero())
      memcpy(const_cast<char*>(fsid.bytes()), uuid.data(), 16);
    if (store_uuid_of(fsid) != uuid) {
      derr << __func__ << " another store is here; give another directory, or empty it first"
           << dendl;
      return -EINVAL;
    }
    return 0;
  }
  if (fsid.is_zero())
    fsid.generate_random();
  engine_options.store_uuid = store_uuid_of(fsid);
  if (Status s = Engine::format(*new_disk, engine_options); !s.ok()) {
    derr << __func__ << " " << s.what() << dendl;
    return -s.code();
  }
  return 0;
}

// ---- mount

int TableStore::mount()
{
  dout(1) << __func__ << dendl;
  return open_all(false);
}

int TableStore::mount_readonly()
{
  dout(1) << __func__ << dendl;
  return open_all(true);
}

int TableStore::open_all(bool for_reading)
{
  if (mounted) {
    derr << __func__ << " is mounted already" << dendl;
    return -EBUSY;
  }
  options.load();
  read_only = for_reading;
  int r = dir.open(false);
  if (r == 0)
    r = dir.read_fsid(&fsid);
  if (r == -ENOENT && dir.is_open())
    derr << __func__ << " the fsid file is empty: mkfs did not complete; run it again" << dendl;
  if (r == 0)
    r = open_engine();
  if (r == 0)
    r = load_meta(for_reading);
  if (r == 0)
    r = open_above_engine();
  if (r == 0)
    r = load_collections();
  if (r < 0) {
    close_all();
    return r;
  }
  has_fast_commits = devices.fast_commits() > 0;
  if (has_fast_commits)
    derr << __func__ << " " << fast_commit_warning(path) << dendl;
  if (!seams.stepped) {
    finisher.start();
    tick_stop = false;
    ticker = make_named_thread("ts_tick", [this] { tick_until_stopped(); });
  }
  admin = std::make_unique<AdminCommands>(*this);
  mounted = true;
  return 0;
}

int TableStore::open_engine()
{
  if (int r = open_disk(&disk); r < 0)
    return r;
  EngineOptions engine_options = this->engine_options();
  engine_options.store_uuid = store_uuid_of(fsid);
  auto started = Engine::open(*disk, engine_options);
  if (!started.ok()) {
    derr << __func__ << " " << started.status().what() << dendl;
    return -started.status().code();
  }
  engine = started.take();
  return 0;
}

int TableStore::load_meta(bool for_reading)
{
  auto found = StoreMeta::load(*engine);
  if (!found.ok()) {
    derr << __func__ << " " << found.status().what() << dendl;
    return -found.status().code();
  }
  StoreMeta meta = *found;
  meta.inline_bound = std::max(meta.inline_bound, options.inline_max_bytes);
  inline_bound_bytes = meta.inline_bound;
  if (!for_reading && (meta != *found || meta.inline_bound == 0))
    meta.save(*engine);
  return 0;
}

int TableStore::open_above_engine()
{
  data_cache = std::make_unique<DataCache>(options.data_cache_bytes());
  onodes = std::make_unique<OnodeCache>(options.onode_cache_bytes() + options.data_cache_bytes());
  reference_maps = std::make_unique<ReferenceMaps>(cct, *engine);
  data = std::make_unique<ObjectData>(cct, *engine, *reference_maps, *data_cache,
                                      options.inline_max_bytes,
                                      seams.stepped ? 0 : ObjectData::read_threads_default);
  auto nid_max = NidAllocator::load(*engine);
  if (!nid_max.ok()) {
    derr << __func__ << " " << nid_max.status().what() << dendl;
    return -nid_max.status().code();
  }
  nids = std::make_unique<NidAllocator>(*engine, *nid_max, lane_step());
  pools = std::make_unique<PoolTotals>();
  if (Status s = pools->load(*engine); !s.ok()) {
    derr << __func__ << " " << s.what() << dendl;
    return -s.code();
  }
  space = std::make_unique<SpaceGate>(*engine,
                                      options.reserve_bytes(engine->space().total_bytes),
                                      !seams.stepped);
  return 0;
}

int TableStore::load_collections()
{
  std::unique_lock l{coll_lock};
  const auto [first, last] = collections_range();
  auto it = engine->iterate(Family::super, first, last);
  for (it->seek(first); it->valid(); it->next()) {
    coll_t cid;
    bufferlist bl;
    bl.append(it->value());
    try {
      if (!decode_collection_key(it->key(), &cid))
        throw ceph::buffer::malformed_input("not the name of a collection");
      auto c = ceph::make_ref<Collection>(cct, cid, hasten());
      auto p = bl.cbegin();
      c->node.decode(p);
      coll_map[cid] = c;
    } catch (const ceph::buffer::error& e) {
      derr << __func__ << " a row of a collection is damaged: " << e.what() << dendl;
      return -EIO;
    }
  }
  if (!it->status().ok()) {
    derr << __func__ << " " << it->status().what() << dendl;
    return -it->status().code();
  }
  dout(10) << __func__ << " " << coll_map.size() << " collections" << dendl;
  return 0;
}

// ---- umount

int TableStore::umount()
{
  dout(1) << __func__ << dendl;
  ceph_assert(mounted);
  // Callbacks may queue transactions, which have callbacks.
  do {
    engine->drain();
    finisher.wait_for_empty();
  } while (throttle_ops.get_current() > 0);
  if (!seams.stepped) {
    finisher.stop();
    {
      std::lock_guard l{tick_mutex};
      tick_stop = true;
      tick_cond.notify_all();
    }
    ticker.join();
  }
  close_all();
  mounted = false;
  return 0;
}

void TableStore::close_all()
{
  admin.reset();
  {
    std::unique_lock l{coll_lock};
    coll_map.clear();
    new_coll_map.clear();
  }
  for (auto& txc : blackholed)
    engine->abandon(*txc);
  blackholed.clear();
  space.reset();
  pools.reset();
  data.reset();
  reference_maps.reset();
  onodes.reset();
  data_cache.reset();
  // A mount that failed commits nothing on top of what it could not open.
  if (mounted) {
    if (Status s = engine->close(); !s.ok())
      derr << __func__ << " " << s.what() << dendl;
  }
  nids.reset();
  engine.reset();
  disk.reset();
  dir.close();
}

// What data does not use of its share serves the onodes until it does.
void TableStore::tick()
{
  const uint64_t data_bytes = options.data_cache_bytes();
  data_cache->resize(data_bytes);
  onodes->resize(options.onode_cache_bytes() + data_bytes -
                 std::min(data_bytes, data_cache->bytes()));
  engine->resize_table_cache(options.table_cache_bytes());
  reference_maps->trim();
  refresh_perf_counters();
}

void TableStore::tick_until_stopped()
{
  std::unique_lock l{tick_mutex};
  while (!tick_stop) {
    l.unlock();
    tick();
    l.lock();
    tick_cond.wait_for(l, std::chrono::seconds(1), [this] { return tick_stop; });
  }
}

void TableStore::collect_metadata(std::map<std::string, std::string>* pm)
{
  devices.collect_metadata(pm);
  (*pm)["tablestore_min_alloc_size"] = stringify(get_min_alloc_size());
  (*pm)["tablestore_inline_max"] = stringify(options.inline_max_bytes);
}

uint64_t TableStore::estimate_objects_overhead(uint64_t num_objects)
{
  return num_objects * 300;
}
