// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "include/common_fwd.h"
#include "os/tablestore/collection/collection.h"
#include "os/tablestore/engine/container/block_bitmap.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/onode.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/space/pool_stats.h"

namespace tablestore {

/// Compares all rows with each other and with the engine's account of which blocks are owned.
///
///   every object         decodes, is in a collection, has all its shards; deep: its data
///                        verifies
///   every block          has one owner, or a shared slot with the right number of references
///   every other row      (shard, inline data, omap, shared slot) belongs to an object
///   every pool           has the statistics that its objects add up to
///   the engine           holds for owned what rows own, and nothing else
///
/// Repair erases rows that belong to nothing, counts references and statistics anew, and frees
/// blocks that nothing owns. It cannot bring data back: damaged objects are reported, and stay.
///
/// On a store that nobody else uses; single-threaded.
class Fsck {
 public:
  struct Options {
    bool deep = false;
    bool repair = false;
  };
  Fsck(CephContext* cct, Engine& engine, ObjectData& data,
       const std::vector<CollectionRef>& collections, Options options);

  /// The number of errors found and not repaired, or -EIO where the table cannot be read.
  int run();

 private:
  struct ObjectRows {
    int64_t pool = 0;
    bool has_omap = false;
    bool inline_data = false;
    bool inline_row_seen = false;
    std::vector<bool> shards;   ///< that have rows of their own
  };
  struct SharedReferences {
    int64_t pool = 0;
    std::map<uint32_t, uint32_t> references;   ///< by block
  };

  // ---- fsck_objects.cc
  Status check_objects();
  void check_object(const OnodeRef& o);
  void count_extents(const Onode& o, PoolStats* stats);
  void own(const Extent& extent, const std::string& owner);
  void check_collection(const Onode& o);

  // ---- fsck_rows.cc
  Status check_shard_rows();
  Status check_inline_rows();
  Status check_omap_rows();
  Status check_reference_maps();
  void check_reference_map(std::string_view key, const ReferenceMap& slot);
  Status check_pool_stats();
  Status check_blocks();

  // ---- fsck.cc
  /// One line, and one more error.
  void error(const std::string& what);
  /// The same for what this run repairs: `fix` is to be part of the repairing transaction.
  void repairable(const std::string& what, const std::function<void(Txn&)>& fix);
  void submit_fixes();

  CephContext* const cct;
  Engine& engine;
  ObjectData& data;
  const Options options;
  struct KeyRange {
    std::string first, last;
  };
  std::vector<KeyRange> collection_ranges;
  std::set<int64_t> pools_with_collections;
  bool has_meta = false;

  std::unordered_map<uint64_t, ObjectRows> objects;   ///< by nid
  std::map<uint32_t, BlockBitmap> engine_blocks;      ///< owned, as the engine says
  std::map<uint32_t, BlockBitmap> owned_blocks;       ///< owned by rows
  std::map<std::pair<uint32_t, uint32_t>, SharedReferences> shared;   ///< by name of the slot
  std::map<int64_t, PoolStats> pools;
  std::shared_ptr<Txn> fixes;
  uint64_t errors = 0;
  uint64_t repaired = 0;
  bool extents_lost = false;   ///< a map could not be read: who owns its blocks is not known
};

}  // namespace tablestore
