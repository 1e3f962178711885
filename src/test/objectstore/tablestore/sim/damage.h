// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What a disk has not kept, and so what a store may have lost: that and nothing else. Which log
// groups that can cost, and what may refuse to open, is in src/test/tablestore/sim/damage_bounds.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/hobject.h"
#include "os/tablestore/engine/engine.h"
#include "osd/osd_types.h"
#include "test/tablestore/sim/sim_disk.h"

class TableStore;

namespace tablestore_sim {

/// Of a running store, object by object.
struct Damage {
  using Block = std::pair<uint32_t, uint32_t>;   ///< of which container, and which of its blocks

  /// Which rows of an object cannot be read: any of those that are named.
  enum Rows : unsigned { onode = 1, of_data = 2, of_omap = 4 };

  /// Reads of these blocks may say -EIO.
  std::set<Block> data;
  /// The table has lost some of their rows, or may have: nobody knows whether there was one.
  std::map<ghobject_t, unsigned> rows;
  /// The same of the store's own in Family::super: counts, collections, reference maps. No read of
  /// an object, and no listing, needs these.
  bool own_rows = false;
  /// Of them, reference maps: what is changed may be lost.
  bool reference_maps = false;
  /// Those that are kept twice, and their copies too: the store may be refused.
  bool both_copies = false;
  /// What the table had lost was given up by repair, and that is not settled: it is unreadable as
  /// before, and what has lost a part of its omap is so, too.
  bool salvaged = false;
  /// Their rows were spoilt: they are there, and say -EIO.
  std::set<ghobject_t> spoilt;
  /// Changed while something of them could not be read. What such a change leaves out is marked as
  /// lost, a part of the data or all of the object, until it is written anew.
  std::set<ghobject_t> changed;
  /// Were not there, and were to be changed while nobody could know that: they may be there since,
  /// as lost.
  std::set<ghobject_t> doubtful;

  bool hides(const ghobject_t& oid, unsigned kinds) const
  {
    const auto p = rows.find(oid);
    return p != rows.end() && (p->second & kinds);
  }
};

/// What the table has lost, by family: keys behind the one and before the other.
class LostKeys {
 public:
  void add(const tablestore::DamagedTableFile& file);
  bool empty() const;
  bool of(tablestore::Family family) const { return !ranges[size_t(family)].empty(); }
  bool contains(tablestore::Family family, std::string_view key) const;
  /// Some of [first, end).
  bool any(tablestore::Family family, std::string_view first, std::string_view end) const;

 private:
  std::array<std::vector<std::pair<std::string, std::string>>, tablestore::families> ranges;
};

/// Blocks of containers that do not hold what was written to them, or cannot be read.
std::set<Damage::Block> damaged_data(const tablestore::sim::DiskImage& image);
/// Names of damaged files of the table.
std::set<std::string> damaged_table_files(const tablestore::sim::DiskImage& image);

/// Neither the rows that are kept twice, nor their copies, can be read as a whole on this disk: the
/// store may be refused.
bool may_lose_both_copies(const tablestore::sim::DiskImage& image,
                          const tablestore::EngineOptions& options);

/// Which rows of an object may be among those. Damage::Rows.
unsigned lost_rows(TableStore& store, const coll_t& cid, const ghobject_t& oid,
                   const LostKeys& lost);

/// By block of an object: whether it lies in one of `damaged`, or is marked as lost.
struct DamagedBlocks {
  std::vector<bool> on_disk;
  std::vector<bool> marked;
  /// Of an object whose data is a row: that is marked as lost.
  bool inline_marked = false;
  bool any() const;
  bool at(uint64_t block) const;
};
DamagedBlocks damaged_blocks(TableStore& store, const coll_t& cid, const ghobject_t& oid,
                             const std::set<Damage::Block>& damaged);

}  // namespace tablestore_sim
