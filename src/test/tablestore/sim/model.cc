#include "test/tablestore/sim/model.h"

#include <cstring>

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

std::string rows_difference(Engine& engine, const State& expected) {
  for (unsigned f = 0; f < families; ++f) {
    auto it = engine.iterate(Family(f), f == 0 ? std::string("\1", 1) : "", "");
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

std::string ownership_difference(Engine& engine, const State& expected) {
  std::map<uint32_t, BlockBitmap> owned = engine.owned_blocks();
  std::map<uint32_t, BlockBitmap> seen;
  for (const auto& [name, blocks] : expected.objects)
    for (const BlockRef& b : blocks) {
      const auto bitmap = owned.find(b.container);
      if (bitmap == owned.end() || !bitmap->second.test(b.block))
        return block_name(b.container, b.block) + " of object " + name + " has no owner";
      seen.try_emplace(b.container, bitmap->second.blocks()).first->second.set(b.block, 1);
    }
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

std::string data_difference(Engine& engine, const State& expected, const DamagedBlocks& damage,
                            uint64_t* damaged_reads) {
  BlockMemory found(block_bytes), wanted(block_bytes);
  for (const auto& [name, blocks] : expected.objects)
    for (size_t i = 0; i < blocks.size(); ++i) {
      const BlockRef& b = blocks[i];
      const Status s = engine.read({b.container, b.block, 1}, found.span());
      fill_block(b.seed, b.index, wanted.data());
      if (s.ok() && std::memcmp(found.data(), wanted.data(), block_bytes) == 0) continue;
      if (damage.contains({b.container, b.block})) {
        ++*damaged_reads;
        continue;
      }
      return "object " + name + " block " + std::to_string(i) + ", " +
             block_name(b.container, b.block) +
             (s.ok() ? " has other bytes" : " cannot be read: " + s.what());
    }
  return {};
}

}  // namespace

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

std::string difference(Engine& engine, const State& expected, const DamagedBlocks& damage,
                       uint64_t* damaged_reads) {
  if (auto d = rows_difference(engine, expected); !d.empty()) return d;
  if (auto d = ownership_difference(engine, expected); !d.empty()) return d;
  if (auto d = space_difference(engine); !d.empty()) return d;
  return data_difference(engine, expected, damage, damaged_reads);
}

}  // namespace tablestore::sim
