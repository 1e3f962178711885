// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Omap: one object with a million keys (a bucket's index), and many objects with a few (CephFS's
// small directories). Removals: what is left of those.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "test/objectstore/tablestore/bench/workloads.h"

namespace store_bench {

namespace {

constexpr uint64_t default_big_keys = 1000000;
constexpr uint64_t keys_per_operation = 10;
constexpr uint64_t keys_per_range = 100;
constexpr uint64_t value_bytes = 200;         // of an entry in a bucket's index
constexpr uint64_t small_objects_of_big_keys = 10;   // 100 K objects with the default
constexpr uint64_t big_object = uint64_t(1) << 41;
constexpr uint64_t kept_one_of = 100;         // keys, and objects, when the others are removed
constexpr int list_max = 10;

/// Counted up, keys come in random order.
std::string key_of(uint64_t i)
{
  char key[40];
  std::snprintf(key, sizeof(key), "entry_%016" PRIx64 ".%08" PRIx64, mix(i), i);
  return key;
}

std::map<std::string, ceph::buffer::list> rows_of(Bench& bench, uint64_t first)
{
  std::map<std::string, ceph::buffer::list> rows;
  for (uint64_t i = first; i < first + keys_per_operation; ++i)
    rows[key_of(i)] = bench.payload.random(i, value_bytes);
  return rows;
}

/// The big object is in the first shard's first group; the others have nothing to do with it.
Phase of_first_shard(Phase phase)
{
  phase.shards = 1;
  return phase;
}

Place big_place(Shard& shard)
{
  return {shard.place(0).pg, big_object};
}

void insert_big(Bench& bench, uint64_t keys)
{
  bench.client.prepare(of_first_shard(bench.whole("make", [&](Shard& shard, Operation& op) {
    if (shard.next++ > 0)
      return false;
    add_new_object(bench, op, big_place(shard), 0);
    return true;
  })));
  bench.measure(of_first_shard(bench.whole("big insert", [&](Shard& shard, Operation& op) {
    if (shard.next >= keys)
      return false;
    const Place place = big_place(shard);
    const auto rows = rows_of(bench, shard.next);
    shard.next += keys_per_operation;
    op.pg = place.pg;
    op.payload_bytes = keys_per_operation * value_bytes;
    op.transaction.omap_setkeys(op.pg->cid(), place.oid(), rows);
    op.pg->add_log(op.transaction);
    return true;
  })));
}

/// How many keys there are from `start` on, `keys_per_range` at most.
uint64_t read_range(ObjectStore& store, PlacementGroup& pg, const ghobject_t& oid,
                    const std::string& start)
{
  uint64_t seen = 0;
  const int r = store.omap_iterate(
      pg.handle(), oid, ObjectStore::omap_iter_seek_t{start},
      [&seen](std::string_view, std::string_view) {
        return ++seen == keys_per_range ? ObjectStore::omap_iter_ret_t::STOP
                                        : ObjectStore::omap_iter_ret_t::NEXT;
      });
  if (r < 0)
    wrong_answer("omap_iterate gave " + std::to_string(r));
  return seen;
}

/// From the first key that is not less than `hash` on.
void read_big_range(Shard& shard, Operation& op, uint64_t hash)
{
  const Place place = big_place(shard);
  char start[32];
  std::snprintf(start, sizeof(start), "entry_%016" PRIx64, hash);
  uint64_t keys = read_range(shard.store(), *place.pg, place.oid(), start);
  if (keys == 0)
    keys = read_range(shard.store(), *place.pg, place.oid(), "");
  if (keys == 0)
    wrong_answer("omap_iterate found no keys");
  op.payload_bytes = keys * value_bytes;
  op.done = true;
}

Phase usual(Phase phase)
{
  return phase;
}

/// From a random key on. One shard reads, as one thread at a time has an OSD's placement group.
void iterate_big(Bench& bench, const std::string& name, Phase when(Phase) = usual)
{
  Phase phase = of_first_shard(bench.timed(name, [](Shard& shard, Operation& op) {
    read_big_range(shard, op, shard.random());
    return true;
  }));
  phase.max_bytes = UINT64_MAX;
  bench.measure(when(phase));
}

/// All of them, each once but for a few: keys are hashes, so as many begin in each range.
MakeOperation each_range_once(uint64_t keys)
{
  return [ranges = std::max<uint64_t>(1, keys / keys_per_range)](Shard& shard, Operation& op) {
    if (shard.next == ranges)
      return false;
    read_big_range(shard, op, UINT64_MAX / ranges * jumping(shard.next++, ranges));
    return true;
  };
}

void remove_big(Bench& bench, uint64_t keys)
{
  bench.measure(of_first_shard(bench.whole("big remove", [&](Shard& shard, Operation& op) {
    if (shard.next >= keys / 2)
      return false;
    std::set<std::string> names;
    for (uint64_t i = 0; i < keys_per_operation; ++i)
      names.insert(key_of(shard.next++));
    const Place place = big_place(shard);
    op.pg = place.pg;
    op.transaction.omap_rmkeys(op.pg->cid(), place.oid(), names);
    op.pg->add_log(op.transaction);
    return true;
  })));
  bench.measure(of_first_shard(bench.whole("big remove range", [&](Shard& shard, Operation& op) {
    if (shard.next++ > 0)
      return false;
    const Place place = big_place(shard);
    op.pg = place.pg;
    op.transaction.omap_rmkeyrange(op.pg->cid(), place.oid(), "entry_", "entry_z");
    op.pg->add_log(op.transaction);
    return true;
  })));
}

void insert_small(Bench& bench, uint64_t per_group)
{
  bench.measure(bench.whole("small insert", [&](Shard& shard, Operation& op) {
    if (shard.next == per_group * shard.group_count())
      return false;
    const Place place = shard.place(shard.next++);
    look_up(shard, place);
    add_new_object(bench, op, place, 0);
    op.payload_bytes = keys_per_operation * value_bytes;
    op.transaction.omap_setkeys(op.pg->cid(), place.oid(),
                                rows_of(bench, place.number * keys_per_operation));
    return true;
  }));
}

void get_one_small(Shard& shard, Operation& op, const Place& place)
{
  ceph::buffer::list header;
  std::map<std::string, ceph::buffer::list> rows;
  if (shard.store().omap_get(place.pg->handle(), place.oid(), &header, &rows) < 0 ||
      rows.size() != keys_per_operation)
    wrong_answer("omap_get found " + std::to_string(rows.size()) + " keys");
  op.payload_bytes = rows.size() * value_bytes;
  op.done = true;
}

void get_small(Bench& bench, uint64_t per_group, const std::string& name)
{
  Phase phase = bench.timed(name, [&](Shard& shard, Operation& op) {
    get_one_small(shard, op, shard.random_place(per_group));
    return true;
  });
  phase.max_bytes = UINT64_MAX;
  bench.measure(phase);
}

MakeOperation each_small_once(uint64_t per_group)
{
  return [per_group](Shard& shard, Operation& op) {
    const uint64_t objects = per_group * shard.group_count();
    if (shard.next == objects)
      return false;
    get_one_small(shard, op, shard.place(jumping(shard.next++, objects)));
    return true;
  };
}

/// What is read is read for the first time: without a warm-up, and nothing twice.
Phase cold(Phase phase)
{
  phase.warmup = 0;
  return phase;
}

void update_small(Bench& bench, uint64_t per_group)
{
  bench.measure(bench.timed("small update", [&](Shard& shard, Operation& op) {
    const Place place = shard.random_place(per_group);
    const uint64_t first = place.number * keys_per_operation;
    op.pg = place.pg;
    op.payload_bytes = value_bytes;
    op.transaction.omap_setkeys(op.pg->cid(), place.oid(),
                                {{key_of(first + shard.random.below(keys_per_operation)),
                                  bench.payload.random(shard.random(), value_bytes)}});
    op.pg->add_attributes(op.transaction, place.oid());
    op.pg->add_log(op.transaction);
    return true;
  }));
}

void remove_small(Bench& bench, uint64_t per_group)
{
  bench.measure(bench.whole("small remove", [&](Shard& shard, Operation& op) {
    if (shard.next == per_group * shard.group_count())
      return false;
    const Place place = shard.place(shard.next++);
    op.pg = place.pg;
    op.transaction.remove(op.pg->cid(), place.oid());
    op.pg->add_log(op.transaction);
    return true;
  }));
}

/// What was removed is read at once, while no compaction has dropped it.
Phase followed_at_once(Phase phase)
{
  phase.more_follows = true;
  return phase;
}

Phase at_once(Phase phase)
{
  phase.goes_on = true;
  return cold(phase);
}

/// All but one of a hundred keys of the big object, as cls_rgw does it.
void thin_out_big(Bench& bench, uint64_t keys)
{
  Phase phase = followed_at_once(bench.whole("big remove", [&](Shard& shard, Operation& op) {
    if (shard.next >= keys)
      return false;
    std::set<std::string> names;
    for (uint64_t i = shard.next; i < shard.next + keys_per_operation; ++i) {
      if (i % kept_one_of != 0)
        names.insert(key_of(i));
    }
    shard.next += keys_per_operation;
    const Place place = big_place(shard);
    op.pg = place.pg;
    op.transaction.omap_rmkeys(op.pg->cid(), place.oid(), names);
    op.pg->add_log(op.transaction);
    return true;
  }));
  bench.measure(of_first_shard(phase));
}

/// All but one of a hundred objects of each group, with their omap.
void thin_out_small(Bench& bench, uint64_t per_group)
{
  bench.measure(followed_at_once(bench.whole("small remove", [&](Shard& shard, Operation& op) {
    while (shard.next < per_group * shard.group_count() &&
           shard.next / shard.group_count() % kept_one_of == 0)
      ++shard.next;
    if (shard.next >= per_group * shard.group_count())
      return false;
    const Place place = shard.place(shard.next++);
    op.pg = place.pg;
    op.transaction.remove(op.pg->cid(), place.oid());
    op.pg->add_log(op.transaction);
    return true;
  })));
}

/// Some objects from a random place of a group on.
void list_small(Bench& bench, uint64_t per_group, const std::string& name,
                Phase when(Phase) = usual)
{
  bench.measure(when(bench.timed(name, [&](Shard& shard, Operation& op) {
    const Place place = shard.random_place(per_group);
    std::vector<ghobject_t> found;
    if (shard.store().collection_list(place.pg->handle(), place.oid(), ghobject_t::get_max(),
                                      list_max, &found, nullptr) < 0)
      wrong_answer("a collection cannot be listed");
    op.done = true;
    return true;
  })));
}

}  // namespace

/// Reads of ranges and listings pass what was removed until a compaction drops it.
void run_removals(Bench& bench)
{
  const uint64_t keys = bench.options.objects ? bench.options.objects : default_big_keys;
  const uint64_t per_group = bench.per_group(keys / small_objects_of_big_keys);
  insert_big(bench, keys);
  insert_small(bench, per_group);
  iterate_big(bench, "big range before");
  list_small(bench, per_group, "list before");
  thin_out_big(bench, keys);
  iterate_big(bench, "big range after", at_once);
  thin_out_small(bench, per_group);
  list_small(bench, per_group, "list after", at_once);
}

/// --objects: the number of keys, of the one object and of all small ones together.
void run_omap(Bench& bench)
{
  const uint64_t keys = bench.options.objects ? bench.options.objects : default_big_keys;
  const uint64_t per_group = bench.per_group(keys / small_objects_of_big_keys);
  insert_big(bench, keys);
  insert_small(bench, per_group);
  bench.client.prepare(of_first_shard(bench.whole("fill caches", each_range_once(keys))));
  iterate_big(bench, "big range hot");
  bench.client.prepare(bench.whole("fill caches", each_small_once(per_group)));
  get_small(bench, per_group, "small get hot");
  bench.store.empty_log();
  bench.remount_cold();
  bench.measure(of_first_shard(cold(bench.timed("big range cold", each_range_once(keys)))));
  bench.remount_cold();   // what was read ahead can be the others' rows
  bench.measure(cold(bench.timed("small get cold", each_small_once(per_group))));
  update_small(bench, per_group);
  remove_small(bench, per_group);
  remove_big(bench, keys);
}

}  // namespace store_bench
