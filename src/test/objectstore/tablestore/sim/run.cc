// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/run.h"

#include <algorithm>

#include "test/objectstore/tablestore/sim/base.h"

namespace tablestore_sim {

using tablestore::Status;

Run::Run(const HistoryOptions& options) : options(options)
{
  const Base& base = options.wrapped ? wrapped_base() : fresh_base();
  machine = std::make_unique<Machine>(base.image, 1, base.state, base.lsn);
  follow(*machine);
  if (int r = machine->mount(); r < 0)
    throw Failure{"mount = " + std::to_string(r)};
  machine->flush_table_meanwhile();
}

void Run::finish()
{
  if (over_)
    return;
  crash(machine->snapshot(), Random(99));
  if (!over_)
    check_quiet();
}

void Run::expect_excuse(const std::string& what) const
{
  if (!faulty && !lied_ && !machine->table_is_full())
    throw Failure{what};
}

void Run::expect_opening(int r, const std::string& what)
{
  // Where others have taken the last block of the file system, it has to have one again.
  if (r == -ENOSPC && options.full)
    machine->meets_full_disk(Status(ENOSPC, what));
  expect_excuse(what + " = " + std::to_string(r));
}

void Run::transaction(Step::Kind kind, Random& random)
{
  std::vector<OpOnObject> ops(1 + random() % 5 / (1 + random() % 2));
  for (OpOnObject& o : ops) {
    Op op = Op(random() % op_kinds);
    if ((op >= Op::make_collection && op <= Op::merge) ||
        (op == Op::fill_log && random() % 4 != 0) || (op == Op::write_large && random() % 2))
      op = Op(random() % unsigned(Op::make_collection));
    o = {op, uint32_t(random()), uint32_t(random()), uint32_t(random())};
  }
  if (kind == Step::Kind::collections) {
    ops.resize(std::min<size_t>(ops.size(), 2));
    ops.back().op = Op(unsigned(Op::make_collection) + random() % 4);
  }
  if (kind == Step::Kind::bulk)
    ops.assign(1, {Op::fill_log, uint32_t(random()), uint32_t(random()), uint32_t(random())});
  const int r = machine->transaction(ops, kind == Step::Kind::across);
  ++result_.transactions;
  if (r == 0)
    return;
  ++result_.taken_back;
  if (r != -ENOSPC || !options.full)
    expect_excuse("a transaction is refused: " + std::to_string(r));
}

void Run::stumble(Random& random)
{
  if (!options.errors || faulty)
    return;
  // Rows and data have to come from the disk.
  engine_work("checkpoint", machine->engine().checkpoint());
  machine->tablestore().flush_cache(nullptr);
  const Faults before = machine->disk().set_faults({.read_error = 0.3});
  // From here on to the next crash: a table that could not read when it flushed takes no more.
  faulty = unclean = true;
  for (int n = 0; n < 6; ++n)
    transaction(n % 2 ? Step::Kind::transaction : Step::Kind::collections, random);
  machine->disk().set_faults(before);
  check_quiet();
}

void Run::check_quiet()
{
  machine->engine().drain();
  note(*machine);
  if (taken || machine->table_is_full())
    return;
  machine->check_live(lied_, unclean);
  ++result_.checks;
}

void Run::engine_work(const char* what, const Status& status)
{
  if (status.ok() || machine->meets_full_disk(status))
    return;
  expect_excuse(std::string(what) + ": " + status.what());
  throw Died{status.what()};
}

void Run::background(const char* work, Random& random)
{
  for (uint64_t n = 1 + random() % 8; n > 0; --n)
    machine->threads().step(work);
}

void Run::fill_disk(Random& random)
{
  if (options.full)
    tablestore::sim::fill_disk(machine->disk(), random);
}

void Run::set_faults(Random& random)
{
  const Faults faults = tablestore::sim::random_faults({.slow = 0.5}, false, options, random);
  faulty = options.errors;
  unclean |= faults.read_error > 0;
  machine->disk().set_faults(faults);
}

// ---- umount and what follows

void Run::remount_or_die()
{
  if (int r = machine->mount(); r < 0) {
    expect_opening(r, "mount");
    throw Died{"mount = " + std::to_string(r)};
  }
  machine->flush_table_meanwhile();
}

void Run::remount(Step::Kind kind, Random& random)
{
  if (kind == Step::Kind::repair && !faulty) {
    unclean = true;
    machine->add_strays(random);
  }
  machine->umount();
  if (machine->table_is_full())
    throw Died{"umount on a full disk"};
  if (kind == Step::Kind::fsck) {
    const int errors = machine->fsck();
    if (errors != 0 && !unclean)
      expect_opening(errors, "fsck");
  }
  if (kind == Step::Kind::repair) {
    const int left = machine->repair();
    ++result_.repairs;
    if (left != 0)
      expect_opening(left, "repair");
    else if (!faulty && !taken)
      unclean = false;
  }
  remount_or_die();
  if (!faulty)
    check_quiet();
}

// ---- steps

void Run::make(const Step& step, Random& random)
{
  switch (step.kind) {
  case Step::Kind::transaction:
  case Step::Kind::across:
  case Step::Kind::collections:
  case Step::Kind::bulk:
    return transaction(step.kind, random);
  case Step::Kind::commit: return machine->commit();
  case Step::Kind::read: return machine->check_some(random, lied_ || (faulty && unclean));
  case Step::Kind::drain: return check_quiet();
  case Step::Kind::flush_commit: return machine->flush_commit(random());
  case Step::Kind::tick:
    machine->threads().step("tick");
    return;
  case Step::Kind::drop_caches:
    machine->tablestore().flush_cache(nullptr);
    return;
  case Step::Kind::checkpoint: return engine_work("checkpoint", machine->engine().checkpoint());
  case Step::Kind::requested:
    machine->threads().step("checkpoint");
    return;
  case Step::Kind::compact: return engine_work("compaction", machine->engine().compact());
  case Step::Kind::prepare: return background("prepare", random);
  case Step::Kind::shrink: return background("shrink", random);
  case Step::Kind::fill_disk: return fill_disk(random);
  case Step::Kind::faults: return set_faults(random);
  case Step::Kind::rot:
    if (options.damage)
      rot(random);
    return;
  case Step::Kind::crash: return arm(random);
  case Step::Kind::stumble: return stumble(random);
  case Step::Kind::close:
  case Step::Kind::fsck:
  case Step::Kind::repair:
    return remount(step.kind, random);
  }
}

void Run::step(const Step& step)
{
  Random random(step.seed);
  if (step.kind == Step::Kind::crash && crash_in > 0) {   // the last one did not come in time
    crash(machine->snapshot(), random);
    if (over_)
      return;
  }
  bool died = false;
  try {
    make(step, random);
  } catch (const Died& d) {
    if (!taken)
      expect_excuse("the store died: " + d.why);
    died = true;
    ++result_.died;
  }
  if (over_)
    return;
  if (taken)
    crash(*taken, random);
  else if (died || machine->table_is_full())
    crash(machine->snapshot(), random);
}

}  // namespace tablestore_sim
