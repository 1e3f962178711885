// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Reads. They are synchronous in the ObjectStore interface: each in flight has a thread.
#include <algorithm>

#include "test/objectstore/tablestore/bench/workloads.h"

namespace store_bench {

namespace {

constexpr uint64_t hot_bytes = 128 << 20;    // fits in every store's cache
constexpr uint64_t cold_bytes = uint64_t(1) << 30;
constexpr int most_passes = 5;

/// Reads all objects from `first` to `end` of each group, so that the caches hold these.
void read_all(Bench& bench, const std::string& name, uint64_t first, uint64_t end)
{
  const uint64_t size = bench.options.object_size;
  bench.client.prepare(bench.whole(name, [&bench, size, first, end](Shard& shard, Operation& op) {
    const uint64_t count = (end - first) * shard.group_count();
    if (shard.next == count)
      return false;
    const uint64_t i = first * shard.group_count() + shard.next++;
    read_object(bench, shard, op, shard.place(i), 0, size, true);
    return true;
  }));
}

/// Until a pass over all of it reads nothing from the disk any more. Where that does not come
/// about, what is measured is not hot, and ./run bench says so.
void read_until_cached(Bench& bench, uint64_t per_group)
{
  const UsageMeter meter(bench.options.dir);
  for (int pass = 0; pass < most_passes; ++pass) {
    const uint64_t before = meter.now().read_bytes;
    read_all(bench, "fill caches", 0, per_group);
    if (pass > 0 && meter.now().read_bytes == before)
      return;
  }
}

void measure_hot(Bench& bench, uint64_t per_group)
{
  const Options& o = bench.options;
  read_until_cached(bench, per_group);
  const uint64_t places_per_object = o.object_size / o.size;
  Phase phase = bench.timed("read hot", [&](Shard& shard, Operation& op) {
    read_object(bench, shard, op, shard.random_place(per_group),
                shard.random.below(places_per_object) * o.size, o.size, true);
    return true;
  });
  phase.max_bytes = UINT64_MAX;
  bench.measure(phase);
}

/// No place comes twice, so all of it has to come from the disk.
void measure_cold(Bench& bench, uint64_t per_group)
{
  const Options& o = bench.options;
  const uint64_t places_per_object = o.object_size / o.size;
  Phase phase = bench.timed("read cold", [&](Shard& shard, Operation& op) {
    const uint64_t places = per_group * shard.group_count() * places_per_object;
    if (shard.next == places)
      return false;
    const uint64_t i = jumping(shard.next++, places);
    read_object(bench, shard, op, shard.place(i / places_per_object),
                i % places_per_object * o.size, o.size, true);
    return true;
  });
  phase.warmup = 0;
  // Not all of them: no shard is done before the others.
  phase.max_bytes = per_group * o.pgs * o.object_size / 4 * 3;
  bench.measure(phase);
}

}  // namespace

/// A hot read finds everything in memory: all was read before. A cold one finds nothing. After a
/// start its caches are empty, and what is read goes to memory that the process gets fresh; with
/// --other-bytes they hold other objects, and it goes where those were.
void run_read(Bench& bench)
{
  const Options& o = bench.options;
  const uint64_t wanted = (o.cold ? cold_bytes : hot_bytes) / o.object_size;
  const uint64_t per_group = bench.per_group(o.objects ? o.objects : wanted);
  const uint64_t others = o.other_bytes ? bench.per_group(o.other_bytes / o.object_size) : 0;
  bench.populate(per_group + others, o.object_size);
  bench.store.empty_log();
  bench.remount_cold();
  if (others)
    read_all(bench, "fill caches", per_group, per_group + others);
  if (o.cold)
    measure_cold(bench, per_group);
  else
    measure_hot(bench, per_group);
}

}  // namespace store_bench
