// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <list>
#include <utility>
#include <vector>

#include "common/Finisher.h"
#include "common/perf_counters.h"
#include "os/tablestore/engine/threads.h"
#include "os/tablestore/home/slow_ops.h"
#include "os/tablestore/txn/txn_context.h"
#include "os/tablestore/txn/txn_throttle.h"

namespace tablestore {

/// What follows when transactions are durable, and when they are applied: callbacks go to the
/// queues of the OSD's shards, or to a thread here, and the throttle gets back what they took.
///
/// The engine's threads call txn_durable(), group_durable() and txn_applied(), which take no lock
/// of a collection; queue() is for any thread.
class CommitCallbacks : public TxnListener {
 public:
  CommitCallbacks(CephContext* cct, Threads& threads, ceph::common::PerfCounters& logger,
                  TxnThrottle& throttle, SlowOps& slow_ops);

  /// The thread, for callbacks that no queue takes: there is one where threads run by themselves.
  void start();
  void stop();
  /// Returns when the thread has nothing to do.
  void wait_for_empty() { finisher.wait_for_empty(); }

  /// To `queue`, or where that is null, to the thread. Empties `contexts`.
  void queue(ContextQueue* queue, std::list<Context*>& contexts);
  /// The last transaction of a group has become durable: hands on what they collected.
  void group_durable();

  void txn_durable(TxnContext& txc) override;
  void txn_applied(TxnContext& txc) override;

 private:
  Threads& threads;
  ceph::common::PerfCounters& logger;
  TxnThrottle& throttle;
  SlowOps& slow_ops;
  Finisher finisher;

  /// Of the group that is being declared durable; the commit lane's own.
  struct {
    std::vector<std::pair<ContextQueue*, std::list<Context*>>> callbacks;   ///< null: the thread
    uint64_t bytes = 0;
    uint64_t ops = 0;
  } group;
};

}  // namespace tablestore
