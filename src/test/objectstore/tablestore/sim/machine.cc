// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Transactions and the life of a store; what judges it is in machine_checks.cc.
#include "test/objectstore/tablestore/sim/machine.h"

#include <algorithm>
#include <cstring>

#include <unistd.h>

#include "common/config_proxy.h"
#include "global/global_context.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/sim/machine_record.h"

namespace tablestore_sim {

using tablestore::EngineOptions;
using tablestore::Family;
using tablestore::Result;
using tablestore::Status;
using tablestore::Txn;

namespace {

std::string directory;
uint64_t provision_bytes = 0;
bool accepts_log_loss = false;

/// RocksDB makes one shard of so few bytes: in several, what is in which hangs on names that it
/// makes up.
constexpr uint64_t table_cache_bytes_max = 512 << 10;

/// Small, so that logs fill up, containers come and go, and a recovery is quick.
void set_engine_options(EngineOptions& o)
{
  o.log_bytes = 2 << 20;
  o.segment_bytes = 1 << 20;
  o.container_bytes = 4 << 20;
  o.capacity_bytes = 40 << 20;
  o.memtable_bytes = 64 << 20;
  o.table_cache_bytes = std::min(o.table_cache_bytes, table_cache_bytes_max);
  o.replay_bytes = 16 << 10;  // so that a recovery reads rows again
  o.delete_range_threshold = 4;
  o.group_bytes_max = 512 << 10;
  o.small_data_bytes = 64 << 10;
  o.capture_chunks_max = 1;  // so that others commit between the pieces of a checkpoint
  o.prepare_ahead_bytes = 1 << 20;
  o.stock_bytes = 4 << 20;
  o.quiet_steps = 2;
  o.provision_bytes = provision_bytes;
  o.reporter.fatal = [](const std::string& why) { throw Died{why}; };
}

uuid_d fsid_of_all()
{
  uuid_d fsid;
  fsid.parse("00000000-0000-4000-8000-000073696d73");
  return fsid;
}

}  // namespace

EngineOptions Machine::engine_options()
{
  EngineOptions o;
  o.table_cache_bytes = 64 << 10;
  set_engine_options(o);
  o.store_uuid = std::string(fsid_of_all().bytes(), 16);
  return o;
}

void set_directory(const std::string& path) { directory = path; }

void set_cache_bytes(uint64_t bytes)
{
  g_ceph_context->_conf.set_val_or_die("tablestore_cache_size", std::to_string(bytes));
  g_ceph_context->_conf.apply_changes(nullptr);
}

void take_back_failed_transactions(bool take_back)
{
  g_ceph_context->_conf.set_val_or_die("objectstore_debug_throw_on_failed_txc",
                                       take_back ? "true" : "false");
  g_ceph_context->_conf.apply_changes(nullptr);
}

void provision(uint64_t bytes) { provision_bytes = bytes; }

void accept_log_loss(bool accept) { accepts_log_loss = accept; }

// ---- callbacks

Machine::Callback::Callback(Machine& machine, RecordRef record, unsigned kind)
  : machine(machine), record(std::move(record)), kind(kind)
{
  machine.callbacks.insert(this);
}

Machine::Callback::~Callback() { machine.callbacks.erase(this); }

void Machine::Callback::finish(int) { machine.called(*record, kind); }

void Machine::run_callbacks()
{
  std::list<Context*> waiting;
  callback_queue.move_to(waiting);
  for (Context* context : waiting)
    context->complete(0);
}

void Machine::broken(const std::string& what)
{
  if (violation.empty())
    violation = what;
}

void Machine::called(Record& record, unsigned kind)
{
  if (++record.calls[kind] > 1 && kind != Callback::after)   // of which there can be several
    broken("a callback ran twice");
  if (kind != Callback::commit) {
    if (kind == Callback::after && record.calls[Callback::commit] == 0)
      broken("flush_commit is told of a transaction that is not durable");
    return;
  }
  const uint64_t lsn = record.txn ? record.txn->lsn() : 0;
  if (lsn <= acknowledged_lsn)
    broken("transaction " + std::to_string(lsn) + " is acknowledged after " +
           std::to_string(acknowledged_lsn));
  acknowledged_lsn = std::max(acknowledged_lsn, lsn);
}

// ---- life

Machine::Machine(DiskImage image, uint64_t seed, State floor, uint64_t floor_lsn)
  : sim_disk(std::make_shared<SimDisk>(std::move(image), capacity_bytes, seed)), random(seed)
{
  stepped_threads->step_compactions();
  become(std::move(floor), floor_lsn);
  make_store();
}

Machine::~Machine() { end(); }

void Machine::end()
{
  sim_disk->end_of_process();
  sim_disk->watch(nullptr);
  handles.clear();
  stepped_threads->forget_compactions();
  store.reset();
  run_callbacks();
  // What was never called: of transactions that the end of the process has swallowed.
  while (!callbacks.empty())
    delete *callbacks.begin();
}

/// What the store finds around it.
class Machine::Around : public tablestore::Surroundings {
 public:
  explicit Around(Machine& machine) : machine(machine) {}
  Result<std::shared_ptr<tablestore::Disk>> open_disk(bool) override
  {
    return std::shared_ptr<tablestore::Disk>(machine.sim_disk);
  }
  tablestore::Threads& threads() override { return machine.threads(); }
  void adjust(EngineOptions& o) override
  {
    set_engine_options(o);
    o.threads = machine.stepped_threads;
    o.accept_log_loss = accepts_log_loss;
  }
  std::chrono::nanoseconds read_retry_time() const override
  {
    return std::chrono::nanoseconds::max();
  }
  void transaction_begins(const std::shared_ptr<const Txn>& txn) override
  {
    if (machine.being_queued)
      machine.being_queued->txn = txn;
  }

 private:
  Machine& machine;
};

void Machine::make_store()
{
  stepped_threads->when_stalled([this] {
    if (sim_disk->no_spaces() == 0)
      throw Failure{"everybody waits, and nobody for space"};
    full = true;
    throw Died{"waits for space"};
  });
  store = std::make_unique<TableStore>(g_ceph_context, directory, std::make_shared<Around>(*this));
}

void Machine::become(State state, uint64_t lsn)
{
  submitted.clear();
  last_of.clear();
  latest_state = state;
  floor_state = std::move(state);
  floor_doubtful = known.doubtful;
  floor_at = acknowledged_lsn = lsn;
}

int Machine::mkfs()
{
  // Of the store before: with it, mkfs would find that all is done.
  ::unlink((directory + "/fsid").c_str());
  store->set_fsid(fsid_of_all());
  return store->mkfs();
}

int Machine::mount()
{
  const int r = store->mount();
  stepped_threads->let_compactions_wait(r == 0);
  return r;
}

int Machine::repair()
{
  // Damaged files, and those that reads fail of now, are written anew by compactions, for which it
  // waits. Else they are steps, so that the order of I/Os is always the same.
  const bool compacts = failing_reads || sim_disk->refused().reads > 0 ||
      !damaged_table_files(sim_disk->image()).empty();
  if (compacts)
    stepped_threads->begin_compactions();
  const int r = store->repair(true);
  if (compacts)
    stepped_threads->end_compactions();
  return r;
}

Status Machine::compact()
{
  full |= stepped_threads->flush_table().code() == ENOSPC;
  stepped_threads->begin_compactions();
  const Status s = engine().compact();
  stepped_threads->end_compactions();
  return s;
}

int Machine::umount()
{
  handles.clear();
  stepped_threads->let_compactions_wait(false);
  while (stepped_threads->step_compaction()) {
  }
  const int r = store->umount();
  run_callbacks();
  return r;
}

bool Machine::has_room()
{
  constexpr uint64_t containers = 2 * (4 << 20);
  const auto space = sim_disk->space();
  return space.ok() && space->available_bytes > containers;
}

bool Machine::meets_full_disk(const Status& status)
{
  full |= status.code() == ENOSPC;
  return full;
}

void Machine::flush_table_meanwhile()
{
  sim_disk->meanwhile([this] {
    if (random() % 40 == 0 && !full)   // the next one dies of others
      full = stepped_threads->flush_table().code() == ENOSPC;
    if (random() % 160 == 0 && !full)
      step_compaction();
  });
}

// ---- transactions

Machine::Handle& Machine::handle_of(const coll_t& cid)
{
  Handle& handle = handles[cid];
  if (!handle) {
    handle = store->open_collection(cid);
    store->set_collection_commit_queue(cid, &callback_queue);
  }
  return handle;
}

int Machine::queue(TransactionMaker& maker, const coll_t& through)
{
  for (const coll_t& cid : maker.made) {
    handles[cid] = store->create_new_collection(cid);
    store->set_collection_commit_queue(cid, &callback_queue);
  }
  auto record = std::make_shared<Record>();
  record->through = through;
  record->touched = maker.touched;
  record->change = maker.change;
  record->named = maker.txn.begin().objects;
  maker.txn.register_on_commit(new Callback(*this, record, Callback::commit));
  maker.txn.register_on_applied(new Callback(*this, record, Callback::applied));
  maker.txn.register_on_applied_sync(new Callback(*this, record, Callback::applied_sync));
  if (failing_reads || !known.changed.empty() || sim_disk->is_damaged()) {
    for (const auto& [oid, object] : record->change.objects)
      known.changed.insert(oid);
    record->doubtful.insert(maker.absent.begin(), maker.absent.end());
  }
  refused_before_last = sim_disk->refused().reads;
  last_doubtful = record->doubtful;
  last_removed.clear();
  for (const auto& [cid, bits] : record->change.collections)
    if (!bits)
      last_removed.emplace(cid, latest_state.collections.at(cid));
  Handle handle = handle_of(through);
  being_queued = record;
  try {
    store->queue_transaction(handle, std::move(maker.txn));
  } catch (int r) {   // it was taken back
    being_queued.reset();
    for (const coll_t& cid : maker.made)
      handles.erase(cid);
    return r;
  } catch (...) {   // it died: what it has in flight may refer to the transaction until the end
    // A removal of a collection may wait until it is applied, and is in the log by then.
    if (record->txn && record->txn->lsn() > 0) {
      latest_state.apply(record->change);
      submitted.push_back(record);
    }
    cut_short = std::move(being_queued);
    throw;
  }
  being_queued.reset();
  latest_state.apply(record->change);
  record->add_doubts(&known.doubtful);
  submitted.push_back(record);
  last_of[through] = record;
  for (const auto& [cid, bits] : record->change.collections) {
    if (!bits) {
      handles.erase(cid);
      last_of.erase(cid);
    }
  }
  return 0;
}

int Machine::transaction(const std::vector<OpOnObject>& ops, bool across)
{
  TransactionMaker maker(latest_state, (floor_at + 1) * 4096 + submitted.size());
  coll_t through = maker.collection_of(ops[0]);
  for (OpOnObject o : ops) {
    // Most transactions are of one collection.
    o.collection = random() % 8 ? ops[0].collection : o.collection;
    maker.run(o);
  }
  if (maker.empty())
    return 0;
  if (!maker.made.empty() && maker.touched.size() == 1)
    through = maker.made.front();
  if (across)
    through = std::next(latest_state.collections.begin(),
                        random() % latest_state.collections.size())->first;
  if (!latest_state.collections.count(through) && maker.made.empty())
    through = latest_state.collections.begin()->first;
  const int r = queue(maker, through);
  if (!violation.empty())
    throw Failure{violation};
  return r;
}

void Machine::make_first_collections()
{
  for (const auto& [cid, bits] : first_collections()) {
    TransactionMaker maker(latest_state, 0);
    maker.make_collection(cid, bits);
    if (int r = queue(maker, cid); r < 0)
      throw Failure{"a collection cannot be made: " + std::to_string(r)};
  }
}

void Machine::commit() { stepped_threads->step("commit"); }

void Machine::apply() { stepped_threads->step_all("apply"); }

void Machine::commit_all()
{
  for (const auto& record : submitted) {
    while (record->txn->lsn() == 0 || record->calls[Callback::commit] == 0) {
      commit();
      apply();
      run_callbacks();
    }
  }
  if (!violation.empty())
    throw Failure{violation};
}

void Machine::flush_commit(uint64_t which)
{
  const auto& collections = latest_state.collections;
  const coll_t cid = std::next(collections.begin(), which % collections.size())->first;
  const auto last = last_of.find(cid);
  RecordRef record;
  if (last != last_of.end()) {
    record = last->second;
  } else {   // what it waits for, if it does, is a transaction of the store's own
    record = std::make_shared<Record>();
    record->calls[Callback::commit] = 1;
  }
  auto* callback = new Callback(*this, record, Callback::after);
  if (!handle_of(cid)->flush_commit(callback))
    return;
  delete callback;
  run_callbacks();
  if (last != last_of.end() && record->calls[Callback::commit] == 0)
    throw Failure{"flush_commit waits for nothing, though a transaction is not durable"};
}

void Machine::add_strays(Random& chance)
{
  using namespace tablestore;
  auto txn = std::make_shared<Txn>();
  txn->barrier = true;
  const uint64_t nid = uint64_t(1) << 40 | chance() % 1000;
  if (chance() % 2)
    txn->put(Family::omap, omap_key(omap_prefix(1, nid), "stray"), "value");
  if (chance() % 2)
    txn->put(Family::data, inline_key(nid), "stray");
  if (chance() % 2)
    txn->put(Family::object, shard_key(nid, 0), "stray");
  if (chance() % 2) {
    const int64_t deltas[2] = {4096, int64_t(chance() % 9) - 4};
    txn->add(pool_stats_key(2), deltas);
  }
  if (chance() % 2 && engine().reserve(3 * block_bytes).ok()) {
    auto memory = std::make_shared<BlockMemory>(3 * block_bytes);
    // The same bytes in every run: what a torn write leaves of the log depends on them.
    std::memset(memory->data(), 0x5a, memory->size());
    const iovec iov{memory->data(), memory->size()};
    std::vector<uint32_t> checksums;
    engine().write(*txn, {&iov, 1}, memory, &checksums);
  }
  engine().submit(txn);
  engine().drain();
  run_callbacks();
  acknowledged_lsn = std::max(acknowledged_lsn, txn->lsn());
}

// ---- crashes

Snapshot Machine::snapshot()
{
  run_callbacks();
  return {sim_disk->image(), acknowledged_lsn, "quiet"};
}

Snapshot Machine::snapshot(const DiskImage& image, const char* io)
{
  run_callbacks();
  return {image, acknowledged_lsn, io};
}

}  // namespace tablestore_sim
