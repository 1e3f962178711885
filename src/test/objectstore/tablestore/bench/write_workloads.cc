// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Writes of data: new objects, overwrites, appends, and overwrites among reads.
#include <algorithm>
#include <map>
#include <utility>

#include "test/objectstore/tablestore/bench/workloads.h"

namespace store_bench {

namespace {

constexpr uint64_t default_objects = 256;   // 1 GiB of 4 MiB objects
constexpr uint64_t verified_objects = 100;
constexpr uint64_t earlier = uint64_t(1) << 42;   // added to the number of objects that are gone

/// Offsets as a block device's: multiples of the length, or any.
uint64_t random_offset(const Options& o, Random& random)
{
  if (o.unaligned)
    return random.below(o.object_size - o.size + 1);
  return random.below(o.object_size / o.size) * o.size;
}

/// Objects of the same size come and go before: the store's space is not new any more.
void age(Bench& bench)
{
  const Options& o = bench.options;
  std::vector<uint64_t> written(bench.client.shard_count());
  Phase fill = bench.whole("age", [&](Shard& shard, Operation& op) {
    Place place = shard.place(shard.next++);
    written[shard.index] = shard.next;
    place.number += earlier;
    add_new_object(bench, op, place, o.size);
    return true;
  });
  fill.max_bytes = o.aged_bytes;
  bench.client.prepare(fill);
  bench.client.prepare(bench.whole("age", [&](Shard& shard, Operation& op) {
    if (shard.next == written[shard.index])
      return false;
    Place place = shard.place(shard.next++);
    place.number += earlier;
    op.pg = place.pg;
    op.transaction.remove(op.pg->cid(), place.oid());
    op.pg->add_log(op.transaction);
    return true;
  }));
  bench.store.settle();
}

/// Some of the objects that a shard wrote are read back after the measurement.
void verify_new(Bench& bench, std::vector<uint64_t>& written)
{
  bench.client.prepare(bench.whole("verify", [&](Shard& shard, Operation& op) {
    const uint64_t count = std::min(written[shard.index], verified_objects);
    if (shard.next == count)
      return false;
    const uint64_t step = written[shard.index] / count;
    read_object(bench, shard, op, shard.place(shard.next++ * step), 0, bench.options.size, true);
    return true;
  }));
}

/// Of some places that are overwritten what was written there last, to be read back after the
/// measurement. A shard's entries are its own.
class LastWrites {
 public:
  explicit LastWrites(Bench& bench)
    : bench(bench), writes(bench.client.shard_count()) {}

  void note(const Shard& shard, const Place& place, uint64_t offset, uint64_t seed)
  {
    // Where they overlap the last is not all that is there.
    if (!bench.options.unaligned && mix(place.number ^ mix(offset)) % remembered_one_of == 0)
      writes[shard.index].insert_or_assign({place.number, offset}, Write{place, seed});
  }

  void verify()
  {
    bench.client.prepare(bench.whole("verify", [this](Shard& shard, Operation& op) {
      auto& left = writes[shard.index];
      if (left.empty())
        return false;
      const auto& [at, write] = *left.begin();
      read_overwritten(bench, shard, op, write.place, at.second, bench.options.size, write.seed);
      left.erase(left.begin());
      return true;
    }));
  }

 private:
  static constexpr uint64_t remembered_one_of = 256;

  struct Write {
    Place place;
    uint64_t seed;
  };
  Bench& bench;
  std::vector<std::map<std::pair<uint64_t, uint64_t>, Write>> writes;   // by number and offset
};

}  // namespace

void run_new(Bench& bench)
{
  const Options& o = bench.options;
  if (o.aged_bytes > 0)
    age(bench);
  std::vector<uint64_t> written(bench.client.shard_count());
  const uint64_t per_group = o.objects ? bench.per_group(o.objects) : UINT64_MAX;
  MakeOperation make = [&](Shard& shard, Operation& op) {
    if (shard.next / shard.group_count() >= per_group)
      return false;
    const Place place = shard.place(shard.next++);
    written[shard.index] = shard.next;
    look_up(shard, place);
    add_new_object(bench, op, place, o.size);
    return true;
  };
  bench.measure(o.objects ? bench.whole("new", make) : bench.timed("new", make));
  verify_new(bench, written);
}

void run_overwrite(Bench& bench)
{
  const Options& o = bench.options;
  const uint64_t per_group = bench.per_group(o.objects ? o.objects : default_objects);
  bench.populate(per_group, o.object_size);
  LastWrites last(bench);
  bench.measure_in_parts(bench.timed("overwrite", [&](Shard& shard, Operation& op) {
    const Place place = shard.random_place(per_group);
    const uint64_t offset = random_offset(o, shard.random);
    const uint64_t seed = shard.random();
    last.note(shard, place, offset, seed);
    add_overwrite(bench, op, place, offset, o.size, seed);
    return true;
  }));
  last.verify();
}

void run_append(Bench& bench)
{
  const Options& o = bench.options;
  const uint64_t appends_per_object = std::max<uint64_t>(1, o.object_size / o.size);
  bench.measure(bench.timed("append", [&](Shard& shard, Operation& op) {
    // All groups of the shard in turn; each has one object that grows.
    const uint64_t turn = shard.next / shard.group_count();
    const uint64_t object = turn / appends_per_object * shard.group_count() +
                            shard.next % shard.group_count();
    const uint64_t offset = turn % appends_per_object * o.size;
    ++shard.next;
    const Place place = shard.place(object);
    if (offset == 0) {
      look_up(shard, place);
      add_new_object(bench, op, place, o.size);
    } else {
      add_overwrite(bench, op, place, offset, o.size, shard.random());
    }
    return true;
  }));
}

void run_mix(Bench& bench)
{
  const Options& o = bench.options;
  const uint64_t per_group = bench.per_group(o.objects ? o.objects : default_objects);
  bench.populate(per_group, o.object_size);
  bench.measure(bench.timed("mix", [&](Shard& shard, Operation& op) {
    const Place place = shard.random_place(per_group);
    const uint64_t offset = random_offset(o, shard.random);
    if (shard.random.below(100) < o.read_percent)
      read_object(bench, shard, op, place, offset, o.size, false);
    else
      add_overwrite(bench, op, place, offset, o.size, shard.random());
    return true;
  }));
}

}  // namespace store_bench
