#include "test/tablestore/sim/machine.h"

#include <algorithm>
#include <cstring>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/require.h"

namespace tablestore::sim {

uint64_t Machine::next_content_ = 1;

const char* op_name(Op op) {
  static constexpr const char* names[op_kinds] = {
      "put_rows", "erase_rows", "count",  "write_small", "write_large", "write_medium", "overwrite",
      "append",   "truncate",   "remove", "clone",       "rename",      "big_rows"};
  return names[unsigned(op)];
}

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

// Makes one transaction, on top of everything submitted before.
class Machine::Builder {
 public:
  explicit Builder(Machine& machine)
      : machine_(machine), txn_(std::make_shared<SimTxn>(machine)) {}

  void run(const OpOnObject& o);
  std::shared_ptr<SimTxn> take() { return std::move(txn_); }
  std::map<std::pair<uint32_t, uint32_t>, int>& references() { return references_; }

 private:
  void put(Family family, const std::string& key, const std::string& value) {
    txn_->put(family, key, value);
    txn_->change.rows.push_back({Change::Kind::put, family, key, value});
  }
  void erase(Family family, const std::string& key) {
    txn_->erase(family, key);
    txn_->change.rows.push_back({Change::Kind::erase, family, key, {}});
  }
  void rows(const OpOnObject& o);
  const Blocks* find(const std::string& name) const;
  // New blocks on the disk; none where there is no space.
  std::optional<Blocks> write(uint32_t blocks);
  // The object becomes `blocks`; what is referred to no more is freed.
  void set(const std::string& name, std::optional<Blocks> blocks);
  void write_into(const std::string& name, uint32_t at, uint32_t blocks);

  Machine& machine_;
  std::shared_ptr<SimTxn> txn_;
  std::map<std::pair<uint32_t, uint32_t>, int> references_;  // more or fewer than the machine's
};

const Blocks* Machine::Builder::find(const std::string& name) const {
  const auto changed = txn_->change.objects.find(name);
  if (changed != txn_->change.objects.end()) return changed->second ? &*changed->second : nullptr;
  const auto found = machine_.latest_.objects.find(name);
  return found == machine_.latest_.objects.end() ? nullptr : &found->second;
}

std::optional<Blocks> Machine::Builder::write(uint32_t blocks) {
  if (!machine_.engine_->reserve(blocks * block_bytes).ok()) return std::nullopt;
  const uint64_t seed = next_content_++;
  auto memory = std::make_shared<BlockMemory>(blocks * block_bytes);
  for (uint32_t i = 0; i < blocks; ++i) fill_block(seed, i, memory->data() + i * block_bytes);
  const iovec iov{memory->data(), memory->size()};
  std::vector<uint32_t> checksums;
  Blocks written;
  for (const Extent& e : machine_.engine_->write(*txn_, {&iov, 1}, memory, &checksums))
    for (uint32_t b = e.block; b < e.end(); ++b)
      written.push_back({e.container, b, seed, uint32_t(written.size())});
  return written;
}

void Machine::Builder::set(const std::string& name, std::optional<Blocks> blocks) {
  const Blocks* before = find(name);
  if (!before && !blocks) return;
  if (blocks)
    for (const BlockRef& b : *blocks) ++references_[{b.container, b.block}];
  std::vector<Extent> frees;
  if (before)
    for (const BlockRef& b : *before) {
      const std::pair at(b.container, b.block);
      const auto base = machine_.references_.find(at);
      const int left =
          --references_[at] + (base == machine_.references_.end() ? 0 : int(base->second));
      if (left > 0) continue;
      if (!frees.empty() && frees.back().container == b.container &&
          frees.back().end() == b.block && b.block % largest_slot_blocks)
        ++frees.back().blocks;
      else
        frees.push_back({b.container, b.block, 1});
    }
  for (const Extent& e : frees) txn_->free(e);
  if (blocks)
    put(Family::object, name, object_row(*blocks));
  else
    erase(Family::object, name);
  txn_->change.objects[name] = std::move(blocks);
}

void Machine::Builder::write_into(const std::string& name, uint32_t at, uint32_t blocks) {
  const Blocks* before = find(name);
  auto fresh = write(blocks);
  if (!fresh) return;
  Blocks after = before ? *before : Blocks();
  at = std::min<uint32_t>(at, uint32_t(after.size()));
  if (after.size() < at + blocks) after.resize(at + blocks);
  std::ranges::copy(*fresh, after.begin() + at);
  set(name, std::move(after));
}

void Machine::Builder::rows(const OpOnObject& o) {
  const std::string key = "k" + std::to_string(o.n % 10);
  if (o.op == Op::put_rows) {
    put(Family::data, key, std::string(o.n % 300, char('a' + o.n % 26)));
    put(Family::omap, key, std::to_string(o.n));
    put(Family::super, "M" + key, std::to_string(o.object));
  } else if (o.op == Op::erase_rows) {
    erase(Family::data, key);
    txn_->erase_range(Family::omap, "k2", "k7");
    txn_->change.rows.push_back({Change::Kind::erase_range, Family::omap, "k2", "k7"});
  } else if (o.op == Op::count) {
    const int64_t deltas[2] = {int64_t(o.n), -1};
    txn_->add("P", deltas);
    txn_->change.rows.push_back(
        {Change::Kind::add, Family::super, "P",
         std::string(reinterpret_cast<const char*>(deltas), sizeof(deltas))});
  } else {
    put(Family::omap, "big", std::string(100000 + o.n % 300000, char('A' + o.n % 26)));
  }
}

void Machine::Builder::run(const OpOnObject& o) {
  const uint32_t sequencer = o.object % 2;
  const std::string name = "o" + std::to_string(o.object % 6);
  // Of the same sequencer.
  const std::string other = "o" + std::to_string((o.object + 2 + o.n % 2 * 2) % 6);
  txn_->sequencer = &machine_.sequencers_[sequencer];
  const Blocks* now = find(name);
  const uint32_t size = now ? uint32_t(now->size()) : 0;
  switch (o.op) {
    case Op::write_small: return write_into(name, 0, 1 + o.n % 3);
    case Op::write_large:  // some need containers of their own
      return write_into(name, 0, o.n % 16 == 1 ? 1100 + o.n % 900 : 70 + o.n % 200);
    case Op::write_medium: return write_into(name, 0, 5 + o.n % 25);
    case Op::overwrite: return write_into(name, size ? o.n % size : 0, 1 + o.n % 7);
    case Op::append: return write_into(name, size, 1 + o.n % 4);
    case Op::truncate:
      if (size) set(name, Blocks(now->begin(), now->begin() + o.n % size));
      return;
    case Op::remove: return set(name, std::nullopt);
    case Op::clone:
      if (now) set(other, Blocks(*now));
      return;
    case Op::rename:
      if (!now) return;
      {
        Blocks moved = *now;
        set(other, std::move(moved));
        set(name, std::nullopt);
      }
      return;
    default: return rows(o);
  }
}

// --- Machine

EngineOptions Machine::engine_options() {
  EngineOptions o;
  o.store_uuid = "simulated-store!";
  o.log_bytes = 2 << 20;
  o.segment_bytes = 1 << 20;
  o.container_bytes = 4 << 20;
  o.capacity_bytes = 40 << 20;  // few containers, so that space is punched, restored and split
  o.memtable_bytes = 64 << 20;
  o.table_cache_bytes = 4 << 20;
  // Nothing in the background but what is asked for.
  o.table_options =
      "disable_auto_compactions=true;stats_dump_period_sec=0;stats_persist_period_sec=0;"
      "arena_block_size=32768;compression=kNoCompression;skip_stats_update_on_db_open=true;"
      "skip_checking_sst_file_sizes_on_db_open=true;max_file_opening_threads=1";
  o.group_bytes_max = 512 << 10;
  o.small_data_bytes = 64 << 10;
  o.prepare_ahead_bytes = 1 << 20;
  o.quiet_steps = 2;
  o.stepped = [] {};
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
  references_.clear();
  for (const auto& [name, blocks] : state.objects)
    for (const BlockRef& b : blocks) ++references_[{b.container, b.block}];
  latest_ = state;
  floor_ = std::move(state);
  floor_lsn_ = acknowledged_lsn_ = lsn;
}

Status Machine::open() {
  EngineOptions options = engine_options();
  options.stepped = [this] {
    table_is_full_ = true;
    throw Died{"waits for space"};
  };
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
    if (random_() % 40 == 0 && !table_is_full_)
      table_is_full_ = stepper().flush_table().code() == ENOSPC;  // the next one dies of others
  });
}

void Machine::transaction(std::span<const OpOnObject> ops, bool abandon) {
  Builder builder(*this);
  for (const OpOnObject& o : ops) {
    // One sequencer per transaction.
    OpOnObject own = o;
    own.object = o.object / 2 * 2 + ops[0].object % 2;
    builder.run(own);
  }
  auto txn = builder.take();
  if (abandon) {
    engine_->abandon(*txn);
    return;
  }
  for (const auto& [at, more] : builder.references())
    if ((references_[at] += unsigned(more)) == 0) references_.erase(at);
  latest_.apply(txn->change);
  submitted_.push_back(txn);
  engine_->submit(txn);
}

void Machine::commit_all() {
  while (std::ranges::any_of(submitted_, [](const auto& t) { return !t->is_applied; }))
    stepper().commit();
}

DamagedBlocks Machine::damage(bool* elsewhere) const {
  DamagedBlocks blocks;
  const DiskImage image = disk_->image();
  for (const auto& [path, id] : image.names())
    for (auto d = disk_->damage().lower_bound({id, 0});
         d != disk_->damage().end() && d->first == id; ++d) {
      if (path.starts_with("containers/"))
        blocks.insert({uint32_t(std::stoul(path.substr(path.rfind('/') + 1))), d->second});
      else if (elsewhere)
        *elsewhere = true;
    }
  return blocks;
}

Snapshot Machine::snapshot() const { return {disk_->image(), acknowledged_lsn_, "quiet"}; }

Snapshot Machine::snapshot(const DiskImage& image, const char* io) const {
  return {image, acknowledged_lsn_, io};
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

void Machine::check_live(const DamagedBlocks& damage) {
  const Faults faults = disk_->set_faults({});
  const std::string d = difference(*engine_, state_at(UINT64_MAX), damage, &damaged_reads_);
  disk_->set_faults(faults);
  if (!d.empty()) throw Failure{"of a running store: " + d};
}

}  // namespace tablestore::sim
