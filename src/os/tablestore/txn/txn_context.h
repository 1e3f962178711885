// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "common/ceph_time.h"
#include "include/Context.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/onode.h"
#include "os/tablestore/space/pool_stats.h"

namespace tablestore {

struct ReferenceMap;
class OpSequencer;
class TxnContext;

/// Who is told of a transaction's progress: the store. txn_durable() in the thread that makes the
/// commit lane's step, txn_applied() in the applier's.
class TxnListener {
 public:
  virtual ~TxnListener() = default;
  virtual void txn_durable(TxnContext& txc) = 0;
  virtual void txn_applied(TxnContext& txc) = 0;
};

/// All Transactions of one queue_transactions() call: one atomic unit, one engine transaction.
///
/// Built by the calling thread under the locks of all collections that it touches; after submit()
/// the commit lane calls durable() and applied().
class TxnContext : public Txn {
 public:
  explicit TxnContext(TxnListener* listener = nullptr) : listener(listener) {}

  /// Marks for writing out at the end, once, however many operations change it; pins it in the
  /// cache until applied.
  void dirty(const OnodeRef& onode);
  /// Pins a shared slot's reference map, to be written out at the end. Before the map is changed.
  void dirty(const std::shared_ptr<ReferenceMap>& slot);
  PoolStats& pool(int64_t normalised_pool) { return pool_deltas[normalised_pool]; }

  /// It will not be submitted: puts all that it changed in memory back as it was (where `keep_undo`
  /// was set from the start).
  void undo();
  /// Runs on undo(), last added first. Ignored unless `keep_undo`.
  void on_undo(std::function<void()> f);

  std::shared_ptr<OpSequencer> osr;
  uint64_t seq = 0;                 ///< in `osr`, from OpSequencer::note_queued()
  std::vector<OnodeRef> dirty_onodes;
  std::vector<std::shared_ptr<ReferenceMap>> dirty_reference_maps;
  std::map<int64_t, PoolStats> pool_deltas;
  uint64_t reserved_bytes = 0;      ///< promised by Engine::reserve, not yet taken
  uint64_t throttled_bytes = 0;
  uint64_t throttled_ops = 0;
  std::list<Context*> on_commit;
  bool keep_undo = false;
  const Onode* tail_watched = nullptr;   ///< ObjectData's: see ObjectData::TailWatch
  ceph::mono_time started_at;       ///< queue_transactions() was called
  ceph::mono_time submitted_at;

  void durable() noexcept override;
  void applied() noexcept override;

 private:
  void unpin();

  TxnListener* const listener;
  std::vector<std::function<void()>> undo_steps;
};

}  // namespace tablestore
