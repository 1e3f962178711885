// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/ceph_mutex.h"
#include "include/common_fwd.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/blocks_to_move.h"
#include "os/tablestore/object/object_txn.h"

namespace tablestore {

/// Rows that this program reads: see newest_onode_version.
inline constexpr uint8_t newest_reference_map_version = 1;

/// How many extents of objects refer to each run of what was one extent when it was first shared:
/// the row 'R' of Family::super. Runs that nothing refers to are not in the map (they are free);
/// when the map is empty the row goes.
///
/// Its name is its first block. That block stays in the map, and is not freed, for as long as
/// anything else is in it, with 0 references at the end: else its block could become the name of
/// another reference map.
struct ReferenceMap {
  ReferenceMap() = default;
  ReferenceMap(uint32_t container, uint32_t first_block)
    : container(container), first_block(first_block)
  {
  }
  struct Run {
    uint32_t blocks = 0;
    uint32_t references = 0;   ///< 0 only for the first block
    bool operator==(const Run&) const = default;
  };
  uint32_t container = 0;
  uint32_t first_block = 0;
  std::map<uint32_t, Run> runs;            ///< by block in the container; never overlap
  bool dirty = false;
  std::atomic<uint32_t> transactions_in_flight{0};
  bool used = false;                       ///< since the last trimming: ReferenceMaps'

  /// Adds one reference to each block of [block, +blocks); false where one of them is in no run.
  bool add_reference(uint32_t block, uint32_t blocks);
  /// Drops one reference from each block, and takes out of the map what lost its last: appended to
  /// `freed`. False, with nothing changed, where one of them has no reference.
  bool drop_reference(uint32_t block, uint32_t blocks, std::vector<Extent>* freed);
  /// Whether one extent of one object, which refers to all of [block, +blocks), could have them for
  /// its own. The first block only where nothing else is in the map.
  bool has_one_owner(uint32_t block, uint32_t blocks) const;
  /// Takes such blocks out of the map. What the map then holds for its name only is appended to
  /// `freed`.
  void hand_over(uint32_t block, uint32_t blocks, std::vector<Extent>* freed);
  /// All blocks that it owns.
  std::vector<Extent> owned() const;
  /// Makes one run of several that are alike.
  void merge_neighbours();

  std::string encode() const;
  /// Throws ceph::buffer::error where damaged. Name and container are the key's.
  void decode(std::string_view row);

 private:
  /// Makes a run start at `block`, if one contains it.
  void split_at(uint32_t block);
  bool covered(uint32_t block, uint32_t blocks, uint32_t references_min) const;
  void take_free(std::vector<Extent>* freed);
};

/// All reference maps that are in memory. Blocks are only ever shared among objects of one
/// collection (clones keep the hash), so a ReferenceMap is guarded by that collection's lock; the
/// table of them here by a mutex of its own.
///
/// One that a transaction has changed stays in memory until that is applied (ObjectTxn::dirty): its
/// row is older until then.
///
/// Whoever gives up the last other reference to an extent does not know who the owner is that is
/// left. So an owner looks when it is written itself (unshare). It looks once, and then again when
/// some owner of the shared extent has gone since: `departures` counts these, for many shared
/// extents together.
class ReferenceMaps {
 public:
  ReferenceMaps(CephContext* cct, Engine& engine);
  /// One more owner for `part` of `e`. Where `e` was not shared: all of it becomes so, `part` with
  /// two references; sets e.shared and e.map_block, which the new owner's extent must take over.
  /// -EIO where the row is missing or damaged; another error where it cannot be read just now, or
  /// by this program (-EOPNOTSUPP).
  int share(ObjectTxn& txn, MappedExtent& e, const Extent& part);
  /// Drops one reference from each block of `e`; frees (Txn::free) the blocks that lost their last,
  /// and returns these. An error as of share(): nothing is changed.
  int release(ObjectTxn& txn, const MappedExtent& e, std::vector<Extent>* freed);
  /// Whether unshare() might find out something that it did not the last time.
  bool is_worth_a_look(const MappedExtent& e) const
  {
    return e.shared && (e.looked_at == 0 || e.looked_at != departures_of(e));
  }
  /// What of `extents`, all of one object, belongs to nobody else any more becomes that object's
  /// own: not shared, and in no map. Frees (Txn::free) blocks that were kept for a name, and
  /// returns them. The extents' rows, and those of the maps, are written with the transaction. What
  /// cannot be read stays as it is.
  void unshare(ObjectTxn& txn, std::vector<MappedExtent*>& extents, std::vector<Extent>* freed);
  /// Whether these are all blocks of a map that anything refers to, with all of their references.
  bool is_counted(const ReferenceMapName& name, const std::vector<SharedToMove::Block>& blocks);
  /// `what`, which is_counted(), is in `extents` from here on, by a map of each. Frees what the old
  /// map owned, and returns it.
  std::vector<Extent> move(ObjectTxn& txn, const SharedToMove& what,
                           const std::vector<Extent>& extents);
  /// The row of a dirty map.
  void write_out(Txn& txn, ReferenceMap& map);
  /// Drops a map that a failed transaction has changed, so that it is loaded anew from its row.
  /// What other transactions changed there is applied.
  void forget(const ReferenceMapRef& map);
  /// Drops maps that no transaction in flight pins.
  void trim();
  uint64_t count() const;

  struct Usage {
    uint64_t shared = 0;      ///< extents that became shared
    uint64_t unshared = 0;    ///< extents that became one object's own again
    uint64_t row_reads = 0;   ///< rows asked of the table
  };
  Usage usage() const { return {shared, unshared, row_reads}; }

 private:
  static uint64_t name_of(uint32_t container, uint32_t first_block)
  {
    return uint64_t(container) << 32 | first_block;
  }
  /// An error, as of share(), comes after a log line.
  int load(uint32_t container, uint32_t first_block, ReferenceMapRef* map);
  /// Of these extents, all that is not in memory, with one call of the table. Says of no row that
  /// it cannot be read.
  void load_together(std::span<MappedExtent* const> extents);
  std::atomic<uint16_t>& departures_of(const MappedExtent& e) const
  {
    return departures[(e.map_block ^ e.physical.container * 0x9e3779b1u) % departures.size()];
  }
  ReferenceMapRef create(const Extent& extent);
  void make_room_locked();
  /// Of those that nothing pins, all or what was not used since the last time.
  void trim_locked(bool all);

  CephContext* const cct;
  Engine& engine;
  mutable ceph::mutex mutex = ceph::make_mutex("TableStore::ReferenceMaps::mutex");
  std::unordered_map<uint64_t, ReferenceMapRef> maps;
  /// Changed under the lock of the collection whose extents these are; others may have the same.
  mutable std::array<std::atomic<uint16_t>, 4096> departures;
  std::atomic<uint64_t> shared{0}, unshared{0}, row_reads{0};
  size_t trim_at = 4096;            ///< trims when that many are in memory
};

}  // namespace tablestore
