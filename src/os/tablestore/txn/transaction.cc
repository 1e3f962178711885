// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <algorithm>
#include <optional>

#include "common/debug.h"
#include "common/errno.h"
#include "include/scope_guard.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/space/space_gate.h"
#include "os/tablestore/txn/txn_builder.h"
#include "os/tablestore/txn/txn_scan.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

using namespace tablestore;

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

int TableStore::queue_transactions(CollectionHandle& ch, std::vector<Transaction>& tls,
                                   TrackedOpRef, ThreadPool::TPHandle* handle)
{
  std::list<Context*> on_applied, on_commit, on_applied_sync;
  Transaction::collect_contexts(tls, &on_applied, &on_commit, &on_applied_sync);
  Collection* c = collection_of(ch);
  TxnScan scan = scan_transactions(tls, inline_bound_bytes);

  auto txc = std::make_shared<TxnContext>(static_cast<TxnListener*>(this));
  if (seams.on_queue)
    seams.on_queue(txc);
  txc->started_at = ceph::mono_clock::now();
  txc->osr = c->osr;
  txc->sequencer = c->osr.get();
  txc->on_commit = std::move(on_commit);
  txc->throttled_ops = 1;
  txc->throttled_bytes = scan.bytes;

  int r = read_only ? -EROFS : 0;
  throttle(*txc, handle);
  if (r == 0)
    r = reserve_space(*txc, scan.reservation, handle);
  // Whoever is called below before the commit might wait for it.
  bool commits_here = on_applied_sync.empty();
  if (r == 0)
    r = build_and_submit(*c, txc, tls, scan, &commits_here);
  if (r < 0) {
    engine->unreserve(std::exchange(txc->reserved_bytes, 0));
    unthrottle(*txc);
    for (auto* contexts : {&on_applied, &txc->on_commit, &on_applied_sync}) {
      for (Context* context : *contexts)
        delete context;
      contexts->clear();
    }
    fail(r, "a transaction on " + stringify(c->cid) + " failed: " + cpp_strerror(r));
  }

  // Readable from here on.
  for (Context* context : on_applied_sync)
    context->complete(0);
  if (!on_applied.empty())
    queue_callbacks(c->osr->commit_queue, on_applied);
  logger->inc(l_tablestore_txc);
  logger->inc(l_tablestore_txc_ops, scan.ops);
  logger->inc(l_tablestore_write_bytes, scan.written_bytes);
  logger->tinc(l_tablestore_txc_submit_lat, ceph::mono_clock::now() - txc->started_at);
  if (commits_here) {
    TimeoutSuspended suspended(handle);
    engine->commit_here();
  }
  return 0;
}

void TableStore::fail(int r, const std::string& what)
{
  derr << what << dendl;
  if (!options.throw_on_failed_txc)
    ceph_abort_msg(what);
  throw r;
}

// ---- before anything is changed

void TableStore::throttle(TxnContext& txc, ThreadPool::TPHandle* handle)
{
  TimeoutSuspended suspended(handle);
  const auto started_at = ceph::mono_clock::now();
  throttle_ops.get(txc.throttled_ops);
  throttle_bytes.get(txc.throttled_bytes);
  logger->tinc(l_tablestore_txc_throttle_lat, ceph::mono_clock::now() - started_at);
}

void TableStore::unthrottle(const TxnContext& txc)
{
  throttle_bytes.put(txc.throttled_bytes);
  throttle_ops.put(txc.throttled_ops);
}

int TableStore::reserve_space(TxnContext& txc, uint64_t bytes, ThreadPool::TPHandle* handle)
{
  if (bytes == 0)
    return 0;
  ceph::timespan waited;
  const Status s = [&] {
    TimeoutSuspended suspended(handle);
    return space->reserve(bytes, &waited);
  }();
  if (waited > ceph::timespan::zero()) {
    logger->inc(l_tablestore_space_waits);
    logger->tinc(l_tablestore_space_wait_lat, waited);
  }
  if (!s.ok()) {
    derr << __func__ << " cannot reserve " << bytes << " bytes: " << s.what()
         << "; give the file system or tablestore_capacity more space" << dendl;
    return -s.code();
  }
  txc.reserved_bytes = bytes;
  return 0;
}

std::vector<CollectionRef> TableStore::find_collections(const std::vector<coll_t>& cids)
{
  std::vector<CollectionRef> found;
  std::shared_lock l{coll_lock};
  for (const coll_t& cid : cids) {
    if (auto p = coll_map.find(cid); p != coll_map.end())
      found.push_back(p->second);
    if (auto p = new_coll_map.find(cid); p != new_coll_map.end())
      found.push_back(p->second);
  }
  return found;
}

// ---- under the locks

int TableStore::build_and_submit(Collection& ch, const std::shared_ptr<TxnContext>& txc,
                                 std::vector<Transaction>& tls, TxnScan& scan,
                                 bool* commits_here)
{
  std::vector<CollectionRef> wanted = find_collections(scan.cids);
  std::optional<CollectionLocks> locks;
  while (true) {
    wanted.push_back(CollectionRef(&ch));
    locks.emplace(std::move(wanted));
    // Somebody may have made or removed one of them before its lock was ours.
    wanted = find_collections(scan.cids);
    const auto& have = locks->collections();
    if (std::all_of(wanted.begin(), wanted.end(), [&](const CollectionRef& c) {
          return std::find(have.begin(), have.end(), c) != have.end();
        }))
      break;
    locks.reset();
  }

  TxnBuilder builder(*this, *txc, scan, locks->collections());
  for (size_t n = 0; n < tls.size(); ++n) {
    if (int r = builder.add(tls[n], scan.begins[n]); r < 0)
      return r;
  }
  builder.finish();
  engine->unreserve(std::exchange(txc->reserved_bytes, 0));

  for (const auto& c : locks->collections()) {
    // What another sequencer did to these objects, and what this one does, must not change places.
    if (!c->last_change.applied() && c->last_change.osr != txc->osr)
      txc->barrier = true;
  }
  if (txc->barrier)
    logger->inc(l_tablestore_txc_barriers);
  if (options.blackhole) {
    std::lock_guard l{blackhole_mutex};
    unthrottle(*txc);
    blackholed.push_back(txc);
    *commits_here = false;
    return 0;
  }
  txc->submitted_at = ceph::mono_clock::now();
  txc->osr->note_queued(*txc);
  const TxnMark mark{txc->osr, txc->seq};
  for (const auto& c : locks->collections())
    c->last_change = mark;
  builder.omap().mark_changed(mark);
  if (*commits_here)
    *commits_here = engine->submit_here(txc);
  else
    engine->submit(txc);
  return 0;
}

// ---- the commit lane

void TableStore::queue_callbacks(ContextQueue* queue, std::list<Context*>& contexts)
{
  if (queue)
    queue->queue(contexts);
  else
    finisher.queue(contexts);
}

void TableStore::txn_durable(TxnContext& txc)
{
  logger->tinc(l_tablestore_txc_commit_lat, ceph::mono_clock::now() - txc.started_at);
  std::list<Context*> contexts = txc.osr->note_durable(txc);
  durable_group.bytes += txc.throttled_bytes;
  durable_group.ops += txc.throttled_ops;
  if (contexts.empty())
    return;
  ContextQueue* queue = txc.osr->commit_queue;
  auto& queues = durable_group.callbacks;
  auto p = std::find_if(queues.begin(), queues.end(), [&](auto& q) { return q.first == queue; });
  if (p == queues.end())
    p = queues.emplace(queues.end(), queue, std::list<Context*>());
  p->second.splice(p->second.end(), contexts);
}

/// One wake-up for each of the OSD's shards, not for each of its transactions.
void TableStore::group_durable()
{
  for (auto& [queue, contexts] : durable_group.callbacks)
    queue_callbacks(queue, contexts);
  durable_group.callbacks.clear();
  throttle_bytes.put(std::exchange(durable_group.bytes, 0));
  throttle_ops.put(std::exchange(durable_group.ops, 0));
}

void TableStore::txn_applied(TxnContext& txc)
{
  logger->tinc(l_tablestore_txc_apply_lat, ceph::mono_clock::now() - txc.started_at);
  txc.osr->note_applied(txc.seq);
}
