// A store on a simulated disk, and what it should hold.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "os/tablestore/engine/engine.h"
#include "test/tablestore/sim/frame/snapshot.h"
#include "test/tablestore/sim/frame/verdict.h"
#include "test/tablestore/sim/model.h"
#include "test/tablestore/sim/sim_disk.h"
#include "test/tablestore/sim/stepped_threads.h"
#include "test/tablestore/sim/transaction_builder.h"

namespace tablestore::sim {

// One life of a store: from an image to the next crash. Single-threaded.
class Machine {
 public:
  static EngineOptions engine_options();
  static constexpr uint64_t capacity_bytes = 160 << 20;

  // `floor`: the state that must be there, after transaction `floor_lsn`.
  Machine(DiskImage image, uint64_t seed, State floor, uint64_t floor_lsn);
  ~Machine();

  static DiskImage format();
  // Of the stores that are made and opened from now on: EngineOptions::provision_bytes.
  static void provision(uint64_t bytes) { provision_bytes_ = bytes; }
  // What is written from now on: the same bytes in every run.
  static void begin_contents(uint64_t number) { next_content_ = number; }

  SimDisk& disk() { return *disk_; }
  const SimDisk& disk() const { return *disk_; }
  Engine& engine() { return *engine_; }
  SteppedThreads& threads() { return *threads_; }

  // From now on it opens with what is left: EngineOptions::accept_log_loss.
  void accept_log_loss() { accepts_log_loss_ = true; }
  // Opens the engine. Throws Died.
  Status open();
  // The table has met a full disk. RocksDB looks for space again after some seconds of real time,
  // for which a simulator does not wait: such a store is to be stopped.
  bool table_is_full() const { return table_is_full_; }
  bool meets_full_disk(const Status& status);
  Status compact();
  // A compaction that the table wants.
  void step_compaction();
  // What the lane does when nothing happens for a while.
  void idle();
  // Reads some of what is queued, which must be there, or fail where it `may_fail`.
  void check_some(Random& random, bool may_fail);
  // From now on, the table is flushed now and then while writes are in flight.
  void flush_table_meanwhile();

  using OpOnObject = sim::OpOnObject;
  // Makes and queues one of `ops`; `abandon` instead of queueing.
  void transaction(std::span<const OpOnObject> ops, bool abandon = false);

  // A step of the commit lane, and all that is durable goes to the table.
  void commit();
  // The same until everything submitted is applied.
  void commit_all();

  // A copy of the disk as it is now.
  Snapshot snapshot() const;
  // The same from within SimDisk::watch.
  Snapshot snapshot(const DiskImage& image, const char* io) const;

  // After recovery from a snapshot of `before`: checks that nothing up to `least_lsn` is missing,
  // and all the state but what this disk's damage may hide; and makes it the floor of this life.
  void check_recovered(const Machine& before, uint64_t least_lsn);
  // The same of a disk whose flushes lied: it may have lost anything, also of what earlier lives
  // wrote. Blocks that were freed later may be others' by now.
  void check_remains(const Machine& before);
  // While nothing is queued: salvages the table, which may drop the rows that could not be read
  // before. Then accept_dropped() takes what is left for what should be there; before that, a crash
  // may leave it as it was, or any of it done. Throws Failure.
  Status salvage();
  void accept_dropped();
  // While nothing is queued: everything that was submitted is there, durable and applied.
  void check_live();
  // The same: what is said to be available can be had, and there is no more of the store than its
  // capacity.
  void check_space();
  // Nothing is queued, or on its way to a group.
  bool is_quiet() const;
  // There may be no space for a group that says nothing new.
  bool is_log_full() const;

  const State& floor() const { return floor_; }
  uint64_t floor_lsn() const { return floor_lsn_; }
  uint64_t damaged_reads() const { return damaged_reads_; }
  // What the disk's damage may hide now.
  Damage damage() const;
  // Something was acknowledged although a flush had failed before.
  bool trusted_failed_flush() const { return trusted_failed_flush_; }
  uint64_t recovered_lsn() const;
  // State after transaction `lsn`.
  State state_at(uint64_t lsn) const;

 private:
  class SimTxn;
  class CompactionsRun;
  void become(State state, uint64_t lsn);
  // The state `lsn` of `before` and nothing else, but for what `damage` may hide.
  void check_is(const Machine& before, uint64_t lsn, State state, const Damage& damage);
  Moments moments_at(const DiskImage& image, const std::string& io) const;

  std::unique_ptr<SimDisk> disk_;
  const std::shared_ptr<SteppedThreads> threads_ = std::make_shared<SteppedThreads>();
  Random random_;
  bool accepts_log_loss_ = false;
  bool table_is_full_ = false;
  bool compacts_ = false;
  bool flushes_ = false;
  State floor_;
  uint64_t floor_lsn_;
  RowNames droppable_;  // by the salvage that is under way
  State latest_;  // after all that was submitted, in the order of submission
  References references_;  // of latest_
  std::vector<std::shared_ptr<SimTxn>> submitted_;
  std::shared_ptr<SimTxn> in_hand_;  // also when the disk failed meanwhile: its writes go on
  uint64_t acknowledged_lsn_ = 0;
  uint64_t applied_lsn_ = 0;
  uint64_t damaged_reads_ = 0;
  bool trusted_failed_flush_ = false;
  static uint64_t next_content_;
  static uint64_t provision_bytes_;
  char sequencers_[2] = {};
  std::unique_ptr<Engine> engine_;  // last: its transactions refer to the rest
};

}  // namespace tablestore::sim
