// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/run.h"

#include <algorithm>

#include "test/objectstore/tablestore/sim/base.h"
#include "test/tablestore/sim/damage_bounds.h"

namespace tablestore_sim {

using tablestore::Status;
using tablestore::sim::bounds_of;
using tablestore::sim::FaultCounts;

namespace {

/// Of reads that fail: so that some fail each time that they are repeated.
constexpr double stubborn = 0.95;
/// So few that nothing stays that nobody uses; so many that only some stay; enough for all.
constexpr uint64_t cache_bytes[] = {16 << 10, 16 << 10, 16 << 10, 100 << 10,
                                    100 << 10, 2 << 20, 2 << 20, 640 << 20};

/// A mount was refused, as it may be: the process ends, and another one begins.
struct NotOpened {};

}  // namespace

Run::Run(const HistoryOptions& options) : options(options)
{
  set_cache_bytes(cache_bytes[0]);
  take_back_failed_transactions(false);
  SteppedThreads::help_in_turn(options.in_turn);
  const Base& base = options.wrapped ? wrapped_base() : fresh_base();
  DiskImage image = base.image;
  if (options.remapped)
    image.remap_every_write();
  if (options.damage) {
    image.remember_previous();
    image.set_bad_sector_chance(0.05);
  }
  machine = std::make_unique<Machine>(std::move(image), 1, base.state, base.lsn);
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

void Run::expect_excuse(const std::string& what)
{
  const auto says = [&](const char* words) { return what.find(words) != std::string::npos; };
  const bool excused[] = {
    machine->table_is_full(),
    // What was to become durable has not. Reads, and calls that only look, end no life.
    machine->disk().refused().on_the_way_to_durability(),
    // An OSD checks before it writes; what comes in between has to end it.
    options.full && (machine->disk().no_spaces() > 0 || !machine->has_room()) &&
        says("No space left on device"),
    options.full && says("cannot reserve"),
    // A placement group's log, or the store's own account, that no other OSD has.
    says("Input/output error") && machine->died_of_own_state(),
    // An OSD lists what is in a collection before it removes it; this may be one of those objects.
    (says("Directory not empty") || says(": -39")) && machine->may_find_more_in_removed(),
    // A transaction that fails ends an OSD anyway.
    says("cannot be taken back") && machine->disk().refused().reads > 0,
  };
  if (std::find(std::begin(excused), std::end(excused), true) == std::end(excused))
    throw Failure{what};
}

bool Run::may_give_up() const
{
  return machine->disk().refused().any();
}

void Run::expect_opening(int r, const std::string& what)
{
  // Where others have taken the last block of the file system, it has to have one again.
  if (r == -ENOSPC && options.full)
    machine->meets_full_disk(Status(ENOSPC, what));
  const Snapshot now = machine->snapshot();
  if (may_give_up() ||
      bounds_of(now.image, now.acknowledged_lsn, Machine::engine_options()).may_refuse() ||
      may_lose_both_copies(now.image, Machine::engine_options()))
    return;
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
    if (random() % 2)   // what follows can fail
      std::swap(ops.front(), ops.back());
  }
  if (kind == Step::Kind::bulk)
    ops.assign(1, {Op::fill_log, uint32_t(random()), uint32_t(random()), uint32_t(random())});
  count_transaction(machine->transaction(ops, kind == Step::Kind::across));
}

void Run::count_transaction(int r)
{
  ++result_.transactions;
  if (r == 0)
    return;
  ++result_.taken_back;
  if ((r != -ENOSPC || !options.full) && !(r == -EIO && may_give_up()))
    expect_excuse("a transaction is refused: " + std::to_string(r));
}

void Run::stumble(Random& random)
{
  if (!options.errors || faulty)
    return;
  // Rows and data have to come from the disk.
  engine_work("checkpoint", machine->engine().checkpoint());
  machine->tablestore().flush_cache(nullptr);
  // Rows can be read half of the time, so that what is done to collections can be taken back.
  const bool rows_too = random() % 2;
  const Faults before = machine->disk().set_faults(
    rows_too ? Faults{.read_error = stubborn} : Faults{.data_read_error = 0.7});
  // From here on to the next crash: a table that could not read when it flushed takes no more.
  faulty = unclean = true;
  machine->reads_may_fail(true);
  for (int n = 0; n < 6; ++n)
    transaction(n % 2 ? Step::Kind::transaction : Step::Kind::collections, random);
  machine->disk().set_faults(before);
  check_quiet();
}

void Run::check_quiet()
{
  machine->engine().drain();
  if (taken || machine->table_is_full())
    return;
  machine->check_live(unclean);
  ++result_.checks;
}

void Run::engine_work(const char* what, const Status& status)
{
  if (status.ok() || machine->meets_full_disk(status))
    return;
  const FaultCounts& refused = machine->disk().refused();
  if (refused.any() && !refused.on_the_way_to_durability())
    return;   // it says so, and goes on
  expect_excuse(std::string(what) + ": " + status.what());
  throw Died{status.what()};
}

void Run::background(const char* work, Random& random)
{
  for (uint64_t n = 1 + random() % 8; n > 0; --n)
    machine->threads().step(work);
  if (std::string_view(work) == "shrink")
    machine->threads().step("relieve");
  if (random() % 4 == 0)
    machine->step_compaction();
}

void Run::compact()
{
  const Status status = machine->compact();
  const Damage damage = machine->damage(machine->latest());
  // One that it names as lost stays as it is, until a repair.
  if (status.code() == EIO && (damage.own_rows || !damage.rows.empty()))
    return;
  engine_work("compaction", status);
}

void Run::fill_disk(Random& random)
{
  if (options.full)
    tablestore::sim::fill_disk(machine->disk(), random);
}

void Run::set_faults(Random& random)
{
  Faults faults = tablestore::sim::random_faults({.slow = 0.5}, true, options, random);
  if (options.errors)
    tablestore::sim::add_rare_errors(&faults, random);
  if (options.damage)
    faults.flushes_lie = random() % 16 == 0;
  faulty = options.errors;
  const bool reads_fail = faults.read_error > 0 || faults.short_read > 0;
  unclean |= reads_fail;
  machine->reads_may_fail(reads_fail);
  machine->disk().set_faults(faults);
}

void Run::commit(Random& random)
{
  machine->commit();
  // What is not in the table yet is read from memory.
  switch (random() % 4) {
  case 0: return;
  case 1: return background("apply", random);
  default: return machine->apply();
  }
}

void Run::change_caches(Random& random)
{
  set_cache_bytes(cache_bytes[random() % std::size(cache_bytes)]);
  machine->threads().step("tick");
}

void Run::empty_containers(Random& random)
{
  tablestore::ContainerCompaction& compaction = machine->tablestore().parts().compaction;
  if (!compaction.progress().running)
    compaction.start(1 + int64_t(random() % 100));
  const uint64_t before = compaction.progress().moved_bytes;
  for (uint64_t n = 1 + random() % 32; n > 0; --n) {
    machine->threads().step("compact");
    if (random() % 4 == 0)
      commit(random);
  }
  result_.moved += compaction.progress().moved_bytes - before;
}

void Run::decay(Random& random)
{
  if (!options.damage || faulty)
    return;
  crash_in = 0;   // what is damaged here is put right within this step
  machine->disk().watch(nullptr);
  // All that is read now stays in memory: it is what a scrub must not be content with.
  set_cache_bytes(cache_bytes[std::size(cache_bytes) - 1]);
  machine->threads().step("tick");
  check_quiet();
  if (taken || machine->table_is_full() || unclean || !machine->is_whole())
    return;
  if (random() % 3 == 0)
    return decay_row(random);
  if (!machine->decay(random))
    return;
  machine->scrub();
  machine->check_live(unclean);
  if (random() % 4)
    live_with_damage(random);
  if (machine->table_is_full())
    return;
  heal(random);
  check_quiet();
}

void Run::live_with_damage(Random& random)
{
  // A change loses nothing that is still in memory.
  if (random() % 4)
    machine->tablestore().flush_cache(nullptr);
  for (uint64_t n = 1 + random() % 6; n > 0 && !machine->table_is_full(); --n) {
    if (random() % 4 == 0)
      transaction(Step::Kind::transaction, random);
    else if (random() % 3 == 0)
      empty_containers(random);   // what is damaged is not moved
    else
      count_transaction(machine->change_damaged(random));
    if (random() % 2)
      commit(random);
  }
  check_quiet();
  if (machine->table_is_full())
    return;
  // What is lost is known from the rows, not from memory.
  machine->tablestore().flush_cache(nullptr);
  check_quiet();
}

void Run::decay_row(Random& random)
{
  const auto row = machine->decay_row(random);
  if (!row)
    return;
  machine->check_live(true);
  Healing(*machine, random).replace(row->cid, row->oid);
  machine->forget_damage();
  repair(random);   // nobody knew which blocks it had
  check_quiet();
}

// ---- umount and what follows

void Run::remount_or_die()
{
  if (int r = machine->mount(); r < 0) {
    expect_opening(r, "mount");
    throw NotOpened{};
  }
  machine->flush_table_meanwhile();
}

void Run::remount(Step::Kind kind, Random& random)
{
  if (kind == Step::Kind::repair && !faulty && !machine->may_be_hit()) {
    unclean = true;
    machine->add_strays(random);
  }
  machine->umount();
  if (machine->table_is_full())
    throw Died{"umount on a full disk"};
  // Also by a write that was lost on its way, which may have been now. What repair gives up is
  // replaced at once, which is for heal().
  const bool is_hit = machine->may_be_hit();
  if (kind == Step::Kind::repair && is_hit)
    kind = Step::Kind::fsck;
  if (kind == Step::Kind::fsck) {
    const int errors = machine->fsck();
    if (errors != 0 && !unclean && !is_hit)
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
  case Step::Kind::commit: return commit(random);
  case Step::Kind::apply: return machine->apply();
  case Step::Kind::read: return machine->check_some(random, faulty && unclean);
  case Step::Kind::scrub:
    if (!faulty)
      machine->scrub();
    return;
  case Step::Kind::caches: return change_caches(random);
  case Step::Kind::take_back: return take_back_failed_transactions(true);
  case Step::Kind::decay: return decay(random);
  case Step::Kind::empty: return empty_containers(random);
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
  case Step::Kind::compact: return compact();
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
  if (options.nearly_full) {
    Random others(step.seed + 1);
    fill_disk(others);
  }
  bool died = false;
  try {
    make(step, random);
  } catch (const NotOpened&) {
    died = true;
  } catch (const Died& d) {
    if (!taken)
      expect_excuse("the store died: " + d.why);
    died = true;
  }
  result_.died += died;
  if (over_)
    return;
  if (taken)
    crash(*taken, random);
  else if (died || machine->table_is_full())
    crash(machine->snapshot(), random);
}

}  // namespace tablestore_sim
