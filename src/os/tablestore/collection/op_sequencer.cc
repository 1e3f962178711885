// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/collection/op_sequencer.h"

#include "include/ceph_assert.h"
#include "os/tablestore/txn/txn_context.h"

namespace tablestore {

void OpSequencer::note_queued(TxnContext& txc)
{
  std::lock_guard l{mutex};
  txc.seq = ++queued_seq;
  not_durable.push_back(&txc);
}

std::list<Context*> OpSequencer::note_durable(TxnContext& txc)
{
  std::lock_guard l{mutex};
  ceph_assert(!not_durable.empty());
  ceph_assert(not_durable.front() == &txc);
  not_durable.pop_front();
  return std::move(txc.on_commit);
}

void OpSequencer::note_applied(uint64_t seq)
{
  std::lock_guard l{mutex};
  ceph_assert(applied_seq.load(std::memory_order_relaxed) + 1 == seq);
  applied_seq.store(seq, std::memory_order_release);
  cond.notify_all();
}

void OpSequencer::wait_until_applied(uint64_t seq, std::unique_lock<ceph::mutex>& l)
{
  for (bool stepped = true; stepped && !applied(seq);) {
    l.unlock();
    stepped = hasten();
    l.lock();
  }
  cond.wait(l, [&] { return applied(seq); });
}

void OpSequencer::wait_applied(uint64_t seq)
{
  std::unique_lock l{mutex};
  wait_until_applied(seq, l);
}

void OpSequencer::flush()
{
  std::unique_lock l{mutex};
  wait_until_applied(queued_seq, l);
}

bool OpSequencer::flush_commit(Context* c)
{
  std::lock_guard l{mutex};
  if (not_durable.empty())
    return true;
  not_durable.back()->on_commit.push_back(c);
  return false;
}

}  // namespace tablestore
