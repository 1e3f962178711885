// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/mounted_store.h"

#include <algorithm>

#include "common/debug.h"
#include "include/scope_guard.h"
#include "common/pretty_binary.h"
#include "include/stringify.h"
#include "os/tablestore/check/derived_rows.h"
#include "os/tablestore/check/newer_rows.h"
#include "os/tablestore/check/table_check.h"
#include "os/tablestore/engine/io/frozen_disk.h"
#include "os/tablestore/home/copied_row.h"
#include "os/tablestore/rows/keys.h"

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

uint64_t first_bytes(const StoreHome& home, double share)
{
  return uint64_t(share * double(home.options.first_cache_bytes()));
}

unsigned read_threads(Threads& threads)
{
  return threads.run_by_themselves() ? ObjectData::read_threads_default : 0;
}

unsigned fsck_threads(Threads& threads)
{
  return threads.run_by_themselves() ? DeepReads::threads_default : 0;
}

unsigned rereads_before_loss(Threads& threads)
{
  return threads.run_by_themselves() ? TxnQueue::rereads_before_loss_default : 0;
}

}  // namespace

// ---- mount

MountedStore::Foundation::Foundation(StoreHome& home, std::shared_ptr<Disk> disk)
  : disk(std::move(disk)),
    troubles(std::make_shared<Troubles>()),
    spurious_reads(home.cct, home.options, home.logger, *troubles,
                   home.surroundings->read_retry_time()),
    slow_ops(home.cct, home.options, home.logger),
    throttle(home.cct, home.options),
    callbacks(home.cct, home.surroundings->threads(), home.logger, throttle, slow_ops)
{
}

int MountedStore::open(StoreHome& home, const uuid_d& fsid, ErrorInjection& injected,
                       OpenFor purpose, std::unique_ptr<MountedStore>* out)
{
  std::unique_ptr<Foundation> foundation;
  Found found;
  int r = open_engine(home, fsid, purpose, &foundation);
  if (r == 0)
    r = find(home, *foundation, purpose, &found);
  if (r < 0)
    return r;
  std::unique_ptr<MountedStore> store(
      new MountedStore(home, std::move(foundation), found, injected));
  if (r = store->load(purpose, found); r < 0)
    return r;
  store->start();
  *out = std::move(store);
  return 0;
}

int MountedStore::open_engine(StoreHome& home, const uuid_d& fsid, OpenFor purpose,
                              std::unique_ptr<Foundation>* out)
{
  auto disk = home.surroundings->open_disk(is_read_only(purpose));
  if (!disk.ok())
    return failed(home.cct, disk.status());
  auto foundation = std::make_unique<Foundation>(
      home, is_read_only(purpose) ? freeze(disk.take()) : disk.take());
  EngineOptions options = home.engine_options(fsid);
  // Where no time passes, nothing may depend on the memory of the process.
  if (home.surroundings->threads().run_by_themselves())
    foundation->table_cache = MemoryBudget::make_table_cache(home.cct, options.table_cache_bytes);
  options.read_only = is_read_only(purpose);
  options.for_repair = purpose == OpenFor::repair;
  options.table_cache = foundation->table_cache;
  options.troubles = foundation->troubles;
  options.read_retries = foundation->spurious_reads.of_engine();
  options.group_durable = [callbacks = &foundation->callbacks] { callbacks->group_durable(); };
  foundation->reporter = options.reporter;
  auto engine = Engine::open(*foundation->disk, std::move(options));
  if (!engine.ok())
    return failed(home.cct, engine.status());
  foundation->engine = engine.take();
  *out = std::move(foundation);
  return 0;
}

int MountedStore::find(StoreHome& home, Foundation& foundation, OpenFor purpose, Found* found)
{
  CephContext* const cct = home.cct;
  Engine& engine = *foundation.engine;
  const auto saved = StoreMeta::load(engine);
  if (!saved.ok())
    return failed(cct, saved.status());
  const auto nids = NidAllocator::load(engine, saved->has_copies);
  if (!nids.ok())
    return failed(cct, nids.status());
  DerivedRows derived;
  if (!saved->meta || !nids->bound) {
    // Of a store without objects, which has no such rows yet, this is quick.
    const auto found_out = derive_rows(engine);
    if (found_out.ok())
      derived = *found_out;
    else if (purpose == OpenFor::use || purpose == OpenFor::reading)
      return failed(cct, found_out.status());
  }
  for (const std::string& damage : {saved->damage, nids->damage}) {
    if (!damage.empty())
      found->damaged_rows.push_back(damage);
  }
  StoreMeta meta = saved->meta.value_or(StoreMeta());
  meta.inline_bound =
      std::max({meta.inline_bound, derived.inline_bytes, home.options.inline_max_bytes});
  found->has_copies = saved->has_copies;
  found->gets_copies = purpose == OpenFor::use && !saved->has_copies;
  const bool is_new = !saved->meta && saved->damage.empty();
  if (found->gets_copies && !is_new) {   // what an older program has left of them
    const auto [first, last] = all_copies_range();
    found->mended->erase_range(Family::object, first, last);
  }
  if (found->gets_copies)
    meta.version = StoreMeta::version_with_copies;
  else if (!found->has_copies)
    meta.version = std::min(meta.version, StoreMeta::version_with_copies - 1);
  if (!saved->damage.empty() || (purpose == OpenFor::use && saved->meta != meta))
    meta.put(*found->mended);
  found->limits = {.read_only = is_read_only(purpose), .inline_bound_bytes = meta.inline_bound};
  found->nid_max = nids->bound              ? *nids->bound
                   : derived.nid_max > 0 ? NidAllocator::bound_above(derived.nid_max)
                                         : 0;
  if (!nids->bound && nids->damage.empty() && derived.nid_max > 0)
    found->damaged_rows.push_back("the row nid_max is missing, and was counted anew");
  const bool is_to_be_put = !nids->bound || found->gets_copies || !nids->damage.empty();
  if (is_to_be_put && found->nid_max > 0)
    NidAllocator::put(*found->mended, found->nid_max);
  if (home.devices.fast_commits() > 0) {
    const std::string warning = fast_commit_warning(home.path);
    derr << warning << dendl;
    foundation.troubles->raise("FAST_COMMIT", warning);
  }
  return 0;
}

MountedStore::MountedStore(StoreHome& home, std::unique_ptr<Foundation> built, const Found& found,
                           ErrorInjection& injected)
  : home(home),
    cct(home.cct),
    foundation(std::move(built)),
    engine(*foundation->engine),
    data_cache(first_bytes(home, CacheShares::data)),
    onodes(first_bytes(home, CacheShares::onodes)),
    damaged(*foundation->troubles),
    lost_names(cct, engine, *foundation->troubles),
    reference_maps(cct, engine),
    data({cct, engine, reference_maps, data_cache, foundation->spurious_reads,
          foundation->slow_ops, home.logger},
         home.options.inline_max_bytes,
         read_threads(home.surroundings->threads())),
    nids(engine, home.surroundings->threads(), found.nid_max),
    gate(engine, home.options.reserve_bytes(engine.space().total_bytes),
         home.surroundings->threads().run_by_themselves()),
    collections(cct, engine, home.surroundings->threads()),
    listing(cct, engine, lost_names, home.logger),
    objects({cct, engine, onodes, data, injected, damaged, erased, lost_names, home.options,
             home.logger, foundation->slow_ops}),
    omap(cct, engine, objects, home.logger),
    txns({cct, engine, collections, objects, onodes, data, reference_maps, nids, pools, injected,
          damaged, erased, lost_names, home.logger,
          rereads_before_loss(home.surroundings->threads())},
         gate, foundation->throttle, foundation->callbacks, *home.surroundings, home.options,
         foundation->reporter.fatal, found.limits),
    compaction({cct, engine, collections, objects, data, txns, home.surroundings->threads()}),
    memory({cct, home.options, engine, onodes, data_cache, foundation->table_cache}),
    statistics({engine, onodes, data_cache, reference_maps, pools, gate, home.logger,
                *foundation->troubles, foundation->slow_ops, home.options})
{
}

int MountedStore::load(OpenFor purpose, Found& found)
{
  if (Status s = pools.load(engine); !s.ok())
    return failed(cct, s);
  if (pools.is_damaged())
    found.damaged_rows.push_back("statistics of pools are too low until they are counted anew");
  // Nothing can be added to such a row. Repair needs to see it.
  if (purpose == OpenFor::use)
    pools.discard_damaged(engine);
  if (int r = load_collections(purpose, found); r < 0)
    return r;
  if (Status s = lost_names.load(found.has_copies, found.mended.get()); !s.ok())
    return failed(cct, s);
  const auto& lost = lost_names.damage();
  found.damaged_rows.insert(found.damaged_rows.end(), lost.begin(), lost.end());
  dout(10) << __func__ << " " << collections.all().size() << " collections" << dendl;
  mended = std::move(found.mended);
  if (purpose == OpenFor::use)
    write_mended();
  if (found.damaged_rows.empty())
    return 0;
  std::string warning = "rows of the store are damaged: ";
  for (const std::string& row : found.damaged_rows)
    warning += row + "; ";
  warning += "stop the OSD and run ceph-objectstore-tool --op repair, and look at the disk";
  derr << warning << dendl;
  foundation->troubles->raise("ROWS_DAMAGED", warning);
  return 0;
}

int MountedStore::load_collections(OpenFor purpose, Found& found)
{
  if (Status s = collections.load(found.has_copies, &collection_rows); !s.ok())
    return failed(cct, s);
  mend_collections(found);
  bool all_known = collection_rows.is_complete;
  if (!all_known)
    found.damaged_rows.push_back("those of collections, of which some may be missing");
  for (const coll_t& cid : collection_rows.lost) {
    found.damaged_rows.push_back("that of the collection " + stringify(cid));
    all_known &= cid.is_meta();
  }
  all_collections_known = all_known;
  // An OSD would take what is not listed for what is not there.
  if (all_known || purpose != OpenFor::use)
    return 0;
  for (const std::string& row : found.damaged_rows)
    derr << "rows of the store are damaged: " << row << dendl;
  derr << "which objects are in a collection is not known without its row: run "
       << "ceph-objectstore-tool --op repair; for reading, the store mounts without it" << dendl;
  return -EIO;
}

void MountedStore::mend_collections(Found& found)
{
  for (const CollectionRows::Damaged& row : collection_rows.damaged) {
    found.damaged_rows.push_back(row.damage);
    if (!row.node)
      CopiedRow::erase(*found.mended, collection_key(row.cid));
  }
  for (const std::string& key : collection_rows.bad_keys)
    found.damaged_rows.push_back("a row that names no collection: " + pretty_binary_string(key));
  for (const auto& c : collections.all()) {
    const auto is_it = [&c](const CollectionRows::Damaged& row) { return row.cid == c->cid; };
    if (found.gets_copies || std::ranges::any_of(collection_rows.damaged, is_it) ||
        std::ranges::count(collection_rows.lost, c->cid) > 0)   // only meta is there then
      put_row(*found.mended, c->cid, c->node);
  }
}

void MountedStore::write_mended()
{
  const auto txn = std::exchange(mended, nullptr);
  if (txn->row_bytes() == 0)
    return;
  txn->barrier = true;
  engine.submit(txn);
  if (!engine.wait_applied())
    derr << __func__ << " rows that were damaged are not written anew yet, because nothing gets "
         << "on: is the file system full?" << dendl;
}

void MountedStore::start()
{
  foundation->callbacks.start();
  ticker.emplace(home.surroundings->threads(), [this] { tick(); });
  admin.emplace(AdminCommands::Parts{cct, engine, collections, listing, objects, lost_names,
                                     compaction, statistics});
}

bool MountedStore::knows_all_collections() const { return all_collections_known; }

// ---- umount

int MountedStore::close()
{
  int r = 0;
  admin.reset();   // nobody asks for a compaction any more
  compaction.stop();
  if (!txns.drain()) {
    derr << __func__ << " transactions that nobody was told of are given up, because nothing gets "
         << "on: is the file system full?" << dendl;
    r = -ETIMEDOUT;
  }
  foundation->callbacks.stop();
  ticker.reset();
  txns.abandon_swallowed();
  if (Status s = engine.close(); !s.ok())
    failed(cct, s);   // nothing is lost by it
  return r;
}

// ---- while it is mounted

void MountedStore::tick()
{
  memory.tick();
  reference_maps.trim();
  foundation->spurious_reads.tell();
  statistics.tick();
}

int MountedStore::drop_caches()
{
  onodes.clear();
  reference_maps.trim();
  data_cache.clear();
  return -engine.drop_caches().code();
}

int MountedStore::check(const CheckOptions& options, CheckResult* result)
{
  CheckResult unasked;
  result = result ? result : &unasked;
  if (options.repair) {
    if (Status s = refuse_newer_rows(engine); !s.ok())
      return failed(cct, s);
  }
  auto tell_losses = make_scope_guard([&] {
    for (const char* name : {"OBJECTS_LOST", "TABLE_DAMAGED", "ROWS_DAMAGED", log_loss,
                             allocation_unknown}) {
      const auto all = foundation->troubles->all();
      if (const auto found = all.find(name); found != all.end())
        result->losses.emplace("TABLESTORE_" + found->first, found->second);
    }
  });
  // What a salvage drops of these is there once more.
  if (options.repair && mended)
    write_mended();
  TableCheck table(cct, engine, lost_names, options);
  const int lost = options.repair ? table.salvage() : options.deep ? table.find() : 0;
  if (lost < 0)
    return lost;
  result->errors = lost;
  constexpr int runs_max = 3;
  for (int run = 1;; ++run) {
    Fsck fsck(cct, engine, data, lost_names, collections.all(), collection_rows,
              fsck_threads(home.surroundings->threads()), options);
    const int r = fsck.run();
    const CheckResult of_run = fsck.result();
    result->objects = of_run.objects;
    result->repaired += of_run.repaired;
    // What is left is met again by the next run.
    result->errors = lost + result->repaired + (of_run.errors - of_run.repaired);
    result->memory_bytes = std::max(result->memory_bytes, of_run.memory_bytes);
    if (r < 0)
      return r;
    if (run == runs_max || !fsck.needs_another_run())
      return r + lost;
  }
}

}  // namespace tablestore
