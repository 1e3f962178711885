#include "test/tablestore/sim/machine.h"

#include <algorithm>
#include <cstring>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/require.h"

namespace tablestore::sim {

uint64_t Machine::next_content_ = 1;
uint64_t Machine::provision_bytes_ = 0;

class Machine::SimTxn : public Txn {
 public:
  explicit SimTxn(Machine& machine) : machine_(machine) {}
  void durable() noexcept override {
    require(lsn() > machine_.acknowledged_lsn_, "acknowledged in log order");
    machine_.acknowledged_lsn_ = lsn();
  }
  void applied() noexcept override { is_applied = true; }
  Change change;
  bool is_applied = false;

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
  o.memtable_bytes = 64 << 20;
  o.table_cache_bytes = 4 << 20;
  o.group_bytes_max = 512 << 10;
  o.small_data_bytes = 64 << 10;
  o.prepare_ahead_bytes = 1 << 20;
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
  become(std::move(floor), floor_lsn);
}

Machine::~Machine() { disk_->end_of_process(); }

void Machine::become(State state, uint64_t lsn) {
  submitted_.clear();
  references_ = references_of(state);
  latest_ = state;
  floor_ = std::move(state);
  floor_lsn_ = acknowledged_lsn_ = lsn;
}

Status Machine::open() {
  EngineOptions options = engine_options();
  options.threads = threads_;
  threads_->when_stalled([this] {
    if (disk_->no_spaces() == 0) throw Failure{"everybody waits, and nobody for space"};
    table_is_full_ = true;
    throw Died{"waits for space"};
  });
  auto opened = Engine::open(*disk_, std::move(options));
  if (!opened.ok()) return opened.status();
  engine_ = opened.take();
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
  });
}

Status Machine::compact() {
  compacts_ = true;
  const Status s = engine_->compact();
  compacts_ = false;
  return s;
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

DamagedBlocks Machine::damage(bool* elsewhere) const {
  DamagedBlocks blocks;
  const DiskImage image = disk_->image();
  for (const auto& [path, id] : image.all_names())
    for (auto d = disk_->damage().lower_bound({id, 0});
         d != disk_->damage().end() && d->first == id; ++d) {
      if (path.starts_with("containers/"))
        blocks.insert({uint32_t(std::stoul(path.substr(path.rfind('/') + 1))), d->second});
      else if (elsewhere)
        *elsewhere = true;
    }
  return blocks;
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
  auto found = engine_->get(Family::super, std::string("\0applied", 8), &row);
  if (!found.ok()) throw Unreadable{"the last transaction: " + found.status().what()};
  uint64_t lsn = 0;
  if (*found) std::memcpy(&lsn, row.data(), sizeof(lsn));
  return lsn;
}

void Machine::check_recovered(const Machine& before, const Snapshot& crashed,
                              const DamagedBlocks& damage, bool lied) {
  const uint64_t lsn = recovered_lsn();
  if (lsn < crashed.acknowledged_lsn && !lied)
    throw Failure{"transaction " + std::to_string(crashed.acknowledged_lsn) +
                  " was acknowledged, the store ends with " + std::to_string(lsn)};
  State state = before.state_at(lsn);
  if (auto d = difference(*engine_, state, damage, &damaged_reads_); !d.empty())
    throw Failure{"after recovery up to transaction " + std::to_string(lsn) + ": " + d};
  become(std::move(state), lsn);
}

void Machine::check_some(Random& random, const DamagedBlocks& damage, bool may_fail) {
  if (latest_.objects.empty()) return;
  const auto object = std::next(latest_.objects.begin(),
                                ptrdiff_t(random() % latest_.objects.size()));
  BlockMemory found(block_bytes), wanted(block_bytes);
  for (unsigned n = 0; n < 16 && !object->second.empty(); ++n) {
    const BlockRef& b = object->second[random() % object->second.size()];
    fill_block(b.seed, b.index, wanted.data());
    const Status s = engine_->read({b.container, b.block, 1}, found.span());
    const bool may_differ = damage.contains({b.container, b.block});
    if (s.ok() ? may_differ || std::memcmp(found.data(), wanted.data(), block_bytes) == 0
               : may_fail || may_differ)
      continue;
    throw Failure{"of a running store: object " + object->first +
                  (s.ok() ? " reads other bytes" : " cannot be read: " + s.what())};
  }
}

void Machine::check_live(const DamagedBlocks& damage) {
  const Faults faults = disk_->set_faults({});
  const std::string d = difference(*engine_, state_at(UINT64_MAX), damage, &damaged_reads_);
  disk_->set_faults(faults);
  if (!d.empty()) throw Failure{"of a running store: " + d};
}

}  // namespace tablestore::sim
