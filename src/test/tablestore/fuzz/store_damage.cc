#include "test/tablestore/fuzz/store_damage.h"

#include <memory>

#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "test/tablestore/fuzz/log_groups.h"

namespace tablestore::fuzz {

namespace {

using sim::DiskImage;
using sim::Machine;
using sim::Op;

constexpr uint64_t file_bytes_max = 64 << 20;
// Most of the log and of a container is empty: half of the edits are made where something lies.
constexpr uint64_t log_part_bytes = 96 << 10, container_part_bytes = 512 << 10;

// --- stores

void commit(Machine& machine, DamagedStore* store, Machine::OpOnObject op) {
  machine.transaction({&op, 1});
  machine.commit_all();
  for (uint64_t lsn = store->states.size(); lsn <= machine.recovered_lsn(); ++lsn)
    store->states.push_back(machine.state_at(lsn));
}

void checkpoint(Machine& machine, DamagedStore* store) {
  require(machine.engine().checkpoint().ok(), "an undamaged disk takes checkpoints");
  store->in_table = machine.recovered_lsn();
}

DamagedStore make_store(unsigned kind) {
  constexpr Machine::OpOnObject first[] = {
      {Op::put_rows, 0, 3},    {Op::write_small, 0, 1}, {Op::write_medium, 2, 6},
      {Op::write_large, 1, 9}, {Op::count, 0, 5},       {Op::clone, 0, 0}};
  constexpr Machine::OpOnObject second[] = {
      {Op::overwrite, 2, 7}, {Op::erase_rows, 0, 1}, {Op::truncate, 1, 20}, {Op::rename, 1, 0},
      {Op::put_rows, 0, 8},  {Op::remove, 2, 0},     {Op::count, 0, 6},     {Op::append, 0, 3}};
  DamagedStore store;
  Machine machine(Machine::format(), 7, sim::State(), 0);
  require(machine.open().ok(), "a new store opens");
  store.states.push_back(machine.state_at(0));
  for (const auto& op : first) commit(machine, &store, op);
  if (kind == 1) checkpoint(machine, &store);
  if (kind == 2) {
    const uint64_t lap = Machine::engine_options().log_bytes;
    for (uint32_t i = 0; machine.engine().counters().log_bytes < lap + (300 << 10); ++i) {
      commit(machine, &store, {Op::big_rows, 0, i * 7919});
      if (i % 3 == 2) checkpoint(machine, &store);
    }
  }
  for (const auto& op : second) commit(machine, &store, op);
  std::string row;
  auto found = machine.engine().get(Family::super, engine_rows::log_start(), &row);
  require(found.ok() && *found, "the log begins somewhere");
  store.log_start = *LogPosition::decode(row);
  store.image = machine.disk().image();
  sim::Random random(3);
  store.image.crash(sim::Fate::drop, random);
  return store;
}

// --- edits

struct EditedFile {
  std::string path;
  DiskImage::InodeId id = 0;
  std::string before, now;
  bool removed = false;
  bool differs() const { return removed || before != now; }
};

std::string contents(const DiskImage& image, DiskImage::InodeId id) {
  const sim::FileView& view = image.inode(id).current;
  std::string bytes(view.size, '\0');
  view.pages.each([&](uint32_t block, const sim::Page& page) {
    const uint64_t at = block * block_bytes;
    if (at < bytes.size())
      std::memcpy(bytes.data() + at, page.data(), std::min(block_bytes, bytes.size() - at));
  });
  return bytes;
}

class Editor {
 public:
  explicit Editor(const DamagedStore& store) : store_(store) {
    for (const auto& [path, id] : store.image.names())
      if (!store.image.inode(id).directory) files_.push_back({path, id, {}, {}, false});
    loaded_.resize(files_.size());
  }

  void apply(const Edit& edit) {
    size_t index = edit.file % files_.size();
    uint64_t offset = edit.offset;
    if (edit.argument & 1) narrow(&index, &offset);
    EditedFile& f = file(index);
    const auto kind = Edit::Kind(edit.kind % Edit::kinds);
    if (kind == Edit::Kind::mend) mend_ = true;
    if (kind == Edit::Kind::remove) f.removed = true;
    if (kind == Edit::Kind::extend)
      f.now.resize(std::min<uint64_t>(f.now.size() + edit.argument % 10000, file_bytes_max));
    if (f.now.empty()) return;
    const uint64_t at = offset % f.now.size();
    if (kind == Edit::Kind::truncate) f.now.resize(at);
    overwrite(kind, f.now, at, edit.argument);
  }

  Damage finish(DiskImage* image) {
    Damage damage;
    if (mend_) mend();
    damage.mended = mend_;
    *image = store_.image;
    for (EditedFile& f : files_) {
      if (!f.differs()) continue;
      note(f, &damage);
      write_back(f, image);
    }
    return damage;
  }

 private:
  EditedFile& file(size_t index) {
    EditedFile& f = files_[index];
    if (!loaded_[index]) f.before = f.now = contents(store_.image, f.id);
    loaded_[index] = true;
    return f;
  }
  EditedFile& file(const std::string& path) {
    const auto found = std::ranges::find(files_, path, &EditedFile::path);
    require(found != files_.end(), "a store has a label and a log");
    return file(size_t(found - files_.begin()));
  }

  void narrow(size_t* index, uint64_t* offset) const {
    const std::string& path = files_[*index].path;
    if (path.starts_with("containers/")) *offset %= container_part_bytes;
    if (!path.starts_with("log/")) return;
    const EngineOptions o = Machine::engine_options();
    const uint64_t at = (store_.log_start.position + *offset % log_part_bytes) % o.log_bytes;
    const std::string segment = "log/" + std::to_string(at / o.segment_bytes);
    *index = size_t(std::ranges::find(files_, segment, &EditedFile::path) - files_.begin());
    *offset = at % o.segment_bytes;
  }

  static void overwrite(Edit::Kind kind, std::string& bytes, uint64_t at, uint32_t argument) {
    const uint64_t sector = at / sim::sector_bytes * sim::sector_bytes;
    const size_t length = std::min<uint64_t>(sim::sector_bytes, bytes.size() - sector);
    if (kind == Edit::Kind::flip) bytes[at] ^= char(argument | 1);
    if (kind == Edit::Kind::number)
      std::memcpy(bytes.data() + at, &argument, std::min<uint64_t>(4, bytes.size() - at));
    if (kind == Edit::Kind::zeros) std::memset(bytes.data() + sector, 0, length);
    if (kind == Edit::Kind::noise) {
      sim::Random random(argument);
      for (size_t i = 0; i < length; ++i) bytes[sector + i] = char(random());
    }
    if (kind == Edit::Kind::copy && bytes.size() >= block_bytes) {
      const uint64_t blocks = bytes.size() / block_bytes;
      std::memmove(bytes.data() + at / block_bytes % blocks * block_bytes,
                   bytes.data() + argument % blocks * block_bytes, block_bytes);
    }
  }

  void mend() {
    EditedFile& label = file("label");
    for (size_t copy = 0; copy + block_bytes <= label.now.size(); copy += block_bytes) {
      const uint32_t crc = crc32c(0, label.now.data() + copy, block_bytes - sizeof(crc));
      std::memcpy(label.now.data() + copy + block_bytes - sizeof(crc), &crc, sizeof(crc));
    }
    const EngineOptions o = Machine::engine_options();
    std::string log;
    for (uint64_t n = 0; n < o.log_bytes / o.segment_bytes; ++n) log += segment(n).now;
    if (log.size() != o.log_bytes) return;
    mend_log(std::as_writable_bytes(std::span(log)), store_.log_start, mend_chain | mend_crc);
    for (uint64_t n = 0; n < o.log_bytes / o.segment_bytes; ++n)
      segment(n).now = log.substr(n * o.segment_bytes, o.segment_bytes);
  }
  EditedFile& segment(uint64_t n) { return file("log/" + std::to_string(n)); }

  static void note(const EditedFile& f, Damage* damage) {
    damage->label |= f.path == "label";
    damage->log |= f.path.starts_with("log/");
    damage->table |= f.path.starts_with("table/");
    if (!f.path.starts_with("containers/")) return;
    damage->containers = true;
    const uint32_t id = uint32_t(std::stoul(f.path.substr(f.path.rfind('/') + 1)));
    if (f.removed) damage->removed.insert(id);
    for (uint64_t at = 0; at < f.before.size(); at += block_bytes)
      if (f.removed || f.now.size() < at + block_bytes ||
          f.now.compare(at, block_bytes, f.before, at, block_bytes) != 0)
        damage->blocks.insert({id, uint32_t(at / block_bytes)});
  }

  static void write_back(const EditedFile& f, DiskImage* image) {
    if (f.removed) return image->remove(f.path);
    const auto bytes = std::as_bytes(std::span(f.now));
    if (image->inode(f.id).buffered) {
      image->truncate(f.id, 0);
      return image->append(f.id, bytes);
    }
    if (f.now.size() != f.before.size()) image->truncate(f.id, f.now.size());
    for (uint64_t at = 0; at < f.now.size(); at += block_bytes) {
      const size_t piece = std::min<size_t>(block_bytes, f.now.size() - at);
      if (at < f.before.size() && f.now.compare(at, piece, f.before, at, piece) == 0) continue;
      auto page = std::make_shared<sim::Page>();
      std::memcpy(page->data(), bytes.data() + at, piece);
      sim::PendingOp op{.offset = at, .length = block_bytes};
      op.pages.push_back(std::move(page));
      image->complete(f.id, image->submit(f.id, std::move(op)));
    }
  }

  const DamagedStore& store_;
  std::vector<EditedFile> files_;
  std::vector<bool> loaded_;
  bool mend_ = false;
};

// --- what may come of it

// Everything that can be read, whatever it says: for stores of which nobody knows what they hold.
void read_all(Engine& engine) {
  for (unsigned f = 0; f < families; ++f) {
    auto rows = engine.iterate(Family(f), {}, {});
    for (rows->seek_to_first(); rows->valid(); rows->next()) {
      std::string value;
      const auto found = engine.get(Family(f), rows->key(), &value);
      require(!found.ok() || *found, "a row that is listed is there");
    }
  }
  BlockMemory memory(block_bytes);
  for (const auto& [container, owned] : engine.owned_blocks())
    for (uint32_t b = owned.next_set(0); b < owned.blocks(); b = owned.next_set(b + 1)) {
      const Status s = engine.read({container, b, 1}, memory.span());
      require(s.ok() || s.code() == EIO, "a block is read or not");
    }
}

void check_state(Machine& machine, const DamagedStore& store, const Damage& damage) {
  const uint64_t lsn = machine.recovered_lsn();
  require(lsn <= store.lsn(), "nothing is invented");
  // A log that is whole says all. Damage to its end, or to data that only its end speaks of, looks
  // as if it had never been written.
  if (!damage.log && !damage.containers) require(lsn == store.lsn(), "nothing is lost");
  if (!damage.table) require(lsn >= store.in_table, "what is in the table is not lost");
  uint64_t damaged_reads = 0;
  sim::Damage may_be_lost;
  may_be_lost.blocks = damage.blocks;
  if (damage.table) may_be_lost.removed = damage.removed;
  if (damage.table)
    for (auto& rows : may_be_lost.rows) rows.emplace_back("", std::string(64, '\xff'));
  const std::string d = sim::difference(machine.engine(), store.states[lsn], may_be_lost,
                                        &damaged_reads);
  require(d.empty(), d.c_str());
}

}  // namespace

const DamagedStore& store_to_damage(unsigned kind) {
  static std::unique_ptr<const DamagedStore> stores[store_kinds];
  auto& store = stores[kind % store_kinds];
  if (!store) store = std::make_unique<const DamagedStore>(make_store(kind % store_kinds));
  return *store;
}

Edit Edit::take(Input& in) {
  Edit edit;
  edit.kind = in.u8();
  edit.file = in.u8();
  edit.offset = in.u32();
  edit.argument = in.u32();
  return edit;
}

void Edit::append_to(Output& out) const {
  out.number(kind).number(file).number(offset).number(argument);
}

Damage damage(const DamagedStore& store, const std::vector<Edit>& edits, sim::DiskImage* image) {
  Editor editor(store);
  for (const Edit& edit : edits) editor.apply(edit);
  return editor.finish(image);
}

std::string check_damaged(const DamagedStore& store, const Damage& damage, sim::DiskImage image) {
  Machine machine(std::move(image), 1, sim::State(), 0);
  try {
    if (const Status s = machine.open(); !s.ok()) {
      require(!s.what().empty(), "a refusal says why");
      return "refused: " + s.what();
    }
    if (damage.mended)
      read_all(machine.engine());
    else
      check_state(machine, store, damage);
    const Status s = machine.engine().close();
    return s.ok() ? "right" : "unreadable: " + s.what();
  } catch (const sim::Unreadable& e) {
    return "unreadable: " + e.what;
  } catch (const sim::Died& e) {
    require(damage.mended, e.why.c_str());
    return "unreadable: " + e.why;
  }
}

}  // namespace tablestore::fuzz
