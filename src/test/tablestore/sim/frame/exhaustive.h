// All short histories, crashed at every I/O in every dangerous way.
//
// A history is a few transactions, each one op, on each of the simulator's bases; each transaction
// in a group of its own, or all in one; its writes complete in order, or newest first. With damage,
// one block of what a crash has left, or an orderly end, is damaged before the store is opened
// again. Template, because machines of the simulators have the same functions, and nothing else in
// common.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "test/tablestore/sim/frame/block_damage.h"
#include "test/tablestore/sim/frame/cases.h"
#include "test/tablestore/sim/frame/snapshot.h"
#include "test/tablestore/sim/frame/verdict.h"
#include "test/tablestore/sim/sim_disk.h"

namespace tablestore::sim {

inline bool leaves_nothing_to_chance(Fate fate) {
  return fate != Fate::torn && fate != Fate::scrambled && fate != Fate::killed;
}

struct ExhaustiveOptions {
  unsigned transactions = 0;     // the longest history; 0: as the simulator has it
  unsigned part = 0, parts = 1;  // every parts-th history only, from `part` on
  double minutes = 0;            // 0: until all is done
  bool damage = false;           // of what crashes leave in which nothing is left to chance
  std::string only;              // see Cases
  bool trace = false;            // tells what happens, on standard output
  // Told the name of what begins, which may end the process.
  std::function<void(const std::string&)> begins = [](const std::string&) {};
};

struct ExhaustiveResult {
  uint64_t histories = 0;
  uint64_t crash_points = 0;
  uint64_t cases = 0;       // crash points times fates
  uint64_t recoveries = 0;  // of which the disk was not the same as in another case
  // With damage.
  uint64_t damaged = 0;     // disks
  uint64_t refused = 0;     // of them, as they may be
  uint64_t accepted = 0;    // of those, opened when the loss was accepted
  uint64_t shortened = 0;   // opened, and lack transactions that may be missing
  uint64_t damaged_reads = 0;
  uint64_t repairs = 0;
  double seconds = 0;
  bool complete = true;
  std::string failure;      // empty: none
  std::string failed_case;  // its name
};

// Tells the progress, a line each time.
using ExhaustiveLog = std::function<void(const std::string&)>;

// `Short` is a struct with the simulator's part, all of it static:
//   Machine, Base, Op          types
//   subject                    in what a failure says: "the engine"
//   op_kinds, log_every        the second one in histories
//   bases()                    const Base*, of which histories begin
//   begin(options, cases, result)
//                              before the first history
//   begin_history(base)        before each
//   op(kind, place), name(op)  an op of that kind as the place-th of a history
//   open(machine)              empty, or why it does not open
//   run(machine, op)           queues a transaction
//   finish(machine, ops, snapshots)
//                              after the last of so many ops: stops to watch, adds the last
//                              snapshot, judges the life, and ends it in order. What that leaves
//   check_recovered(machine, before, crashed), check_running(machine), end(machine)
//   live_log(disk), damages(older, disk, log, all)
//                              of a disk without damage: see damage_places.h
//   damages_after(fate), damage_kinds
//                              whether what such a crash leaves is damaged, and in how many of the
//                              ways each block; after an orderly end in all
//   recover_damaged(before, crashed, damaged, log, random, result)
//                              opens a disk of which one block is damaged, and judges it
template <class Short>
class Exhaustive {
  using Machine = typename Short::Machine;
  using Base = typename Short::Base;
  using Op = typename Short::Op;
  enum Level : size_t { of_base, of_order, of_ops, of_groups, of_crash, of_fate, of_damage };

 public:
  Exhaustive(const ExhaustiveOptions& options, const ExhaustiveLog& log)
      : options_(options), log_(log), cases_(options.only), start_(Clock::now()) {}

  ExhaustiveResult run() {
    run_all();
    if (!result_.failure.empty()) result_.failed_case = cases_.name();
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

  // Whatever is thrown is a failure of the case that is on.
  template <class Work>
  void judged(Work work) {
    try {
      work();
    } catch (const Failure& f) {
      result_.failure = cases_.story() + ": " + f.what;
    } catch (const Unreadable& u) {
      result_.failure = cases_.story() + ": a row cannot be read: " + u.what;
    } catch (const Died& d) {
      result_.failure = cases_.story() + ": " + Short::subject + " died: " + d.why;
    }
  }

  void run_all() {
    judged([this] {
      bases_ = Short::bases();
      Short::begin(options_, &cases_, &result_);
    });
    for (const Base* base : bases_)
      for (const Completions order : {Completions::in_order, Completions::newest_first}) {
        const bool in_order = order == Completions::in_order;
        if (stop() || (options_.damage && !in_order) ||
            !cases_.enter(of_base, base->name, std::string("base ") + base->name) ||
            !cases_.enter(of_order, in_order ? "in_order" : "newest_first",
                          in_order ? "writes complete in order" : "writes complete newest first"))
          continue;
        base_ = base;
        order_ = order;
        for (unsigned length = 1; length <= options_.transactions; ++length) run_length(length);
      }
  }

  void run_length(unsigned length) {
    uint64_t histories = 1;
    for (unsigned i = 0; i < length; ++i) histories *= Short::op_kinds;
    for (uint64_t h = 0; h < histories && !stop(); ++h) {
      if (h % options_.parts != options_.part) continue;
      std::vector<Op> ops;
      for (uint64_t rest = h; ops.size() < length; rest /= Short::op_kinds)
        ops.push_back(Short::op(unsigned(rest % Short::op_kinds), ops.size()));
      if (run_ops(ops) && ++result_.histories % Short::log_every == 0)
        log_(std::to_string(result_.histories) + " histories, " + std::to_string(result_.cases) +
             " cases, " + std::to_string(result_.recoveries) + " recoveries, " +
             std::to_string(uint64_t(double(result_.recoveries) / seconds())) + "/s");
    }
  }

  // False: nobody wants it.
  bool run_ops(const std::vector<Op>& ops) {
    std::string name, story;
    for (const Op& op : ops) {
      name += (name.empty() ? "" : "+") + std::string(Short::name(op));
      story += (story.empty() ? "" : " ") + std::string(Short::name(op));
    }
    if (!cases_.enter(of_ops, name, story)) return false;
    for (const bool one_group : {false, true}) {
      if ((one_group && ops.size() == 1) || !result_.failure.empty()) continue;
      if (!cases_.enter(of_groups, one_group ? "together" : "apart",
                        one_group ? "in one group" : "each in a group"))
        continue;
      options_.begins(cases_.name());
      judged([&] { live(ops, one_group); });
      seen_.clear();
      seen_damaged_.clear();
    }
    return true;
  }

  void live(const std::vector<Op>& ops, bool one_group) {
    Short::begin_history(*base_);
    Machine machine(base_->image, 11, base_->state, base_->lsn);
    machine.disk().set_completions(order_);
    trace(machine);
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
    const Snapshot rest = Short::finish(machine, ops.size(), &snapshots);
    for (size_t i = 0; i < snapshots.size(); ++i)
      if (cases_.enter(of_crash, std::to_string(i),
                       "crash at I/O " + std::to_string(i) + " of " +
                           std::to_string(snapshots.size()) + " (" + snapshots[i].io + ")"))
        crash_all_ways(machine, snapshots[i]);
    if (options_.damage && cases_.enter(of_crash, "rest", "after an orderly end"))
      crash(machine, rest, Fate::drop, true);
  }

  void crash_all_ways(const Machine& machine, const Snapshot& snapshot) {
    ++result_.crash_points;
    for (const Fate fate : fates)
      if (!options_.damage || Short::damages_after(fate)) crash(machine, snapshot, fate);
  }

  void crash(const Machine& before, const Snapshot& snapshot, Fate fate, bool at_rest = false) {
    if (!cases_.enter(of_fate, fate_name(fate), std::string("fate ") + fate_name(fate))) return;
    ++result_.cases;
    Random random(cases_.seed());
    DiskImage image = snapshot.image;
    image.crash(fate, random);
    const bool repeats = leaves_nothing_to_chance(fate);
    const uint64_t print = repeats ? image.fingerprint() : 0;
    if (const auto seen = seen_.find(print); repeats && seen != seen_.end()) {
      if (seen->second < snapshot.acknowledged_lsn) throw Failure{"acknowledged, but lost"};
    } else {
      const uint64_t lsn = recover(before, snapshot, image, fate, random);
      if (repeats) seen_[print] = lsn;
    }
    // What may be lost hangs on what was acknowledged.
    if (options_.damage && seen_damaged_.emplace(print, snapshot.acknowledged_lsn).second)
      damage_all_ways(before, snapshot, image, at_rest);
  }

  uint64_t recover(const Machine& before, const Snapshot& snapshot, DiskImage image, Fate fate,
                   Random& random) {
    ++result_.recoveries;
    Machine machine(std::move(image), random(), {}, 0);
    trace(machine);
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

  // The disk holds all that it should, as recover() has seen; now one block of it does not.
  void damage_all_ways(const Machine& before, const Snapshot& crashed, const DiskImage& disk,
                       bool all) {
    const DiskImage& older = base_->image;
    const uint64_t print = disk.fingerprint();
    const auto log = Short::live_log(disk);
    uint64_t turn = cases_.seed();  // so that each kind comes to each block, on one disk or another
    for (const BlockDamage& damage : Short::damages(older, disk, log, all)) {
      constexpr size_t kinds = block_damage_kinds.size();
      if (damage.kind == block_damage_kinds[0]) ++turn;
      if (!all && (turn + size_t(damage.kind)) % kinds >= Short::damage_kinds) continue;
      if (!cases_.enter(of_damage, damage.name(), damage.story())) continue;
      Random random(cases_.seed());
      DiskImage damaged = disk;
      if (!damage.apply(older, random(), &damaged)) continue;
      if (damaged.healed().fingerprint() != print)
        throw Failure{"the model of a damaged disk does not know what was there"};
      options_.begins(cases_.name());
      ++result_.damaged;
      Short::recover_damaged(before, crashed, damaged, log, random, &result_);
    }
  }

  void trace(Machine& machine) {
    if (!options_.trace) return;
    std::printf("%s\n", cases_.story().c_str());
    machine.disk().watch_calls([](const std::string& call) {
      std::printf("    %s\n", call.c_str());
    });
  }

  const ExhaustiveOptions options_;
  const ExhaustiveLog log_;
  Cases cases_;
  const Clock::time_point start_;
  ExhaustiveResult result_;
  std::vector<const Base*> bases_;
  const Base* base_ = nullptr;
  Completions order_ = Completions::in_order;
  std::unordered_map<uint64_t, uint64_t> seen_;  // disks of this history, their last transaction
  std::set<std::pair<uint64_t, uint64_t>> seen_damaged_;  // the same, and what was acknowledged
};

}  // namespace tablestore::sim
