// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/collection/op_sequencer.h"

#include "include/ceph_assert.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

uint64_t OpSequencer::note_queued(Engine& to, std::list<Context*> on_commit)
{
  std::lock_guard l{mutex};
  engine = &to;
  not_durable.push_back({++queued_seq, std::move(on_commit)});
  return queued_seq;
}

std::list<Context*> OpSequencer::note_durable(uint64_t seq)
{
  std::lock_guard l{mutex};
  ceph_assert(!not_durable.empty());
  ceph_assert(not_durable.front().seq == seq);
  auto on_commit = std::move(not_durable.front().on_commit);
  not_durable.pop_front();
  return on_commit;
}

void OpSequencer::note_applied(uint64_t seq)
{
  std::lock_guard l{mutex};
  ceph_assert(applied_seq.load(std::memory_order_relaxed) + 1 == seq);
  applied_seq.store(seq, std::memory_order_release);
  cond.notify_all();
}

void OpSequencer::wait_applied(uint64_t seq)
{
  if (applied(seq))
    return;
  engine.load()->hurry();
  std::unique_lock l{mutex};
  threads.wait(l, cond, [&] { return applied(seq); });
}

void OpSequencer::flush()
{
  uint64_t last;
  {
    std::lock_guard l{mutex};
    last = queued_seq;
  }
  wait_applied(last);
}

bool OpSequencer::flush_commit(Context* c)
{
  std::lock_guard l{mutex};
  if (not_durable.empty())
    return true;
  not_durable.back().on_commit.push_back(c);
  return false;
}

}  // namespace tablestore
