// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/hobject.h"
#include "include/buffer.h"
#include "include/encoding.h"
#include "include/intarith.h"
#include "os/tablestore/engine/format/extent.h"
#include "os/tablestore/collection/op_sequencer.h"

namespace tablestore {

/// Logical span of one extent-map shard: a 4 KiB overwrite of a 4 MiB object rewrites one
/// row of at most this span's extents. That of new objects; others keep the one that they have.
inline constexpr uint64_t shard_span_bytes = 64 << 10;
inline constexpr uint32_t shard_span_blocks = shard_span_bytes / block_bytes;
/// Of objects whose rows are of versions before 3.
inline constexpr uint32_t wide_shard_span_blocks = (256 << 10) / block_bytes;
/// No object is larger. As BlueStore's: the OSD's own limit (osd_max_object_size) is far below.
inline constexpr uint64_t object_bytes_max = 0xffffffff;

/// Rows that this program reads: older ones too, newer ones not (NewerVersion).
inline constexpr uint8_t newest_onode_version = 3;
inline constexpr uint8_t newest_shard_version = 1;

/// Where a run of an object's blocks lives. Never crosses a shard, nor a container slot, and is
/// never made of two writes: a read finds all of it in one write in flight, or all of it on the
/// disk.
struct MappedExtent {
  uint32_t logical_block = 0;        ///< relative to the shard's start
  Extent physical;
  bool shared = false;               ///< owned together with others: see ReferenceMaps
  /// Where shared, in memory only: ReferenceMaps' as of when there were others. 0: nobody looked.
  uint16_t looked_at = 0;
  uint32_t map_block = 0;            ///< where shared: names the ReferenceMap; 0 otherwise
  std::vector<uint32_t> checksums;   ///< crc32c of each block; size() == physical.blocks

  uint32_t logical_end() const { return logical_block + physical.blocks; }
  /// The part of it from its block `first` on.
  MappedExtent slice(uint32_t first, uint32_t blocks) const;
};

/// Extents of [index * span, +span), ascending, not overlapping; what is not mapped is a hole
/// (zeros). The span is its object's: ExtentMap looks that they do not reach beyond it.
struct ExtentShard {
  std::vector<MappedExtent> extents;
  // ---- in memory only
  bool dirty = false;     ///< differs from its row
  bool has_row = false;   ///< the table has, or is about to get, a row of it

  /// Unmaps [first, end), blocks relative to the shard; appends what was mapped there to
  /// `removed`.
  void punch(uint32_t first, uint32_t end, std::vector<MappedExtent>* removed);
  /// Maps where nothing is mapped.
  void insert(MappedExtent e);

  std::string encode() const;
  /// Throws ceph::buffer::error where the bytes are damaged (bad lengths, overlaps, bad checksum of
  /// the row).
  void decode(ceph::buffer::list::const_iterator& p);
};

/// What an object is: its row, and what is in memory of its other rows. It moves from one Onode to
/// another by a rename, and goes by a remove.
struct ObjectContents {
  bool exists = false;
  /// It exists, and what it is cannot be known: its row is damaged, or a change of it was dropped
  /// because it was. It reads as -EIO, and stays so until it is removed or made anew. It has no
  /// other rows, but for one that is the OSD's own (is_osds_own) and has holes.
  bool lost = false;
  /// It is lost, and has no row (see LostNames): it is in no statistics. In memory only.
  bool unknown = false;

  // ---- in the row
  uint64_t nid = 0;
  uint64_t size = 0;
  /// The data is the row `nid` of Family::data; then there are no extents.
  bool inline_data = false;
  /// crc32c of that row, kept apart from it; set when it is written.
  uint32_t inline_checksum = 0;
  bool has_omap = false;   ///< may have omap rows (keys or header)
  /// Of its omap rows and of its statistics: the normalised pool at creation.
  int64_t omap_pool = 0;
  uint32_t alloc_hint_flags = 0;
  uint32_t expected_object_size = 0;
  uint32_t expected_write_size = 0;
  std::map<std::string, ceph::buffer::ptr, std::less<>> attrs;
  /// Of one shard: shard_span_blocks or wide_shard_span_blocks.
  uint32_t span_blocks = shard_span_blocks;
  /// Which shards have a row (or are embedded); sized to the last present one.
  std::vector<bool> shards_present;

  // ---- in memory
  std::map<uint32_t, ExtentShard> shards;   ///< the loaded ones
  /// The inline data, when known; always while uncommitted.
  std::optional<ceph::buffer::list> inline_cache;
  bool inline_dirty = false;
  /// Some bytes of `inline_cache` are not known, and reads are -EIO: see checksum_of_lost().
  bool inline_lost = false;
  bool inline_has_row = false;   ///< the table has, or is about to get, a row of inline data
  TxnMark last_omap_change;      ///< omap reads wait for it: they read the table

  uint64_t span_bytes() const { return uint64_t(span_blocks) * block_bytes; }
  bool embeds_shard() const { return size <= span_bytes(); }
  bool has_shard(uint32_t index) const
  {
    return index < shards_present.size() && shards_present[index];
  }
  void set_shard_present(uint32_t index, bool present);
  /// The row's value. Shards that are not embedded are rows of their own.
  std::string encode() const;
  /// Throws ceph::buffer::error where damaged (the row ends with a crc32c). Keeps one copy of the
  /// row, of which the attributes are parts.
  void decode(std::string_view row);
};

/// An object's place in memory, for as long as it is there.
///
/// Guarded by its collection's lock: shared to read, unique to change. Only `shards` and
/// `inline_cache` are filled on demand, also by readers: under `load_lock` in addition. A loaded
/// shard stays where it is in memory.
struct Onode : ObjectContents {
  ghobject_t oid;
  std::string key;   ///< its row in Family::object
  std::mutex load_lock;

  // ---- of the transaction being built
  bool dirty = false;          ///< it writes the row
  bool omap_changed = false;   ///< it changes the omap
  /// Where it is in ObjectTxn::touched_onodes; of any other transaction, another onode is there.
  uint32_t touched_position = 0;

  /// That changed it, not yet applied: it stays in the cache (ObjectTxn::touch).
  std::atomic<uint32_t> transactions_in_flight{0};
};
using OnodeRef = std::shared_ptr<Onode>;

}  // namespace tablestore
