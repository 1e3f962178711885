// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The threads that load the store, built as an OSD's shards are.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/Finisher.h"
#include "common/ceph_mutex.h"
#include "include/Context.h"
#include "test/objectstore/tablestore/bench/placement_group.h"
#include "test/objectstore/tablestore/bench/recorder.h"

namespace store_bench {

class Shard;

/// What a workload fills in.
struct Operation {
  PlacementGroup* pg = nullptr;
  ObjectStore::Transaction transaction;
  uint64_t payload_bytes = 0;
  bool done = false;   ///< a read: it has happened, there is no transaction
};

/// Makes the next operation of a shard, in its thread. False: the shard has no more.
using MakeOperation = std::function<bool(Shard&, Operation&)>;

/// One stretch of load, common to all shards.
struct Load {
  MakeOperation make;
  Time from;                          ///< recorded from here on
  Time until = Time::max();
  uint64_t max_bytes = UINT64_MAX;
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> operations{0};
};

/// Object `number` and the group that it is in.
struct Place {
  PlacementGroup* pg;
  uint64_t number;

  ghobject_t oid(snapid_t snap = CEPH_NOSNAP) const { return pg->object(number, snap); }
};

/// One thread with some of the placement groups. It issues its share of the operations in flight
/// and, as an OSD's shard does, takes the store's commit callbacks through a ContextQueue; where a
/// store calls back from a thread of its own, the operation is handed over to the shard's. An
/// operation ends when its callback is called.
///
/// start() and wait() are called by the main thread; all else belongs to the shard's.
class Shard {
 public:
  Shard(unsigned index, ObjectStore& store, std::vector<PlacementGroup*> groups, uint64_t seed);
  ~Shard();

  /// `from_start`: `next` begins at 0 again, else the workload goes on where it was.
  void start(Load& load, unsigned operations_in_flight, bool from_start);
  void wait();
  bool finished();
  const Recorder& results() const { return recorder; }

  // For workloads.
  ObjectStore& store() { return os; }
  const unsigned index;
  Random random;
  uint64_t next = 0;    ///< counts the workload's own steps in a phase

  /// The i-th of this shard's objects: all shards' together are all numbers, each once.
  Place place(uint64_t i) const
  {
    PlacementGroup* pg = groups[i % groups.size()];
    return {pg, i / groups.size() * pgs_of_all + pg->index()};
  }
  /// The same for one of the first `per_group` of each group.
  Place random_place(uint64_t per_group)
  {
    return place(random.below(per_group * groups.size()));
  }
  size_t group_count() const { return groups.size(); }

 private:
  /// One of the operations in flight: the commit callback, which lives on and is used again.
  class Slot : public Context {
   public:
    explicit Slot(Shard& shard) : shard(shard) {}
    void complete(int r) override;
    void finish(int r) override {}

    Shard& shard;
    Operation op;
    Time begun;
    Time ended;
    bool in_flight = false;
  };

  void run();
  void proceed(Slot& slot);
  bool issue(Slot& slot);

  ObjectStore& os;
  const std::vector<PlacementGroup*> groups;
  const uint32_t pgs_of_all;
  Load* load = nullptr;
  std::vector<std::unique_ptr<Slot>> slots;
  Recorder recorder;
  std::vector<Slot*> completed;     ///< by callbacks in this thread

  ceph::mutex mutex = ceph::make_mutex("store_bench::Shard::mutex");
  ceph::condition_variable cond;
  ContextQueue committed{mutex, cond};
  // Under the mutex.
  std::vector<Slot*> ready;
  unsigned active = 0;
  bool stop = false;

  std::thread thread;
};

}  // namespace store_bench
