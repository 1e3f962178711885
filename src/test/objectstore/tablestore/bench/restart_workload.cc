// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// How long a store takes to be there again after kill -9. Two runs: one dies, one restarts.
#include <csignal>
#include <thread>

#include <unistd.h>

#include "common/Cond.h"
#include "test/objectstore/tablestore/bench/workloads.h"

namespace store_bench {

namespace {

constexpr uint64_t default_objects = 100000;

}  // namespace

/// Kills the whole process in the middle of the load; there is no result.
void run_fill_and_die(Bench& bench)
{
  const Options& o = bench.options;
  const uint64_t per_group = bench.per_group(o.objects ? o.objects : default_objects);
  bench.populate(per_group, o.size);
  std::jthread killer([&] {
    std::this_thread::sleep_for(duration_of(o.seconds));
    ::kill(::getpid(), SIGKILL);
  });
  bench.client.prepare(bench.whole("load", [&](Shard& shard, Operation& op) {
    add_overwrite(bench, op, shard.random_place(per_group), 0, o.size, shard.random());
    return true;
  }));
}

void run_restart(Bench& bench)
{
  bench.values.emplace_back("mount seconds", bench.store.mount_seconds());
  PlacementGroup& pg = bench.client.group(0);
  ObjectStore& os = bench.store.os();
  const ghobject_t oid = pg.object(0);

  Time begin = Clock::now();
  ceph::buffer::list bl;
  require(os.read(pg.handle(), oid, 0, bench.options.size, bl), "the first read");
  if (bl.length() != bench.options.size)
    wrong_answer("the first read found " + std::to_string(bl.length()) + " bytes");
  bench.values.emplace_back("first read seconds", seconds_of(Clock::now() - begin));

  begin = Clock::now();
  C_SaferCond durable;
  ObjectStore::Transaction t;
  pg.add_attributes(t, oid);
  t.register_on_commit(&durable);
  require(os.queue_transaction(pg.handle(), std::move(t)), "the first write");
  durable.wait();
  bench.values.emplace_back("first commit seconds", seconds_of(Clock::now() - begin));
}

}  // namespace store_bench
