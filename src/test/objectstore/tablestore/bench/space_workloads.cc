// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Space that is freed and used again: rounds of filling and deleting, clones, a full store.
#include <algorithm>
#include <deque>

#include "test/objectstore/tablestore/bench/workloads.h"

namespace store_bench {

namespace {

constexpr uint64_t KiB = 1024;
constexpr uint64_t default_aging_bytes = uint64_t(1) << 30;   // in one round
constexpr uint64_t default_clone_objects = 64;
constexpr unsigned clones_kept = 4;

/// Sizes of objects as they come in file systems: most small, most bytes in the large.
uint64_t mixed_size(uint64_t number)
{
  static constexpr uint64_t sizes[] = {1 * KiB,  4 * KiB,   4 * KiB,   8 * KiB,
                                       16 * KiB, 48 * KiB, 128 * KiB, 1024 * KiB};
  return sizes[mix(number ^ 0x5bd1e995) % std::size(sizes)];
}

struct Round {
  uint64_t first = 0;                  ///< number of the first object, by a shard's counting
  std::vector<uint64_t> written;       ///< objects of each shard
};

void fill(Bench& bench, Round& round, const std::string& name)
{
  Phase phase = bench.whole(name, [&](Shard& shard, Operation& op) {
    const Place place = shard.place(round.first + shard.next++);
    round.written[shard.index] = shard.next;
    look_up(shard, place);
    add_new_object(bench, op, place, mixed_size(place.number));
    return true;
  });
  phase.max_bytes = std::min(bench.options.max_bytes, default_aging_bytes);
  bench.measure(phase);
}

void empty(Bench& bench, const Round& round, const std::string& name)
{
  bench.measure(bench.whole(name, [&](Shard& shard, Operation& op) {
    if (shard.next == round.written[shard.index])
      return false;
    const Place place = shard.place(round.first + shard.next++);
    op.pg = place.pg;
    op.transaction.remove(op.pg->cid(), place.oid());
    op.pg->add_log(op.transaction);
    return true;
  }));
}

}  // namespace

void run_aging(Bench& bench)
{
  Round round;
  round.written.resize(bench.client.shard_count());
  for (unsigned i = 1; i <= bench.options.rounds; ++i) {
    const std::string n = std::to_string(i);
    fill(bench, round, "fill " + n);
    bench.values.emplace_back("used bytes full " + n, bench.store.used_bytes());
    bench.values.emplace_back("directory bytes full " + n,
                              directory_bytes(bench.store.directory()));
    empty(bench, round, "empty " + n);
    bench.values.emplace_back("used bytes empty " + n, bench.store.used_bytes());
    bench.values.emplace_back("directory bytes empty " + n,
                              directory_bytes(bench.store.directory()));
    round.first += *std::max_element(round.written.begin(), round.written.end());
  }
}

/// Each write is the first one after a snapshot: the object is cloned before, in the same
/// transaction. Of an object's clones the last few are kept, as when snapshots are trimmed.
void run_clone(Bench& bench)
{
  const Options& o = bench.options;
  const uint64_t objects = o.objects ? o.objects : default_clone_objects;
  const uint64_t per_group = bench.per_group(objects);
  bench.populate(per_group, o.object_size);
  std::vector<std::vector<uint64_t>> snaps(o.pgs, std::vector<uint64_t>(per_group));
  bench.measure(bench.timed("clone and overwrite", [&](Shard& shard, Operation& op) {
    const Place place = shard.random_place(per_group);
    uint64_t& snap = snaps[place.pg->index()][place.number / o.pgs];
    ++snap;
    auto& t = op.transaction;
    t.clone(place.pg->cid(), place.oid(), place.oid(snapid_t(snap)));
    if (snap > clones_kept)
      t.remove(place.pg->cid(), place.oid(snapid_t(snap - clones_kept)));
    const uint64_t offset = shard.random.below(o.object_size / o.size) * o.size;
    add_overwrite(bench, op, place, offset, o.size, shard.random());
    return true;
  }));
}

namespace {

/// Of a shard's objects, by its counting, those that are there. Both are of the same group, as
/// in each transaction of an OSD: whole rounds of the shard's groups.
struct Alive {
  uint64_t first = 0, end = 0;
};
using Living = std::vector<Alive>;

/// Until each group has so many.
void add_objects(Bench& bench, Living& living, uint64_t per_group)
{
  bench.client.prepare(bench.whole("fill", [&](Shard& shard, Operation& op) {
    Alive& a = living[shard.index];
    if (a.end >= per_group * shard.group_count())
      return false;
    add_new_object(bench, op, shard.place(a.end++), bench.options.size);
    return true;
  }));
}

/// In steps: what statfs tells comes a little later.
void fill_to_percent(Bench& bench, Living& living)
{
  const Options& o = bench.options;
  const uint64_t wanted = bench.store.total_bytes() / 100 * o.fill_percent;
  uint64_t per_group = 0;
  for (uint64_t used = bench.store.used_bytes(); used < wanted;
       used = bench.store.used_bytes()) {
    const uint64_t bytes = std::max<uint64_t>((wanted - used) / 2, 16 << 20);
    per_group += bench.per_group(bytes / o.size);
    add_objects(bench, living, per_group);
    bench.store.settle();
  }
}

}  // namespace

/// One object comes and the oldest of its group goes, in each transaction.
void run_full(Bench& bench)
{
  const Options& o = bench.options;
  Living living(bench.client.shard_count());
  if (o.objects)
    add_objects(bench, living, bench.per_group(o.objects));
  else
    fill_to_percent(bench, living);
  uint64_t objects = 0;
  for (const Alive& a : living)
    objects += a.end;
  bench.values.emplace_back("bytes of objects", objects * o.size);
  bench.values.emplace_back("used per cent", 100.0 * bench.store.used_bytes() /
                                                 bench.store.total_bytes());
  bench.measure_in_parts(bench.timed("replace", [&](Shard& shard, Operation& op) {
    Alive& a = living[shard.index];
    const Place oldest = shard.place(a.first++);
    const Place place = shard.place(a.end++);
    op.transaction.remove(oldest.pg->cid(), oldest.oid());
    add_new_object(bench, op, place, o.size);
    return true;
  }));
}

}  // namespace store_bench
