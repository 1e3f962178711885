#include "test/tablestore/sim/history.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "test/tablestore/sim/base.h"

namespace tablestore::sim {

namespace {

Fate random_fate(Random& random) {
  // What leaves most to chance, half of the time.
  return random() % 2 ? Fate::scrambled : fates[random() % fates.size()];
}

class Run {
 public:
  explicit Run(const HistoryOptions& options) : options_(options) {
    const Base& base = options.wrapped ? wrapped_base() : fresh_base();
    machine_ = std::make_unique<Machine>(base.image, 1, base.state, base.lsn);
    if (Status s = machine_->open(); !s.ok()) throw Failure{"open: " + s.what()};
    machine_->flush_table_meanwhile();
  }

  void step(const Step& step);
  // The last crash, so that every history ends with a recovery.
  void finish() {
    if (over_) return;
    crash(machine_->snapshot(), Random(99));
    if (!over_) machine_->check_live(damage_);
  }
  bool over() const { return over_; }
  bool lied() const { return lied_; }
  HistoryResult& result() { return result_; }

 private:
  void make(const Step& step, Random& random);
  void transaction(Random& random, bool abandon);
  void arm(Random& random);
  void crash(Snapshot snapshot, Random random);
  bool reopen(const Machine& before, const Snapshot& crashed, DiskImage image, Random& random,
              bool may_crash);
  void rot(Random& random);
  void note_damage(const Machine& machine);

  const HistoryOptions options_;
  HistoryResult result_;
  std::unique_ptr<Machine> machine_;
  std::optional<Snapshot> taken_;  // the crash that has happened, unknown to the ghost that runs on
  uint64_t crash_in_ = 0;          // I/Os; 0: none is due
  bool faulty_ = false;            // the disk fails now and then
  bool over_ = false;              // the store was lost, as it may be
  bool lied_ = false;              // the disk did not keep its promises
  DamagedBlocks damage_;           // in containers
};

void Run::note_damage(const Machine& machine) {
  bool elsewhere = false;
  for (const auto& at : machine.damage(&elsewhere)) damage_.insert(at);
  lied_ |= elsewhere || !damage_.empty();
}

void Run::transaction(Random& random, bool abandon) {
  Machine::OpOnObject ops[4];
  const size_t count = 1 + random() % 4 / (1 + random() % 2);
  for (size_t i = 0; i < count; ++i) {
    Op op = Op(random() % op_kinds);
    if (op == Op::big_rows && random() % 3) op = Op::put_rows;
    ops[i] = {op, uint32_t(random() % 6), uint32_t(random() % 100000)};
  }
  machine_->transaction({ops, count}, abandon);
  ++result_.transactions;
}

// The crash comes at one of the next I/Os.
void Run::arm(Random& random) {
  crash_in_ = 1 + random() % (random() % 4 ? 40 : 400);
  machine_->disk().watch([this](const DiskImage& image, const char* io) {
    if (crash_in_ > 0 && --crash_in_ == 0) taken_ = machine_->snapshot(image, io);
  });
}

void Run::rot(Random& random) {
  // At rest: nobody runs, nothing is pending.
  crash_in_ = 0;
  machine_->disk().watch(nullptr);
  note_damage(*machine_);
  Snapshot at_rest = machine_->snapshot();
  at_rest.image.crash(Fate::drop, random);
  std::vector<std::pair<std::string, DiskImage::InodeId>> files;
  const bool anywhere = random() % 4 == 0;  // the log, the table, the label
  for (const auto& [path, id] : at_rest.image.names())
    if ((anywhere || path.starts_with("containers/")) && !at_rest.image.inode(id).directory)
      files.emplace_back(path, id);
  if (files.empty()) return;
  const auto& [path, id] = files[random() % files.size()];
  for (int i = 0; i < (anywhere ? 2 : 20); ++i) {
    const uint64_t blocks = at_rest.image.inode(id).durable.extents.size();
    const uint32_t block = uint32_t(random() % std::max<uint64_t>(blocks, 1));
    if (!at_rest.image.rot(id, block, random())) continue;
    lied_ = true;
    if (path.starts_with("containers/"))
      damage_.insert({uint32_t(std::stoul(path.substr(path.rfind('/') + 1))), block});
  }
  auto before = std::move(machine_);
  ++result_.crashes;
  faulty_ = false;
  reopen(*before, at_rest, at_rest.image, random, false);
}

// The machine dies at `snapshot`, and perhaps again while it recovers.
void Run::crash(Snapshot snapshot, Random random) {
  crash_in_ = 0;
  taken_.reset();
  machine_->disk().watch(nullptr);
  result_.ios += machine_->disk().ios();
  result_.damaged_reads += machine_->damaged_reads();
  const Counters& counters = machine_->engine().counters();
  result_.checkpoints += counters.checkpoints;
  result_.no_spaces += machine_->disk().no_spaces();
  result_.full_logs += counters.log_full_waits;
  result_.prepared += counters.prepared_bytes;
  result_.punched += counters.punched_bytes;
  result_.removed += counters.containers_removed;
  note_damage(*machine_);
  auto before = std::move(machine_);
  DiskImage image = snapshot.image;
  for (unsigned again = 0; !over_; ++again) {
    const Fate fate = random_fate(random);
    image.crash(fate, random);
    if (options_.trace)
      std::printf("  crash at \"%s\", fate %s, acknowledged up to %llu\n",
                  again ? "recovery" : snapshot.io.c_str(), fate_name(fate),
                  (unsigned long long)snapshot.acknowledged_lsn);
    ++result_.crashes;
    const bool may_crash = again < 3 && random() % 3 == 0;
    if (reopen(*before, snapshot, image, random, may_crash)) break;
    image = taken_ ? taken_->image : machine_->disk().image();
    if (taken_) ++result_.in_recovery;
    taken_.reset();
    machine_.reset();
    if (again == 3) faulty_ = false;
  }
  faulty_ = false;
}

// False: crashed (taken_), or failed by a failing disk.
bool Run::reopen(const Machine& before, const Snapshot& crashed, DiskImage image, Random& random,
                 bool may_crash) {
  machine_ = std::make_unique<Machine>(std::move(image), random(), before.floor(),
                                       before.floor_lsn());
  const bool errors = faulty_ && options_.errors && random() % 2;
  if (errors) machine_->disk().set_faults({.read_error = 0.002, .flush_error = 0.02});
  if (may_crash) {
    uint64_t in = 1 + random() % 30;
    machine_->disk().watch([this, in](const DiskImage& now, const char* io) mutable {
      if (in > 0 && --in == 0) taken_ = machine_->snapshot(now, io);
    });
  }
  std::string why;
  try {
    const Status s = machine_->open();
    if (!s.ok()) why = s.what();
  } catch (const Died& d) {
    why = d.why;
  }
  machine_->disk().watch(nullptr);
  machine_->disk().set_faults({});
  if (taken_) return false;
  if (!why.empty()) {
    if (errors) {
      ++result_.died;
      return false;
    }
    if (!lied_) throw Failure{"the store does not open: " + why};
    ++result_.refused;
    over_ = true;
    return true;
  }
  if (lied_ && machine_->recovered_lsn() < before.floor_lsn()) {
    over_ = true;  // a disk that lied has lost what had been seen
    return true;
  }
  machine_->check_recovered(before, crashed, damage_, lied_);
  machine_->flush_table_meanwhile();
  return true;
}

void Run::make(const Step& step, Random& random) {
  EngineStepper stepper = machine_->stepper();
  switch (step.kind) {
    case Step::Kind::transaction: return transaction(random, false);
    case Step::Kind::abandon: return transaction(random, true);
    case Step::Kind::commit:
      stepper.make_durable();
      if (random() % 2) stepper.apply();  // else the table stays behind by some groups
      return;
    case Step::Kind::requested: return stepper.checkpoint_if_requested();
    case Step::Kind::huge: {
      const Op op = random() % 3 ? Op::write_large : Op::remove;
      const Machine::OpOnObject o{op, uint32_t(random() % 6), uint32_t(random() % 10000 * 16 + 1)};
      machine_->transaction({&o, 1});
      ++result_.transactions;
      return;
    }
    case Step::Kind::bulk: {
      const Machine::OpOnObject op{Op::big_rows, uint32_t(random() % 6), uint32_t(random())};
      machine_->transaction({&op, 1});
      ++result_.transactions;
      return;
    }
    case Step::Kind::drain:
      machine_->engine().drain();
      note_damage(*machine_);
      if (!taken_ && !machine_->table_is_full()) machine_->check_live(damage_);
      return;
    case Step::Kind::checkpoint: {
      const Status s = machine_->engine().checkpoint();
      if (!s.ok() && !machine_->meets_full_disk(s) && !faulty_ && !lied_)
        throw Failure{"checkpoint: " + s.what()};
      if (!s.ok() && !machine_->meets_full_disk(s)) throw Died{s.what()};
      return;
    }
    case Step::Kind::prepare:
    case Step::Kind::shrink:
      for (uint64_t n = 1 + random() % 8; n > 0; --n) {
        const auto s = step.kind == Step::Kind::prepare ? stepper.prepare() : stepper.shrink();
        if (!s.ok() && !faulty_ && !lied_) throw Failure{"background work: " + s.status().what()};
        if (!s.ok()) throw Died{s.status().what()};
      }
      return;
    case Step::Kind::compact: {
      const Status s = machine_->engine().compact();
      if (!s.ok() && !machine_->meets_full_disk(s) && !faulty_ && !lied_)
        throw Failure{"compaction: " + s.what()};
      if (!s.ok() && !machine_->meets_full_disk(s)) throw Died{s.what()};
      return;
    }
    case Step::Kind::fill_disk: {
      if (!options_.full) return;
      const auto space = machine_->disk().space();
      const uint64_t available = space.ok() ? space->available_bytes : 0;
      const uint64_t most = random() % 2 ? 8 << 20 : 32 << 10;  // below it, the table's part too
      const uint64_t left = std::min<uint64_t>(available, random() % most);
      machine_->disk().set_other_bytes(random() % 3 ? available - left : 0);
      return;
    }
    case Step::Kind::faults: {
      Faults faults{.slow = 0.5};
      if (options_.errors) {
        faults.read_error = random() % 2 ? 0.001 : 0;
        faults.write_error = random() % 2 ? 0.003 : 0;
        faults.flush_error = random() % 2 ? 0.005 : 0;
      }
      if (options_.damage) {
        faults.lost_write = random() % 2 ? 0.005 : 0;
        faults.misdirected_write = random() % 2 ? 0.005 : 0;
      }
      faulty_ = options_.errors;
      machine_->disk().set_faults(faults);
      return;
    }
    case Step::Kind::rot:
      if (options_.damage) rot(random);
      return;
    case Step::Kind::crash: return arm(random);
    case Step::Kind::close: {
      const Status s = machine_->engine().close();
      if (!s.ok() && !machine_->meets_full_disk(s) && !faulty_ && !lied_)
        throw Failure{"close: " + s.what()};
      if (!taken_) crash(machine_->snapshot(), random);
      return;
    }
  }
}

void Run::step(const Step& step) {
  if (over_) return;
  Random random(step.seed);
  if (options_.trace) {
    std::printf("%s\n", to_string(step).c_str());
    machine_->disk().watch_calls([](const std::string& call) {
      std::printf("    %s\n", call.c_str());
    });
  }
  if (step.kind == Step::Kind::crash && crash_in_ > 0) {  // the last one did not come in time
    crash(machine_->snapshot(), random);
    if (over_) return;
  }
  bool died = false;
  try {
    make(step, random);
  } catch (const Died& d) {
    if (!faulty_ && !lied_ && !taken_ && !machine_->table_is_full())
      throw Failure{"the engine died: " + d.why};
    died = true;
    ++result_.died;
  }
  if (over_ || !machine_) return;
  if (taken_)
    crash(*taken_, random);
  else if (died || machine_->table_is_full())
    crash(machine_->snapshot(), random);
}

}  // namespace

namespace {
constexpr const char* step_names[step_kinds] = {
    "transaction", "abandon", "commit", "drain", "checkpoint", "prepare", "shrink",
    "compact", "fill_disk", "faults", "rot", "crash", "close", "bulk", "requested", "huge"};
}  // namespace

std::string to_string(const Step& step) {
  return std::string(step_names[unsigned(step.kind)]) + ":" + std::to_string(step.seed);
}

std::optional<Step> parse_step(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  for (unsigned kind = 0; kind < step_kinds; ++kind)
    if (text.compare(0, colon, step_names[kind]) == 0)
      return Step{Step::Kind(kind), std::strtoull(text.c_str() + colon + 1, nullptr, 10)};
  return std::nullopt;
}

std::vector<Step> make_history(uint64_t seed, const HistoryOptions& options) {
  // How often, by kind, in the order of Step::Kind.
  static constexpr unsigned common[step_kinds] = {45, 2, 25, 4, 3, 3, 3, 1,
                                                  1,  1, 1,  8, 1, 1, 6, 0};
  // The log fills up, and few crashes stop it.
  static constexpr unsigned filling[step_kinds] = {30, 2, 30, 4, 0, 2, 2, 1,
                                                   1,  1, 1,  3, 0, 25, 0, 0};
  // Containers come and go.
  static constexpr unsigned swelling[step_kinds] = {6, 1, 30, 10, 2, 3, 12, 1,
                                                    0, 0, 1,  2,  0, 0, 6,  30};
  const auto& weights = seed % 4 == 2 ? filling : seed % 8 == 3 ? swelling : common;
  Random random(seed);
  unsigned sum = 0;
  for (unsigned w : weights) sum += w;
  std::vector<Step> steps;
  while (steps.size() < options.steps) {
    unsigned pick = unsigned(random() % sum), kind = 0;
    while (pick >= weights[kind]) pick -= weights[kind++];
    steps.push_back({Step::Kind(kind), random()});
  }
  return steps;
}

HistoryResult run_history(const std::vector<Step>& steps, const HistoryOptions& options) {
  Run run(options);
  size_t at = 0;
  try {
    for (; at < steps.size() && !run.over(); ++at) run.step(steps[at]);
    run.finish();
  } catch (const Failure& f) {
    run.result().failure = f.what;
  } catch (const Died& d) {
    run.result().failure = "the engine died: " + d.why;
  } catch (const Unreadable& u) {
    if (!run.lied()) run.result().failure = "a row cannot be read: " + u.what;
    ++run.result().refused;
  }
  if (!run.result().failure.empty() && at < steps.size())
    run.result().failure =
        "step " + std::to_string(at) + " (" + to_string(steps[at]) + "): " + run.result().failure;
  return run.result();
}

std::vector<Step> minimise(std::vector<Step> steps, const HistoryOptions& options) {
  for (size_t chunk = steps.size() / 2; chunk > 0;) {
    bool smaller = false;
    for (size_t at = 0; at < steps.size();) {
      std::vector<Step> fewer = steps;
      fewer.erase(fewer.begin() + ptrdiff_t(at),
                  fewer.begin() + ptrdiff_t(std::min(steps.size(), at + chunk)));
      if (!run_history(fewer, options).failure.empty()) {
        steps = std::move(fewer);
        smaller = true;
      } else {
        at += chunk;
      }
    }
    if (!smaller || chunk > steps.size()) chunk /= 2;
  }
  return steps;
}

}  // namespace tablestore::sim
