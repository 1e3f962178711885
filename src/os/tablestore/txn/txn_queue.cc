// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/txn/txn_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/debug.h"
#include "common/errno.h"
#include "include/stringify.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/object/erased_rows.h"
#include "os/tablestore/object/onode_cache.h"
#include "os/tablestore/object/reference_maps.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.txn "

namespace tablestore {

namespace {

/// A thread of the OSD that waits here is not stuck: while it does, its time is not counted, where
/// the OSD says whose time that is (it does for few of its transactions).
class TimeoutSuspended {
 public:
  explicit TimeoutSuspended(ThreadPool::TPHandle* handle) : handle(handle)
  {
    if (handle)
      handle->suspend_tp_timeout();
  }
  ~TimeoutSuspended()
  {
    if (handle)
      handle->reset_tp_timeout();
  }
  TimeoutSuspended(const TimeoutSuspended&) = delete;
  TimeoutSuspended& operator=(const TimeoutSuspended&) = delete;

 private:
  ThreadPool::TPHandle* const handle;
};

}  // namespace

TxnQueue::TxnQueue(const TxnParts& parts, SpaceGate& gate, TxnThrottle& throttle,
                   CommitCallbacks& callbacks, Surroundings& surroundings,
                   const StoreOptions& options, std::function<void(const std::string&)> fatal,
                   Limits limits)
  : parts(parts),
    cct(parts.cct),
    gate(gate),
    throttle(throttle),
    callbacks(callbacks),
    surroundings(surroundings),
    options(options),
    fatal(std::move(fatal)),
    limits(limits)
{
}

void TxnQueue::queue(Collection& c, std::vector<Transaction>& tls, ThreadPool::TPHandle* handle)
{
  std::list<Context*> on_applied, on_commit, on_applied_sync;
  Transaction::collect_contexts(tls, &on_applied, &on_commit, &on_applied_sync);
  TxnScan scan = scan_transactions(tls, limits.inline_bound_bytes);

  auto txc = std::make_shared<TxnContext>(&callbacks);
  surroundings.transaction_begins(txc);
  txc->started_at = ceph::mono_clock::now();
  txc->osr = c.osr;
  txc->sequencer = c.osr.get();
  txc->on_commit = std::move(on_commit);
  txc->throttled_ops = 1;
  txc->throttled_bytes = scan.bytes;

  int r = limits.read_only ? -EROFS : wait_for_space(*txc, scan, c.cid.is_meta(), handle);
  // After that: who waits for space is in nobody's way.
  wait_for_throttle(*txc, handle);
  // Whoever is called below before the commit might wait for it.
  bool commits_here = on_applied_sync.empty();
  if (r == 0)
    r = build_and_submit(c, txc, tls, scan, &commits_here);
  if (r < 0) {
    parts.engine.unreserve(std::exchange(txc->reserved_bytes, 0));
    throttle.put(txc->throttled_ops, txc->throttled_bytes);
    for (auto* contexts : {&on_applied, &txc->on_commit, &on_applied_sync}) {
      for (Context* context : *contexts)
        delete context;
      contexts->clear();
    }
    fail(r, "a transaction on " + stringify(c.cid) + " failed: " + cpp_strerror(r));
  }

  // Readable from here on.
  for (Context* context : on_applied_sync)
    context->complete(0);
  if (!on_applied.empty())
    callbacks.queue(c.osr->commit_queue, on_applied);
  parts.logger.inc(l_tablestore_txc);
  parts.logger.inc(l_tablestore_txc_ops, scan.ops);
  parts.logger.inc(l_tablestore_write_bytes, scan.written_bytes);
  parts.logger.tinc(l_tablestore_txc_submit_lat, ceph::mono_clock::now() - txc->started_at);
  if (commits_here) {
    TimeoutSuspended suspended(handle);
    parts.engine.commit_here();
  }
}

void TxnQueue::fail(int r, const std::string& what)
{
  derr << what << dendl;
  if (!options.throw_on_failed_txc)
    fatal(what);
  throw r;
}

bool TxnQueue::drain()
{
  do {
    const bool gets_on = parts.engine.wait_durable();
    const bool all_durable = throttle.is_idle();   // whose callbacks are queued, then
    callbacks.wait_for_empty();
    if (!gets_on)
      return all_durable;
  } while (!throttle.is_idle());
  return true;
}

// ---- before anything is changed

void TxnQueue::wait_for_throttle(const TxnContext& txc, ThreadPool::TPHandle* handle)
{
  TimeoutSuspended suspended(handle);
  const auto started_at = ceph::mono_clock::now();
  throttle.get(txc.throttled_ops, txc.throttled_bytes);
  parts.logger.tinc(l_tablestore_txc_throttle_lat, ceph::mono_clock::now() - started_at);
}

int TxnQueue::wait_for_space(TxnContext& txc, const TxnScan& scan, bool is_of_osd,
                             ThreadPool::TPHandle* handle)
{
  ceph::timespan waited;
  const Status s = [&] {
    TimeoutSuspended suspended(handle);
    return gate.admit({scan.reservation, scan.row_bytes, scan.removes, scan.removes_rows,
                       is_of_osd}, &waited);
  }();
  if (waited > ceph::timespan::zero()) {
    parts.logger.inc(l_tablestore_space_waits);
    parts.logger.tinc(l_tablestore_space_wait_lat, waited);
  }
  if (!s.ok()) {
    derr << "cannot reserve " << scan.reservation << " bytes, and " << scan.row_bytes
         << " of rows: " << s.what()
         << "; give the file system or tablestore_capacity more space" << dendl;
    return -s.code();
  }
  txc.reserved_bytes = scan.reservation;
  return 0;
}

std::vector<CollectionRef> TxnQueue::lock(Collection* c, const std::vector<coll_t>& cids,
                                          LocksOfTxn* locks)
{
  std::vector<CollectionRef> found = parts.collections.find(cids);
  while (true) {
    std::vector<CollectionRef> wanted = found;
    if (c)
      wanted.push_back(CollectionRef(c));
    locks->emplace_back(std::move(wanted));
    // Somebody may have made or removed one of them before its lock was ours.
    found = parts.collections.find(cids);
    const auto& have = locks->back().collections();
    if (std::all_of(found.begin(), found.end(), [&](const CollectionRef& f) {
          return std::find(have.begin(), have.end(), f) != have.end();
        }))
      return found;
    locks->pop_back();
  }
}

// ---- under the locks

int TxnQueue::build(Collection& c, TxnBuilder& builder, std::vector<Transaction>& tls,
                    TxnScan& scan, LocksOfTxn* locks,
                    std::vector<CollectionRef>* found)
{
  using Part = TxnBuilder::Part;
  if (!scan.meta_can_wait) {
    *found = lock(&c, scan.cids, locks);
    for (size_t n = 0; n < tls.size(); ++n) {
      if (int r = builder.add(tls[n], scan.begins[n]); r < 0)
        return r;
    }
    return 0;
  }
  // What has to be read, as a rule for objects of the others, is read before the lock is taken that
  // transactions of all placement groups want.
  std::vector<coll_t> others;
  std::copy_if(scan.cids.begin(), scan.cids.end(), std::back_inserter(others),
               [](const coll_t& cid) { return !cid.is_meta(); });
  *found = lock(c.cid.is_meta() ? nullptr : &c, others, locks);
  std::vector<Transaction::iterator> again;
  for (size_t n = 0; n < tls.size(); ++n) {
    again.push_back(without_names(scan.begins[n]));
    if (int r = builder.add(tls[n], scan.begins[n], Part::all_but_meta); r < 0)
      return r;
  }
  const std::vector<CollectionRef> meta =
      lock(c.cid.is_meta() ? &c : nullptr, {coll_t::meta()}, locks);
  found->insert(found->end(), meta.begin(), meta.end());
  for (size_t n = 0; n < tls.size(); ++n) {
    again[n].colls = std::move(scan.begins[n].colls);
    again[n].objects = std::move(scan.begins[n].objects);
    if (int r = builder.add(tls[n], again[n], Part::meta); r < 0)
      return r;
  }
  return 0;
}

int TxnQueue::build_and_submit(Collection& c, const std::shared_ptr<TxnContext>& txc,
                               std::vector<Transaction>& tls, TxnScan& scan, bool* commits_here)
{
  LocksOfTxn locks;
  std::vector<CollectionRef> found;
  TxnBuilder builder(parts, *txc);
  if (int r = build(c, builder, tls, scan, &locks, &found); r < 0) {
    if (options.throw_on_failed_txc)
      forget(*txc, found, scan);
    return r;
  }
  submit(txc, builder, locks, commits_here);
  return 0;
}

void TxnQueue::submit(const std::shared_ptr<TxnContext>& txc, TxnBuilder& builder,
                      const LocksOfTxn& locks, bool* commits_here)
{
  builder.finish();
  parts.engine.unreserve(std::exchange(txc->reserved_bytes, 0));

  for (const CollectionLocks& some : locks) {
    for (const auto& locked : some.collections()) {
      // What another sequencer did to these objects, and what this one does, keep their order.
      if (!locked->last_change.applied() && locked->last_change.osr != txc->osr)
        txc->follows.push_back(locked->last_change.osr.get());
    }
  }
  if (txc->barrier)
    parts.logger.inc(l_tablestore_txc_barriers);
  if (options.blackhole) {
    swallow(txc);
    *commits_here = false;
    return;
  }
  txc->seq = txc->osr->note_queued(parts.engine, std::move(txc->on_commit));
  const TxnMark mark{txc->osr, txc->seq};
  for (const CollectionLocks& some : locks) {
    for (const auto& locked : some.collections())
      locked->last_change = mark;
  }
  builder.omap().mark_changed(mark);
  for (auto& [first, last] : txc->erased_unread)
    parts.erased.add(std::move(first), std::move(last), mark);
  if (*commits_here)
    *commits_here = parts.engine.submit_here(txc);
  else
    parts.engine.submit(txc);
}

int TxnQueue::queue_own(Collection& c, uint64_t reservation,
                        const std::function<int(ObjectTxn& txn)>& change)
{
  if (limits.read_only || options.blackhole)
    return -EROFS;
  auto txc = std::make_shared<TxnContext>(&callbacks);
  txc->started_at = ceph::mono_clock::now();
  txc->osr = c.osr;
  txc->sequencer = c.osr.get();
  // Nothing of the throttle, for which it might wait as long as a full store stands still: there is
  // one such transaction at a time, and whoever ends the mount waits for its thread.
  const Status reserved = parts.engine.reserve(reservation);
  int r = -reserved.code();
  if (reserved.ok()) {
    txc->reserved_bytes = reservation;
    LocksOfTxn locks;
    locks.emplace_back(std::vector<CollectionRef>{CollectionRef(&c)});
    TxnBuilder builder(parts, *txc);
    r = c.exists ? change(*txc) : 0;
    if (r > 0) {
      bool commits_here = false;
      submit(txc, builder, locks, &commits_here);
      return r;
    }
    parts.engine.unreserve(std::exchange(txc->reserved_bytes, 0));
  }
  return r;
}

/// What a transaction that failed in its middle has changed in memory is loaded anew, when it is
/// asked for, from rows, which then are as if there had been no such transaction.
void TxnQueue::forget(TxnContext& txc, const std::vector<CollectionRef>& found,
                      const TxnScan& scan)
{
  parts.engine.drain();
  for (const auto& o : txc.touched_onodes)
    parts.onodes.forget(o);
  for (const auto& map : txc.dirty_reference_maps)
    parts.reference_maps.forget(map);
  txc.unpin();
  parts.engine.abandon(txc);
  if (!scan.changes_collections)
    return;
  if (Status s = parts.collections.reload(found); !s.ok())
    fatal("what a failed transaction did to collections cannot be taken back: " + s.what());
}

// ---- objectstore_blackhole

void TxnQueue::swallow(const std::shared_ptr<TxnContext>& txc)
{
  throttle.put(txc->throttled_ops, txc->throttled_bytes);
  std::lock_guard l{swallowed_mutex};
  swallowed.push_back(txc);
}

void TxnQueue::abandon_swallowed()
{
  std::lock_guard l{swallowed_mutex};
  for (const auto& txc : swallowed)
    parts.engine.abandon(*txc);
  swallowed.clear();
}

}  // namespace tablestore
