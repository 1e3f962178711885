#include "test/tablestore/sim/machine.h"

#include <algorithm>
#include <cstring>

#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "test/tablestore/sim/damage_bounds.h"

namespace tablestore::sim {

uint64_t Machine::next_content_ = 1;
uint64_t Machine::provision_bytes_ = 0;

class Machine::SimTxn : public Txn {
 public:
  explicit SimTxn(Machine& machine) : machine_(machine) {}
  void durable() noexcept override {
    require(lsn() > machine_.acknowledged_lsn_, "acknowledged in log order");
    machine_.acknowledged_lsn_ = lsn();
    machine_.trusted_failed_flush_ |= machine_.disk_->refused().flushes > 0;
  }
  void applied() noexcept override {
    require(lsn() <= machine_.acknowledged_lsn_, "applied after it was acknowledged");
    require(lsn() > machine_.applied_lsn_, "applied once, in log order");
    machine_.applied_lsn_ = lsn();
    is_applied = true;
  }
  Change change;
  bool is_applied = false;

 private:
  Machine& machine_;
};

// Around a call that compacts, and waits for that.
class Machine::CompactionsRun {
 public:
  explicit CompactionsRun(Machine& machine) : machine_(machine) {
    machine_.compacts_ = true;
    machine_.meets_full_disk(machine_.threads_->flush_table());
    machine_.threads_->begin_compactions();
  }
  ~CompactionsRun() {
    machine_.threads_->end_compactions();
    machine_.compacts_ = false;
  }

 private:
  Machine& machine_;
};

EngineOptions Machine::engine_options() {
  EngineOptions o;
  o.store_uuid = "simulated-store!";
  o.log_bytes = 2 << 20;
  o.segment_bytes = 1 << 20;
  o.container_bytes = 4 << 20;
  o.capacity_bytes = 40 << 20;  // few containers, so that space is punched, restored and split
  o.memtable_bytes = 8 << 20;  // more than the log holds; its filter is zeroed at each open
  o.table_cache_bytes = 64 << 10;  // so that it evicts
  o.replay_bytes = 16 << 10;  // so that it reads rows again
  o.delete_range_threshold = 4;    // fewer rows than some ranges have, and more than others
  o.compact_on_passing = 3;
  o.group_bytes_max = 512 << 10;
  o.small_data_bytes = 64 << 10;
  o.capture_chunks_max = 1;  // so that others commit between the pieces of a checkpoint
  o.prepare_ahead_bytes = 1 << 20;
  o.stock_bytes = 4 << 20;
  o.quiet_steps = 2;
  o.provision_bytes = provision_bytes_;
  o.threads = std::make_shared<SteppedThreads>();
  o.reporter.log = [](Reporter::Level, const std::string&) {};
  o.reporter.fatal = [](const std::string& why) { throw Died{why}; };
  return o;
}

DiskImage Machine::format() {
  SimDisk disk(DiskImage(), capacity_bytes, 1);
  const Status s = Engine::format(disk, engine_options());
  if (!s.ok()) throw Failure{"format: " + s.what()};
  DiskImage image = disk.image();
  Random random(1);
  image.crash(Fate::drop, random);  // a store that was made is durable
  return image;
}

Machine::Machine(DiskImage image, uint64_t seed, State floor, uint64_t floor_lsn)
    : disk_(std::make_unique<SimDisk>(std::move(image), capacity_bytes, seed)), random_(seed) {
  threads_->step_compactions();
  become(std::move(floor), floor_lsn);
}

Machine::~Machine() {
  disk_->end_of_process();
  threads_->forget_compactions();
}

void Machine::become(State state, uint64_t lsn) {
  submitted_.clear();
  references_ = references_of(state);
  latest_ = state;
  floor_ = std::move(state);
  floor_lsn_ = acknowledged_lsn_ = applied_lsn_ = lsn;
}

Status Machine::open() {
  EngineOptions options = engine_options();
  options.threads = threads_;
  options.accept_log_loss = accepts_log_loss_;
  threads_->when_stalled([this] {
    if (disk_->no_spaces() == 0) throw Failure{"everybody waits, and nobody for space"};
    table_is_full_ = true;
    throw Died{"waits for space"};
  });
  auto opened = Engine::open(*disk_, std::move(options));
  if (!opened.ok()) return opened.status();
  engine_ = opened.take();
  threads_->let_compactions_wait();
  return {};
}

bool Machine::meets_full_disk(const Status& status) {
  if (status.code() == ENOSPC) table_is_full_ = true;
  return table_is_full_;
}

void Machine::flush_table_meanwhile() {
  disk_->meanwhile([this] {
    if (random_() % 40 || table_is_full_) return;
    flushes_ = true;
    table_is_full_ = threads_->flush_table().code() == ENOSPC;  // the next one dies of others
    flushes_ = false;
    if (random_() % 4 == 0) step_compaction();
  });
}

Status Machine::compact() {
  const CompactionsRun running(*this);
  if (threads_->has("compact_passed")) threads_->step("compact_passed");
  return engine_->compact();
}

void Machine::step_compaction() {
  compacts_ = true;
  threads_->step_compaction();
  compacts_ = false;
}

void Machine::idle() {
  for (const char* work : {"commit", "vouch", "commit"})
    if (threads_->has(work)) threads_->step(work);
}

bool Machine::is_quiet() const {
  return std::ranges::all_of(submitted_, [](const auto& t) { return t->is_applied; });
}

void Machine::transaction(std::span<const OpOnObject> ops, bool abandon) {
  const auto txn = std::make_shared<SimTxn>(*this);
  in_hand_ = txn;
  TransactionBuilder builder({*engine_, latest_, references_, next_content_, ""}, *txn,
                             txn->change);
  const uint32_t sequencer = ops[0].object % 2;
  txn->sequencer = &sequencers_[sequencer];
  for (const OpOnObject& o : ops) builder.run({o.op, o.object / 2 * 2 + sequencer, o.n});
  if (abandon) {
    engine_->abandon(*txn);
    return;
  }
  add_references(&references_, builder.references());
  latest_.apply(txn->change);
  submitted_.push_back(txn);
  engine_->submit(txn);
}

void Machine::commit() {
  threads_->step("commit");
  threads_->step_all("apply");
}

void Machine::commit_all() {
  while (std::ranges::any_of(submitted_, [](const auto& t) { return !t->is_applied; })) commit();
}

Damage Machine::damage() const {
  return damage_of(disk_->image(), engine_ ? threads_->table() : nullptr);
}

bool Machine::is_log_full() const {
  for (const auto& [name, value] : engine_->statistics())
    if (name == "log_used_bytes") return value + (256 << 10) > engine_options().log_bytes;
  return true;
}

Snapshot Machine::snapshot() const {
  DiskImage image = disk_->image();
  const Moments at = moments_at(image, "quiet");
  return {std::move(image), acknowledged_lsn_, "quiet", at};
}

Snapshot Machine::snapshot(const DiskImage& image, const char* io) const {
  return {image, acknowledged_lsn_, io, moments_at(image, io)};
}

Moments Machine::moments_at(const DiskImage& image, const std::string& io) const {
  Moments at;
  auto set = [&at](Moment moment, bool is) { at[unsigned(moment)] = is; };
  const DiskImage::Unsettled u = image.unsettled();
  const bool table = io.starts_with("table"), recovering = !engine_ && io != "quiet";
  set(Moment::recovering, recovering);
  set(Moment::compacting, table && compacts_);
  set(Moment::flushing, table && flushes_);
  // Nothing else writes the table.
  set(Moment::checkpointing, table && !recovering && !compacts_ && !flushes_);
  set(Moment::preparing, u.zeroes);
  set(Moment::growing, u.allocation || u.new_container);
  set(Moment::punching, u.punch);
  set(Moment::removing, u.removed_container);
  set(Moment::reclassing, u.renamed_container);
  set(Moment::wrapping, u.log_wrap);
  set(Moment::full, disk_->is_full());
  return at;
}

State Machine::state_at(uint64_t lsn) const {
  State state = floor_;
  std::vector<std::shared_ptr<SimTxn>> order;
  for (const auto& txn : submitted_)
    if (txn->lsn() && txn->lsn() <= lsn) order.push_back(txn);
  std::ranges::sort(order, {}, [](const auto& t) { return t->lsn(); });
  for (const auto& txn : order) state.apply(txn->change);
  return state;
}

uint64_t Machine::recovered_lsn() const {
  std::string row;
  auto found = engine_->get(Family::super, engine_rows::applied(), &row);
  if (!found.ok()) found = engine_->get(engine_rows::of_copies, engine_rows::applied(), &row);
  if (!found.ok()) throw Unreadable{"the last transaction: " + found.status().what()};
  uint64_t lsn = 0;
  if (*found) std::memcpy(&lsn, row.data(), sizeof(lsn));
  return lsn;
}

void Machine::check_recovered(const Machine& before, uint64_t least_lsn) {
  const uint64_t lsn = recovered_lsn();
  if (lsn < least_lsn)
    throw Failure{"transaction " + std::to_string(least_lsn) +
                  " was acknowledged, the store ends with " + std::to_string(lsn)};
  check_is(before, lsn, before.state_at(lsn), damage());
}

void Machine::check_is(const Machine& before, uint64_t lsn, State state, const Damage& damage) {
  forget_missing(*engine_, before.droppable_, &state);
  if (auto d = difference(*engine_, state, damage, &damaged_reads_); !d.empty())
    throw Failure{"after recovery up to transaction " + std::to_string(lsn) + ": " + d};
  become(std::move(state), lsn);
}

void Machine::check_remains(const Machine& before) {
  const uint64_t lsn = recovered_lsn();
  if (lsn < before.floor_lsn_) return;  // which states there were then, nobody knows any more
  State state = before.state_at(lsn);
  const auto is_kept = [&before](const BlockRef& block) {
    return std::ranges::any_of(before.latest_.objects, [&block](const auto& object) {
      return std::ranges::count(object.second, block) > 0;
    });
  };
  Damage may_hide = damage();
  for (const auto& [name, blocks] : state.objects)
    for (const BlockRef& b : blocks)
      if (!is_kept(b)) may_hide.blocks.insert({b.container, b.block});
  check_is(before, lsn, std::move(state), may_hide);
}

Status Machine::salvage() {
  droppable_ = unreadable_rows(*engine_, latest_);
  const CompactionsRun running(*this);
  const auto salvaged = engine_->salvage_table([this](Family family, std::string_view key) {
    if (!droppable_[size_t(family)].contains(std::string(key)))
      throw Failure{"a salvage drops row " + std::string(key) + ", which can be read"};
  });
  return salvaged.ok() ? Status() : salvaged.status();
}

void Machine::accept_dropped() {
  const auto left = engine_->find_table_damage();
  if (!left.ok()) throw Failure{"a salvaged table cannot be read: " + left.status().what()};
  if (!left->empty()) throw Failure{"a salvaged table is damaged"};
  State state = state_at(UINT64_MAX);
  forget_missing(*engine_, droppable_, &state);
  droppable_ = {};
  become(std::move(state), recovered_lsn());
}

void Machine::check_some(Random& random, bool may_fail) {
  if (latest_.objects.empty()) return;
  const Damage damaged = damage();
  const auto object = std::next(latest_.objects.begin(),
                                ptrdiff_t(random() % latest_.objects.size()));
  for (unsigned n = 0; n < 16 && !object->second.empty(); ++n) {
    std::string error;
    const BlockRef& block = object->second[random() % object->second.size()];
    const BlockIs is = look_at(*engine_, block, damaged, may_fail, &error);
    if (is == BlockIs::wrong || is == BlockIs::unreadable)
      throw Failure{"of a running store: object " + object->first +
                    (is == BlockIs::wrong ? " reads other bytes" : " cannot be read: " + error)};
  }
}

void Machine::check_live() {
  for (const auto& txn : submitted_)
    if (!txn->is_applied)
      throw Failure{"transaction " + std::to_string(txn->lsn()) + " was drained and not applied"};
  const Faults faults = disk_->set_faults({});
  const std::string d = difference(*engine_, state_at(UINT64_MAX), damage(), &damaged_reads_);
  disk_->set_faults(faults);
  if (!d.empty()) throw Failure{"of a running store: " + d};
}

void Machine::check_space() {
  // What rows take is known when their file is written.
  constexpr uint64_t slack = 4 << 20;
  const uint64_t available = engine_->space().available_bytes / block_bytes * block_bytes;
  const Status s = engine_->reserve(available);
  if (!s.ok())
    throw Failure{std::to_string(available) + " bytes are available, and cannot be had: " +
                  s.what()};
  engine_->unreserve(available);
  const uint64_t taken = disk_->image().taken_bytes();
  if (taken > engine_options().capacity_bytes + slack)
    throw Failure{"the store takes " + std::to_string(taken) + " bytes, more than its capacity"};
}

// ---- of the disks of these stores

LiveLog read_live_log(const DiskImage& whole) {
  return read_live_log(whole, Machine::engine_options());
}

Bounds bounds_of(const DiskImage& left, uint64_t acknowledged_lsn) {
  return bounds_of(left, acknowledged_lsn, Machine::engine_options());
}

}  // namespace tablestore::sim
