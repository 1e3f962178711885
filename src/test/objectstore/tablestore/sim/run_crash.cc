// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <algorithm>
#include <cstdio>

#include "test/objectstore/tablestore/sim/run.h"
#include "test/tablestore/sim/damage_bounds.h"

namespace tablestore_sim {

using tablestore::sim::Bounds;
using tablestore::sim::bounds_of;
using tablestore::sim::Decay;
using tablestore::sim::Moment;
using tablestore::sim::Reopened;

void Run::follow(Machine& followed)
{
  followed.disk().watch_calls([this](const std::string& call) {
    for (const char c : call)
      result_.trace_hash = (result_.trace_hash ^ uint8_t(c)) * 0x100000001b3;
    if (options.trace)
      std::printf("    %s\n", call.c_str());
  });
}

void Run::arm(Random& random)
{
  crash_in = tablestore::sim::random_crash(random);
  machine->disk().watch([this](const DiskImage& image, const char* io) {
    if (crash_in > 0 && --crash_in == 0)
      taken = machine->snapshot(image, io);
  });
}

void Run::rot(Random& random)
{
  // At rest: nobody runs, nothing is pending.
  crash_in = 0;
  machine->disk().watch(nullptr);
  Snapshot at_rest = machine->snapshot();
  at_rest.image.crash(Fate::drop, random);
  const Decay how = random() % 2 ? Decay::rot : random() % 2 ? Decay::revert : Decay::bad_sector;
  auto decayed = [this](const std::string& path, uint32_t block) {
    if (options.trace)
      std::printf("  block %u of %s decays\n", block, path.c_str());
  };
  if (!tablestore::sim::decay(&at_rest.image, how, random, decayed))
    return;
  auto before = std::move(machine);
  before->end();
  result_.count_crash(at_rest);
  faulty = false;
  least_lsn = acknowledged_lsn = at_rest.acknowledged_lsn;
  std::optional<Snapshot> none;
  reopen(*before, at_rest.image, random, false, &none);
}

void Run::crash(Snapshot snapshot, Random random)
{
  crash_in = 0;
  taken.reset();
  machine->disk().watch(nullptr);
  result_.ios += machine->disk().ios();
  result_.damaged_reads += machine->damaged_reads();
  result_.no_spaces += machine->disk().no_spaces();
  least_lsn = acknowledged_lsn = snapshot.acknowledged_lsn;
  auto before = std::move(machine);
  before->end();
  tablestore::sim::recover_at_last(
    snapshot, random,
    {.trace = options.trace,
     .count = [this](const Snapshot& at) { result_.count_crash(at); },
     .heal = [this] { faulty = false; },
     .reopen = [&](const DiskImage& left, Random& random, bool may_crash,
                   std::optional<Snapshot>* next) {
       return reopen(*before, left, random, may_crash, next);
     }});
  faulty = false;
}

/// Mounts, with a disk that fails now and then where `errors`. Empty, or why it does not.
std::string Run::mount(bool errors, bool may_crash, Random& random, std::optional<Snapshot>* next)
{
  Faults faults;
  if (errors)
    faults = {.read_error = 0.002, .flush_error = 0.02, .short_read = 0.002, .drops = 0.5,
              .call_error = 0.002};
  auto open = [this] {
    const int r = machine->mount();
    return r < 0 ? "mount = " + std::to_string(r) : "";
  };
  auto snapshot = [this](const DiskImage& now, const char*) {
    Snapshot at = machine->snapshot(now, "recovery");
    at.moments.set(unsigned(Moment::recovering));
    return at;
  };
  return tablestore::sim::open_among_faults(machine->disk(), {open, snapshot}, faults, may_crash,
                                            random, next);
}

Reopened Run::reopen(const Machine& before, const DiskImage& left, Random& random, bool may_crash,
                     std::optional<Snapshot>* next)
{
  machine.reset();   // that of an attempt before
  if (left.is_damaged() && !left.lost_promises())
    check_undamaged(before, left);
  machine = std::make_unique<Machine>(left, random(), before.floor(), before.floor_lsn());
  follow(*machine);
  const bool errors = faulty && options.errors && random() % 2;
  const std::string why = mount(errors, may_crash, random, next);
  Reopened reopened;
  try {
    reopened = judge(before, why, next->has_value(), left);
  } catch (const Died& d) {
    // Of what the mount has written, on a disk that had failed before.
    if (!machine->disk().refused().on_the_way_to_durability())
      throw Failure{"the store dies when it has opened: " + d.why};
    reopened = Reopened::again;
  }
  // Statistics that could not be read are counted anew by repair.
  unclean |= machine->disk().refused().reads > 0;
  // Whoever writes next meets that error, and ends.
  if (reopened == Reopened::recovered && machine->disk().refused().on_the_way_to_durability())
    reopened = Reopened::again;
  mounts_crashed = reopened == Reopened::again;
  if (reopened == Reopened::again && !*next) {
    ++result_.died;
    *next = Snapshot{machine->disk().image(), 0, "recovery"};
  }
  if (reopened != Reopened::recovered)
    return reopened;
  heal(random);
  if (over_)
    return Reopened::refused;
  if (unclean)
    repair(random);
  machine->check_live(unclean);
  ++result_.checks;
  machine->flush_table_meanwhile();
  return Reopened::recovered;
}

/// What was recovered from `left`, or was not, which is `why`. A recovery that `crashed_again` may
/// have lost what it could: whether it has is for the next one to say.
Reopened Run::judge(const Machine& before, const std::string& why, bool crashed_again,
                    const DiskImage& left)
{
  const bool failed = machine->disk().refused().any();
  if (left.lost_promises()) {
    least_lsn = 0;
    if (crashed_again || (!why.empty() && failed))
      return Reopened::again;
    try {
      if (why.empty() && machine->recovered_lsn() >= before.floor_lsn())
        machine->check_recovered(before, 0, mounts_crashed);
    } catch (const Unreadable&) {
    }
    return refuse();   // nothing more can be said of it
  }
  const Bounds bounds = bounds_of(left, acknowledged_lsn, Machine::engine_options());
  // What an earlier attempt was allowed to lose, it may have lost.
  least_lsn = std::min(least_lsn, bounds.least_lsn);
  if (crashed_again || (!why.empty() && failed))
    return Reopened::again;
  if (!why.empty() && !bounds.may_refuse() &&
      !may_lose_both_copies(left, Machine::engine_options()))
    throw Failure{"the store does not open: " + why};
  if (!why.empty())
    return refuse();
  machine->check_recovered(before, least_lsn, mounts_crashed);
  return Reopened::recovered;
}

void Run::check_undamaged(const Machine& before, const DiskImage& left)
{
  Machine twin(left.healed(), 1, before.floor(), before.floor_lsn());
  try {
    if (int r = twin.mount(); r < 0)
      throw Failure{"does not open without its damage: " + std::to_string(r)};
    twin.check_recovered(before, least_lsn, mounts_crashed);
  } catch (const Died& d) {
    throw Failure{"without its damage, the store dies: " + d.why};
  }
}

Reopened Run::refuse()
{
  ++result_.refused;
  over_ = true;
  return Reopened::refused;
}

void Run::heal(Random& random)
{
  Healing healing(*machine, random);
  if (!healing.heal())
    refuse();
  note(healing);
}

void Run::repair(Random& random)
{
  Healing healing(*machine, random);
  healing.repair();
  note(healing);
}

void Run::note(const Healing& healing)
{
  result_.repairs += healing.repairs();
  unclean &= !healing.is_clean();
}

}  // namespace tablestore_sim
