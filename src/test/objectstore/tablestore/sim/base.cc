// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/base.h"

namespace tablestore_sim {

namespace {

constexpr uint64_t log_bytes = 2 << 20;
constexpr uint64_t provisioned_bytes = 20 << 20;

void run(Machine& machine, const OpOnObject& op)
{
  if (int r = machine.transaction({op}); r < 0)
    throw Failure{std::string("the base's ") + op_name(op.op) + " = " + std::to_string(r)};
  machine.commit_all();
}

/// Writes until the log's end is at `position`: in large groups, the last of it in small ones.
void fill_log(Machine& machine, uint64_t position)
{
  constexpr uint64_t small_part = 100 << 10, large = 450 << 10;
  for (uint32_t i = 0; machine.engine().counters().log_bytes < position; ++i) {
    const bool far = position - machine.engine().counters().log_bytes > small_part + large;
    run(machine, {far ? Op::fill_log : Op::set_attrs, 1, 0, i});
    machine.threads().step("checkpoint");
  }
}

Base make_base(const char* name, bool wrapped, uint64_t provision_bytes = 0)
{
  provision(provision_bytes);
  Machine machine(DiskImage(), 7, State(), 0);
  if (int r = machine.mkfs(); r < 0)
    throw Failure{"mkfs = " + std::to_string(r)};
  if (int r = machine.mount(); r < 0)
    throw Failure{"mount = " + std::to_string(r)};
  machine.make_first_collections();
  machine.commit_all();
  // Collections in order: meta, 1.0, 1.1, 2.0. Objects in threes: head, snapshot, temp.
  const OpOnObject ops[] = {
    {Op::write_blocks, 1, 0, 12}, {Op::set_attrs, 1, 0, 1}, {Op::omap_set, 1, 0, 2},
    {Op::omap_header, 1, 0, 4},   {Op::clone, 1, 0, 1},     {Op::write_inline, 1, 3, 5},
    {Op::omap_set, 1, 3, 6},      {Op::write_blocks, 2, 0, 3}, {Op::write_inline, 3, 0, 2}};
  for (const OpOnObject& op : ops)
    run(machine, op);
  if (wrapped) {
    fill_log(machine, log_bytes);
    fill_log(machine, 2 * log_bytes - (60 << 10));
    if (auto s = machine.engine().checkpoint(); !s.ok())
      throw Failure{s.what()};
  }
  const uint64_t lsn = machine.applied_lsn();
  Base base{name, machine.disk().image(), machine.state_at(lsn), lsn, provision_bytes};
  Random random(3);
  base.image.crash(Fate::drop, random);
  return base;
}

}  // namespace

const Base& fresh_base()
{
  static const Base base = make_base("fresh", false);
  return base;
}

const Base& wrapped_base()
{
  static const Base base = make_base("wrapped", true);
  return base;
}

const Base& provisioned_base()
{
  static const Base base = make_base("provisioned", false, provisioned_bytes);
  return base;
}

}  // namespace tablestore_sim
