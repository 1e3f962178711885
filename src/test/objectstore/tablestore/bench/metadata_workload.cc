// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// A million objects and nothing in them: TableFS's experiments, on objects.
#include "test/objectstore/tablestore/bench/workloads.h"

namespace store_bench {

namespace {

constexpr uint64_t default_objects = 1000000;
constexpr int list_max = 100;
constexpr uint64_t renamed = uint64_t(1) << 40;   // added to an object's number

void create_objects(Bench& bench, uint64_t per_group)
{
  bench.measure(bench.whole("create", [&](Shard& shard, Operation& op) {
    if (shard.next == per_group * shard.group_count())
      return false;
    const Place place = shard.place(shard.next++);
    look_up(shard, place);
    add_new_object(bench, op, place, 0);
    return true;
  }));
}

void stat_objects(Bench& bench, uint64_t per_group)
{
  bench.measure(bench.timed("stat", [&](Shard& shard, Operation& op) {
    const Place place = shard.random_place(per_group);
    struct stat st;
    if (shard.store().stat(place.pg->handle(), place.oid(), &st) != 0)
      wrong_answer("an object is missing");
    op.done = true;
    return true;
  }));
}

void change_attributes(Bench& bench, uint64_t per_group)
{
  bench.measure(bench.timed("attributes", [&](Shard& shard, Operation& op) {
    const Place place = shard.random_place(per_group);
    if (shard.random.below(2) == 0) {
      ceph::buffer::ptr value;
      if (shard.store().getattr(place.pg->handle(), place.oid(), OI_ATTR, value) < 0)
        wrong_answer("an attribute is missing");
      op.done = true;
    } else {
      op.pg = place.pg;
      op.pg->add_attributes(op.transaction, place.oid());
      op.pg->add_log(op.transaction);
    }
    return true;
  }));
}

/// Each group from its beginning to its end, again and again; one operation is one call.
void list_objects(Bench& bench, uint64_t per_group)
{
  struct Listing {
    ghobject_t position;
    uint64_t found = 0;
  };
  const uint64_t objects = per_group + 1;   // and the group's own
  std::vector<Listing> listings(bench.options.pgs);
  bench.measure(bench.timed("list", [&](Shard& shard, Operation& op) {
    PlacementGroup& pg = *shard.place(shard.next).pg;
    Listing& listing = listings[pg.index()];
    std::vector<ghobject_t> found;
    ghobject_t next;
    if (shard.store().collection_list(pg.handle(), listing.position, ghobject_t::get_max(),
                                      list_max, &found, &next) < 0)
      wrong_answer("a collection cannot be listed");
    listing.position = next;
    listing.found += found.size();
    if (next.is_max()) {
      if (listing.found != objects)
        wrong_answer("a list has " + std::to_string(listing.found) + " of " +
                     std::to_string(objects) + " objects");
      listing = Listing();
      ++shard.next;
    }
    op.done = true;
    return true;
  }));
}

/// As the OSD renames objects of erasure-coded pools, for rollback. Each object once.
void rename_objects(Bench& bench, uint64_t per_group, std::vector<uint64_t>& moved)
{
  Phase phase = bench.timed("rename", [&](Shard& shard, Operation& op) {
    if (shard.next == per_group * shard.group_count())
      return false;
    const Place place = shard.place(shard.next++);
    moved[shard.index] = shard.next;
    op.pg = place.pg;
    op.transaction.collection_move_rename(op.pg->cid(), place.oid(), op.pg->cid(),
                                          place.pg->object(place.number + renamed));
    op.pg->add_log(op.transaction);
    return true;
  });
  phase.warmup = 0;
  bench.measure(phase);
}

void remove_objects(Bench& bench, uint64_t per_group, const std::vector<uint64_t>& moved)
{
  Phase phase = bench.timed("remove", [&](Shard& shard, Operation& op) {
    if (shard.next == per_group * shard.group_count())
      return false;
    Place place = shard.place(shard.next++);
    if (shard.next <= moved[shard.index])
      place.number += renamed;
    op.pg = place.pg;
    op.transaction.remove(op.pg->cid(), place.oid());
    op.pg->add_log(op.transaction);
    return true;
  });
  phase.warmup = 0;
  bench.measure(phase);
}

}  // namespace

void run_metadata(Bench& bench)
{
  const Options& o = bench.options;
  const uint64_t per_group = bench.per_group(o.objects ? o.objects : default_objects);
  std::vector<uint64_t> moved(bench.client.shard_count());
  create_objects(bench, per_group);
  bench.remount_cold();
  stat_objects(bench, per_group);
  change_attributes(bench, per_group);
  list_objects(bench, per_group);
  rename_objects(bench, per_group, moved);
  remove_objects(bench, per_group, moved);
}

}  // namespace store_bench
