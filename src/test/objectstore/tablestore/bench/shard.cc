// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/shard.h"

#include "common/ceph_context.h"
#include "include/ceph_assert.h"

namespace store_bench {

Shard::Shard(unsigned index, ObjectStore& store, std::vector<PlacementGroup*> groups,
             uint64_t seed)
  : index(index),
    random(mix(seed) + index),
    os(store),
    groups(std::move(groups)),
    pgs_of_all(this->groups.front()->group_count())
{
  for (PlacementGroup* pg : this->groups)
    os.set_collection_commit_queue(pg->cid(), &committed);
  thread = std::thread([this] { run(); });
}

Shard::~Shard()
{
  {
    std::scoped_lock l(mutex);
    stop = true;
    cond.notify_all();
  }
  thread.join();
}

void Shard::start(Load& new_load, unsigned operations_in_flight, bool from_start)
{
  std::scoped_lock l(mutex);
  ceph_assert(active == 0);
  load = &new_load;
  if (from_start)
    next = 0;
  recorder.start(load->from);
  slots.clear();
  for (unsigned i = 0; i < operations_in_flight; ++i) {
    slots.push_back(std::make_unique<Slot>(*this));
    ready.push_back(slots.back().get());
  }
  active = operations_in_flight;
  cond.notify_all();
}

void Shard::wait()
{
  std::unique_lock l(mutex);
  cond.wait(l, [this] { return active == 0; });
}

bool Shard::finished()
{
  std::scoped_lock l(mutex);
  return active == 0;
}

void Shard::run()
{
  std::vector<Slot*> todo;
  std::list<Context*> callbacks;
  for (;;) {
    {
      std::unique_lock l(mutex);
      cond.wait(l, [this] { return stop || !ready.empty() || !committed.empty(); });
      if (stop)
        return;
      todo.swap(ready);
    }
    committed.move_to(callbacks);
    for (Context* c : callbacks)
      c->complete(0);
    callbacks.clear();
    todo.insert(todo.end(), completed.begin(), completed.end());
    completed.clear();
    for (Slot* slot : todo)
      proceed(*slot);
    todo.clear();
  }
}

void Shard::Slot::complete(int r)
{
  ceph_assert(r == 0);
  ended = Clock::now();
  if (std::this_thread::get_id() == shard.thread.get_id()) {
    shard.completed.push_back(this);
    return;
  }
  std::scoped_lock l(shard.mutex);
  shard.ready.push_back(this);
  shard.cond.notify_all();
}

void Shard::proceed(Slot& slot)
{
  if (slot.in_flight) {
    slot.in_flight = false;
    recorder.add(slot.begun, slot.ended, slot.op.payload_bytes);
  }
  if (issue(slot))
    return;
  std::scoped_lock l(mutex);
  --active;
  if (active == 0)
    cond.notify_all();
}

/// False where there is nothing more to do.
bool Shard::issue(Slot& slot)
{
  for (;;) {
    slot.op = Operation();
    slot.begun = Clock::now();
    if (slot.begun >= load->until ||
        load->bytes.load(std::memory_order_relaxed) >= load->max_bytes ||
        !load->make(*this, slot.op))
      return false;
    load->bytes.fetch_add(slot.op.payload_bytes, std::memory_order_relaxed);
    load->operations.fetch_add(1, std::memory_order_relaxed);
    if (!slot.op.done) {
      slot.op.transaction.register_on_commit(&slot);
      slot.in_flight = true;
      const int r = os.queue_transaction(slot.op.pg->handle(), std::move(slot.op.transaction));
      ceph_assert(r == 0);
      return true;
    }
    recorder.add(slot.begun, Clock::now(), slot.op.payload_bytes);
  }
}

}  // namespace store_bench
