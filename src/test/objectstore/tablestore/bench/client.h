// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// All of the load on one store: placement groups, shards, and phases with their results.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "test/objectstore/tablestore/bench/options.h"
#include "test/objectstore/tablestore/bench/osd_rows.h"
#include "test/objectstore/tablestore/bench/shard.h"
#include "test/objectstore/tablestore/bench/store.h"
#include "test/objectstore/tablestore/bench/usage.h"

namespace store_bench {

/// One phase: what to do and when it ends, whichever comes first.
struct Phase {
  std::string name;
  MakeOperation make;
  unsigned depth = 16;
  double seconds = 0;               ///< 0: until `make` or max_bytes ends it
  double warmup = 0;                ///< seconds of the same before; only with seconds
  uint64_t max_bytes = UINT64_MAX;
  unsigned shards = 0;              ///< only the first of them work; 0: all
  bool goes_on = false;             ///< where the phase before ended, at once
  bool more_follows = false;        ///< one that goes on
};

/// What came out of it.
struct PhaseResult {
  std::string name;
  unsigned depth = 0;
  double seconds = 0;
  uint64_t operations = 0;          ///< that ended in these seconds
  uint64_t payload_bytes = 0;
  Recorder recorder;
  Usage usage;                      ///< in these seconds
  Usage usage_settled;              ///< and until the store's background work was quiet
  std::map<std::string, double> counters;   ///< by how much they rose
  uint64_t peak_memory_bytes = 0;
  std::string load_average;

  void dump(ceph::Formatter& f) const;
};

/// Owns the groups and, while they are open, the shards. Main thread.
class Client {
 public:
  Client(CephContext* cct, Store& store, const Options& options);
  ~Client();

  /// The first time on a new store.
  void create_groups();
  /// On one that has them. The store may be another instance than before.
  void open_groups();
  /// Before umount.
  void close_groups();

  PhaseResult run(const Phase& phase);
  /// The same where only the effect is wanted.
  void prepare(const Phase& phase);

  unsigned shard_count() const { return shards_wanted; }
  unsigned group_count() const { return groups.size(); }
  PlacementGroup& group(size_t i) { return *groups[i]; }
  const OsdRows& osd_rows() const { return rows; }

 private:
  void start_shards();
  void warm_up(const Phase& phase);
  void start_load(Load& load, const Phase& phase, bool from_start);
  void wait_for_load(const Load& load, const Phase& phase, Time end);
  bool finished();

  Store& store;
  const UsageMeter meter;
  const OsdRows rows;
  const unsigned shards_wanted;
  const uint64_t seed;
  std::vector<std::unique_ptr<PlacementGroup>> groups;
  std::vector<std::unique_ptr<Shard>> shards;
};

}  // namespace store_bench
