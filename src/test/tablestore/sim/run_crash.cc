// How a history crashes and recovers.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "os/tablestore/engine/space/space_account.h"
#include "test/tablestore/sim/damage_bounds.h"
#include "test/tablestore/sim/run.h"

namespace tablestore::sim {

namespace {

constexpr size_t sides_per_life = 24;
constexpr unsigned fates_per_side = 2;

// What is damaged, what recovery starts from, and what it may cost.
void tell(const DiskImage& left, const Bounds& bounds) {
  for (const auto& [path, id] : left.names())
    for (const auto& [block, damaged] : left.inode(id).damaged)
      std::printf("    damaged: block %u of %s%s\n", block, path.c_str(),
                  damaged.unreadable ? ", unreadable" : "");
  const LiveLog log = read_live_log(left.healed());
  std::printf("    applied up to %llu\n", (unsigned long long)log.applied_lsn);
  for (const LiveLog::Group& g : log.groups)
    std::printf("    log group at %llu+%llu: transactions %llu to %llu, durable up to %llu\n",
                (unsigned long long)g.begin, (unsigned long long)(g.end - g.begin),
                (unsigned long long)g.first_lsn, (unsigned long long)g.last_lsn,
                (unsigned long long)g.watermark);
  std::printf("    nothing up to %llu may be missing%s%s\n",
              (unsigned long long)bounds.least_lsn,
              bounds.may_refuse() ? "; may be refused: " : "", bounds.refusal.c_str());
}

// Either does: there is space to open the table with.
bool has_ballast(const DiskImage& image) {
  const auto holds = [&image](const char* name, uint64_t least_bytes) {
    const DiskImage::InodeId id = image.lookup(name);
    if (!id) return false;
    const FileView& file = image.inode(id).current;
    return file.size >= least_bytes &&
           std::ranges::count(file.extents, FileView::Extent::hole) == 0;
  };
  return holds("ballast", ballast_bytes(Machine::engine_options().log_bytes)) ||
         holds("ballast-to-open", last_ballast_least_bytes);
}

}  // namespace

// From now on crashes come as arm() says, and some I/Os are remembered for side crashes.
void Run::watch() {
  machine_->disk().watch([this](const DiskImage& image, const char* io) {
    for (const char* c = io; *c; ++c)
      result_.trace_hash = (result_.trace_hash ^ uint8_t(*c)) * 0x100000001b3;
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
  result_.passed_ranges += counters.passed_ranges;
  result_.prepared += counters.prepared_bytes;
  result_.punched += counters.punched_bytes;
  result_.created += counters.containers_created;
  result_.removed += counters.containers_removed;
  result_.reclassed += counters.containers_reclassed;
}

void Run::decay(Random& random) {
  // At rest: nobody runs, nothing is pending.
  crash_in_ = 0;
  machine_->disk().watch(nullptr);
  Snapshot at_rest = machine_->snapshot();
  at_rest.image.crash(Fate::drop, random);
  const Decay how = random() % 2 ? Decay::rot : random() % 2 ? Decay::revert : Decay::bad_sector;
  auto decayed = [this](const std::string& path, uint32_t block) {
    if (options_.trace) std::printf("  block %u of %s decays\n", block, path.c_str());
  };
  if (!sim::decay(&at_rest.image, how, random, decayed)) return watch();
  count_life(*machine_);
  sides_.clear();
  auto before = std::move(machine_);
  result_.count_crash(at_rest);
  faulty_ = still_full_ = false;  // one attempt, which ends
  std::optional<Snapshot> none;
  Due due(at_rest);
  over_ = recover(&machine_, *before, &due, at_rest.image, random, false, &none) ==
          Reopened::refused;
  if (over_) return;
  watch();
  if (is_table_damaged(machine_->disk().image()) && random() % 2) salvage(random);
}

// As repair does, on a store that has just been opened: nothing is queued, nothing fails.
void Run::salvage(Random& random) {
  if (random() % 4 == 0) arm(random);
  const bool ours_too = !machine_->damage().rows[0].empty();
  const Status s = machine_->salvage();
  if (taken_ || machine_->meets_full_disk(s)) return;
  if (!s.ok() && !ours_too) throw Failure{"salvage: " + s.what()};
  if (!s.ok()) {
    over_ = refuse() == Reopened::refused;
    return;
  }
  ++result_.repairs;
  side_crashes(*machine_);
  machine_->accept_dropped();
  machine_->check_live();
  if (random() % 2) return;
  // Nothing that was covered comes to light.
  check(machine_->compact(), "compaction of a salvaged table");
  if (!taken_ && !machine_->table_is_full()) machine_->check_live();
}

// What this life could have left at the moments that were remembered.
void Run::side_crashes(const Machine& before) {
  std::vector<Snapshot> sides = std::exchange(sides_, {});
  for (const Snapshot& side : sides)
    for (unsigned n = 0; n < fates_per_side; ++n) {
      MachinePtr machine;
      const Reopened r = recover_at_last(&machine, before, side, side_random_);
      if (r == Reopened::recovered && side_random_() % 8 == 0) live_on(*machine, side_random_);
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
    if (!may_die(machine)) throw Failure{"the engine died: " + d.why};
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
  auto before = std::move(machine_);
  still_full_ = options_.full && before->disk().other_bytes() > 0;
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
  Due due(snapshot);
  return sim::recover_at_last(
      snapshot, random,
      {.trace = options_.trace,
       .count = [this](const Snapshot& at) { result_.count_crash(at); },
       .heal = [this] { faulty_ = still_full_ = false; },
       .reopen = [&](const DiskImage& left, Random& random, bool may_crash,
                     std::optional<Snapshot>* next) {
         const Reopened r = recover(machine, before, &due, left, random, may_crash, next);
         if (r != Reopened::again) return r;
         result_.ios += (*machine)->disk().ios();
         if (!*next) *next = (*machine)->snapshot();
         return r;
       }});
}

Reopened Run::recover(MachinePtr* result, const Machine& before, Due* due,
                      const DiskImage& left, Random& random, bool may_crash,
                      std::optional<Snapshot>* again) {
  *result = std::make_unique<Machine>(left, random(), before.floor(), before.floor_lsn());
  Machine& machine = **result;
  // A crash may have undone punches. A file system hands space out again only when it is durable
  // that it was given back, so that it is never more than full.
  if (still_full_ && random() % 2)
    machine.disk().set_other_bytes(std::min(
        before.disk().other_bytes(),
        Machine::capacity_bytes - std::min(Machine::capacity_bytes, left.taken_bytes())));
  Faults faults;
  if (faulty_ && options_.errors && random() % 2)
    faults = random() % 2 ? Faults{.data_read_error = 0.2}
                          : Faults{.read_error = 0.005, .flush_error = 0.02, .short_read = 0.005,
                                   .drops = 0.5, .call_error = 0.005};
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
  // A crash on the way may have been after the log was cut.
  const Reopened r = left.is_damaged() || !*again
                         ? judge(before, *again ? nullptr : &machine, why, due, left)
                         : Reopened::again;
  return *again ? Reopened::again : r;
}

// What has been recovered from `left`; of no machine, what may be lost by it.
Reopened Run::judge(const Machine& before, Machine* machine, const std::string& why, Due* due,
                    const DiskImage& left) {
  if (left.lost_promises()) {
    due->least_lsn = 0;
    if (!machine) return Reopened::again;
    if (!why.empty()) return machine->disk().refused().any() ? Reopened::again : refuse();
    try {
      machine->check_remains(before);
    } catch (const Unreadable&) {
    }
    return refuse();  // nothing more can be said of it
  }
  const Bounds bounds = bounds_of(left, due->acknowledged_lsn);
  if (options_.trace && left.is_damaged()) tell(left, bounds);
  if (left.is_damaged()) check_undamaged(before, due->least_lsn, left);
  // What an earlier attempt was allowed to lose, it may have lost.
  due->least_lsn = std::min(due->least_lsn, bounds.least_lsn);
  if (!machine) return Reopened::again;
  if (!why.empty() && machine->disk().no_spaces() > 0) {
    // And not because the ballast could not be removed either.
    const bool for_lack_of_space = why.find(std::strerror(ENOSPC)) != std::string::npos &&
                                   !machine->disk().refused().any();
    if (for_lack_of_space && has_ballast(left))
      throw Failure{"a full disk, a ballast, and it does not open: " + why};
    still_full_ = false;
  }
  if (!why.empty() && (machine->disk().refused().any() || machine->disk().no_spaces() > 0)) {
    ++result_.died;
    return Reopened::again;
  }
  if (!why.empty() && !bounds.may_refuse()) throw Failure{"the store does not open: " + why};
  if (!why.empty()) return refuse();
  // What earlier lives had committed was lost, as it may be: which states there were before them,
  // nobody knows any more.
  const uint64_t lsn = machine->recovered_lsn();
  if (due->least_lsn <= lsn && lsn < before.floor_lsn()) return refuse();
  machine->check_recovered(before, due->least_lsn);
  return Reopened::recovered;
}

Reopened Run::refuse() {
  ++result_.refused;
  return Reopened::refused;
}

// Without its damage, the disk holds all that it should.
void Run::check_undamaged(const Machine& before, uint64_t least_lsn, const DiskImage& left) {
  Machine machine(left.healed(), 1, before.floor(), before.floor_lsn());
  try {
    if (Status s = machine.open(); !s.ok())
      throw Failure{"does not open without its damage: " + s.what()};
    machine.check_recovered(before, least_lsn);
  } catch (const Died& d) {
    throw Failure{"without its damage, the engine dies: " + d.why};
  }
}

}  // namespace tablestore::sim
