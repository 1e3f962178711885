// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/mounted_store.h"

#include <algorithm>

#include "common/debug.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore "

namespace tablestore {

namespace {

/// Logs an error; what ObjectStore returns of it.
int failed(CephContext* cct, const Status& status)
{
  derr << status.what() << dendl;
  return -status.code();
}

/// What data does not use of its share serves the onodes until it does.
uint64_t onode_cache_bytes(const StoreOptions& options, uint64_t data_bytes_in_use)
{
  const uint64_t data_bytes = options.data_cache_bytes();
  return options.onode_cache_bytes() + data_bytes - std::min(data_bytes, data_bytes_in_use);
}

unsigned read_threads(Threads& threads)
{
  return threads.run_by_themselves() ? ObjectData::read_threads_default : 0;
}

}  // namespace

// ---- mount

MountedStore::Foundation::Foundation(StoreHome& home, std::shared_ptr<Disk> disk)
  : disk(std::move(disk)),
    throttle(home.cct, home.options),
    callbacks(home.cct, home.surroundings->threads(), home.logger, throttle)
{
}

int MountedStore::open(StoreHome& home, const uuid_d& fsid, ErrorInjection& injected,
                       bool read_only, std::unique_ptr<MountedStore>* out)
{
  std::unique_ptr<Foundation> foundation;
  Found found;
  int r = open_engine(home, fsid, &foundation);
  if (r == 0)
    r = find(home, *foundation->engine, read_only, &found);
  if (r < 0)
    return r;
  std::unique_ptr<MountedStore> store(
      new MountedStore(home, std::move(foundation), found, injected));
  if (r = store->load(); r < 0)
    return r;
  store->start();
  *out = std::move(store);
  return 0;
}

int MountedStore::open_engine(StoreHome& home, const uuid_d& fsid,
                              std::unique_ptr<Foundation>* out)
{
  auto disk = home.surroundings->open_disk();
  if (!disk.ok())
    return failed(home.cct, disk.status());
  auto foundation = std::make_unique<Foundation>(home, disk.take());
  EngineOptions options = home.engine_options(fsid);
  options.group_durable = [callbacks = &foundation->callbacks] { callbacks->group_durable(); };
  foundation->reporter = options.reporter;
  auto engine = Engine::open(*foundation->disk, std::move(options));
  if (!engine.ok())
    return failed(home.cct, engine.status());
  foundation->engine = engine.take();
  *out = std::move(foundation);
  return 0;
}

int MountedStore::find(StoreHome& home, Engine& engine, bool read_only, Found* found)
{
  CephContext* const cct = home.cct;
  const auto saved = StoreMeta::load(engine);
  if (!saved.ok())
    return failed(cct, saved.status());
  StoreMeta meta = *saved;
  meta.inline_bound = std::max(meta.inline_bound, home.options.inline_max_bytes);
  if (!read_only && (meta != *saved || meta.inline_bound == 0))
    meta.save(engine);
  found->limits = {.read_only = read_only, .inline_bound_bytes = meta.inline_bound};
  const auto nid_max = NidAllocator::load(engine);
  if (!nid_max.ok())
    return failed(cct, nid_max.status());
  found->nid_max = *nid_max;
  found->has_fast_commits = home.devices.fast_commits() > 0;
  if (found->has_fast_commits)
    derr << fast_commit_warning(home.path) << dendl;
  return 0;
}

MountedStore::MountedStore(StoreHome& home, std::unique_ptr<Foundation> built, const Found& found,
                           ErrorInjection& injected)
  : home(home),
    cct(home.cct),
    foundation(std::move(built)),
    engine(*foundation->engine),
    data_cache(home.options.data_cache_bytes()),
    onodes(onode_cache_bytes(home.options, 0)),
    reference_maps(cct, engine),
    data(cct, engine, reference_maps, data_cache, home.options.inline_max_bytes,
         read_threads(home.surroundings->threads())),
    nids(engine, home.surroundings->threads(), found.nid_max),
    gate(engine, home.options.reserve_bytes(engine.space().total_bytes),
         home.surroundings->threads().run_by_themselves()),
    collections(cct, engine, home.surroundings->threads()),
    listing(cct, engine, home.logger),
    objects({cct, engine, onodes, data, injected, home.options, home.logger}),
    omap(cct, engine, objects, home.logger),
    txns({cct, engine, collections, objects, onodes, data, reference_maps, nids, pools, injected,
          home.logger},
         gate, foundation->throttle, foundation->callbacks, *home.surroundings, home.options,
         foundation->reporter.fatal, found.limits),
    statistics({engine, onodes, data_cache, pools, gate, home.logger, home.path,
                found.has_fast_commits})
{
}

int MountedStore::load()
{
  if (Status s = pools.load(engine); !s.ok())
    return failed(cct, s);
  if (Status s = collections.load(); !s.ok())
    return failed(cct, s);
  dout(10) << __func__ << " " << collections.all().size() << " collections" << dendl;
  return 0;
}

void MountedStore::start()
{
  foundation->callbacks.start();
  ticker.emplace(home.surroundings->threads(), [this] { tick(); });
  admin.emplace(cct, engine, collections, objects, statistics);
}

// ---- umount

void MountedStore::close()
{
  txns.drain();
  foundation->callbacks.stop();
  ticker.reset();
  admin.reset();
  txns.abandon_swallowed();
  if (Status s = engine.close(); !s.ok())
    failed(cct, s);
}

// ---- while it is mounted

void MountedStore::tick()
{
  data_cache.resize(home.options.data_cache_bytes());
  onodes.resize(onode_cache_bytes(home.options, data_cache.bytes()));
  engine.resize_table_cache(home.options.table_cache_bytes());
  reference_maps.trim();
  statistics.refresh_counters();
}

int MountedStore::drop_caches()
{
  onodes.clear();
  reference_maps.trim();
  data_cache.clear();
  return -engine.drop_caches().code();
}

int MountedStore::check(Fsck::Options options)
{
  return Fsck(cct, engine, data, collections.all(), options).run();
}

}  // namespace tablestore
