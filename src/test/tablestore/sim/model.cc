#include "test/tablestore/sim/model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "os/tablestore/engine/io/block_memory.h"

namespace tablestore::sim {

void fill_block(uint64_t seed, uint32_t index, std::byte* out) {
  // Odd multiples: no two words of any two blocks are alike, but by chance. Cheap, because every
  // recovery compares all blocks.
  const uint64_t first = (seed * 0x9E3779B97F4A7C15u) ^ (uint64_t(index) * 0xC2B2AE3D27D4EB4Fu);
  for (size_t i = 0; i < block_bytes / 8; ++i) {
    const uint64_t word = (first + i * 0xBF58476D1CE4E5B9u) ^ first >> 29;
    std::memcpy(out + i * 8, &word, 8);
  }
}

std::string object_row(const Blocks& blocks) {
  std::string row;
  for (const BlockRef& b : blocks) {
    const uint64_t fields[3] = {uint64_t(b.container) << 32 | b.block, b.seed, b.index};
    row.append(reinterpret_cast<const char*>(fields), sizeof(fields));
  }
  return row;
}

namespace {

void add_counters(std::string* row, const std::string& deltas) {
  if (row->size() < deltas.size()) row->resize(deltas.size(), '\0');
  for (size_t at = 0; at < deltas.size(); at += 8) {
    int64_t sum, delta;
    std::memcpy(&sum, row->data() + at, 8);
    std::memcpy(&delta, deltas.data() + at, 8);
    sum += delta;
    std::memcpy(row->data() + at, &sum, 8);
  }
}

// Every key that a history can have used: those of the other families are in the state.
std::set<std::string> possible_keys(Family family, const State& expected) {
  std::set<std::string> keys;
  for (const auto& [key, value] : expected.rows[size_t(family)]) keys.insert(key);
  for (unsigned n = 0; n < 10; ++n) {
    const std::string k = "k" + std::to_string(n);
    if (family == Family::object) keys.insert("o" + std::to_string(n));
    if (family == Family::data || family == Family::omap) keys.insert(k);
    if (family == Family::super) keys.insert("M" + k);
  }
  keys.insert(family == Family::super ? "P" : "big");
  return keys;
}

// One by one, as an iterator ends at the first row that cannot be read.
std::string rows_one_by_one(Engine& engine, Family family, const State& expected,
                            const Damage& damage, uint64_t* damaged_reads) {
  const auto& rows = expected.rows[size_t(family)];
  for (const std::string& key : possible_keys(family, expected)) {
    std::string value;
    const auto found = engine.get(family, key, &value);
    const auto wanted = rows.find(key);
    const std::string where =
        "family " + std::to_string(unsigned(family)) + ": row " + key + " of a damaged table ";
    if (!found.ok()) {
      if (!damage.may_hide(family, key))
        return where + "cannot be read, and is in no damaged file: " + found.status().what();
      ++*damaged_reads;
      continue;
    }
    if (*found != (wanted != rows.end())) return where + (*found ? "is there" : "is missing");
    if (*found && value != wanted->second) return where + "has another value";
  }
  return {};
}

std::string rows_difference(Engine& engine, const State& expected, const Damage& damage,
                            uint64_t* damaged_reads) {
  for (unsigned f = 0; f < families; ++f) {
    if (!damage.rows[f].empty()) {
      auto d = rows_one_by_one(engine, Family(f), expected, damage, damaged_reads);
      if (!d.empty()) return d;
      continue;
    }
    auto it = engine.iterate(Family(f), "\1", "");  // not the engine's own
    it->seek_to_first();
    const std::string where = "family " + std::to_string(f) + ": ";
    for (const auto& [key, value] : expected.rows[f]) {
      if (!it->valid() && !it->status().ok()) throw Unreadable{it->status().what()};
      if (!it->valid()) return where + "row " + key + " is missing";
      if (it->key() != key)
        return where + "found row " + std::string(it->key()) + ", expected " + key;
      if (it->value() != value) return where + "row " + key + " has another value";
      it->next();
    }
    if (it->valid()) return where + "row " + std::string(it->key()) + " should not be there";
    if (!it->status().ok()) throw Unreadable{it->status().what()};
  }
  return {};
}

std::string block_name(uint32_t container, uint32_t block) {
  return "block " + std::to_string(block) + " of container " + std::to_string(container);
}

std::string ownership_difference(Engine& engine, const State& expected, const Damage& damage) {
  std::map<uint32_t, BlockBitmap> owned = engine.owned_blocks();
  std::map<uint32_t, BlockBitmap> seen;
  for (const auto& [name, blocks] : expected.objects)
    for (const BlockRef& b : blocks) {
      const auto bitmap = owned.find(b.container);
      if (bitmap == owned.end() && damage.removed.contains(b.container)) continue;
      if (bitmap == owned.end() || !bitmap->second.test(b.block))
        return block_name(b.container, b.block) + " of object " + name + " has no owner";
      seen.try_emplace(b.container, bitmap->second.blocks()).first->second.set(b.block, 1);
    }
  // Rows of the allocation map are damaged, or were: what they said of free blocks is lost.
  if (!engine.knows_owners()) return {};
  for (const auto& [container, bitmap] : owned) {
    const auto found = seen.find(container);
    if (found == seen.end() ? bitmap.count() != 0 : found->second != bitmap)
      return "container " + std::to_string(container) + " has owned blocks that no object names";
  }
  return {};
}

// Every block is free, about to be, punched or owned.
std::string space_difference(Engine& engine) {
  uint64_t total = 0, free = 0;
  for (const auto& [name, value] : engine.statistics()) {
    if (name == "pending_free_bytes") free += value;
    if (!name.starts_with("class_")) continue;
    if (name.ends_with("K_bytes")) total += value;
    if (name.ends_with("K_free_bytes") || name.ends_with("punched_bytes")) free += value;
  }
  uint64_t owned = 0;
  for (const auto& [container, bitmap] : engine.owned_blocks()) owned += bitmap.count();
  if (total != free + owned * block_bytes)
    return "of " + std::to_string(total) + " bytes, " + std::to_string(free) + " are free and " +
           std::to_string(owned * block_bytes) + " owned";
  if (engine.space().data_bytes != owned * block_bytes) return "space() counts other owned blocks";
  return {};
}

// Background work holds a run while it punches, restores or prepares it: of an engine with threads
// of its own a difference counts that stays.
std::string eventually_none(const std::function<std::string()>& difference) {
  using namespace std::chrono_literals;
  std::string d = difference();
  for (auto waited = 0ms; !d.empty() && waited < 30s; waited += 10ms) {
    std::this_thread::sleep_for(10ms);
    d = difference();
  }
  return d;
}

std::string data_difference(Engine& engine, const State& expected, const Damage& damage,
                            uint64_t* damaged_reads) {
  for (const auto& [name, blocks] : expected.objects)
    for (size_t i = 0; i < blocks.size(); ++i) {
      std::string error;
      const BlockIs is = look_at(engine, blocks[i], damage, false, &error);
      *damaged_reads += is == BlockIs::damaged;
      if (is == BlockIs::wrong || is == BlockIs::unreadable)
        return "object " + name + " block " + std::to_string(i) + ", " +
               block_name(blocks[i].container, blocks[i].block) +
               (is == BlockIs::wrong ? " has other bytes" : " cannot be read: " + error);
    }
  return {};
}

}  // namespace

RowNames unreadable_rows(Engine& engine, const State& expected) {
  RowNames unreadable;
  std::string value;
  for (unsigned f = 0; f < families; ++f)
    for (const std::string& key : possible_keys(Family(f), expected))
      if (!engine.get(Family(f), key, &value).ok()) unreadable[f].insert(key);
  return unreadable;
}

void forget_missing(Engine& engine, const RowNames& rows, State* expected) {
  std::string value;
  for (unsigned f = 0; f < families; ++f)
    for (const std::string& key : rows[f]) {
      const auto found = engine.get(Family(f), key, &value);
      if (found.ok() && !*found) expected->rows[f].erase(key);
    }
}

void State::apply(const Change& change) {
  for (const Change::Row& r : change.rows) {
    auto& family = rows[size_t(r.family)];
    switch (r.kind) {
      case Change::Kind::put: family[r.key] = r.value; break;
      case Change::Kind::erase: family.erase(r.key); break;
      case Change::Kind::erase_range:
        family.erase(family.lower_bound(r.key), family.lower_bound(r.value));
        break;
      case Change::Kind::add: add_counters(&family[r.key], r.value); break;
    }
  }
  for (const auto& [name, blocks] : change.objects) {
    if (blocks)
      objects[name] = *blocks;
    else
      objects.erase(name);
  }
}

bool Damage::any_rows() const {
  return std::ranges::any_of(rows, [](const auto& ranges) { return !ranges.empty(); });
}

bool Damage::may_hide(Family family, const std::string& key) const {
  return std::ranges::any_of(rows[size_t(family)], [&key](const auto& range) {
    return range.first <= key && key <= range.second;
  });
}

BlockIs look_at(Engine& engine, const BlockRef& block, const Damage& damage, bool may_fail,
                std::string* error) {
  BlockMemory found(block_bytes), wanted(block_bytes);
  const std::pair at(block.container, block.block);
  const Status s = engine.read({block.container, block.block, 1}, found.span());
  if (!s.ok()) {
    *error = s.what();
    return may_fail || damage.blocks.contains(at) || damage.unreadable.contains(at)
               ? BlockIs::damaged
               : BlockIs::unreadable;
  }
  fill_block(block.seed, block.index, wanted.data());
  if (std::memcmp(found.data(), wanted.data(), block_bytes) == 0) return BlockIs::whole;
  return damage.blocks.contains(at) ? BlockIs::damaged : BlockIs::wrong;
}

std::string difference(Engine& engine, const State& expected, const Damage& damage,
                       uint64_t* damaged_reads) {
  if (auto d = rows_difference(engine, expected, damage, damaged_reads); !d.empty()) return d;
  if (auto d = ownership_difference(engine, expected, damage); !d.empty()) return d;
  if (auto d = eventually_none([&] { return space_difference(engine); }); !d.empty()) return d;
  return data_difference(engine, expected, damage, damaged_reads);
}

}  // namespace tablestore::sim
