// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "include/buffer.h"
#include "include/common_fwd.h"
#include "include/interval_set.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/blocks_to_move.h"
#include "os/tablestore/object/extent_map.h"
#include "os/tablestore/object/object_txn.h"
#include "os/tablestore/object/read_helpers.h"

namespace tablestore {

class ReferenceMaps;
class DataCache;
class SlowOps;
class SpuriousReads;

/// Bytes that are owed to a reader, but that nobody knows any more.
using LostBytes = interval_set<uint64_t>;

// A change of a part of a block whose other bytes cannot be read: a transaction has no way to fail,
// and zeros in their place would be wrong bytes. So the block is written with what is known, and
// with a checksum that is wrong on purpose: reads of it are -EIO, also of its clones, until all of
// it is overwritten, or the object is repaired. The same for inline data, which has one checksum.
inline constexpr uint32_t checksum_of_lost(uint32_t checksum) { return ~checksum; }
/// Whether a checksum that is not the expected one says that.
inline constexpr bool is_lost(uint32_t expected, uint32_t found)
{
  return expected == checksum_of_lost(found);
}

/// The bytes of objects: reads, writes, holes and clones over an onode's extent map.
///
/// Data is inline (one row) up to inline_max bytes of object size and in 4 KiB blocks of container
/// slots above. Written blocks are never overwritten: every change of a block writes a new one, and
/// frees the old one in the same transaction (or drops one reference where it is shared). Bytes of
/// the last block beyond the object's size are zero on disk. An all-hole object has no extents.
///
/// No lock of its own: the caller holds the object's collection lock, unique for changes and shared
/// for reads (and through the whole read, so that no slot is freed under a reader). Changes mark
/// onode and shards dirty (ObjectTxn::dirty) and keep the pool's statistics; write_out() makes
/// rows of them.
class ObjectData {
 public:
  /// Enough to keep one disk busy; they sleep but for reads of fragmented objects.
  static constexpr unsigned read_threads_default = 7;

  struct Parts {
    CephContext* cct;
    Engine& engine;
    ReferenceMaps& references;
    DataCache& cache;
    SpuriousReads& spurious_reads;
    SlowOps& slow_ops;
    ceph::common::PerfCounters& logger;
  };
  ObjectData(const Parts& parts, uint64_t inline_max,
             unsigned read_threads = read_threads_default);

  /// Upper bounds of the container space that an operation can take: what to Engine::reserve()
  /// before the transaction is built, added up over its operations. `inline_max` is the largest
  /// that inline data can be, also where the option was larger when it was written.
  static uint64_t reservation_for_write(uint64_t offset, uint64_t length, uint64_t inline_max);
  static uint64_t reservation_for_edges(uint64_t inline_max);   ///< zero, truncate
  static uint64_t reservation_for_clone_range(uint64_t from_offset, uint64_t length,
                                              uint64_t to_offset, uint64_t inline_max);

  // ---- changes. Damaged data, and a damaged extent map, are no error: see checksum_of_lost().
  // -ENOMEM, -EMFILE and the like where what must be read could not be, and may be later. -EIO
  // where there is no space to mark what is lost, and where references cannot be read: the object
  // that was to be changed is then to be given up, and no other is harmed.
  int write(ObjectTxn& txn, const OnodeRef& o, uint64_t offset, const ceph::buffer::list& data);
  int zero(ObjectTxn& txn, const OnodeRef& o, uint64_t offset, uint64_t length);
  int truncate(ObjectTxn& txn, const OnodeRef& o, uint64_t size);
  /// Frees everything; the onode's size becomes 0. For remove, and before clone replaces the
  /// target.
  int remove(ObjectTxn& txn, const OnodeRef& o);
  /// Shares, copies no data but edges that are not block-aligned and inline data. Grows `to` to
  /// to_offset + length. The source range must lie within the source's size.
  int clone_range(ObjectTxn& txn, const OnodeRef& from, const OnodeRef& to, uint64_t from_offset,
                  uint64_t length, uint64_t to_offset);
  /// The same within one object, whose ranges may overlap.
  int copy_within(ObjectTxn& txn, const OnodeRef& o, uint64_t from_offset, uint64_t length,
                  uint64_t to_offset);

  // ---- reads
  /// Appends [offset, +length), clipped to the size, holes as zeros. Every block is verified; a
  /// read that fails is repeated. -EIO, after one log line for each part that says object, extent,
  /// expected and found. The number of bytes otherwise.
  ///
  /// CEPH_OSD_OP_FLAG_BYPASS_CLEAN_CACHE (deep scrub): what is on the disk, past all caches, is
  /// read and verified. Only what is still on its way there comes from memory.
  int read(const OnodeRef& o, uint64_t offset, uint64_t length, ceph::buffer::list& out,
           uint32_t fadvise_flags);
  /// Mapped ranges (logical offset -> length) clipped to [offset, +length) and to the size; block
  /// granularity.
  int fiemap(const OnodeRef& o, uint64_t offset, uint64_t length,
             std::map<uint64_t, uint64_t>& out);

  // ---- moves (object_move.cc): to other blocks, with the same bytes and the same checksums
  /// Reads and verifies what the object has in `containers`, from block `from` on: at most
  /// `bytes_max`, but for a single extent. What cannot be read stays where it is. 0, or another
  /// error than -EIO. The collection's lock is held, shared.
  int read_to_move(const OnodeRef& o, const std::set<uint32_t>& containers, uint64_t from,
                   uint64_t bytes_max, BlocksToMove* out);
  /// Moves what is still where it was; how many bytes. Their space is reserved.
  uint64_t move(ObjectTxn& txn, const OnodeRef& o, BlocksToMove&& what);
  /// Finds out which of `owners` share blocks by the reference map `name`. -EIO where these cannot
  /// be all of them, or their rows contradict each other. The collection's lock is held, shared.
  int find_shared(const std::vector<OnodeRef>& owners, const ReferenceMapName& name,
                  SharedToMove* out);
  /// Reads and verifies what they share. The same lock.
  int read_shared(const std::vector<OnodeRef>& owners, SharedToMove* what);
  /// Moves it, of all owners at once; they are as `what` says. Its space is reserved.
  void move_shared(ObjectTxn& txn, const std::vector<OnodeRef>& owners, SharedToMove&& what);

  // ---- rows
  /// Puts the rows of the onode's dirty data into `txn` (shards, inline data); the onode's own
  /// row (which embeds a sole shard) is the caller's, after this.
  void write_out(ObjectTxn& txn, const OnodeRef& o);
  /// Loads all shards; -EIO where a row is missing or damaged. For fsck, dump and tests.
  int load_all(const OnodeRef& o);

 private:
  // ---- object_data.cc
  bool holds_no_blocks(const Onode& o) const { return o.shards_present.empty(); }
  /// Loads the extent map of `range` for a change after which nothing of `replaced` is as it was.
  /// What a damaged part of the map said of other blocks is lost: they become blocks that cannot
  /// be read. -EIO where there is no space for these: then nothing is forgotten.
  int load_to_change(ObjectTxn& txn, Onode& o, const BlockRange& range,
                     const BlockRange& replaced);
  /// For lose_blocks() of these: nobody could know of them before. -EIO where there is no space.
  int reserve_lost(ObjectTxn& txn, const Onode& o, const std::vector<BlockRange>& lost);

  // PoolStats::stored_bytes counts mapped blocks, without the part of the last one that is beyond
  // the object's size. So an object grows before its new blocks are mapped, and shrinks after its
  // old ones are unmapped: then the last block is the only one that a change of the size concerns.
  void set_size(ObjectTxn& txn, Onode& o, uint64_t size);
  /// Maps `e` at `block`, where nothing is mapped.
  void map_blocks(ObjectTxn& txn, Onode& o, uint64_t block, const MappedExtent& e);
  /// Unmaps `range`, which is loaded, and gives the blocks back.
  void unmap_blocks(ObjectTxn& txn, Onode& o, const BlockRange& range);
  /// Bytes of the last block that are beyond the size, where it is mapped and in `within`. None
  /// where its shard is damaged: that the statistic is then wrong is for fsck to find.
  uint64_t tail_bytes(Onode& o, const BlockRange& within = all_blocks);

  /// The bytes of an inline object.
  int inline_bytes(Onode& o, ceph::buffer::list* out, bool past_cache = false);
  /// Reads and verifies its row once. Under load_lock. 0, or an error and why.
  int read_inline_row(const Onode& o, bool past_cache, std::string* row, std::string* why);
  /// `data` are all its bytes. `lost`: but some are not known.
  void set_inline(ObjectTxn& txn, Onode& o, ceph::buffer::list&& data, bool lost);
  void drop_inline(ObjectTxn& txn, Onode& o);
  /// Gives back blocks that were unmapped, or the object's reference to them.
  void release(ObjectTxn& txn, const Onode& o, const MappedExtent& e);
  void note_freed(ObjectTxn& txn, const Onode& o, const Extent& extent);
  /// Of the pool that it was made in, also when a rename takes it elsewhere.
  PoolStats& stats(ObjectTxn& txn, const Onode& o) { return txn.pool(o.omap_pool); }

  // ---- object_read.cc
  /// As read(), but with the error: -EIO where it is the disk's or the table's.
  int try_read(const OnodeRef& o, uint64_t offset, uint64_t length, ceph::buffer::list& out,
               uint32_t fadvise_flags);
  /// Whole blocks of `range`, holes as zeros.
  int read_blocks(Onode& o, const BlockRange& range, ceph::buffer::list& out,
                  uint32_t fadvise_flags);
  /// A piece that is not in the cache, and where its blocks go.
  struct Missing {
    ExtentMap::Piece piece;
    ceph::buffer::list* out;
  };
  /// Reads them all, each run that is contiguous in its container at once, several at a time.
  int read_missing(const Onode& o, std::vector<Missing>& missing, bool keep);
  /// One such run, and checks it. What fails is read again, and only that.
  int read_run(const Onode& o, std::span<const Missing> run, bool keep);
  /// A part of a run that could not be read, or is not what was written.
  struct BadBlocks {
    Run where;
    std::string reason;
    int error = EIO;
    bool lost = false;   ///< on purpose: see checksum_of_lost()
  };
  static bool worth_a_retry(const std::vector<BadBlocks>& bad);
  /// Reads `part` of `run` to its place in `memory`; appends what is not good, cut where pieces
  /// meet.
  void read_and_verify(const Onode& o, std::span<const Missing> pieces, const Run& run,
                       const Run& part, ceph::buffer::ptr& memory, std::vector<BadBlocks>* bad);
  /// The disk took so long for it.
  void note_disk_read(ceph::timespan took, const Onode& o, const ExtentMap::Piece& piece,
                      const Run& where);
  static BadBlocks bad_checksum(const Onode& o, const ExtentMap::Piece& piece, uint32_t block,
                                uint32_t expected, uint32_t found);
  /// For messages: object and offset, container and offset.
  static std::string place(const Onode& o, const ExtentMap::Piece& piece, const Run& where);
  /// As read(), but what is damaged is zeros, and named in `lost`. All of [offset, +length) that
  /// lies within the size. 0, or another error than -EIO.
  int read_what_is_left(const OnodeRef& o, uint64_t offset, uint64_t length,
                        ceph::buffer::list& out, LostBytes* lost);

  // ---- object_write.cc
  // `lost` are those bytes of `data` that are zeros because nobody knows them, by their offset in
  // the object.
  int write(ObjectTxn& txn, const OnodeRef& o, uint64_t offset, const ceph::buffer::list& data,
            const LostBytes& lost);
  int write_inline(ObjectTxn& txn, const OnodeRef& o, uint64_t offset,
                   const ceph::buffer::list& data, const LostBytes& lost);
  /// Makes blocks of inline data, changed by `data` at `offset` where that is not empty.
  int spill(ObjectTxn& txn, const OnodeRef& o, uint64_t offset, const ceph::buffer::list& data,
            LostBytes lost = {});
  int write_blocks(ObjectTxn& txn, const OnodeRef& o, uint64_t offset,
                   const ceph::buffer::list& data, LostBytes lost = {});
  /// The new content of all blocks that the write touches, in aligned memory. Adds to `lost`.
  int merge_edges(const OnodeRef& o, uint64_t offset, const ceph::buffer::list& data,
                  ceph::buffer::list* blocks, LostBytes* lost);
  /// Writes new blocks and maps them in place of what was there.
  void replace_blocks(ObjectTxn& txn, Onode& o, uint64_t first_block, ceph::buffer::list&& blocks,
                      const LostBytes& lost);
  /// Parts of it: takes reserved space, and maps what is there.
  std::vector<Extent> write_new_blocks(ObjectTxn& txn, ceph::buffer::list&& blocks,
                                       std::vector<uint32_t>* checksums);
  void map_new_blocks(ObjectTxn& txn, Onode& o, uint64_t first_block,
                      const std::vector<Extent>& extents, const std::vector<uint32_t>& checksums);
  /// Maps blocks that cannot be read, where nothing is mapped; their space is reserved.
  void lose_blocks(ObjectTxn& txn, Onode& o, const BlockRange& range);
  /// Spoils the checksums of blocks that hold lost bytes.
  void mark_lost(const Onode& o, uint64_t first_block, const LostBytes& lost,
                 std::vector<uint32_t>* checksums);
  /// Zeros in [offset, end), which lies in one block, unless that is a hole.
  int zero_in_block(ObjectTxn& txn, const OnodeRef& o, uint64_t offset, uint64_t end);
  int shrink_blocks(ObjectTxn& txn, const OnodeRef& o, uint64_t size);

  // ---- object_move.cc
  /// 0, -EIO where some of them cannot be read, or another error.
  int read_pieces(const Onode& o, const std::vector<ExtentMap::Piece>& pieces,
                  std::vector<ceph::buffer::list>* data);
  bool is_still_there(Onode& o, const BlocksToMove::Part& part);

  // ---- object_clone.cc
  int copy_range(ObjectTxn& txn, const OnodeRef& from, const OnodeRef& to, uint64_t from_offset,
                 uint64_t length, uint64_t to_offset);
  /// The same of no more than fits into memory. The ranges may overlap.
  int copy_piece(ObjectTxn& txn, const OnodeRef& from, const OnodeRef& to, uint64_t from_offset,
                 uint64_t length, uint64_t to_offset);
  /// Maps what `range` of `from` holds, `bytes` of its data, from `to_block` on in `to` as well.
  int share_blocks(ObjectTxn& txn, Onode& from, const BlockRange& range, Onode& to,
                   uint64_t to_block, uint64_t bytes);
  /// Loads the map of `range`, without a change of the object: `known` and `unknown` are its parts,
  /// ascending. 0, or another error than -EIO.
  int load_what_is_left(Onode& o, const BlockRange& range, std::vector<BlockRange>* known,
                        std::vector<BlockRange>* unknown);
  /// What of the shards that are about to be written nobody else has any more becomes its own.
  void unshare(ObjectTxn& txn, Onode& o);
  /// Adds references to what `range`, which is loaded, holds; appends it, by its block in `from`.
  int share_part(ObjectTxn& txn, Onode& from, const BlockRange& range,
                 std::vector<std::pair<uint64_t, MappedExtent>>* copies);

  CephContext* const cct;
  Engine& engine;
  ReferenceMaps& references;
  DataCache& cache;
  SpuriousReads& spurious_reads;
  SlowOps& slow_ops;
  ceph::common::PerfCounters& logger;
  const uint64_t inline_max;
  const ExtentMap map;
  ReadHelpers helpers;
};

}  // namespace tablestore
