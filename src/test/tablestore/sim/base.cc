#include "test/tablestore/sim/base.h"

namespace tablestore::sim {

namespace {

// Writes until the log's end is at `position`: in large groups, the last of it in small ones.
void fill_log(Machine& machine, uint64_t position) {
  constexpr uint64_t small_part = 100 << 10, large = 450 << 10;
  for (uint32_t i = 0; machine.engine().counters().log_bytes < position; ++i) {
    const uint64_t left = position - machine.engine().counters().log_bytes;
    const Machine::OpOnObject op = left > small_part + large
                                       ? Machine::OpOnObject{Op::big_rows, 0, i * 7919}
                                       : Machine::OpOnObject{Op::count, 0, i};
    machine.transaction({&op, 1});
    machine.commit_all();
    machine.threads().step("checkpoint");
  }
}

Base make_base(const char* name, bool wrapped, uint64_t provision_bytes = 0) {
  constexpr Machine::OpOnObject ops[] = {
      {Op::put_rows, 0, 3}, {Op::write_small, 0, 1}, {Op::write_medium, 2, 6}};
  Machine::begin_contents(wrapped ? 1'000'000 : 1);
  Machine::provision(provision_bytes);
  Machine machine(Machine::format(), 7, State(), 0);
  if (Status s = machine.open(); !s.ok()) throw Failure{"open: " + s.what()};
  for (const auto& op : ops) machine.transaction({&op, 1});
  machine.commit_all();
  if (wrapped) {
    const uint64_t lap = Machine::engine_options().log_bytes;
    fill_log(machine, lap);
    fill_log(machine, 2 * lap - (30 << 10));  // a large row crosses it, also a compressed one
    if (Status s = machine.engine().checkpoint(); !s.ok()) throw Failure{s.what()};
  }
  const uint64_t lsn = machine.recovered_lsn();
  Base base{name, machine.disk().image(), machine.state_at(lsn), lsn, provision_bytes};
  Random random(3);
  base.image.crash(Fate::drop, random);
  return base;
}

}  // namespace

const Base& fresh_base() {
  static const Base base = make_base("fresh", false);
  return base;
}

const Base& wrapped_base() {
  static const Base base = make_base("wrapped", true);
  return base;
}

const Base& provisioned_base() {
  static const Base base = make_base("provisioned", false, provisioned_bytes);
  return base;
}

}  // namespace tablestore::sim
