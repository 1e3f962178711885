// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What the benchmark can do to a store.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "test/objectstore/tablestore/bench/client.h"
#include "test/objectstore/tablestore/bench/payload.h"

namespace store_bench {

/// All that a workload needs, and the results that it leaves. Main thread.
struct Bench {
  const Options& options;
  Store& store;
  Client& client;
  const Payload& payload;
  std::vector<PhaseResult> results;
  /// Single numbers, like the duration of a mount.
  std::vector<std::pair<std::string, double>> values;

  /// A measured phase of the options' depth, seconds and bytes.
  Phase timed(const std::string& name, MakeOperation make) const;
  /// One that lasts until `make` has no more.
  Phase whole(const std::string& name, MakeOperation make) const;
  void measure(const Phase& phase) { results.push_back(client.run(phase)); }
  /// The same in --parts that follow each other at once; what the store takes after each of
  /// them is among the values.
  void measure_in_parts(const Phase& phase);

  /// Objects of `size` bytes, `per_group` in each group, not measured.
  void populate(uint64_t per_group, uint64_t size);
  /// `objects` divided among the groups, rounded up.
  uint64_t per_group(uint64_t objects) const;
  /// Umounts, drops all caches, mounts.
  void remount_cold();
};

struct Workload {
  std::string name;
  std::string description;
  std::function<void(Bench&)> run;
  unsigned shards = 2;      ///< if not told otherwise; 0: one for each operation in flight
  bool existing = false;    ///< works on the store of an earlier run
};

std::span<const Workload> workloads();
const Workload* find_workload(const std::string& name);

// Parts of operations that several workloads share. They add to op.transaction.

/// What the OSD does before the first write of an object: it looks whether it is there.
void look_up(Shard& shard, const Place& place);
void add_new_object(Bench& bench, Operation& op, const Place& place, uint64_t size);
void add_overwrite(Bench& bench, Operation& op, const Place& place, uint64_t offset,
                   uint64_t length, uint64_t seed);
/// Reads, and compares the length and, with `check`, some bytes of the content.
void read_object(Bench& bench, Shard& shard, Operation& op, const Place& place, uint64_t offset,
                 uint64_t length, bool check);
/// The same of what add_overwrite() has written last, with this seed.
void read_overwritten(Bench& bench, Shard& shard, Operation& op, const Place& place,
                      uint64_t offset, uint64_t length, uint64_t seed);
/// Ends the program: a store that answers wrongly is not measured.
[[noreturn]] void wrong_answer(const std::string& what);

// write_workloads.cc
void run_new(Bench& bench);
void run_overwrite(Bench& bench);
void run_append(Bench& bench);
void run_mix(Bench& bench);
// read_workload.cc
void run_read(Bench& bench);
// metadata_workload.cc
void run_metadata(Bench& bench);
// omap_workload.cc
void run_omap(Bench& bench);
void run_removals(Bench& bench);
// space_workloads.cc
void run_aging(Bench& bench);
void run_clone(Bench& bench);
void run_full(Bench& bench);
// restart_workload.cc
void run_fill_and_die(Bench& bench);
void run_restart(Bench& bench);

}  // namespace store_bench
