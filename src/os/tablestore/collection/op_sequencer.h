// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>

#include "common/ceph_mutex.h"
#include "include/Context.h"

class ContextQueue;

namespace tablestore {

class TxnContext;

/// The order of one collection handle: transactions queued through it become durable, are applied
/// and are acknowledged in the order in which they were queued.
///
/// note_queued() is called under the unique lock of the handle's collection, which is what makes
/// that order; the rest from any thread. `mutex` guards all but the atomics.
class OpSequencer {
 public:
  /// `hasten`: called by who is about to wait. Where the commit lane has no thread of its own,
  /// makes a step of it and returns true.
  explicit OpSequencer(std::function<bool()> hasten) : hasten(std::move(hasten)) {}

  /// Gives the transaction its number (from 1). Just before Engine::submit().
  void note_queued(TxnContext& txc);
  /// Commit lane: the transaction's commit callbacks, which nobody adds to any more.
  std::list<Context*> note_durable(TxnContext& txc);
  /// Commit lane: wakes who waits for `seq`.
  void note_applied(uint64_t seq);

  bool applied(uint64_t seq) const {
    return applied_seq.load(std::memory_order_acquire) >= seq;
  }
  /// Returns when transaction `seq` and all before it are rows of the table.
  void wait_applied(uint64_t seq);
  /// The same for all that was queued before the call.
  void flush();
  /// True where nothing waits for durability; else `c` runs after what was queued last has become
  /// durable.
  bool flush_commit(Context* c);

  /// Where commit callbacks go; null: the store's finisher.
  std::atomic<ContextQueue*> commit_queue{nullptr};

 private:
  /// With `mutex` held.
  void wait_until_applied(uint64_t seq, std::unique_lock<ceph::mutex>& l);

  const std::function<bool()> hasten;
  ceph::mutex mutex = ceph::make_mutex("TableStore::OpSequencer::mutex");
  ceph::condition_variable cond;
  std::deque<TxnContext*> not_durable;
  uint64_t queued_seq = 0;
  std::atomic<uint64_t> applied_seq{0};
};

/// "After this transaction": what a reader of the table waits for.
struct TxnMark {
  std::shared_ptr<OpSequencer> osr;
  uint64_t seq = 0;

  bool applied() const { return !osr || osr->applied(seq); }
  void wait_applied() const {
    if (!applied())
      osr->wait_applied(seq);
  }
};

}  // namespace tablestore
