// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <functional>
#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "include/common_fwd.h"
#include "os/tablestore/check/check_options.h"
#include "os/tablestore/check/counted_memory.h"
#include "os/tablestore/check/deep_reads.h"
#include "os/tablestore/check/object_numbers.h"
#include "os/tablestore/check/reference_counts.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/collection/lost_names.h"
#include "os/tablestore/engine/container/block_bitmap.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/onode.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/space/pool_stats.h"

namespace tablestore {

/// Compares all rows with each other and with the engine's account of which blocks are owned.
///
///   every object         decodes, is in a collection, has all its shards, and a number that no
///                        other has; deep: its data verifies
///   every block          has one owner, or a shared slot with the right number of references
///   an OSD's own object   has its second row
///   every other row      (shard, inline data, omap, shared slot) belongs to an object
///   every pool           has the statistics that its objects add up to
///   the store            has a bound above the numbers of its objects, and its collections
///   the engine           holds for owned what rows own, and nothing else
///
/// Repair erases rows that belong to nothing, counts references and statistics anew, takes blocks
/// of objects from the allocator, and frees those that nothing owns. Of objects with one number,
/// those that have no rows by it get another one. Objects of one hash that have the same blocks
/// share them from then on. It cannot bring data back: damaged objects are reported, and stay
/// errors. Of one whose own row is damaged, it makes a lost one, which scrub then brings back from
/// another OSD; what it had is freed. Of names that are lost it says so, which is no error, and
/// leaves omap that belongs to no object to those that had them, until that is settled.
///
/// What it keeps in memory: 16 bytes of each object, bitmaps of all containers, runs of blocks
/// where references do not agree, and, deep, data that DeepReads has read ahead. Objects that share
/// extents have one hash, so as a rule the references of a shared extent are all counted, compared
/// and forgotten when the objects of one hash end; what does not agree then is kept until the end
/// (objects in a temp collection are elsewhere in the order). Where something is wrong, a second
/// look at all objects finds which these are.
///
/// On a store that nobody else uses. Single-threaded, but for the data, which `read_threads`
/// threads read.
class Fsck {
 public:
  using Options = CheckOptions;
  /// `collection_rows`: what was found beside the collections. Objects may be of lost ones.
  Fsck(CephContext* cct, Engine& engine, ObjectData& data, const LostNames& lost_names,
       const std::vector<CollectionRef>& collections, CollectionRows collection_rows,
       unsigned read_threads, Options options);

  /// The number of errors found and not repaired, or -EIO where the table cannot be read, or
  /// -EOPNOTSUPP where rows are of a newer version, of which nothing can be said.
  int run();
  CheckResult result() const { return {numbers.size(), errors, repaired, memory_bytes()}; }

  /// What repair has done has to be looked at once more: extents are shared that were not.
  bool needs_another_run() const { return more_to_do; }
  /// The most that it has kept of the store at once, without the rows of the OSD's own objects.
  uint64_t memory_bytes() const;

 private:
  /// What a second look has to find out about a number.
  struct Doubt {
    unsigned objects = 1;
    unsigned with_rows = 0;        ///< of these, that have rows by their number
    unsigned without_rows_met = 0;
    bool surplus_shards = false;
    bool inline_missing = false;
  };
  using Runs = std::span<const ReferenceCounts::Run>;

  // ---- fsck_objects.cc
  Status check_objects();
  /// Of an object whose row is damaged.
  void check_damaged(Onode& o, const std::string& what);
  Status check_object(const OnodeRef& o);
  bool is_good(const DeepReads::Piece& piece);   ///< called by threads
  Status check_piece(const DeepReads::Piece& piece);
  /// Before all ownership is written anew without the blocks of shards that could not be loaded:
  /// EIO where the disk may give one of these again. Its blocks would be another object's, too.
  Status check_lost_shards(const Onode& o);
  void count_extents(const Onode& o, PoolStats* stats);
  void own(const Extent& extent, const std::string& owner);
  void check_collection(const Onode& o);
  void note_lost_collection(const ghobject_t& pgmeta);
  Status check_own_onodes();

  // ---- fsck_references.cc
  /// At the end of the objects of one hash.
  void settle_references();
  bool settle(const ReferenceMap& map, Runs found);
  Status check_reference_maps();
  void check_reference_map(std::string_view key, const ReferenceMap& slot, Runs found);
  /// The references that were counted, whose row is missing or damaged.
  void rebuild_reference_map(Runs found);
  void own_shared(const ReferenceMap& slot, std::optional<int64_t> pool);
  void disown(const ReferenceMap& slot, int64_t pool);

  // ---- fsck_rows.cc
  Status check_shard_rows();
  void check_shard_count(uint64_t nid, uint64_t rows);
  Status check_inline_rows();
  Status check_omap_rows();
  Status check_blocks();
  /// Counts what the engine owns as owned by rows, too.
  void keep_blocks_without_owner();

  // ---- fsck_second_look.cc
  Status look_again();
  Status look_again_at(const OnodeRef& o, const Doubt& doubt);
  Status erase_surplus_shards(const Onode& o);
  Status mend_number(Onode& o, const Doubt& doubt);

  // ---- fsck_contested.cc
  struct ContestedExtent {
    OnodeRef o;
    uint32_t shard;
    MappedExtent* extent;   ///< of `o`, which is loaded
  };
  Status check_contested_blocks();
  /// Calls f with the extents that have contested blocks, of the objects of one hash each time.
  Status for_each_hash(const std::function<void(std::vector<ContestedExtent>&)>& f);
  /// Makes extents of objects of one hash, that overlap within `all`, parts of one shared extent.
  void share_anew(std::span<ContestedExtent> owners, const Extent& all);

  // ---- fsck_store.cc
  Status check_store_meta();
  Status check_nid_bound();
  Status check_collection_rows();
  void check_lost_collection(const coll_t& cid);
  Status check_lost_names();
  Status check_pool_stats();
  std::optional<uint32_t> bits_of(const coll_t& cid) const;

  // ---- fsck.cc
  void find_work();
  /// So much more is done. ECANCELED: it is enough.
  Status advance(uint64_t work);
  /// One line, and one more error.
  void error(const std::string& what);
  /// The same for what this run repairs: `fix` is to be part of the repairing transaction.
  void repairable(const std::string& what, const std::function<void(Txn&)>& fix);
  void submit_fixes();

  CephContext* const cct;
  Engine& engine;
  ObjectData& data;
  const LostNames& lost_names;
  const Options options;
  struct KeyRange {
    std::string first, last;
  };
  std::vector<KeyRange> collection_ranges;
  std::set<int64_t> pools_with_collections;
  std::map<coll_t, uint32_t> collection_bits;
  CollectionRows collection_rows;
  bool has_meta = false;
  bool has_copies = false;                            ///< the store, of its rows

  CountedMemory memory;
  ObjectNumbers numbers{&memory};
  std::pmr::map<uint64_t, Doubt> in_doubt{&memory};   ///< by nid
  std::map<std::string, std::string> own_onodes;      ///< of the OSD's own objects, by key
  std::map<uint32_t, BlockBitmap> engine_blocks;      ///< owned, as the engine says
  std::map<uint32_t, BlockBitmap> owned_blocks;       ///< owned by rows
  std::map<uint32_t, BlockBitmap> contested_blocks;   ///< that have two owners
  ReferenceCounts of_hash{&memory};                   ///< of the objects of one hash
  ReferenceCounts unsettled{&memory};                 ///< of shared extents that did not agree
  std::map<uint32_t, BlockBitmap> settled;            ///< the names of those that did
  std::map<int64_t, PoolStats> pools;
  std::shared_ptr<Txn> fixes;
  uint64_t nid_max = 0;                               ///< of the objects
  std::optional<uint64_t> highest_of_rows;            ///< also of rows that belong to nothing
  uint64_t largest_inline_bytes = 0;                  ///< of one object
  uint64_t work_done = 0;   ///< of work_total: objects, or, deep, bytes
  uint64_t work_total = 0;
  uint64_t errors = 0;
  uint64_t repaired = 0;
  bool more_to_do = false;
  bool extents_lost = false;   ///< a map could not be read: who owns its blocks is not known
  DeepReads deep_reads;        ///< last: its threads end before all else does
};

}  // namespace tablestore
