// All short histories, crashed at every I/O in every dangerous way.
//
// A history is a few transactions, each one op, on each of the simulator's bases; each transaction
// in a group of its own, or all in one. Template, because machines of the simulators have the same
// functions, and nothing else in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "test/tablestore/sim/frame/snapshot.h"
#include "test/tablestore/sim/frame/verdict.h"

namespace tablestore::sim {

struct ExhaustiveOptions {
  unsigned transactions = 1;     // the longest history
  unsigned part = 0, parts = 1;  // every parts-th history only, from `part` on
  double minutes = 0;            // 0: until all is done
};

struct ExhaustiveResult {
  uint64_t histories = 0;
  uint64_t crash_points = 0;
  uint64_t cases = 0;       // crash points times fates
  uint64_t recoveries = 0;  // of which the disk was not the same as in another case
  double seconds = 0;
  bool complete = true;
  std::string failure;      // empty: none
};

// Tells the progress, a line each time.
using ExhaustiveLog = std::function<void(const std::string&)>;

// `Short` is a struct with the simulator's part, all of it static:
//   Machine, Base, Op          types
//   subject                    in what a failure says: "the engine"
//   op_kinds, log_every        the second one in histories
//   bases()                    const Base*, of which histories begin
//   begin(options, result)     before the first history
//   op(kind, place), name(op)  an op of that kind as the place-th of a history
//   open(machine)              empty, or why it does not open
//   run(machine, op)           queues a transaction
//   finish(machine, ops, snapshots)
//                              after the last of so many ops: stops to watch, adds the last
//                              snapshot, and judges the life
//   check_recovered(machine, before, crashed), check_running(machine), end(machine)
template <class Short>
class Exhaustive {
  using Machine = typename Short::Machine;
  using Base = typename Short::Base;
  using Op = typename Short::Op;

 public:
  Exhaustive(const ExhaustiveOptions& options, const ExhaustiveLog& log)
      : options_(options), log_(log), start_(Clock::now()) {}

  ExhaustiveResult run() {
    try {
      Short::begin(options_, &result_);
      for (const Base* base : Short::bases())
        for (unsigned length = 1; length <= options_.transactions; ++length)
          run_length(*base, length);
    } catch (const Failure& f) {
      result_.failure = f.what;
    }
    result_.seconds = seconds();
    return result_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool stop() {
    if (!result_.failure.empty()) return true;
    if (options_.minutes > 0 && seconds() > options_.minutes * 60) result_.complete = false;
    return !result_.complete;
  }

  void run_length(const Base& base, unsigned length) {
    uint64_t histories = 1;
    for (unsigned i = 0; i < length; ++i) histories *= Short::op_kinds;
    for (uint64_t h = 0; h < histories && !stop(); ++h) {
      if (h % options_.parts != options_.part) continue;
      std::vector<Op> ops;
      for (uint64_t rest = h; ops.size() < length; rest /= Short::op_kinds)
        ops.push_back(Short::op(unsigned(rest % Short::op_kinds), ops.size()));
      for (bool one_group : {false, true})
        if (!one_group || length > 1) run_history(base, ops, one_group);
      if (++result_.histories % Short::log_every == 0)
        log_(std::to_string(result_.histories) + " histories, " + std::to_string(result_.cases) +
             " cases, " + std::to_string(result_.recoveries) + " recoveries, " +
             std::to_string(uint64_t(double(result_.recoveries) / seconds())) + "/s");
    }
  }

  void run_history(const Base& base, const std::vector<Op>& ops, bool one_group) {
    story_ = std::string("base ") + base.name + (one_group ? ", one group:" : ":");
    for (const Op& op : ops) story_ += std::string(" ") + Short::name(op);
    try {
      live(base, ops, one_group);
    } catch (const Failure& f) {
      result_.failure = story_ + ": " + f.what;
    } catch (const Unreadable& u) {
      result_.failure = story_ + ": a row cannot be read: " + u.what;
    } catch (const Died& d) {
      result_.failure = story_ + ": " + Short::subject + " died: " + d.why;
    }
    seen_.clear();
  }

  void live(const Base& base, const std::vector<Op>& ops, bool one_group) {
    Machine machine(base.image, 11, base.state, base.lsn);
    if (const std::string why = Short::open(machine); !why.empty()) throw Failure{why};
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
      Short::run(machine, ops[i]);
      if (!one_group) machine.commit_all();
    }
    machine.commit_all();
    Short::finish(machine, ops.size(), &snapshots);
    const std::string story = story_;
    for (size_t i = 0; i < snapshots.size(); ++i) {
      story_ = story + "; crash at I/O " + std::to_string(i) + " of " +
               std::to_string(snapshots.size()) + " (" + snapshots[i].io + ")";
      crash_all_ways(machine, snapshots[i]);
    }
  }

  void crash_all_ways(const Machine& machine, const Snapshot& snapshot) {
    ++result_.crash_points;
    const std::string story = story_;
    for (Fate fate : fates) {
      ++result_.cases;
      story_ = story + ", fate " + fate_name(fate);
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
    }
  }

  uint64_t recover(const Machine& before, const Snapshot& snapshot, DiskImage image, Fate fate,
                   Random& random) {
    ++result_.recoveries;
    Machine machine(std::move(image), random(), {}, 0);
    if (const std::string why = Short::open(machine); !why.empty())
      throw Failure{"does not open: " + why};
    Short::check_recovered(machine, before, snapshot);
    const uint64_t lsn = machine.floor_lsn();
    Short::check_running(machine);
    if (fate != Fate::killed && random() % 16) return lsn;
    // What was recovered is there for good: also after the next crash.
    const Snapshot again = machine.snapshot();
    DiskImage next = again.image;
    next.crash(Fate::drop, random);
    Short::end(machine);
    ++result_.recoveries;
    Machine second(std::move(next), random(), {}, 0);
    if (const std::string why = Short::open(second); !why.empty())
      throw Failure{"does not open again: " + why};
    Short::check_recovered(second, machine, again);
    return lsn;
  }

  const ExhaustiveOptions options_;
  const ExhaustiveLog log_;
  const Clock::time_point start_;
  ExhaustiveResult result_;
  std::string story_;
  std::unordered_map<uint64_t, uint64_t> seen_;  // disks of this history, their last transaction
};

}  // namespace tablestore::sim
