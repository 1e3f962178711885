#include "test/tablestore/sim/exhaustive.h"

#include <array>

#include "test/tablestore/sim/base.h"

namespace tablestore::sim {

namespace {

struct Short {
  using Machine = sim::Machine;
  using Base = sim::Base;
  using Op = OpOnObject;
  static constexpr const char* subject = "the engine";
  static constexpr unsigned op_kinds = sim::op_kinds;
  static constexpr uint64_t log_every = 200;

  static std::array<const Base*, 2> bases() { return {&fresh_base(), &wrapped_base()}; }
  static void begin(const ExhaustiveOptions&, ExhaustiveResult*) { Machine::provision(0); }
  static Op op(unsigned kind, size_t place) {
    // Two objects of one sequencer; sizes differ with the place, so that slots do.
    return {sim::Op(kind), uint32_t(place % 2 ? 2 : 0), uint32_t(3 + 5 * place)};
  }
  static const char* name(const Op& op) { return op_name(op.op); }
  static std::string open(Machine& machine) {
    const Status s = machine.open();
    return s.ok() ? "" : "open: " + s.what();
  }
  static void run(Machine& machine, const Op& op) { machine.transaction({&op, 1}); }
  static void finish(Machine& machine, size_t ops, std::vector<Snapshot>* snapshots) {
    if (ops == 1 && !machine.engine().checkpoint().ok()) throw Failure{"checkpoint fails"};
    machine.disk().watch(nullptr);
    snapshots->push_back(machine.snapshot());
    machine.check_live();
    if (!machine.disk().misuse().empty()) throw Failure{machine.disk().misuse()};
  }
  static void check_recovered(Machine& machine, const Machine& before, const Snapshot& crashed) {
    machine.check_recovered(before, crashed.acknowledged_lsn);
  }
  static void check_running(Machine&) {}  // check_recovered() has compared all
  static void end(Machine&) {}
};

}  // namespace

ExhaustiveResult run_exhaustive(const ExhaustiveOptions& options, const ExhaustiveLog& log) {
  return Exhaustive<Short>(options, log).run();
}

}  // namespace tablestore::sim
