// How a history crashes and recovers.
#include <cstdio>

#include "test/tablestore/sim/run.h"

namespace tablestore::sim {

namespace {

constexpr size_t sides_per_life = 24;
constexpr unsigned fates_per_side = 2;

}  // namespace

void Run::note_damage(const Machine& machine) {
  bool elsewhere = false;
  for (const auto& at : machine.damage(&elsewhere)) damage_.insert(at);
  lied_ |= elsewhere || !damage_.empty();
}

// From now on crashes come as arm() says, and some I/Os are remembered for side crashes.
void Run::watch() {
  machine_->disk().watch([this](const DiskImage& image, const char* io) {
    if (taken_) return;  // what runs on is a ghost
    if (crash_in_ > 0 && --crash_in_ == 0) {
      taken_ = machine_->snapshot(image, io);
      return;
    }
    if (side_random_() % 16) return;
    Snapshot side = machine_->snapshot(image, io);
    // Rare moments rather than common ones.
    if (sides_.size() < sides_per_life)
      sides_.push_back(std::move(side));
    else if (side.moments.any())
      sides_[side_random_() % sides_per_life] = std::move(side);
  });
}

// The crash comes at one of the next I/Os.
void Run::arm(Random& random) { crash_in_ = random_crash(random); }

void Run::count_life(Machine& machine) {
  const Counters& counters = machine.engine().counters();
  const SimDisk& disk = machine.disk();
  result_.ios += disk.ios();
  result_.no_spaces += disk.no_spaces();
  result_.late_writes += disk.late_writes();
  result_.short_reads += disk.short_reads();
  result_.damaged_reads += machine.damaged_reads();
  result_.checkpoints += counters.checkpoints;
  result_.full_logs += counters.log_full_waits;
  result_.prepared += counters.prepared_bytes;
  result_.punched += counters.punched_bytes;
  result_.created += counters.containers_created;
  result_.removed += counters.containers_removed;
  result_.reclassed += counters.containers_reclassed;
}

void Run::rot(Random& random) {
  // At rest: nobody runs, nothing is pending.
  crash_in_ = 0;
  machine_->disk().watch(nullptr);
  note_damage(*machine_);
  Snapshot at_rest = machine_->snapshot();
  at_rest.image.crash(Fate::drop, random);
  auto rotten = [this](const std::string& path, uint32_t block, uint64_t bit) {
    if (options_.trace)
      std::printf("  rot in block %u of %s, byte %llu\n", block, path.c_str(),
                  (unsigned long long)(bit / 8 % block_bytes));
    lied_ = true;
    if (path.starts_with("containers/"))
      damage_.insert({uint32_t(std::stoul(path.substr(path.rfind('/') + 1))), block});
  };
  if (!sim::rot(&at_rest.image, random, rotten)) return watch();
  count_life(*machine_);
  sides_.clear();
  auto before = std::move(machine_);
  result_.count_crash(at_rest);
  faulty_ = false;
  std::optional<Snapshot> none;
  over_ = recover(&machine_, *before, at_rest, at_rest.image, random, false, &none) ==
          Reopened::refused;
  if (!over_) watch();
}

// What this life could have left at the moments that were remembered.
void Run::side_crashes(const Machine& before) {
  std::vector<Snapshot> sides = std::exchange(sides_, {});
  if (lied_) return;  // what is damaged was not remembered with the moment
  for (const Snapshot& side : sides)
    for (unsigned n = 0; n < fates_per_side; ++n) {
      MachinePtr machine;
      recover_at_last(&machine, before, side, side_random_);
      if (side_random_() % 8 == 0) live_on(*machine, side_random_);
      result_.ios += machine->disk().ios();
    }
}

// What was recovered is used for a while, and crashes once more: what it believes of the disk must
// be so.
void Run::live_on(Machine& machine, Random& random) {
  try {
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      const OpOnObject o{Op(random() % op_kinds), uint32_t(random() % 6),
                         uint32_t(random() % 100000)};
      machine.transaction({&o, 1});
      ++result_.transactions;
      if (random() % 2) machine.commit();
    }
    machine.commit_all();
  } catch (const Died& d) {
    if (!machine.table_is_full()) throw Failure{"the engine died: " + d.why};
  }
  MachinePtr next;
  recover_at_last(&next, machine, machine.snapshot(), random);
  result_.ios += next->disk().ios();
}

// The machine dies at `snapshot`, and perhaps again while it recovers.
void Run::crash(const Snapshot& snapshot, Random random) {
  crash_in_ = 0;
  taken_.reset();
  machine_->disk().watch(nullptr);
  count_life(*machine_);
  note_damage(*machine_);
  auto before = std::move(machine_);
  side_crashes(*before);
  over_ = recover_at_last(&machine_, *before, snapshot, random) == Reopened::refused;
  faulty_ = false;
  if (over_) return;
  machine_->flush_table_meanwhile();
  machine_->disk().set_faults(slowness(random));
  watch();
}

Faults Run::slowness(Random& random) {
  return {.slow = random() % 2 ? 0.5 : 0, .late = random() % 2 ? 0.1 : 0};
}

Reopened Run::recover_at_last(MachinePtr* machine, const Machine& before,
                              const Snapshot& snapshot, Random& random) {
  return sim::recover_at_last(
      snapshot, random,
      {.trace = options_.trace,
       .count = [this](const Snapshot& at) { result_.count_crash(at); },
       .heal = [this] { faulty_ = false; },
       .reopen = [&](const DiskImage& left, Random& random, bool may_crash,
                     std::optional<Snapshot>* next) {
         const Reopened r = recover(machine, before, snapshot, left, random, may_crash, next);
         if (r != Reopened::again) return r;
         result_.ios += (*machine)->disk().ios();
         if (!*next) *next = (*machine)->snapshot();
         return r;
       }});
}

Reopened Run::recover(MachinePtr* result, const Machine& before, const Snapshot& crashed,
                      const DiskImage& left, Random& random, bool may_crash,
                      std::optional<Snapshot>* again) {
  *result = std::make_unique<Machine>(left, random(), before.floor(), before.floor_lsn());
  Machine& machine = **result;
  const bool errors = faulty_ && options_.errors && random() % 2;
  Faults faults;
  if (errors)
    faults = random() % 2 ? Faults{.data_read_error = 0.2}
                          : Faults{.read_error = 0.005, .flush_error = 0.02, .short_read = 0.005};
  const Opening opening{
      .open =
          [&machine] {
            const Status s = machine.open();
            return s.ok() ? "" : s.what();
          },
      .snapshot = [&machine](const DiskImage& now,
                             const char* io) { return machine.snapshot(now, io); }};
  const std::string why =
      open_among_faults(machine.disk(), opening, faults, may_crash, random, again);
  if (*again) return Reopened::again;
  if (!why.empty() && errors) {
    ++result_.died;
    return Reopened::again;
  }
  if (!why.empty()) {
    if (!lied_) throw Failure{"the store does not open: " + why};
    ++result_.refused;
    return Reopened::refused;
  }
  // A disk that lied has lost what had been seen.
  if (lied_ && machine.recovered_lsn() < before.floor_lsn()) return Reopened::refused;
  machine.check_recovered(before, crashed, damage_, lied_);
  return Reopened::recovered;
}

}  // namespace tablestore::sim
