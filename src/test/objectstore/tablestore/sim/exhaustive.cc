// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/exhaustive.h"

#include <chrono>
#include <unordered_map>

#include "test/objectstore/tablestore/sim/base.h"

namespace tablestore_sim {

using tablestore::sim::fate_name;
using tablestore::sim::fates;

namespace {

using Clock = std::chrono::steady_clock;

/// Of the base's first collection of pool 1: its object with blocks and a snapshot, or for what is
/// about small data the one that is inline. Sizes differ with the place, so that slots do.
OpOnObject instance(unsigned kind, size_t place)
{
  const bool small = Op(kind) == Op::write_inline;
  return {Op(kind), 1, small ? 3u : 0u, uint32_t(3 + 5 * place)};
}

class Exhaustive {
 public:
  Exhaustive(const ExhaustiveOptions& options, const std::function<void(const std::string&)>& log)
    : options(options), log(log), start(Clock::now())
  {
  }

  ExhaustiveResult run()
  {
    if (options.part == 0)
      make_and_crash();
    for (const Base* base : {&fresh_base(), &wrapped_base()}) {
      for (unsigned length = 1; length <= options.transactions; ++length)
        run_length(*base, length);
    }
    result.seconds = seconds();
    return result;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start).count(); }

  bool stop()
  {
    if (!result.failure.empty())
      return true;
    if (options.minutes > 0 && seconds() > options.minutes * 60)
      result.complete = false;
    return !result.complete;
  }

  /// mkfs that is interrupted can be run again. It was the label's own write where that is damaged.
  void make_and_crash()
  {
    story = "mkfs";
    std::vector<Snapshot> snapshots;
    {
      Machine machine(DiskImage(), 5, State(), 0);
      machine.disk().watch([&](const DiskImage& image, const char* io) {
        snapshots.push_back(machine.snapshot(image, io));
      });
      if (int r = machine.mkfs(); r < 0)
        throw Failure{"mkfs = " + std::to_string(r)};
      machine.disk().watch(nullptr);
    }
    for (const Snapshot& snapshot : snapshots) {
      ++result.crash_points;
      for (Fate fate : fates) {
        ++result.cases;
        ++result.recoveries;
        Random random(result.cases);
        DiskImage image = snapshot.image;
        image.crash(fate, random);
        Machine machine(std::move(image), random(), State(), 0);
        int r = machine.mkfs();
        if (r == -EIO && machine.disk().remove("label").ok())   // which its message says to do
          r = machine.mkfs();
        if (r == 0)
          r = machine.mount();
        if (r < 0)
          throw Failure{std::string("after mkfs that crashed at ") + snapshot.io + ", fate " +
                        fate_name(fate) + ": " + std::to_string(r)};
        machine.make_first_collections();
        machine.commit_all();
        machine.check_live(false, false);
      }
    }
  }

  void run_length(const Base& base, unsigned length)
  {
    uint64_t histories = 1;
    for (unsigned i = 0; i < length; ++i)
      histories *= op_kinds;
    for (uint64_t h = 0; h < histories && !stop(); ++h) {
      if (h % options.parts != options.part)
        continue;
      std::vector<OpOnObject> ops;
      for (uint64_t rest = h; ops.size() < length; rest /= op_kinds)
        ops.push_back(instance(unsigned(rest % op_kinds), ops.size()));
      for (bool one_group : {false, true}) {
        if (!one_group || length > 1)
          run_history(base, ops, one_group);
      }
      if (++result.histories % 100 == 0)
        log(std::to_string(result.histories) + " histories, " + std::to_string(result.cases) +
            " cases, " + std::to_string(result.recoveries) + " recoveries, " +
            std::to_string(uint64_t(double(result.recoveries) / seconds())) + "/s");
    }
  }

  void run_history(const Base& base, const std::vector<OpOnObject>& ops, bool one_group)
  {
    story = std::string("base ") + base.name + (one_group ? ", one group:" : ":");
    for (const OpOnObject& op : ops)
      story += std::string(" ") + op_name(op.op);
    try {
      live(base, ops, one_group);
    } catch (const Failure& f) {
      result.failure = story + ": " + f.what;
    } catch (const Unreadable& u) {
      result.failure = story + ": a row cannot be read: " + u.what;
    } catch (const Died& d) {
      result.failure = story + ": the store died: " + d.why;
    }
    seen.clear();
  }

  void live(const Base& base, const std::vector<OpOnObject>& ops, bool one_group)
  {
    Machine machine(base.image, 11, base.state, base.lsn);
    if (int r = machine.mount(); r < 0)
      throw Failure{"mount = " + std::to_string(r)};
    std::vector<Snapshot> snapshots;
    auto watch = [&] {
      machine.disk().watch([&](const DiskImage& image, const char* io) {
        snapshots.push_back(machine.snapshot(image, io));
      });
    };
    // Crashes in what precedes are those of a shorter history.
    if (one_group)
      watch();
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!one_group && i + 1 == ops.size())
        watch();
      if (int r = machine.transaction({ops[i]}); r < 0)
        throw Failure{"a transaction is refused: " + std::to_string(r)};
      if (!one_group)
        machine.commit_all();
    }
    machine.commit_all();
    snapshots.push_back(machine.snapshot());
    if (ops.size() == 1)
      machine.umount();
    machine.disk().watch(nullptr);
    if (ops.size() > 1)
      machine.check_live(false, false);
    machine.end();
    const std::string story_so_far = story;
    for (size_t i = 0; i < snapshots.size(); ++i) {
      story = story_so_far + "; crash at I/O " + std::to_string(i) + " of " +
          std::to_string(snapshots.size()) + " (" + snapshots[i].io + ")";
      crash_all_ways(machine, snapshots[i]);
    }
  }

  void crash_all_ways(const Machine& machine, const Snapshot& snapshot)
  {
    ++result.crash_points;
    const std::string story_so_far = story;
    for (Fate fate : fates) {
      ++result.cases;
      story = story_so_far + ", fate " + fate_name(fate);
      Random random(result.cases);
      DiskImage image = snapshot.image;
      image.crash(fate, random);
      const bool repeats =
          fate != Fate::torn && fate != Fate::scrambled && fate != Fate::killed;
      const uint64_t print = repeats ? image.fingerprint() : 0;
      if (const auto p = seen.find(print); repeats && p != seen.end()) {
        if (p->second < snapshot.acknowledged_lsn)
          throw Failure{"acknowledged, but lost"};
      } else {
        const uint64_t lsn = recover(machine, snapshot, std::move(image), fate, random);
        if (repeats)
          seen[print] = lsn;
      }
    }
  }

  uint64_t recover(const Machine& before, const Snapshot& snapshot, DiskImage image, Fate fate,
                   Random& random)
  {
    ++result.recoveries;
    Machine machine(std::move(image), random(), State(), 0);
    if (int r = machine.mount(); r < 0)
      throw Failure{"does not open: " + std::to_string(r)};
    machine.check_recovered(before, snapshot, false);
    const uint64_t lsn = machine.floor_lsn();
    machine.check_live(false, false);
    if (fate != Fate::killed && random() % 16)
      return lsn;
    // What was recovered is there for good: also after the next crash.
    const Snapshot again = machine.snapshot();
    DiskImage next = again.image;
    next.crash(Fate::drop, random);
    machine.end();
    ++result.recoveries;
    Machine second(std::move(next), random(), State(), 0);
    if (int r = second.mount(); r < 0)
      throw Failure{"does not open again: " + std::to_string(r)};
    second.check_recovered(machine, again, false);
    return lsn;
  }

  const ExhaustiveOptions options;
  const std::function<void(const std::string&)> log;
  const Clock::time_point start;
  ExhaustiveResult result;
  std::string story;
  std::unordered_map<uint64_t, uint64_t> seen;   ///< disks of this history, their last transaction
};

}  // namespace

ExhaustiveResult run_exhaustive(const ExhaustiveOptions& options,
                                const std::function<void(const std::string&)>& log)
{
  try {
    return Exhaustive(options, log).run();
  } catch (const Failure& f) {
    ExhaustiveResult result;
    result.failure = f.what;
    return result;
  }
}

}  // namespace tablestore_sim
