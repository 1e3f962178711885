// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>

#include "common/ceph_mutex.h"
#include "include/Context.h"

class ContextQueue;

namespace tablestore {

class Engine;
class Threads;

/// The order of one collection handle: transactions queued through it become durable, are applied
/// and are acknowledged in the order in which they were queued.
///
/// note_queued() is called under the unique lock of the handle's collection, which is what makes
/// that order; the rest from any thread. `mutex` guards all but the atomics.
class OpSequencer {
 public:
  explicit OpSequencer(Threads& threads) : threads(threads) {}

  /// The number (from 1) of a transaction that is submitted to `engine` next, with what runs after
  /// its commit.
  uint64_t note_queued(Engine& engine, std::list<Context*> on_commit);
  /// Commit lane: the transaction's commit callbacks, which nobody adds to any more.
  std::list<Context*> note_durable(uint64_t seq);
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
  struct Queued {
    uint64_t seq;
    std::list<Context*> on_commit;
  };

  Threads& threads;
  /// Where the transaction that was queued last went: there for as long as one is not applied. The
  /// handle itself may be kept from one mount to the next.
  std::atomic<Engine*> engine{nullptr};
  ceph::mutex mutex = ceph::make_mutex("TableStore::OpSequencer::mutex");
  ceph::condition_variable cond;
  std::deque<Queued> not_durable;
  uint64_t queued_seq = 0;
  std::atomic<uint64_t> applied_seq{0};
};

/// "After this transaction": what a reader of the table waits for.
struct TxnMark {
  std::shared_ptr<OpSequencer> osr;
  uint64_t seq = 0;

  bool applied() const { return !osr || osr->applied(seq); }
  void wait_applied() const {
    if (osr)
      osr->wait_applied(seq);
  }
};

}  // namespace tablestore
