// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Reads: from the cache, else from the containers, where every block is verified.

#include <algorithm>
#include <atomic>
#include <sstream>

#include "common/debug.h"
#include "common/dout.h"
#include "common/perf_counters.h"
#include "include/ceph_assert.h"
#include "include/rados.h"
#include "include/stringify.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/home/slow_ops.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/spurious_reads.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.data "

namespace tablestore {

namespace {

/// Of one read from a container.
constexpr uint32_t run_blocks_max = (4 << 20) / block_bytes;

ceph::buffer::list part_of(const ceph::buffer::ptr& memory, uint64_t offset, uint64_t length)
{
  ceph::buffer::list part;
  part.append(memory, offset, length);
  return part;
}

}  // namespace

int ObjectData::read(const OnodeRef& o, uint64_t offset, uint64_t length, ceph::buffer::list& out,
                     uint32_t fadvise_flags)
{
  const int r = try_read(o, offset, length, out, fadvise_flags);
  return r < 0 ? -EIO : r;
}

int ObjectData::try_read(const OnodeRef& o, uint64_t offset, uint64_t length,
                         ceph::buffer::list& out, uint32_t fadvise_flags)
{
  if (offset >= o->size)
    return 0;
  length = std::min(length, o->size - offset);
  if (length == 0)
    return 0;
  ceph::buffer::list all, wanted;
  uint64_t skip = 0;
  int r;
  if (o->inline_data) {
    r = inline_bytes(*o, &all, fadvise_flags & CEPH_OSD_OP_FLAG_BYPASS_CLEAN_CACHE);
    skip = offset;
  } else {
    const BlockRange range{block_floor(offset), block_ceil(offset + length)};
    r = read_blocks(*o, range, all, fadvise_flags);
    skip = offset - range.first * block_bytes;
  }
  if (r < 0)
    return r;
  wanted.substr_of(all, skip, length);
  out.claim_append(wanted);
  return length;
}

int ObjectData::read_blocks(Onode& o, const BlockRange& range, ceph::buffer::list& out,
                            uint32_t fadvise_flags)
{
  if (int r = map.load(o, range); r < 0)
    return r;
  const bool past_cache = fadvise_flags & CEPH_OSD_OP_FLAG_BYPASS_CLEAN_CACHE;
  const bool keep = !past_cache && !(fadvise_flags & (CEPH_OSD_OP_FLAG_FADVISE_DONTNEED |
                                                      CEPH_OSD_OP_FLAG_FADVISE_NOCACHE));
  const std::vector<ExtentMap::Piece> pieces = map.lookup(o, range);
  std::vector<ceph::buffer::list> data(pieces.size());
  std::vector<Missing> missing;
  uint64_t hit_bytes = 0, miss_bytes = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool hit = !past_cache && cache.get(pieces[i].physical, data[i]);
    (hit ? hit_bytes : miss_bytes) += pieces[i].physical.length_bytes();
    if (!hit)
      missing.push_back(Missing{pieces[i], &data[i]});
  }
  logger.inc(l_tablestore_data_hit_bytes, hit_bytes);
  logger.inc(l_tablestore_data_miss_bytes, miss_bytes);
  if (int r = read_missing(o, missing, keep); r < 0)
    return r;
  uint64_t position = range.first;
  for (size_t i = 0; i < pieces.size(); ++i) {
    out.append_zero((pieces[i].logical_block - position) * block_bytes);
    out.claim_append(data[i]);
    position = pieces[i].logical_end();
  }
  out.append_zero((range.end - position) * block_bytes);
  return 0;
}

int ObjectData::read_missing(const Onode& o, std::vector<Missing>& missing, bool keep)
{
  // Extents of two writes that are still in flight cannot be read as one. A change makes the
  // count non-zero before it writes, and the count stays so until all of it is applied.
  const bool merge = o.transactions_in_flight == 0;
  if (merge) {
    std::sort(missing.begin(), missing.end(), [](const Missing& a, const Missing& b) {
      return a.piece.physical < b.piece.physical;
    });
  }
  std::vector<std::span<const Missing>> runs;
  for (size_t first = 0, end; first < missing.size(); first = end) {
    uint32_t blocks = missing[first].piece.physical.blocks;
    for (end = first + 1; merge && end < missing.size(); ++end) {
      const Extent& last = missing[end - 1].piece.physical;
      const Extent& next = missing[end].piece.physical;
      blocks += next.blocks;
      if (next.container != last.container || next.block != last.end() ||
          blocks > run_blocks_max)
        break;
    }
    runs.push_back(std::span(missing).subspan(first, end - first));
  }
  std::atomic<int> result{0};
  helpers.run(runs.size(), [&](size_t i) {
    if (int r = read_run(o, runs[i], keep); r < 0)
      result = r;
  });
  return result;
}

/// A read cannot meet blocks that were freed or written anew meanwhile: the collection's lock is
/// held from the look at the extent map to here, and blocks are freed by who holds it uniquely. So
/// a bad checksum is damage, of the disk or on the way from it.
int ObjectData::read_run(const Onode& o, std::span<const Missing> pieces, bool keep)
{
  Run run = pieces.front().piece.physical;
  run.blocks = pieces.back().piece.physical.end() - run.block;
  ceph::buffer::ptr memory(ceph::buffer::create_aligned(run.length_bytes(), block_bytes));
  const auto read_again = [&](const std::vector<BadBlocks>& parts) {
    std::vector<BadBlocks> bad;
    for (const BadBlocks& part : parts)
      read_and_verify(o, pieces, run, part.where, memory, &bad);
    return bad;
  };
  ReadTries tries = spurious_reads.begin();
  std::vector<BadBlocks> bad = read_again({BadBlocks{run}});
  const std::string first_reason = bad.empty() ? std::string() : bad.front().reason;
  while (worth_a_retry(bad) && tries.again())
    bad = read_again(bad);
  if (!bad.empty()) {
    int result = -EIO;
    for (const BadBlocks& b : bad) {
      derr << b.reason << dendl;
      if (b.error != EIO)
        result = -b.error;
    }
    return result;
  }
  if (!first_reason.empty())
    spurious_reads.note(first_reason);
  uint64_t offset = 0;
  for (const Missing& m : pieces) {
    *m.out = part_of(memory, offset, m.piece.physical.length_bytes());
    offset += m.piece.physical.length_bytes();
  }
  if (keep)
    cache.put(run, part_of(memory, 0, run.length_bytes()));
  return 0;
}

bool ObjectData::worth_a_retry(const std::vector<BadBlocks>& bad)
{
  return !bad.empty() &&
         std::none_of(bad.begin(), bad.end(), [](const BadBlocks& b) { return b.lost; });
}

void ObjectData::read_and_verify(const Onode& o, std::span<const Missing> pieces, const Run& run,
                                 const Run& part, ceph::buffer::ptr& memory,
                                 std::vector<BadBlocks>* bad)
{
  char* const bytes = memory.c_str() + uint64_t(part.block - run.block) * block_bytes;
  const auto started_at = ceph::mono_clock::now();
  const Status status = engine.read(
    part, std::span(reinterpret_cast<std::byte*>(bytes), part.length_bytes()));
  const auto read_at = ceph::mono_clock::now();
  note_disk_read(read_at - started_at, o, pieces.front().piece, part);
  std::vector<uint32_t> found;
  if (status.ok()) {
    const iovec all{bytes, part.length_bytes()};
    found.reserve(part.blocks);
    crc32c_blocks(std::span(&all, 1), &found);
    logger.tinc(l_tablestore_csum_lat, ceph::mono_clock::now() - read_at);
  }
  for (const auto& [piece, out] : pieces) {
    const uint32_t first = std::max(part.block, piece.physical.block);
    const uint32_t end = std::min(part.end(), piece.physical.end());
    if (first >= end)
      continue;
    if (!status.ok()) {
      const Run where{part.container, first, end - first};
      bad->push_back(BadBlocks{where, "cannot read " + place(o, piece, where) + ": " +
                                        status.what(), status.code()});
      continue;
    }
    for (uint32_t block = first; block < end; ++block) {
      const uint32_t expected = piece.checksums[block - piece.physical.block];
      const uint32_t is = found[block - part.block];
      if (is != expected)
        bad->push_back(bad_checksum(o, piece, block, expected, is));
    }
  }
}

void ObjectData::note_disk_read(ceph::timespan took, const Onode& o,
                                const ExtentMap::Piece& piece, const Run& where)
{
  logger.tinc(l_tablestore_read_wait_aio_lat, took);
  if (slow_ops.is_slow(took))
    slow_ops.stalled(took, place(o, piece, where));
}

std::string ObjectData::place(const Onode& o, const ExtentMap::Piece& piece, const Run& where)
{
  const uint64_t offset =
    (piece.logical_block + (where.block - piece.physical.block)) * block_bytes;
  return stringify(o.oid) + " at " + std::to_string(offset) + " (container " +
         std::to_string(where.container) + " at " + std::to_string(where.offset_bytes()) + "~" +
         std::to_string(where.length_bytes()) + ")";
}

ObjectData::BadBlocks ObjectData::bad_checksum(const Onode& o, const ExtentMap::Piece& piece,
                                               uint32_t block, uint32_t expected, uint32_t found)
{
  const Run where{piece.physical.container, block, 1};
  std::ostringstream reason;
  if (is_lost(expected, found)) {
    reason << place(o, piece, where) << " is lost: it could not be read when a part of it was "
           << "overwritten or copied";
  } else {
    reason << "bad checksum of " << place(o, piece, where) << ": expected crc32c 0x" << std::hex
           << expected << ", found 0x" << found;
  }
  reason << "; the object is repaired from a replica by scrub or recovery";
  return BadBlocks{where, reason.str(), EIO, is_lost(expected, found)};
}

int ObjectData::read_what_is_left(const OnodeRef& o, uint64_t offset, uint64_t length,
                                  ceph::buffer::list& out, LostBytes* lost)
{
  constexpr uint32_t flags = CEPH_OSD_OP_FLAG_FADVISE_NOCACHE;
  logger.inc(l_tablestore_write_penalty_read_ops);
  ceph::buffer::list all;
  if (const int r = try_read(o, offset, length, all, flags); r != -EIO) {
    out.claim_append(all);
    return std::min(r, 0);
  }
  const uint64_t end = std::min(offset + length, o->size);
  // All of inline data has one checksum.
  const auto piece_end_of = [&](uint64_t at) {
    return o->inline_data ? end : std::min(end, (block_floor(at) + 1) * block_bytes);
  };
  // A read that fails may take long, and writers wait for it: none is made twice.
  const bool was_one_piece = piece_end_of(offset) == end;
  while (offset < end) {
    const uint64_t piece_end = piece_end_of(offset);
    ceph::buffer::list piece;
    const int r =
      was_one_piece ? -EIO : try_read(o, offset, piece_end - offset, piece, flags);
    if (r >= 0) {
      out.claim_append(piece);
    } else if (r == -EIO) {
      out.append_zero(piece_end - offset);
      lost->insert(offset, piece_end - offset);
    } else {
      return r;
    }
    offset = piece_end;
  }
  return 0;
}

int ObjectData::fiemap(const OnodeRef& o, uint64_t offset, uint64_t length,
                       std::map<uint64_t, uint64_t>& out)
{
  if (offset >= o->size || length == 0)
    return 0;
  const uint64_t end = offset + std::min(length, o->size - offset);
  if (o->inline_data) {
    out[offset] = end - offset;
    return 0;
  }
  const BlockRange range{block_floor(offset), block_ceil(end)};
  if (int r = map.load(*o, range); r == -EIO) {
    // Nobody knows what is mapped. Taken as all of it, it is an error to whoever reads that; an OSD
    // does not copy it as a hole (ReplicatedBackend::build_push_op).
    out[offset] = end - offset;
    return 0;
  } else if (r < 0) {
    return r;
  }
  auto last = out.end();
  for (const ExtentMap::Piece& piece : map.lookup(*o, range)) {
    const uint64_t from = std::max(piece.logical_block * block_bytes, offset);
    const uint64_t to = std::min(piece.logical_end() * block_bytes, end);
    if (last != out.end() && last->first + last->second == from)
      last->second += to - from;
    else
      last = out.insert_or_assign(from, to - from).first;
  }
  return 0;
}

}  // namespace tablestore
