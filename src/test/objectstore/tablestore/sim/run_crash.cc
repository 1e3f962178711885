// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <algorithm>
#include <cstdio>

#include "test/objectstore/tablestore/sim/run.h"

namespace tablestore_sim {

using tablestore::sim::fate_name;
using tablestore::sim::fates;

namespace {

Fate random_fate(Random& random)
{
  // What leaves most to chance, half of the time.
  return random() % 2 ? Fate::scrambled : fates[random() % fates.size()];
}

}  // namespace

void Run::follow(Machine& followed)
{
  followed.disk().watch_calls([this](const std::string& call) {
    for (const char c : call)
      counts.trace_hash = (counts.trace_hash ^ uint8_t(c)) * 0x100000001b3;
    if (options.trace)
      std::printf("    %s\n", call.c_str());
  });
}

void Run::note(Machine& noted)
{
  lied |= !noted.disk().damage().empty();
}

void Run::arm(Random& random)
{
  crash_in = 1 + random() % (random() % 4 ? 40 : 400);
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
  std::vector<std::pair<std::string, DiskImage::InodeId>> files;
  const bool anywhere = random() % 4 == 0;   // the log, the table, the label
  for (const auto& [path, id] : at_rest.image.names()) {
    if ((anywhere || path.starts_with("containers/")) && !at_rest.image.inode(id).directory)
      files.emplace_back(path, id);
  }
  if (files.empty())
    return;
  const auto& [path, id] = files[random() % files.size()];
  for (int i = 0; i < (anywhere ? 2 : 20); ++i) {
    const uint64_t blocks = at_rest.image.inode(id).durable.extents.size();
    const uint32_t block = uint32_t(random() % std::max<uint64_t>(blocks, 1));
    lied |= at_rest.image.rot(id, block, random());
  }
  auto before = std::move(machine);
  before->end();
  ++counts.crashes;
  faulty = false;
  reopen(*before, at_rest, at_rest.image, random, false);
}

void Run::crash(Snapshot snapshot, Random random)
{
  crash_in = 0;
  taken.reset();
  machine->disk().watch(nullptr);
  counts.ios += machine->disk().ios();
  counts.damaged_reads += machine->damaged_reads();
  counts.no_spaces += machine->disk().no_spaces();
  note(*machine);
  auto before = std::move(machine);
  before->end();
  DiskImage image = snapshot.image;
  for (unsigned again = 0; !is_over; ++again) {
    const Fate fate = random_fate(random);
    image.crash(fate, random);
    if (options.trace)
      std::printf("  crash at \"%s\", fate %s, acknowledged up to %llu\n",
                  again ? "recovery" : snapshot.io.c_str(), fate_name(fate),
                  (unsigned long long)snapshot.acknowledged_lsn);
    ++counts.crashes;
    const bool may_crash = again < 3 && random() % 3 == 0;
    if (reopen(*before, snapshot, image, random, may_crash))
      break;
    image = taken ? taken->image : machine->disk().image();
    counts.in_recovery += taken.has_value();
    taken.reset();
    machine.reset();
    if (again == 3)
      faulty = false;
  }
  faulty = false;
}

/// Mounts, with a disk that fails now and then where `errors`.
bool Run::mount_fails(bool errors, std::string* why)
{
  if (errors)
    machine->disk().set_faults({.read_error = 0.002, .flush_error = 0.02});
  try {
    if (const int r = machine->mount(); r < 0)
      *why = "mount = " + std::to_string(r);
  } catch (const Died& d) {
    *why = d.why;
  }
  machine->disk().watch(nullptr);
  machine->disk().set_faults({});
  return !why->empty();
}

bool Run::reopen(const Machine& before, const Snapshot& crashed, DiskImage image, Random& random,
                 bool may_crash)
{
  machine = std::make_unique<Machine>(std::move(image), random(), before.floor(),
                                      before.floor_lsn());
  follow(*machine);
  const bool errors = faulty && options.errors && random() % 2;
  if (may_crash) {
    uint64_t in = 1 + random() % 30;
    machine->disk().watch([this, in](const DiskImage& now, const char* io) mutable {
      if (in > 0 && --in == 0)
        taken = machine->snapshot(now, io);
    });
  }
  std::string why;
  const bool fails = mount_fails(errors, &why);
  if (taken)
    return false;
  if (fails) {
    if (errors) {
      ++counts.died;
      return false;
    }
    if (!lied)
      throw Failure{"the store does not open: " + why};
    ++counts.refused;
    is_over = true;
    return true;
  }
  try {
    if (lied && machine->recovered_lsn() < before.floor_lsn()) {
      is_over = true;   // a disk that lied has lost what had been seen
      return true;
    }
    machine->check_recovered(before, crashed, lied);
  } catch (const Unreadable&) {
    if (!lied)
      throw;
    ++counts.refused;
    is_over = true;
    return true;
  }
  if (unclean && !lied)
    repair();
  machine->check_live(lied, unclean);
  ++counts.checks;
  machine->flush_table_meanwhile();
  return true;
}

/// Reads that failed may have left blocks that nothing owns, and counts that are wrong.
void Run::repair()
{
  machine->umount();
  if (const int left = machine->repair(); left != 0)
    throw Failure{"repair = " + std::to_string(left)};
  if (const int r = machine->mount(); r < 0)
    throw Failure{"mount after repair = " + std::to_string(r)};
  ++counts.repairs;
  unclean = false;
}

}  // namespace tablestore_sim
