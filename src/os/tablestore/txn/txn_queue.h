// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/container/static_vector.hpp>

#include "common/WorkQueue.h"
#include "common/ceph_mutex.h"
#include "os/Transaction.h"
#include "os/tablestore/collection/collection.h"
#include "os/tablestore/home/options.h"
#include "os/tablestore/home/surroundings.h"
#include "os/tablestore/space/space_gate.h"
#include "os/tablestore/txn/commit_callbacks.h"
#include "os/tablestore/txn/txn_context.h"
#include "os/tablestore/txn/txn_parts.h"
#include "os/tablestore/txn/txn_builder.h"
#include "os/tablestore/txn/txn_scan.h"

namespace tablestore {

/// The way of transactions into the engine: throttle, space, the locks of their collections, the
/// change in memory with its rows, and submit. Thread-safe.
class TxnQueue {
 public:
  static constexpr unsigned rereads_before_loss_default = 10;   ///< some two seconds
  struct Limits {
    bool read_only;                ///< refuses all
    uint64_t inline_bound_bytes;   ///< no object's inline data is larger
  };
  /// `fatal`: for a transaction that cannot fail, and does.
  TxnQueue(const TxnParts& parts, SpaceGate& gate, TxnThrottle& throttle,
           CommitCallbacks& callbacks, Surroundings& surroundings, const StoreOptions& options,
           std::function<void(const std::string&)> fatal, Limits limits);

  /// Objects are as after the transactions when it returns. They become durable together.
  void queue(Collection& c, std::vector<ceph::os::Transaction>& tls,
             ThreadPool::TPHandle* handle);
  /// Returns when all that was queued is durable, and its callbacks have returned. These may queue
  /// more, for which it waits, too. It does not wait for rows to be applied. False: nothing gets
  /// on, as on a full file system, and what is not durable never will be.
  bool drain();
  /// Forgets what objectstore_blackhole swallowed; at umount.
  void abandon_swallowed();

 private:
  using Transaction = ceph::os::Transaction;
  /// Those of most collections, then meta's.
  using LocksOfTxn = boost::container::static_vector<CollectionLocks, 2>;

  void wait_for_throttle(const TxnContext& txc, ThreadPool::TPHandle* handle);
  int wait_for_space(TxnContext& txc, const TxnScan& scan, bool is_of_osd,
                     ThreadPool::TPHandle* handle);
  /// 0, or an error, and nothing is changed. `commits_here`: whether the caller can call
  /// Engine::commit_here(), and then, whether he has to.
  int build_and_submit(Collection& c, const std::shared_ptr<TxnContext>& txc,
                       std::vector<Transaction>& tls, TxnScan& scan, bool* commits_here);
  /// Executes all operations, under the locks that it takes. `found`: the collections of these
  /// names.
  int build(Collection& c, TxnBuilder& builder, std::vector<Transaction>& tls, TxnScan& scan,
            LocksOfTxn* locks, std::vector<CollectionRef>* found);
  /// Locks the collections that exist or are new under these names, and `c`, where it is not null.
  /// Returns the former.
  std::vector<CollectionRef> lock(Collection* c, const std::vector<coll_t>& cids,
                                  LocksOfTxn* locks);
  void forget(TxnContext& txc, const std::vector<CollectionRef>& found, const TxnScan& scan);
  void swallow(const std::shared_ptr<TxnContext>& txc);
  [[noreturn]] void fail(int r, const std::string& what);

  const TxnParts parts;
  CephContext* const cct;
  SpaceGate& gate;
  TxnThrottle& throttle;
  CommitCallbacks& callbacks;
  Surroundings& surroundings;
  const StoreOptions& options;
  const std::function<void(const std::string&)> fatal;
  const Limits limits;

  /// Transactions that objectstore_blackhole swallowed: never durable, until umount.
  ceph::mutex swallowed_mutex = ceph::make_mutex("TableStore::TxnQueue::swallowed_mutex");
  std::vector<std::shared_ptr<TxnContext>> swallowed;
};

}  // namespace tablestore
