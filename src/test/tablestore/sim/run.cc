// The steps of a history; its crashes are in run_crash.cc.
#include "test/tablestore/sim/run.h"

#include <cstdio>
#include <utility>

#include "test/tablestore/sim/base.h"
#include "test/tablestore/sim/damage_bounds.h"

namespace tablestore::sim {

Run::Run(const HistoryOptions& options) : options_(options) {
  const Base& base = options.provisioned ? provisioned_base()
                     : options.wrapped   ? wrapped_base()
                                         : fresh_base();
  Machine::begin_contents(2'000'000);
  SteppedThreads::help_in_turn(options.in_turn);
  Machine::provision(options.provisioned ? provisioned_bytes : 0);
  DiskImage image = base.image;
  if (options.remapped) image.remap_every_write();
  if (options.damage) {
    image.remember_previous();
    image.set_bad_sector_chance(0.05);
  }
  machine_ = std::make_unique<Machine>(std::move(image), 1, base.state, base.lsn);
  if (Status s = machine_->open(); !s.ok()) throw Failure{"open: " + s.what()};
  machine_->flush_table_meanwhile();
  watch();
}

void Run::finish() {
  if (over_) return;
  crash(machine_->snapshot(), Random(99));
  if (!over_) machine_->check_live();
}

void Run::transaction(Random& random, bool abandon) {
  OpOnObject ops[4];
  const size_t count = 1 + random() % 4 / (1 + random() % 2);
  for (size_t i = 0; i < count; ++i) {
    Op op = Op(random() % op_kinds);
    if (op == Op::big_rows && random() % 3) op = Op::put_rows;
    ops[i] = {op, uint32_t(random() % 6), uint32_t(random() % 100000)};
  }
  machine_->transaction({ops, count}, abandon);
  ++result_.transactions;
}

void Run::one(Op op, uint32_t object, uint32_t n) {
  const OpOnObject o{op, object, n};
  machine_->transaction({&o, 1});
  ++result_.transactions;
}

// Of a quarter of it, to be exact: it is made durable by a checkpoint.
void Run::larger_than_the_log(uint32_t object, Random& random) {
  std::vector<OpOnObject> ops{{Op(random() % op_kinds), object, uint32_t(random() % 100000)}};
  for (unsigned n = 3 + random() % 6; n > 0; --n)
    ops.push_back({Op::big_rows, object, uint32_t(random())});
  machine_->transaction(ops);
  ++result_.transactions;
}

// What may fail of a full or failing disk, or of a damaged table. It ends this life only where
// something could not be written.
void Run::check(const Status& status, const char* doing) {
  if (status.ok() || machine_->meets_full_disk(status)) return;
  if (may_die(*machine_)) throw Died{status.what()};
  if (!machine_->disk().refused().any() && !is_table_damaged(machine_->disk().image()))
    throw Failure{std::string(doing) + ": " + status.what()};
}

// An abort is a failure, but for these reasons.
bool Run::may_die(Machine& machine) {
  const SimDisk& disk = machine.disk();
  return machine.table_is_full() || disk.refused().on_the_way_to_durability() ||
         disk.is_new_table_file_damaged();
}

// Once the lane had time for it, damage of data costs no group.
void Run::check_vouched(const char* after) {
  if (taken_ || machine_->is_log_full()) return;
  DiskImage now = machine_->disk().image();
  Random random(1);
  now.crash(Fate::drop, random);
  if (now.lost_promises()) return;  // a flush of the table lied, and the log begins where it did
  const LiveLog log = read_live_log(now.healed());
  if (!log.groups.empty() && log.vouched_lsn() < log.groups.back().last_lsn)
    throw Failure{std::string(after) + ", transaction " +
                  std::to_string(log.groups.back().last_lsn) + " is vouched for by nothing"};
}

void Run::background(Step::Kind kind, Random& random) {
  const char* work = kind == Step::Kind::prepare ? "prepare" : "shrink";
  for (uint64_t n = 1 + random() % 8; n > 0; --n) machine_->threads().step(work);
  if (kind == Step::Kind::shrink)
    for (uint64_t n = random() % 4; n > 0; --n) machine_->threads().step("relieve");
  if (random() % 4 == 0) machine_->step_compaction();
}

void Run::fill_disk(Random& random) {
  if (options_.full) sim::fill_disk(machine_->disk(), random);
}

void Run::set_faults(Random& random) {
  const Faults slow = slowness(random);
  Faults faults = random_faults(slow, true, options_, random);
  if (options_.errors) add_rare_errors(&faults, random);
  if (options_.damage) faults.flushes_lie = random() % 16 == 0;
  machine_->disk().set_faults(faults);
  faulty_ = options_.errors;
}

void Run::make(const Step& step, Random& random) {
  switch (step.kind) {
    case Step::Kind::transaction: return transaction(random, false);
    case Step::Kind::abandon: return transaction(random, true);
    case Step::Kind::commit:
      // A lane that is idle vouches for its last group.
      if (!machine_->threads().step("commit")) machine_->threads().step("vouch");
      if (random() % 2) machine_->threads().step_all("apply");  // else the table stays behind
      if (random() % 16 || !machine_->is_quiet()) return;
      machine_->idle();
      return check_vouched("idle");
    case Step::Kind::requested:
      machine_->threads().step("checkpoint");
      return;
    case Step::Kind::huge: {
      const Op op = random() % 3 ? Op::write_large : Op::remove;
      const uint32_t object = uint32_t(random() % 6);
      return one(op, object, uint32_t(random() % 10000 * 16 + 1));
    }
    case Step::Kind::bulk: {
      const uint32_t object = uint32_t(random() % 6);
      if (random() % 8 == 0) return larger_than_the_log(object, random);
      return one(Op::big_rows, object, uint32_t(random()));
    }
    case Step::Kind::drain:
      machine_->engine().drain();
      if (!taken_ && !machine_->table_is_full()) machine_->check_live();
      if (!taken_ && !machine_->table_is_full() && !faulty_ && random() % 4 == 0)
        machine_->check_space();
      return;
    case Step::Kind::read: return machine_->check_some(random, faulty_);
    case Step::Kind::checkpoint: return check(machine_->engine().checkpoint(), "checkpoint");
    case Step::Kind::prepare:
    case Step::Kind::shrink: return background(step.kind, random);
    case Step::Kind::compact: return check(machine_->compact(), "compaction");
    case Step::Kind::fill_disk: return fill_disk(random);
    case Step::Kind::faults: return set_faults(random);
    case Step::Kind::rot:
      if (options_.damage) decay(random);
      return;
    case Step::Kind::crash: return arm(random);
    case Step::Kind::close:
      check(machine_->engine().close(), "close");
      check_vouched("closed");
      if (!taken_) crash(machine_->snapshot(), random);
      return;
  }
}

void Run::step(const Step& step) {
  Random random(step.seed);
  side_random_.seed(step.seed ^ 0x5851F42D4C957F2D);
  if (options_.trace)
    machine_->disk().watch_calls([](const std::string& call) {
      std::printf("    %s\n", call.c_str());
    });
  if (step.kind == Step::Kind::crash && crash_in_ > 0) {  // the last one did not come in time
    crash(machine_->snapshot(), random);
    if (over_) return;
  }
  if (options_.nearly_full) {
    Random others(step.seed + 1);
    fill_disk(others);
  }
  bool died = false;
  try {
    make(step, random);
  } catch (const Died& d) {
    if (!may_die(*machine_))
      throw Failure{"the engine died: " + d.why};
    died = true;
    ++result_.died;
  }
  if (over_ || !machine_) return;
  if (!machine_->disk().misuse().empty())
    throw Failure{"the disk is not used as it wants to be: " + machine_->disk().misuse()};
  if (machine_->trusted_failed_flush())
    throw Failure{"a transaction was acknowledged after a flush had failed"};
  if (taken_)
    crash(*std::exchange(taken_, {}), random);
  else if (died || machine_->table_is_full())
    crash(machine_->snapshot(), random);
}

}  // namespace tablestore::sim
