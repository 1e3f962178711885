// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/exhaustive.h"

#include <array>

#include "test/objectstore/tablestore/sim/base.h"

namespace tablestore_sim {

using tablestore::sim::Exhaustive;
using tablestore::sim::ExhaustiveLog;
using tablestore::sim::ExhaustiveOptions;
using tablestore::sim::ExhaustiveResult;
using tablestore::sim::fate_name;
using tablestore::sim::fates;

namespace {

/// What mkfs leaves when it is interrupted.
std::vector<Snapshot> crashes_of_mkfs()
{
  std::vector<Snapshot> snapshots;
  Machine machine(DiskImage(), 5, State(), 0);
  machine.disk().watch([&](const DiskImage& image, const char* io) {
    snapshots.push_back(machine.snapshot(image, io));
  });
  if (int r = machine.mkfs(); r < 0)
    throw Failure{"mkfs = " + std::to_string(r)};
  machine.disk().watch(nullptr);
  return snapshots;
}

/// mkfs that is interrupted can be run again. It was the label's own write where that is damaged.
void make_again(DiskImage image, const std::string& crash, Random& random)
{
  Machine machine(std::move(image), random(), State(), 0);
  int r = machine.mkfs();
  if (r == -EIO && machine.disk().remove("label").ok())   // which its message says to do
    r = machine.mkfs();
  if (r == 0)
    r = machine.mount();
  if (r < 0)
    throw Failure{"after mkfs that crashed at " + crash + ": " + std::to_string(r)};
  machine.make_first_collections();
  machine.commit_all();
  machine.check_live(false);
}

struct Short {
  using Machine = tablestore_sim::Machine;
  using Base = tablestore_sim::Base;
  using Op = OpOnObject;
  static constexpr const char* subject = "the store";
  static constexpr unsigned op_kinds = tablestore_sim::op_kinds;
  static constexpr uint64_t log_every = 100;

  static std::array<const Base*, 2> bases() { return {&fresh_base(), &wrapped_base()}; }
  static void begin(const ExhaustiveOptions& options, ExhaustiveResult* result)
  {
    if (options.part != 0)
      return;
    for (const Snapshot& snapshot : crashes_of_mkfs()) {
      ++result->crash_points;
      for (Fate fate : fates) {
        ++result->cases;
        ++result->recoveries;
        Random random(result->cases);
        DiskImage image = snapshot.image;
        image.crash(fate, random);
        make_again(std::move(image), snapshot.io + ", fate " + fate_name(fate), random);
      }
    }
  }
  /// Of the base's first collection of pool 1: its object with blocks and a snapshot, or for what
  /// is about small data the one that is inline. Sizes differ with the place, so that slots do.
  static Op op(unsigned kind, size_t place)
  {
    const bool small = tablestore_sim::Op(kind) == tablestore_sim::Op::write_inline;
    return {tablestore_sim::Op(kind), 1, small ? 3u : 0u, uint32_t(3 + 5 * place)};
  }
  static const char* name(const Op& op) { return op_name(op.op); }
  static std::string open(Machine& machine)
  {
    const int r = machine.mount();
    return r < 0 ? "mount = " + std::to_string(r) : "";
  }
  static void run(Machine& machine, const Op& op)
  {
    if (int r = machine.transaction({op}); r < 0)
      throw Failure{"a transaction is refused: " + std::to_string(r)};
  }
  static void finish(Machine& machine, size_t ops, std::vector<Snapshot>* snapshots)
  {
    snapshots->push_back(machine.snapshot());
    if (ops == 1)
      machine.umount();
    machine.disk().watch(nullptr);
    if (ops > 1)
      machine.check_live(false);
    machine.end();
  }
  static void check_recovered(Machine& machine, const Machine& before, const Snapshot& crashed)
  {
    machine.check_recovered(before, crashed.acknowledged_lsn, false);
  }
  static void check_running(Machine& machine) { machine.check_live(false); }
  static void end(Machine& machine) { machine.end(); }
};

}  // namespace

ExhaustiveResult run_exhaustive(const ExhaustiveOptions& options, const ExhaustiveLog& log)
{
  return Exhaustive<Short>(options, log).run();
}

}  // namespace tablestore_sim
