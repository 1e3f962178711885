// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/exhaustive.h"

#include "test/objectstore/tablestore/sim/base.h"
#include "test/objectstore/tablestore/sim/healing.h"
#include "test/tablestore/sim/damage_places.h"

namespace tablestore_sim {

using tablestore::sim::BlockDamage;
using tablestore::sim::Bounds;
using tablestore::sim::bounds_of;
using tablestore::sim::Cases;
using tablestore::sim::Exhaustive;
using tablestore::sim::ExhaustiveLog;
using tablestore::sim::ExhaustiveOptions;
using tablestore::sim::ExhaustiveResult;
using tablestore::sim::fate_name;
using tablestore::sim::fates;
using tablestore::sim::LiveLog;

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
void make_again(DiskImage image, Random& random)
{
  Machine machine(std::move(image), random(), State(), 0);
  int r = machine.mkfs();
  if (r == -EIO && machine.disk().remove("label").ok())   // which its message says to do
    r = machine.mkfs();
  if (r == 0)
    r = machine.mount();
  if (r < 0)
    throw Failure{"mkfs once more, and mount: " + std::to_string(r)};
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

  static std::vector<const Base*> bases()
  {
    return {&fresh_base(), &wrapped_base(), &provisioned_base()};
  }
  static void begin(const ExhaustiveOptions& options, Cases* cases, ExhaustiveResult* result)
  {
    // As an OSD has it, and no cache keeps what is not in use.
    set_cache_bytes(16 << 10);
    take_back_failed_transactions(false);
    if (options.part != 0 || options.damage || !cases->enter(0, "mkfs", "mkfs"))
      return;
    const auto snapshots = crashes_of_mkfs();
    for (size_t i = 0; i < snapshots.size(); ++i) {
      if (!cases->enter(1, std::to_string(i),
                        "crash at I/O " + std::to_string(i) + " (" + snapshots[i].io + ")"))
        continue;
      ++result->crash_points;
      for (Fate fate : fates) {
        if (!cases->enter(2, fate_name(fate), std::string("fate ") + fate_name(fate)))
          continue;
        ++result->cases;
        ++result->recoveries;
        Random random(cases->seed());
        DiskImage image = snapshots[i].image;
        image.crash(fate, random);
        make_again(std::move(image), random);
      }
    }
  }
  static void begin_history(const Base& base) { provision(base.provisioned_bytes); }
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
  static Snapshot finish(Machine& machine, size_t ops, std::vector<Snapshot>* snapshots)
  {
    snapshots->push_back(machine.snapshot());
    if (ops > 1) {
      machine.disk().watch(nullptr);
      machine.check_live(false);
    }
    if (int r = machine.umount(); r < 0)
      throw Failure{"umount = " + std::to_string(r)};
    machine.disk().watch(nullptr);
    if (!machine.disk().misuse().empty())
      throw Failure{machine.disk().misuse()};
    Snapshot rest = machine.snapshot();
    machine.end();
    return rest;
  }
  static void check_recovered(Machine& machine, const Machine& before, const Snapshot& crashed)
  {
    machine.check_recovered(before, crashed.acknowledged_lsn, false);
  }
  static void check_running(Machine& machine) { machine.check_live(false); }
  static void end(Machine& machine) { machine.end(); }

  /// The engine's simulator tries more; here it is about rows and objects.
  static bool damages_after(Fate fate) { return fate == Fate::drop || fate == Fate::keep; }
  static constexpr size_t damage_kinds = 1;
  static LiveLog live_log(const DiskImage& disk)
  {
    return tablestore::sim::read_live_log(disk, Machine::engine_options());
  }
  static std::vector<BlockDamage> damages(const DiskImage& older, const DiskImage& disk,
                                          const LiveLog& log, bool all)
  {
    return tablestore::sim::damages_of(older, disk, log, Machine::engine_options(), all);
  }
  static void recover_damaged(const Machine& before, const Snapshot& crashed, const DiskImage& left,
                              const LiveLog& log, Random& random, ExhaustiveResult* result)
  {
    const auto options = Machine::engine_options();
    const Bounds bounds = bounds_of(left, crashed.acknowledged_lsn, options, log);
    Machine machine(left, random(), {}, 0);
    if (const std::string why = open(machine); !why.empty()) {
      if (!bounds.may_refuse() && !may_lose_both_copies(left, options))
        throw Failure{"does not open: " + why};
      ++result->refused;
      if (bounds.may_refuse() && bounds.has_way_out)
        accept_loss(before, left, bounds, random, result);
      return;
    }
    machine.check_recovered(before, bounds.least_lsn, false);
    result->shortened += machine.floor_lsn() < crashed.acknowledged_lsn;
    result->damaged_reads += machine.damaged_reads();
    if (random() % 16)
      return;
    Healing healing(machine, random);
    if (!healing.heal())
      ++result->refused;
    else
      machine.check_live(false);
    result->repairs += healing.repairs();
  }

 private:
  /// The way out of a refusal: what lies before the damage is there.
  static void accept_loss(const Machine& before, const DiskImage& left, const Bounds& bounds,
                          Random& random, ExhaustiveResult* result)
  {
    Machine machine(left, random(), {}, 0);
    accept_log_loss(true);
    // Where it is not known which blocks are owned, nothing but repair opens it.
    std::string why = open(machine);
    const bool repairs = !why.empty() && machine.repair() >= 0;
    accept_log_loss(false);
    if (repairs)
      why = open(machine);
    if (!why.empty())
      throw Failure{"does not open when the loss is accepted: " + why};
    ++result->accepted;
    result->repairs += repairs;
    if (repairs)
      return;   // what has been given up is for healing.h to judge
    const uint64_t lsn = machine.recovered_lsn();
    // Of what an earlier life wrote, nobody knows any more how it came to be.
    if (lsn >= before.floor_lsn() || lsn < bounds.accepted_lsn)
      machine.check_recovered(before, bounds.accepted_lsn, false);
  }
};

}  // namespace

ExhaustiveResult run_exhaustive(const ExhaustiveOptions& options, const ExhaustiveLog& log)
{
  return Exhaustive<Short>(options, log).run();
}

}  // namespace tablestore_sim
