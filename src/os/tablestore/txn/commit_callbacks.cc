// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/txn/commit_callbacks.h"

#include <algorithm>

#include "os/tablestore/collection/op_sequencer.h"
#include "os/tablestore/home/perf.h"

namespace tablestore {

CommitCallbacks::CommitCallbacks(CephContext* cct, Threads& threads, PerfCounters& logger,
                                 TxnThrottle& throttle, SlowOps& slow_ops)
  : threads(threads),
    logger(logger),
    throttle(throttle),
    slow_ops(slow_ops),
    finisher(cct, "tablestore", "fn_tablestore")
{
}

void CommitCallbacks::start()
{
  if (threads.run_by_themselves())
    finisher.start();
}

void CommitCallbacks::stop()
{
  if (threads.run_by_themselves())
    finisher.stop();
}

void CommitCallbacks::queue(ContextQueue* queue, std::list<Context*>& contexts)
{
  if (queue)
    queue->queue(contexts);
  else
    finisher.queue(contexts);
}

void CommitCallbacks::txn_durable(TxnContext& txc)
{
  const ceph::timespan took = ceph::mono_clock::now() - txc.started_at;
  logger.tinc(l_tablestore_txc_commit_lat, took);
  logger.hinc(l_tablestore_commit_latency_bytes_histogram, took.count() / 1000,
              int64_t(txc.throttled_bytes));
  if (slow_ops.is_slow(took))
    slow_ops.committed(took, txc.throttled_bytes);
  std::list<Context*> contexts = txc.osr->note_durable(txc.seq);
  group.bytes += txc.throttled_bytes;
  group.ops += txc.throttled_ops;
  if (contexts.empty())
    return;
  ContextQueue* queue = txc.osr->commit_queue;
  auto& queues = group.callbacks;
  auto p = std::find_if(queues.begin(), queues.end(), [&](auto& q) { return q.first == queue; });
  if (p == queues.end())
    p = queues.emplace(queues.end(), queue, std::list<Context*>());
  p->second.splice(p->second.end(), contexts);
}

// One wake-up for each of the OSD's shards, not for each of its transactions.
void CommitCallbacks::group_durable()
{
  for (auto& [queue, contexts] : group.callbacks)
    this->queue(queue, contexts);
  group.callbacks.clear();
  throttle.put(std::exchange(group.ops, 0), std::exchange(group.bytes, 0));
}

void CommitCallbacks::txn_applied(TxnContext& txc)
{
  logger.tinc(l_tablestore_txc_apply_lat, ceph::mono_clock::now() - txc.started_at);
  txc.osr->note_applied(txc.seq);
}

}  // namespace tablestore
