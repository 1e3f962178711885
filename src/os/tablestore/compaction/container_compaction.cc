// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/compaction/container_compaction.h"

#include <chrono>
#include <shared_mutex>
#include <utility>

#include "common/debug.h"
#include "common/errno.h"
#include "include/stringify.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/objects.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/txn/txn_queue.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.compaction "

namespace tablestore {

namespace {

constexpr unsigned rows_at_once = 256;
/// Of a pass, what others have made or renamed meanwhile is left to the next one.
constexpr unsigned passes_max = 8;
constexpr unsigned moves_between_looks = 64;
/// More objects of one hash than clones make: what they share stays where it is.
constexpr size_t owners_max = 4096;

}  // namespace

ContainerCompaction::ContainerCompaction(const Parts& p)
  : parts(p), cct(p.cct), walk(p.engine)
{
  worker = parts.threads.start("compact", Threads::Urgency::usual, [this] { run(); },
                               [this] { return step(); });
}

ContainerCompaction::~ContainerCompaction()
{
  {
    std::lock_guard l{mutex};
    ending = true;
    cond.notify_all();
  }
  worker.reset();
}

// ---- for whoever asks

int ContainerCompaction::start(int64_t max_live_percent)
{
  if (max_live_percent < 1 || max_live_percent > 100)
    return -EINVAL;
  std::lock_guard l{mutex};
  if (now.running)
    return -EALREADY;
  now = {};
  now.running = true;
  now.max_live_percent = max_live_percent;
  stop_asked = false;
  phase = Phase::begin;
  cond.notify_all();
  return 0;
}

void ContainerCompaction::stop()
{
  std::unique_lock l{mutex};
  stop_asked = true;
  cond.notify_all();
  if (parts.threads.run_by_themselves()) {
    cond.wait(l, [this] { return !now.running; });
    return;
  }
  l.unlock();
  step();
}

ContainerCompaction::Progress ContainerCompaction::progress() const
{
  Progress p;
  {
    std::lock_guard l{mutex};
    p = now;
  }
  if (p.running)
    p.left_bytes = parts.engine.closed_live_bytes();
  return p;
}

void ContainerCompaction::dump(ceph::Formatter* f) const
{
  const Progress p = progress();
  f->open_object_section("container_compaction");
  f->dump_bool("running", p.running);
  f->dump_int("max_live_percent", p.max_live_percent);
  f->dump_unsigned("passes", p.passes);
  f->dump_unsigned("containers_chosen", p.containers_chosen);
  f->dump_unsigned("containers_emptied", p.containers_emptied);
  f->dump_unsigned("containers_opened", p.containers_opened);
  f->dump_unsigned("moves", p.moves);
  f->dump_unsigned("moved_bytes", p.moved_bytes);
  f->dump_unsigned("left_bytes", p.left_bytes);
  f->dump_unsigned("unreadable_bytes", p.unreadable_bytes);
  f->dump_unsigned("unaccounted_bytes", p.unaccounted_bytes);
  f->dump_string("result", p.result);
  f->close_section();
}

// ---- the work

void ContainerCompaction::run()
{
  std::unique_lock l{mutex};
  while (!ending) {
    if (!now.running) {
      cond.wait(l);
      continue;
    }
    const auto started_at = std::chrono::steady_clock::now();
    const uint64_t moves = now.moves;
    l.unlock();
    step();
    l.lock();
    if (now.moves > moves) {
      l.unlock();
      if (!parts.engine.wait_durable())
        finish("nothing gets on: is the file system full?");
      l.lock();
    }
    // Clients get as much of the disk's time as it has had.
    cond.wait_for(l, std::chrono::steady_clock::now() - started_at,
                  [this] { return ending || stop_asked || !now.running; });
  }
}

bool ContainerCompaction::step()
{
  {
    std::lock_guard l{mutex};
    if (!now.running)
      return false;
  }
  work();
  return true;
}

void ContainerCompaction::work()
{
  bool stops;
  {
    std::lock_guard l{mutex};
    stops = stop_asked;
  }
  if (stops)
    return finish("it was stopped");
  switch (phase) {
  case Phase::begin:
    return begin();
  case Phase::end_of_pass:
    return end_pass();
  case Phase::pass:
    break;
  }
  if (closed.empty() || (found.empty() && walk.at_end())) {
    phase = Phase::end_of_pass;
  } else if (!shared.empty()) {
    const ReferenceMapName name = shared.back();
    shared.pop_back();
    move_shared(name);
  } else if (!found.empty()) {
    move_object();
  } else {
    walk.look(closed, rows_at_once, &found);
  }
}

void ContainerCompaction::begin()
{
  int64_t percent;
  {
    std::lock_guard l{mutex};
    percent = now.max_live_percent;
  }
  if (!parts.engine.knows_owners())
    return finish("which blocks are in use is not known: run ceph-objectstore-tool --op repair");
  closed = parts.engine.close_containers(unsigned(percent));
  dout(1) << __func__ << " " << closed.size() << " containers of which at most " << percent
          << "% are in use" << dendl;
  {
    std::lock_guard l{mutex};
    now.containers_chosen = closed.size();
  }
  if (closed.empty())
    return finish("there would not be fewer containers, or there is no room elsewhere for what is "
                  "in them");
  begin_pass();
}

void ContainerCompaction::begin_pass()
{
  // What was on its way there when they were closed can be seen from here on.
  if (!parts.engine.wait_applied())
    return finish("nothing gets on: is the file system full?");
  walk.begin();
  found.clear();
  shared.clear();
  tried.clear();
  next_block = moved_in_pass = moves_since_look = 0;
  phase = Phase::pass;
  std::lock_guard l{mutex};
  ++now.passes;
  now.unreadable_bytes = now.unaccounted_bytes = 0;
}

void ContainerCompaction::look_at_containers()
{
  moves_since_look = 0;
  const unsigned emptied = parts.engine.remove_emptied_containers();
  closed = parts.engine.closed_containers();
  std::lock_guard l{mutex};
  now.containers_emptied += emptied;
  now.containers_opened = now.containers_chosen - now.containers_emptied - closed.size();
}

void ContainerCompaction::end_pass()
{
  if (!parts.engine.wait_applied())   // so that what was freed is free
    return finish("nothing gets on: is the file system full?");
  look_at_containers();
  const Progress p = progress();
  if (closed.empty())
    return finish(p.containers_opened == 0 ? "all of them are empty"
                                           : "others have no space but what was to be emptied");
  if (moved_in_pass > 0 && p.passes < passes_max)
    return begin_pass();
  finish("what is left cannot be read, belongs to no object, or is changed all the time");
}

void ContainerCompaction::finish(const std::string& result)
{
  const uint64_t left = parts.engine.closed_live_bytes();
  parts.engine.open_containers();
  closed.clear();
  std::lock_guard l{mutex};
  if (!now.running)
    return;
  now.running = false;
  now.left_bytes = left;
  now.result = result;
  dout(1) << __func__ << " " << now.containers_emptied << " of " << now.containers_chosen
          << " containers are empty, " << now.moved_bytes << " bytes were moved, " << left
          << " are left: " << result << dendl;
  cond.notify_all();
}

// ---- moves

void ContainerCompaction::note_move(int r, uint64_t bytes)
{
  if (r == -ENOSPC)
    return finish("there is no space to move anything to");
  if (r < 0)
    return finish("a move failed: " + cpp_strerror(r));
  if (r == 0)   // it has changed meanwhile
    return;
  moved_in_pass += bytes;
  {
    std::lock_guard l{mutex};
    ++now.moves;
    now.moved_bytes += bytes;
  }
  if (++moves_since_look >= moves_between_looks)
    look_at_containers();
}

void ContainerCompaction::move_object()
{
  const ghobject_t oid = found.back();
  const auto next_object = [this] {
    found.pop_back();
    next_block = 0;
  };
  const CollectionRef c = parts.collections.containing(oid);
  BlocksToMove what;
  int r = -ENOENT;
  if (c) {
    const auto object = parts.objects.use(*c, oid);
    r = object.r;
    if (r == 0)
      r = parts.data.read_to_move(object.o, closed, next_block, step_bytes, &what);
  }
  if (r < 0)   // gone, damaged, or not to be read now
    return next_object();
  {
    std::lock_guard l{mutex};
    now.unreadable_bytes += what.unreadable_bytes;
  }
  for (const ReferenceMapName& name : what.shared) {
    if (tried.insert(name).second)
      shared.push_back(name);
  }
  next_block = what.next_block;
  if (what.bytes > 0) {
    uint64_t moved = 0;
    parts.threads.hand_over();   // others may change the object now
    r = parts.txns.queue_own(*c, what.bytes, [&](ObjectTxn& txn) {
      if (const OnodeRef o = get(*c, oid, For::change))
        moved = parts.data.move(txn, o, std::move(what));
      return moved > 0;
    });
    dout(15) << __func__ << " " << c->cid << " " << oid << ": " << moved << " bytes = " << r
             << dendl;
    note_move(r, moved);
  }
  if (shared.empty() && next_block == BlocksToMove::all)
    next_object();
}

std::vector<ghobject_t> ContainerCompaction::objects_with_hash_of(const ghobject_t& oid)
{
  std::vector<ghobject_t> oids;
  for (const auto& [first, last] : same_hash_ranges(oid)) {
    auto it = parts.engine.iterate(Family::object, first, last, AtDamage::step_over);
    for (it->seek(first); it->valid() && oids.size() < owners_max; it->next()) {
      ghobject_t other;
      if (decode_onode_key(it->key(), &other))
        oids.push_back(std::move(other));
    }
  }
  return oids;
}

OnodeRef ContainerCompaction::get(const Collection& c, const ghobject_t& oid, For purpose)
{
  OnodeRef o;
  if (purpose == For::reading)
    return parts.objects.find(c, oid, &o) == 0 ? o : nullptr;
  const bool is_there = c.exists && c.contains(oid) && parts.objects.load(c, oid, &o) == 0 &&
      o->exists && !o->lost;
  return is_there ? o : nullptr;
}

std::vector<OnodeRef> ContainerCompaction::get_all(const Collection& c,
                                                   const std::vector<ghobject_t>& oids,
                                                   For purpose)
{
  std::vector<OnodeRef> all;
  for (const ghobject_t& oid : oids) {
    if (OnodeRef o = get(c, oid, purpose))
      all.push_back(std::move(o));
  }
  return all;
}

/// Who the owners are is a guess, from rows that may be older than the objects. It is right where
/// their references add up to what the reference map says.
void ContainerCompaction::move_shared(const ReferenceMapName& name)
{
  const ghobject_t oid = found.back();
  const CollectionRef c = parts.collections.containing(oid);
  if (!c)
    return;
  const std::vector<ghobject_t> oids = objects_with_hash_of(oid);
  SharedToMove what;
  int r;
  {
    std::shared_lock l{c->lock};
    const auto owners = get_all(*c, oids, For::reading);
    r = parts.data.find_shared(owners, name, &what);
    if (r < 0) {
      std::lock_guard p{mutex};
      now.unaccounted_bytes += what.bytes();
    } else if (r = parts.data.read_shared(owners, &what); r < 0) {
      std::lock_guard p{mutex};
      now.unreadable_bytes += what.bytes();
    }
  }
  if (r < 0)
    return;
  const uint64_t bytes = what.bytes();
  parts.threads.hand_over();
  r = parts.txns.queue_own(*c, bytes, [&](ObjectTxn& txn) {
    const auto owners = get_all(*c, oids, For::change);
    SharedToMove still;
    if (parts.data.find_shared(owners, name, &still) < 0 || !still.is_of(what))
      return 0;
    parts.data.move_shared(txn, owners, std::move(what));
    return 1;
  });
  dout(15) << __func__ << " " << c->cid << " " << oid << ": " << bytes << " bytes of container "
           << name.container << " block " << name.first_block << ", used " << what.uses.size()
           << " times by " << oids.size() << " objects = " << r << dendl;
  note_move(r, bytes);
}

}  // namespace tablestore
