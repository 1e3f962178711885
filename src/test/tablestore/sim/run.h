// One history on its way: a store that lives, crashes, is recovered and lives on.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "test/tablestore/sim/frame/crash.h"
#include "test/tablestore/sim/history.h"
#include "test/tablestore/sim/machine.h"

namespace tablestore::sim {

// Two kinds of crashes: the one that a step asks for ends a life, and the history
// goes on with what was recovered. Side crashes are taken from the disk at moments on the way
// there: what such a crash leaves is recovered, compared, sometimes used for a while and crashed
// again, and thrown away.
class Run : public HistoryRun {
 public:
  explicit Run(const HistoryOptions& options);

  void step(const Step& step) override;
  void finish() override;

 private:
  using MachinePtr = std::unique_ptr<Machine>;

  void make(const Step& step, Random& random);
  void transaction(Random& random, bool abandon);
  void one(Op op, uint32_t object, uint32_t n);
  void larger_than_the_log(uint32_t object, Random& random);
  void background(Step::Kind kind, Random& random);
  void fill_disk(Random& random);
  static Faults slowness(Random& random);
  void set_faults(Random& random);
  void check(const Status& status, const char* doing);
  void check_vouched(const char* after);
  static bool may_die(Machine& machine);
  void decay(Random& random);
  void salvage(Random& random);

  void arm(Random& random);
  void watch();
  void count_life(Machine& machine);
  void crash(const Snapshot& snapshot, Random random);
  void side_crashes(const Machine& before);
  void live_on(Machine& machine, Random& random);
  // What has to be there after a crash. Damage may lower the least, and once lowered, by an attempt
  // that crashed, it stays so; whether a store may be refused goes by what was acknowledged.
  struct Due {
    explicit Due(const Snapshot& at)
        : acknowledged_lsn(at.acknowledged_lsn), least_lsn(at.acknowledged_lsn) {}
    const uint64_t acknowledged_lsn;
    uint64_t least_lsn;  // nothing up to it is missing
  };
  Reopened recover(MachinePtr* machine, const Machine& before, Due* due, const DiskImage& left,
                   Random& random, bool may_crash, std::optional<Snapshot>* again);
  Reopened judge(const Machine& before, Machine* machine, const std::string& why, Due* due,
                 const DiskImage& left);
  Reopened refuse();
  void check_undamaged(const Machine& before, uint64_t least_lsn, const DiskImage& left);
  Reopened recover_at_last(MachinePtr* machine, const Machine& before, const Snapshot& snapshot,
                           Random& random);

  const HistoryOptions options_;
  MachinePtr machine_;
  std::optional<Snapshot> taken_;  // the crash that has happened, unknown to the ghost that runs on
  std::vector<Snapshot> sides_;    // of this life
  Random side_random_;
  uint64_t crash_in_ = 0;          // I/Os; 0: none is due
  bool faulty_ = false;            // the disk fails now and then
  bool still_full_ = false;        // who filled the disk before the crash may be there after it
};

}  // namespace tablestore::sim
