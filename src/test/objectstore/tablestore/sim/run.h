// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// One history as it happens: steps, crashes, recoveries. For history.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>

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
  void stumble(Random& random);
  void check_quiet();
  /// Some steps of it.
  void background(const char* work, Random& random);
  void engine_work(const char* what, const tablestore::Status& status);
  void fill_disk(Random& random);
  void set_faults(Random& random);
  void remount(Step::Kind kind, Random& random);
  void remount_or_die();
  /// An error of the store: is it the disk's? Else it is a failure.
  void expect_excuse(const std::string& what) const;
  /// The same of what opens the store.
  void expect_opening(int r, const std::string& what);

  // ---- crashes (run_crash.cc)
  /// The crash comes at one of the next I/Os.
  void arm(Random& random);
  /// The machine dies at `snapshot`, and perhaps again while it recovers.
  void crash(Snapshot snapshot, Random random);
  tablestore::sim::Reopened reopen(const Machine& before, const Snapshot& crashed,
                                   const DiskImage& left, Random& random, bool may_crash,
                                   std::optional<Snapshot>* next);
  std::string mount(bool errors, bool may_crash, Random& random, std::optional<Snapshot>* next);
  void repair();
  void rot(Random& random);
  void note(Machine& machine);
  void follow(Machine& machine);

  const HistoryOptions options;
  std::unique_ptr<Machine> machine;
  std::optional<Snapshot> taken;   ///< the crash that has happened
  uint64_t crash_in = 0;           ///< I/Os; 0: none is due
  bool faulty = false;             ///< the disk fails now and then
  bool unclean = false;            ///< reads have failed: there may be something to repair
};

}  // namespace tablestore_sim
