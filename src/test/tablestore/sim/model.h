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

// Tells where the engine's state differs from `expected`; empty where it does not. `damage`: blocks
// that may hold anything, by container; they are counted in `damaged_reads`. Throws Unreadable.
using DamagedBlocks = std::set<std::pair<uint32_t, uint32_t>>;
std::string difference(Engine& engine, const State& expected, const DamagedBlocks& damage,
                       uint64_t* damaged_reads);

}  // namespace tablestore::sim
