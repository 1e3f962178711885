#include "test/tablestore/sim/exhaustive.h"

#include <map>

#include "test/tablestore/sim/base.h"
#include "test/tablestore/sim/damage_places.h"

namespace tablestore::sim {

namespace {

struct Short {
  using Machine = sim::Machine;
  using Base = sim::Base;
  using Op = OpOnObject;
  static constexpr const char* subject = "the engine";
  static constexpr unsigned op_kinds = sim::op_kinds;
  static constexpr uint64_t log_every = 200;

  static std::vector<const Base*> bases() {
    return {&fresh_base(), &wrapped_base(), &provisioned_base()};
  }
  static void begin(const ExhaustiveOptions&, Cases*, ExhaustiveResult*) {}
  static void begin_history(const Base& base) {
    Machine::begin_contents(2'000'000);
    Machine::provision(base.provisioned_bytes);
  }
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
  static Snapshot finish(Machine& machine, size_t ops, std::vector<Snapshot>* snapshots) {
    if (ops == 1 && !machine.engine().checkpoint().ok()) throw Failure{"checkpoint fails"};
    machine.disk().watch(nullptr);
    snapshots->push_back(machine.snapshot());
    machine.check_live();
    if (!machine.engine().close().ok()) throw Failure{"close fails"};
    if (!machine.disk().misuse().empty()) throw Failure{machine.disk().misuse()};
    return machine.snapshot();
  }
  static void check_recovered(Machine& machine, const Machine& before, const Snapshot& crashed) {
    machine.check_recovered(before, crashed.acknowledged_lsn);
  }
  static void check_running(Machine&) {}  // check_recovered() has compared all
  static void end(Machine&) {}

  static bool damages_after(Fate fate) { return leaves_nothing_to_chance(fate); }
  static constexpr size_t damage_kinds = block_damage_kinds.size();
  static LiveLog live_log(const DiskImage& disk) { return read_live_log(disk); }
  static std::vector<BlockDamage> damages(const DiskImage& older, const DiskImage& disk,
                                          const LiveLog& log, bool all) {
    return damages_of(older, disk, log, Machine::engine_options(), all);
  }
  static void recover_damaged(const Machine& before, const Snapshot& crashed, const DiskImage& left,
                              const LiveLog& log, Random& random, ExhaustiveResult* result) {
    const Bounds bounds =
        bounds_of(left, crashed.acknowledged_lsn, Machine::engine_options(), log);
    Machine machine(left, random(), {}, 0);
    if (const std::string why = open(machine); !why.empty()) {
      if (!bounds.may_refuse()) throw Failure{"does not open: " + why};
      ++result->refused;
      return accept_loss(before, left, bounds, why, random, result);
    }
    machine.check_recovered(before, bounds.least_lsn);
    result->shortened += machine.floor_lsn() < crashed.acknowledged_lsn;
    work(machine);
    if (is_table_damaged(machine.disk().image())) salvage(machine, result);
    result->damaged_reads += machine.damaged_reads();
  }

 private:
  // What it has it goes on with.
  static void work(Machine& machine) {
    const OpOnObject ops[] = {{sim::Op::write_small, 0, 1}, {sim::Op::put_rows, 0, 4}};
    machine.transaction(ops);
    machine.commit_all();
    machine.check_live();
  }
  // The way out of a refusal: what lies before the damage is there.
  static void accept_loss(const Machine& before, const DiskImage& left, const Bounds& bounds,
                          const std::string& why, Random& random, ExhaustiveResult* result) {
    if (!bounds.has_way_out) return;  // but the replicas
    if (why.find("tablestore_accept_log_loss") == std::string::npos)
      throw Failure{"names no way out: " + why};
    Machine machine(left, random(), {}, 0);
    machine.accept_log_loss();
    if (const std::string still = open(machine); !still.empty())
      throw Failure{"does not open when the loss is accepted: " + still};
    ++result->accepted;
    const uint64_t lsn = machine.recovered_lsn();
    if (lsn < bounds.accepted_lsn)
      throw Failure{"when the loss is accepted, nothing up to transaction " +
                    std::to_string(bounds.accepted_lsn) + " is hit, and the store ends with " +
                    std::to_string(lsn)};
    machine.check_remains(before);
    // Of what an earlier life wrote, nobody knows any more how it came to be.
    if (lsn < before.floor_lsn()) return;
    if (machine.engine().needs_adoption()) adopt(machine);
    work(machine);
  }
  // As repair does.
  static void adopt(Machine& machine) {
    std::map<uint32_t, BlockBitmap> owned;
    const uint64_t blocks = Machine::engine_options().container_bytes / block_bytes;
    for (const auto& [name, object] : machine.floor().objects)
      for (const BlockRef& b : object)
        owned.try_emplace(b.container, BlockBitmap(blocks)).first->second.set(b.block, 1);
    if (const Status s = machine.engine().adopt_owned(owned); !s.ok())
      throw Failure{"what rows own cannot be adopted: " + s.what()};
  }
  // The same.
  static void salvage(Machine& machine, ExhaustiveResult* result) {
    const bool may_fail = !machine.damage().rows[0].empty();  // rows of the engine's own
    const Status s = machine.salvage();
    if (!s.ok() && !may_fail) throw Failure{"salvage: " + s.what()};
    if (!s.ok()) return;
    ++result->repairs;
    machine.accept_dropped();
    machine.check_live();
  }
};

}  // namespace

ExhaustiveResult run_exhaustive(const ExhaustiveOptions& options, const ExhaustiveLog& log) {
  return Exhaustive<Short>(options, log).run();
}

}  // namespace tablestore::sim
