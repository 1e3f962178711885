// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/workloads.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace store_bench {

namespace {

constexpr unsigned populate_depth = 16;

const Workload all_workloads[] = {
    {"new", "new objects of --size", run_new},
    {"overwrite", "random overwrites of --size in --objects of --object-size", run_overwrite},
    {"append", "appends of --size to objects that grow to --object-size", run_append},
    {"mix", "reads and overwrites, --read-percent of them reads", run_mix, 8},
    {"read", "random reads of --size, hot, or with --cold after a remount", run_read, 0},
    {"metadata", "--objects without data: create, stat, attributes, list, rename, remove",
     run_metadata, 8},
    {"omap", "many keys in one object, few keys in many objects", run_omap, 8},
    {"removals", "what is left of many keys and many objects, when nearly all were removed",
     run_removals, 8},
    {"aging", "--rounds of filling with mixed sizes and deleting all", run_aging},
    {"clone", "each write clones its object before, as after a snapshot", run_clone},
    {"full", "objects come and go in a store that is full to --fill-percent", run_full},
    {"die", "--objects of --size, then load, then kill -9 of itself", run_fill_and_die},
    {"restart", "mounts what die left: until mounted, first read, first commit", run_restart, 2,
     true},
};

}  // namespace

std::span<const Workload> workloads()
{
  return all_workloads;
}

const Workload* find_workload(const std::string& name)
{
  for (const auto& w : all_workloads) {
    if (w.name == name)
      return &w;
  }
  return nullptr;
}

Phase Bench::timed(const std::string& name, MakeOperation make) const
{
  return {.name = name,
          .make = std::move(make),
          .depth = options.depth,
          .seconds = options.seconds,
          .warmup = options.warmup,
          .max_bytes = options.max_bytes};
}

Phase Bench::whole(const std::string& name, MakeOperation make) const
{
  return {.name = name, .make = std::move(make), .depth = options.depth};
}

void Bench::measure_in_parts(const Phase& phase)
{
  if (options.parts == 1)
    return measure(phase);
  for (unsigned i = 1; i <= options.parts; ++i) {
    Phase part = phase;
    part.name = phase.name + " " + std::to_string(i);
    part.seconds = phase.seconds / options.parts;
    part.goes_on = i > 1;
    part.more_follows = i < options.parts;
    if (part.goes_on)
      part.warmup = 0;
    measure(part);
    values.emplace_back("used bytes " + part.name, store.used_bytes());
    values.emplace_back("directory bytes " + part.name, directory_bytes(store.directory()));
  }
}

uint64_t Bench::per_group(uint64_t objects) const
{
  return std::max<uint64_t>(1, (objects + options.pgs - 1) / options.pgs);
}

void Bench::populate(uint64_t per_group, uint64_t size)
{
  Phase phase = whole("populate", [&](Shard& shard, Operation& op) {
    if (shard.next == per_group * shard.group_count())
      return false;
    add_new_object(*this, op, shard.place(shard.next++), size);
    return true;
  });
  phase.depth = std::max(phase.depth, populate_depth);
  client.prepare(phase);
}

void Bench::remount_cold()
{
  client.close_groups();
  store.remount_cold();
  client.open_groups();
}

void look_up(Shard& shard, const Place& place)
{
  ceph::buffer::ptr value;
  const int r = shard.store().getattr(place.pg->handle(), place.oid(), OI_ATTR, value);
  if (r != -ENOENT)
    wrong_answer("a new object is there already: getattr gave " + std::to_string(r));
}

void add_new_object(Bench& bench, Operation& op, const Place& place, uint64_t size)
{
  const ghobject_t oid = place.oid();
  op.pg = place.pg;
  op.payload_bytes += size;
  auto& t = op.transaction;
  t.create(op.pg->cid(), oid);
  op.pg->add_attributes(t, oid);
  if (size > 0) {
    ceph::buffer::list data = bench.payload.of(place.number, 0, size);
    t.write(op.pg->cid(), oid, 0, size, data);
  }
  op.pg->add_log(t);
}

void add_overwrite(Bench& bench, Operation& op, const Place& place, uint64_t offset,
                   uint64_t length, uint64_t seed)
{
  const ghobject_t oid = place.oid();
  op.pg = place.pg;
  op.payload_bytes += length;
  auto& t = op.transaction;
  op.pg->add_attributes(t, oid);
  ceph::buffer::list data = bench.payload.random(seed, length);
  t.write(op.pg->cid(), oid, offset, length, data);
  op.pg->add_log(t);
}

namespace {

ceph::buffer::list read_bytes(Shard& shard, Operation& op, const Place& place, uint64_t offset,
                              uint64_t length)
{
  ceph::buffer::list bl;
  const ghobject_t oid = place.oid();
  const int r = shard.store().read(place.pg->handle(), oid, offset, length, bl);
  if (r != int(length) || bl.length() != length)
    wrong_answer("reading " + std::to_string(length) + " bytes of " + oid.hobj.oid.name +
                 " gave " + std::to_string(r));
  op.payload_bytes += length;
  op.done = true;
  return bl;
}

[[noreturn]] void other_bytes(const Place& place, uint64_t offset)
{
  wrong_answer("object " + place.oid().hobj.oid.name + " has other bytes at " +
               std::to_string(offset) + " than were written");
}

}  // namespace

void read_object(Bench& bench, Shard& shard, Operation& op, const Place& place, uint64_t offset,
                 uint64_t length, bool check)
{
  const ceph::buffer::list bl = read_bytes(shard, op, place, offset, length);
  if (check && !bench.payload.begins(bl, place.number, offset))
    other_bytes(place, offset);
}

void read_overwritten(Bench& bench, Shard& shard, Operation& op, const Place& place,
                      uint64_t offset, uint64_t length, uint64_t seed)
{
  if (!bench.payload.begins(read_bytes(shard, op, place, offset, length), seed, 0))
    other_bytes(place, offset);
}

void wrong_answer(const std::string& what)
{
  std::fprintf(stderr, "ceph_tablestore_bench: the store is wrong: %s\n", what.c_str());
  ::_exit(1);
}

}  // namespace store_bench
