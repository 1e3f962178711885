// The reference: what a store should hold after each transaction, kept in plain maps.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "os/tablestore/engine/engine.h"
#include "test/tablestore/sim/disk_image.h"
#include "test/tablestore/sim/frame/verdict.h"

namespace tablestore::sim {

// One block of an object: where it lies, and what is in it.
struct BlockRef {
  uint32_t container = 0;
  uint32_t block = 0;
  uint64_t seed = 0;   // of the write
  uint32_t index = 0;  // within the write
  bool operator==(const BlockRef&) const = default;
};
using Blocks = std::vector<BlockRef>;

// The content of block `index` of the write with `seed`.
void fill_block(uint64_t seed, uint32_t index, std::byte* out);
// The row of an object: names its blocks, so that rows and containers must agree.
std::string object_row(const Blocks& blocks);

// What one transaction does, in order.
struct Change {
  enum class Kind { put, erase, erase_range, add };
  struct Row {
    Kind kind;
    Family family;
    std::string key;
    std::string value;  // of erase_range, the end
  };
  std::vector<Row> rows;
  std::map<std::string, std::optional<Blocks>> objects;  // none: removed
};

struct State {
  std::array<std::map<std::string, std::string>, families> rows;
  std::map<std::string, Blocks> objects;

  void apply(const Change& change);
};

// By container and block.
using DamagedBlocks = std::set<std::pair<uint32_t, uint32_t>>;

// What may not be as it was.
struct Damage {
  DamagedBlocks blocks;      // may hold anything
  DamagedBlocks unreadable;  // fail, or hold what they should
  // Containers of which there is neither the file nor a row that says that it is missing.
  std::set<uint32_t> removed;
  // By family, from the first key to the last: rows that may not be readable.
  std::array<std::vector<std::pair<std::string, std::string>>, families> rows;

  bool any_rows() const;
  bool may_hide(Family family, const std::string& key) const;
};

// Rows by family.
using RowNames = std::array<std::set<std::string>, families>;
// Of all rows that there may be: which cannot be read.
RowNames unreadable_rows(Engine& engine, const State& expected);
// Of these rows, those that are not there are not expected any more.
void forget_missing(Engine& engine, const RowNames& rows, State* expected);

// Tells where the engine's state differs from `expected`; empty where it does not. What `damage`
// has cost is counted in `damaged_reads`. Throws Unreadable.
std::string difference(Engine& engine, const State& expected, const Damage& damage,
                       uint64_t* damaged_reads);
// Of one block of an object: whether it is as it should be, or as damage excuses. `may_fail`: the
// disk may not be able to read it now.
enum class BlockIs { whole, damaged, wrong, unreadable };
BlockIs look_at(Engine& engine, const BlockRef& block, const Damage& damage, bool may_fail,
                std::string* error);

}  // namespace tablestore::sim
