#include "test/tablestore/sim/exhaustive.h"

#include <chrono>
#include <unordered_map>

#include "test/tablestore/sim/base.h"

namespace tablestore::sim {

namespace {

using Clock = std::chrono::steady_clock;

Machine::OpOnObject instance(unsigned kind, size_t place) {
  // Two objects of one sequencer; sizes differ with the place, so that slots do.
  return {Op(kind), uint32_t(place % 2 ? 2 : 0), uint32_t(3 + 5 * place)};
}

class Exhaustive {
 public:
  Exhaustive(const ExhaustiveOptions& options, const std::function<void(const std::string&)>& log)
      : options_(options), log_(log), start_(Clock::now()) {}

  ExhaustiveResult run() {
    Machine::provision(0);
    for (const Base* base : {&fresh_base(), &wrapped_base()})
      for (unsigned length = 1; length <= options_.transactions; ++length)
        run_length(*base, length);
    result_.seconds = seconds();
    return result_;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool stop() {
    if (!result_.failure.empty()) return true;
    if (options_.minutes > 0 && seconds() > options_.minutes * 60) result_.complete = false;
    return !result_.complete;
  }

  void run_length(const Base& base, unsigned length) {
    uint64_t histories = 1;
    for (unsigned i = 0; i < length; ++i) histories *= op_kinds;
    for (uint64_t h = 0; h < histories && !stop(); ++h) {
      if (h % options_.parts != options_.part) continue;
      std::vector<Machine::OpOnObject> ops;
      for (uint64_t rest = h; ops.size() < length; rest /= op_kinds)
        ops.push_back(instance(unsigned(rest % op_kinds), ops.size()));
      for (bool one_group : {false, true}) {
        if (one_group && length == 1) continue;
        run_history(base, ops, one_group);
      }
      if (++result_.histories % 200 == 0)
        log_(std::to_string(result_.histories) + " histories, " + std::to_string(result_.cases) +
             " cases, " + std::to_string(result_.recoveries) + " recoveries, " +
             std::to_string(uint64_t(double(result_.recoveries) / seconds())) + "/s");
    }
  }

  void run_history(const Base& base, const std::vector<Machine::OpOnObject>& ops, bool one_group) {
    std::string story = std::string("base ") + base.name + (one_group ? ", one group:" : ":");
    for (const auto& op : ops) story += std::string(" ") + op_name(op.op);
    try {
      Machine machine(base.image, 11, base.state, base.lsn);
      if (Status s = machine.open(); !s.ok()) throw Failure{"open: " + s.what()};
      std::vector<Snapshot> snapshots;
      auto watch = [&] {
        machine.disk().watch([&](const DiskImage& image, const char* io) {
          snapshots.push_back(machine.snapshot(image, io));
        });
      };
      // Crashes in what precedes are those of a shorter history.
      if (one_group) watch();
      for (size_t i = 0; i < ops.size(); ++i) {
        if (!one_group && i + 1 == ops.size()) watch();
        machine.transaction({&ops[i], 1});
        if (!one_group) machine.commit_all();
      }
      machine.commit_all();
      if (ops.size() == 1 && !machine.engine().checkpoint().ok())
        throw Failure{"checkpoint fails"};
      machine.disk().watch(nullptr);
      snapshots.push_back(machine.snapshot());
      machine.check_live({});
      if (!machine.disk().misuse().empty()) throw Failure{machine.disk().misuse()};
      for (size_t i = 0; i < snapshots.size(); ++i) {
        story_ = story + "; crash at I/O " + std::to_string(i) + " of " +
                 std::to_string(snapshots.size()) + " (" + snapshots[i].io + ")";
        crash_all_ways(machine, snapshots[i]);
      }
    } catch (const Failure& f) {
      result_.failure = (story_.empty() ? story : story_) + ": " + f.what;
    } catch (const Unreadable& u) {
      result_.failure = (story_.empty() ? story : story_) + ": a row cannot be read: " + u.what;
    } catch (const Died& d) {
      result_.failure = (story_.empty() ? story : story_) + ": the engine died: " + d.why;
    }
    story_.clear();
    seen_.clear();
  }

  void crash_all_ways(const Machine& machine, const Snapshot& snapshot) {
    ++result_.crash_points;
    for (Fate fate : fates) {
      ++result_.cases;
      const std::string story = story_;
      story_ += std::string(", fate ") + fate_name(fate);
      Random random(result_.cases);
      DiskImage image = snapshot.image;
      image.crash(fate, random);
      const bool repeats =
          fate != Fate::torn && fate != Fate::scrambled && fate != Fate::killed;
      const uint64_t print = repeats ? image.fingerprint() : 0;
      if (const auto seen = seen_.find(print); repeats && seen != seen_.end()) {
        if (seen->second < snapshot.acknowledged_lsn) throw Failure{"acknowledged, but lost"};
      } else {
        const uint64_t lsn = recover(machine, snapshot, std::move(image), fate, random);
        if (repeats) seen_[print] = lsn;
      }
      story_ = story;
    }
  }

  uint64_t recover(const Machine& before, const Snapshot& snapshot, DiskImage image, Fate fate,
                   Random& random) {
    ++result_.recoveries;
    Machine machine(std::move(image), random(), State(), 0);
    if (Status s = machine.open(); !s.ok()) throw Failure{"does not open: " + s.what()};
    machine.check_recovered(before, snapshot, {}, false);
    const uint64_t lsn = machine.floor_lsn();
    if (fate != Fate::killed && random() % 16) return lsn;
    // What was recovered is there for good: also after the next crash.
    const Snapshot again = machine.snapshot();
    DiskImage next = again.image;
    next.crash(Fate::drop, random);
    ++result_.recoveries;
    Machine second(std::move(next), random(), State(), 0);
    if (Status s = second.open(); !s.ok()) throw Failure{"does not open again: " + s.what()};
    second.check_recovered(machine, again, {}, false);
    return lsn;
  }

  const ExhaustiveOptions options_;
  const std::function<void(const std::string&)> log_;
  const Clock::time_point start_;
  ExhaustiveResult result_;
  std::string story_;
  std::unordered_map<uint64_t, uint64_t> seen_;  // disks of this history, their last transaction
};

}  // namespace

ExhaustiveResult run_exhaustive(const ExhaustiveOptions& options,
                                const std::function<void(const std::string&)>& log) {
  try {
    return Exhaustive(options, log).run();
  } catch (const Failure& f) {
    ExhaustiveResult result;
    result.failure = f.what;
    return result;
  }
}

}  // namespace tablestore::sim
