// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Reads. They are synchronous in the ObjectStore interface: each in flight has a thread.
#include <algorithm>

#include "test/objectstore/tablestore/bench/workloads.h"

namespace store_bench {

namespace {

constexpr uint64_t hot_bytes = 128 << 20;    // fits in every store's cache
constexpr uint64_t cold_bytes = uint64_t(1) << 30;

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

}  // namespace

/// A hot read finds everything in memory: all was read once before. A cold one finds nothing; as
/// long as few places are read twice, it stays so. After a start its caches are empty, and what
/// is read goes to memory that the process gets fresh; with --other-bytes they hold other
/// objects, and it goes where those were.
void run_read(Bench& bench)
{
  const Options& o = bench.options;
  const uint64_t wanted = (o.cold ? cold_bytes : hot_bytes) / o.object_size;
  const uint64_t per_group = bench.per_group(o.objects ? o.objects : wanted);
  const uint64_t others = o.other_bytes ? bench.per_group(o.other_bytes / o.object_size) : 0;
  bench.populate(per_group + others, o.object_size);
  bench.remount_cold();
  if (others)
    read_all(bench, "fill caches", per_group, per_group + others);
  if (!o.cold)
    read_all(bench, "read once", 0, per_group);
  const uint64_t places_per_object = o.object_size / o.size;
  Phase phase = bench.timed(o.cold ? "read cold" : "read hot", [&](Shard& shard, Operation& op) {
    read_object(bench, shard, op, shard.random_place(per_group),
                shard.random.below(places_per_object) * o.size, o.size, true);
    return true;
  });
  phase.max_bytes = UINT64_MAX;
  if (o.cold) {
    // Half of all places, so that three of four are read for the first time.
    phase.warmup = 0;
    phase.max_bytes = per_group * o.pgs * o.object_size / 2;
  }
  bench.measure(phase);
}

}  // namespace store_bench
