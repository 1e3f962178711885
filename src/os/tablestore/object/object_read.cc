// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Reads: from the cache, else from the containers, where every block is verified.

#include <algorithm>
#include <atomic>

#include "common/debug.h"
#include "common/dout.h"
#include "include/ceph_assert.h"
#include "include/rados.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/object/object_data.h"

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
  if (offset >= o->size)
    return 0;
  length = std::min(length, o->size - offset);
  if (length == 0)
    return 0;
  ceph::buffer::list all, wanted;
  uint64_t skip = 0;
  int r;
  if (o->inline_data) {
    r = inline_bytes(*o, &all);
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
  const bool keep = !(fadvise_flags & (CEPH_OSD_OP_FLAG_FADVISE_DONTNEED |
                                       CEPH_OSD_OP_FLAG_FADVISE_NOCACHE));
  const std::vector<ExtentMap::Piece> pieces = map.lookup(o, range);
  std::vector<ceph::buffer::list> data(pieces.size());
  std::vector<Missing> missing;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!cache.get(pieces[i].physical, data[i]))
      missing.push_back(Missing{pieces[i], &data[i]});
  }
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

int ObjectData::read_run(const Onode& o, std::span<const Missing> pieces, bool keep)
{
  Run run = pieces.front().piece.physical;
  run.blocks = pieces.back().piece.physical.end() - run.block;
  ceph::buffer::ptr memory(ceph::buffer::create_aligned(run.length_bytes(), block_bytes));
  const Status status = engine.read(
    run, std::span(reinterpret_cast<std::byte*>(memory.c_str()), run.length_bytes()));
  if (!status.ok()) {
    derr << "cannot read " << o.oid << " at " << pieces.front().piece.logical_block * block_bytes
         << " from container " << run.container << " at " << run.offset_bytes() << "~"
         << run.length_bytes() << ": " << status.what() << dendl;
    return -EIO;
  }
  if (!verify(o, pieces, memory))
    return -EIO;
  uint64_t offset = 0;
  for (const Missing& m : pieces) {
    *m.out = part_of(memory, offset, m.piece.physical.length_bytes());
    offset += m.piece.physical.length_bytes();
  }
  if (keep)
    cache.put(run, part_of(memory, 0, run.length_bytes()));
  return 0;
}

bool ObjectData::verify(const Onode& o, std::span<const Missing> pieces,
                        const ceph::buffer::ptr& memory) const
{
  const iovec all{const_cast<char*>(memory.c_str()), memory.length()};
  std::vector<uint32_t> found;
  found.reserve(memory.length() / block_bytes);
  crc32c_blocks(std::span(&all, 1), &found);
  size_t n = 0;
  for (const auto& [piece, out] : pieces) {
    for (uint32_t i = 0; i < piece.physical.blocks; ++i, ++n) {
      if (found[n] == piece.checksums[i])
        continue;
      derr << "bad checksum of " << o.oid << " at " << (piece.logical_block + i) * block_bytes
           << " (container " << piece.physical.container << " at "
           << piece.physical.offset_bytes() + i * block_bytes << "): expected crc32c 0x"
           << std::hex << piece.checksums[i] << ", found 0x" << found[n] << std::dec
           << "; the object is repaired from a replica by scrub or recovery" << dendl;
      return false;
    }
  }
  return true;
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
  if (int r = map.load(*o, range); r < 0)
    return r;
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
