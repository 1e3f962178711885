// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <cstdio>

#include "test/objectstore/tablestore/sim/run.h"

namespace tablestore_sim {

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

void Run::note(Machine& noted)
{
  lied_ |= !noted.disk().damage().empty();
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
  note(*machine);
  Snapshot at_rest = machine->snapshot();
  at_rest.image.crash(Fate::drop, random);
  auto rotten = [this](const std::string&, uint32_t, uint64_t) { lied_ = true; };
  if (!tablestore::sim::rot(&at_rest.image, random, rotten))
    return;
  auto before = std::move(machine);
  before->end();
  result_.count_crash(at_rest);
  faulty = false;
  std::optional<Snapshot> none;
  reopen(*before, at_rest, at_rest.image, random, false, &none);
}

void Run::crash(Snapshot snapshot, Random random)
{
  crash_in = 0;
  taken.reset();
  machine->disk().watch(nullptr);
  result_.ios += machine->disk().ios();
  result_.damaged_reads += machine->damaged_reads();
  result_.no_spaces += machine->disk().no_spaces();
  note(*machine);
  auto before = std::move(machine);
  before->end();
  tablestore::sim::recover_at_last(
    snapshot, random,
    {.trace = options.trace,
     .count = [this](const Snapshot& at) { result_.count_crash(at); },
     .heal = [this] { faulty = false; },
     .reopen = [&](const DiskImage& left, Random& random, bool may_crash,
                   std::optional<Snapshot>* next) {
       return reopen(*before, snapshot, left, random, may_crash, next);
     }});
  faulty = false;
}

/// Mounts, with a disk that fails now and then where `errors`. Empty, or why it does not.
std::string Run::mount(bool errors, bool may_crash, Random& random, std::optional<Snapshot>* next)
{
  Faults faults;
  if (errors)
    faults = {.read_error = 0.002, .flush_error = 0.02};
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

Reopened Run::reopen(const Machine& before, const Snapshot& crashed, const DiskImage& left,
                     Random& random, bool may_crash, std::optional<Snapshot>* next)
{
  machine.reset();   // that of an attempt before
  machine = std::make_unique<Machine>(left, random(), before.floor(), before.floor_lsn());
  follow(*machine);
  const bool errors = faulty && options.errors && random() % 2;
  const std::string why = mount(errors, may_crash, random, next);
  if (*next)
    return Reopened::again;
  if (!why.empty() && errors) {
    ++result_.died;
    *next = Snapshot{machine->disk().image(), 0, "recovery"};
    return Reopened::again;
  }
  if (!why.empty()) {
    if (!lied_)
      throw Failure{"the store does not open: " + why};
    ++result_.refused;
    over_ = true;
    return Reopened::refused;
  }
  try {
    if (lied_ && machine->recovered_lsn() < before.floor_lsn()) {
      over_ = true;   // a disk that lied_ has lost what had been seen
      return Reopened::refused;
    }
    machine->check_recovered(before, crashed, lied_);
  } catch (const Unreadable&) {
    if (!lied_)
      throw;
    ++result_.refused;
    over_ = true;
    return Reopened::refused;
  }
  if (unclean && !lied_)
    repair();
  machine->check_live(lied_, unclean);
  ++result_.checks;
  machine->flush_table_meanwhile();
  return Reopened::recovered;
}

/// Reads that failed may have left blocks that nothing owns, and counts that are wrong.
void Run::repair()
{
  machine->umount();
  if (const int left = machine->repair(); left != 0)
    throw Failure{"repair = " + std::to_string(left)};
  if (const int r = machine->mount(); r < 0)
    throw Failure{"mount after repair = " + std::to_string(r)};
  ++result_.repairs;
  unclean = false;
}

}  // namespace tablestore_sim
