// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// One history as it happens: steps, crashes, recoveries. For history.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "test/objectstore/tablestore/sim/healing.h"
#include "test/objectstore/tablestore/sim/history.h"
#include "test/objectstore/tablestore/sim/machine.h"
#include "test/tablestore/sim/frame/crash.h"

namespace tablestore_sim {

/// Owns the machine that is alive. A crash is a copy of the disk that SimDisk::watch takes in the
/// middle of a step; the machine does not know, and is replaced when the step has ended.
class Run : public tablestore::sim::HistoryRun {
 public:
  explicit Run(const HistoryOptions& options);

  void step(const Step& step) override;
  void finish() override;

 private:
  // ---- steps (run.cc)
  void make(const Step& step, Random& random);
  void transaction(Step::Kind kind, Random& random);
  /// Of a transaction that the store has queued or refused.
  void count_transaction(int r);
  void stumble(Random& random);
  void check_quiet();
  /// Some steps of it.
  void background(const char* work, Random& random);
  void engine_work(const char* what, const tablestore::Status& status);
  void fill_disk(Random& random);
  void set_faults(Random& random);
  void remount(Step::Kind kind, Random& random);
  void commit(Random& random);
  void change_caches(Random& random);
  void empty_containers(Random& random);
  void decay(Random& random);
  void decay_row(Random& random);
  /// Nobody has noticed yet, or nobody cares: what is damaged is changed.
  void live_with_damage(Random& random);
  void compact();
  void remount_or_die();
  /// The store ends, or refuses something: a failure, unless it is listed there.
  void expect_excuse(const std::string& what);
  /// The disk has refused something: what was asked for may say so, and nothing may end by it.
  bool may_give_up() const;
  /// The same of what opens the store.
  void expect_opening(int r, const std::string& what);

  // ---- crashes (run_crash.cc)
  /// The crash comes at one of the next I/Os.
  void arm(Random& random);
  /// The machine dies at `snapshot`, and perhaps again while it recovers.
  void crash(Snapshot snapshot, Random random);
  tablestore::sim::Reopened reopen(const Machine& before, const DiskImage& left, Random& random,
                                   bool may_crash, std::optional<Snapshot>* next);
  tablestore::sim::Reopened judge(const Machine& before, const std::string& why,
                                  bool crashed_again, const DiskImage& left);
  /// Without its damage, the disk holds all that it should.
  void check_undamaged(const Machine& before, const DiskImage& left);
  tablestore::sim::Reopened refuse();
  std::string mount(bool errors, bool may_crash, Random& random, std::optional<Snapshot>* next);
  void repair(Random& random);
  void rot(Random& random);
  void heal(Random& random);
  void note(const Healing& healing);
  void follow(Machine& machine);

  const HistoryOptions options;
  std::unique_ptr<Machine> machine;
  std::optional<Snapshot> taken;   ///< the crash that has happened
  uint64_t crash_in = 0;           ///< I/Os; 0: none is due
  bool mounts_crashed = false;     ///< since the last crash of a store that was mounted
  uint64_t acknowledged_lsn = 0;   ///< before the last crash of a store that was mounted
  uint64_t least_lsn = 0;          ///< of a recovery: nothing up to it may be missing
  bool faulty = false;             ///< the disk fails now and then
  bool unclean = false;            ///< reads have failed: there may be something to repair
};

}  // namespace tablestore_sim
