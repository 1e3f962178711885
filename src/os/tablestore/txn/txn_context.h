// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/ceph_time.h"
#include "include/Context.h"
#include "os/tablestore/object/object_txn.h"

namespace tablestore {

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
class TxnContext : public ObjectTxn {
 public:
  explicit TxnContext(TxnListener* listener = nullptr) : listener(listener) {}

  std::shared_ptr<OpSequencer> osr;
  uint64_t seq = 0;                 ///< in `osr`, from OpSequencer::note_queued()
  /// [first, last) of rows that it erases, though nobody could read them: see ErasedRows.
  std::vector<std::pair<std::string, std::string>> erased_unread;
  uint64_t throttled_bytes = 0;
  uint64_t throttled_ops = 0;
  std::list<Context*> on_commit;
  ceph::mono_time started_at;       ///< queue_transactions() was called

  void durable() noexcept override;
  void applied() noexcept override;

 private:
  TxnListener* const listener;
};

}  // namespace tablestore
