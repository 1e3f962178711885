// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "include/common_fwd.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/onode.h"

namespace tablestore {

/// Blocks [first, end) of an object.
struct BlockRange {
  uint64_t first = 0;
  uint64_t end = 0;

  bool empty() const { return first >= end; }
  uint64_t blocks() const { return empty() ? 0 : end - first; }
  bool contains(const BlockRange& other) const
  {
    return first <= other.first && other.end <= end;
  }
};

inline constexpr BlockRange all_blocks{0, std::numeric_limits<uint64_t>::max()};

inline constexpr uint64_t block_floor(uint64_t bytes) { return bytes / block_bytes; }
inline constexpr uint64_t block_ceil(uint64_t bytes)
{
  return bytes / block_bytes + (bytes % block_bytes != 0);
}

/// The extents of objects, over the shards that they are kept in: loads these from their rows
/// when they are needed, changes them, and makes rows of the changed ones.
///
/// Has no state. The caller holds the collection's lock of the onode, as for the onode itself:
/// shared for load() and lookup(), unique for the others.
class ExtentMap {
 public:
  ExtentMap(CephContext* cct, Engine& engine);

  /// Loads the shards that hold `range`. -EIO, after a log line, where a row is missing or
  /// damaged; another error where it cannot be read for another reason.
  int load(Onode& o, const BlockRange& range) const;
  /// The same before a change: a shard that is damaged, or cannot be read, is forgotten, so that a
  /// damaged object can still be changed, replaced and removed. Its blocks are lost until fsck
  /// finds that nothing owns them. `lost` are the ranges of forgotten shards, up to the object's
  /// end. Another error than -EIO (-ENOMEM, -EMFILE, -EOPNOTSUPP) is no damage: then nothing is
  /// forgotten.
  int load_to_change(Onode& o, const BlockRange& range, std::vector<BlockRange>* lost) const;

  /// What shards that hold `range` and are not in memory hold of the object, ascending.
  std::vector<BlockRange> missing_ranges(Onode& o, const BlockRange& range) const;

  /// A run of mapped blocks. Valid for as long as the lock is held.
  struct Piece {
    uint64_t logical_block;
    Extent physical;
    const uint32_t* checksums;
    uint64_t logical_end() const { return logical_block + physical.blocks; }
  };
  /// What is mapped in `range`, which is loaded, ascending.
  std::vector<Piece> lookup(Onode& o, const BlockRange& range) const;

  /// The extents that overlap `range`, which is loaded: calls f(ExtentShard&, MappedExtent&, first
  /// block of the shard) for each, until one returns an error.
  template <typename F>
  int for_each(Onode& o, const BlockRange& range, F&& f) const;

  /// Unmaps `range`, which is loaded; appends what was mapped to `removed`.
  void punch(Onode& o, const BlockRange& range, std::vector<MappedExtent>* removed) const;
  /// Maps `e` at `logical_block`, where nothing is mapped; cuts it where shards meet.
  void insert(Onode& o, uint64_t logical_block, const MappedExtent& e) const;

  /// Rows of the shards that are dirty; embedded ones have none.
  void write_out(Txn& txn, Onode& o) const;
  /// Erases all rows of a removed object, and forgets the shards. All are loaded.
  void erase_rows(Txn& txn, Onode& o) const;

 private:
  /// The indices of shards that hold `range`, no further than the last present one: [first, end).
  static std::pair<uint32_t, uint32_t> shards_of(const Onode& o, const BlockRange& range);
  static BlockRange range_of(const Onode& o, uint32_t index);
  /// Shards that have a row, but are not in memory. Under load_lock.
  std::vector<uint32_t> missing(const Onode& o, const BlockRange& range) const;
  /// -EIO where damaged, -EOPNOTSUPP where a newer version has written it, after a log line.
  int decode(const Onode& o, uint32_t index, const std::optional<std::string>& row,
              ExtentShard* shard) const;
  using Rows = std::vector<std::optional<std::string>>;
  /// The rows of shards. One that the disk or the table has lost is what no shard is, after a log
  /// line; another error is the result.
  int read_rows(const Onode& o, const std::vector<uint32_t>& indices, Rows* rows) const;
  ExtentShard* find(Onode& o, uint32_t index) const;

  CephContext* const cct;
  Engine& engine;
};

template <typename F>
int ExtentMap::for_each(Onode& o, const BlockRange& range, F&& f) const
{
  const auto [first, end] = shards_of(o, range);
  for (uint32_t index = first; index < end; ++index) {
    ExtentShard* shard = find(o, index);
    if (!shard)
      continue;
    const uint64_t base = uint64_t(index) * o.span_blocks;
    for (MappedExtent& e : shard->extents) {
      if (base + e.logical_end() <= range.first || base + e.logical_block >= range.end)
        continue;
      if (int r = f(*shard, e, base); r < 0)
        return r;
    }
  }
  return 0;
}

}  // namespace tablestore
