// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Moves: the same bytes in other blocks. What is not what it should be is not touched.

#include <algorithm>
#include <map>

#include "include/ceph_assert.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/reference_maps.h"

namespace tablestore {

// ---- what one object has alone

int ObjectData::read_pieces(const Onode& o, const std::vector<ExtentMap::Piece>& pieces,
                            std::vector<ceph::buffer::list>* data)
{
  data->assign(pieces.size(), {});
  std::vector<Missing> missing;
  for (size_t i = 0; i < pieces.size(); ++i)
    missing.push_back(Missing{pieces[i], &(*data)[i]});
  return read_missing(o, missing, false);
}

int ObjectData::read_to_move(const OnodeRef& o, const std::set<uint32_t>& containers,
                             uint64_t from, uint64_t bytes_max, BlocksToMove* out)
{
  const BlockRange rest{from, uint64_t(o->shards_present.size()) * o->span_blocks};
  std::vector<BlockRange> known, unknown;
  if (int r = load_what_is_left(*o, rest, &known, &unknown); r < 0)
    return r;
  std::vector<ExtentMap::Piece> pieces;
  uint64_t bytes = 0;
  const auto choose = [&](const ExtentShard&, const MappedExtent& e, uint64_t base) {
    const uint64_t first = base + e.logical_block;
    if (!containers.contains(e.physical.container) || first >= out->next_block)
      return 0;
    if (e.shared) {
      out->shared.insert({e.physical.container, e.map_block});
      return 0;
    }
    if (bytes > 0 && bytes + e.physical.length_bytes() > bytes_max) {
      out->next_block = first;
      return 0;
    }
    bytes += e.physical.length_bytes();
    pieces.push_back({first, e.physical, e.checksums.data()});
    return 0;
  };
  for (const BlockRange& range : known)
    map.for_each(*o, range, choose);
  std::vector<ceph::buffer::list> data;
  const int all = read_pieces(*o, pieces, &data);
  if (all < 0 && all != -EIO)
    return all;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const ExtentMap::Piece& piece = pieces[i];
    std::vector<ceph::buffer::list> alone;
    if (all < 0) {   // each by itself: what can be read moves
      const int r = pieces.size() == 1 ? all : read_pieces(*o, {piece}, &alone);
      if (r < 0 && r != -EIO)
        return r;
      if (r < 0) {
        out->unreadable_bytes += piece.physical.length_bytes();
        continue;
      }
      data[i] = std::move(alone.front());
    }
    auto& parts = out->parts;
    if (parts.empty() ||
        parts.back().first_block + parts.back().checksums.size() != piece.logical_block)
      parts.push_back({piece.logical_block, {}, {}, {}});
    BlocksToMove::Part& part = parts.back();
    part.from.push_back(piece.physical);
    part.checksums.insert(part.checksums.end(), piece.checksums,
                          piece.checksums + piece.physical.blocks);
    part.data.claim_append(data[i]);
    out->bytes += piece.physical.length_bytes();
  }
  return 0;
}

bool ObjectData::is_still_there(Onode& o, const BlocksToMove::Part& part)
{
  const BlockRange range{part.first_block, part.first_block + part.checksums.size()};
  if (map.load(o, range) < 0)
    return false;
  std::vector<Extent> there;
  std::vector<uint32_t> checksums;
  map.for_each(o, range, [&](const ExtentShard&, const MappedExtent& e, uint64_t) {
    if (!e.shared)
      there.push_back(e.physical);
    checksums.insert(checksums.end(), e.checksums.begin(), e.checksums.end());
    return 0;
  });
  return there == part.from && checksums == part.checksums;
}

uint64_t ObjectData::move(ObjectTxn& txn, const OnodeRef& o, BlocksToMove&& what)
{
  uint64_t bytes = 0;
  for (BlocksToMove::Part& part : what.parts) {
    if (!is_still_there(*o, part))
      continue;
    txn.dirty(o);
    bytes += part.data.length();
    // Memory may rot, too: what was verified keeps the checksums that it was verified by.
    std::vector<uint32_t> of_memory;
    const auto extents = write_new_blocks(txn, std::move(part.data), &of_memory);
    map_new_blocks(txn, *o, part.first_block, extents, part.checksums);
  }
  return bytes;
}

// ---- what several objects share

int ObjectData::find_shared(const std::vector<OnodeRef>& owners, const ReferenceMapName& name,
                            SharedToMove* out)
{
  *out = {};
  out->name = name;
  std::map<uint32_t, SharedToMove::Block> found;
  bool agree = true;
  ceph_assert(std::set<OnodeRef>(owners.begin(), owners.end()).size() == owners.size());
  for (size_t owner = 0; owner < owners.size(); ++owner) {
    if (int r = load_all(owners[owner]); r < 0)
      return r;
    const auto count = [&](const ExtentShard&, const MappedExtent& e, uint64_t base) {
      if (!e.shared || e.physical.container != name.container || e.map_block != name.first_block)
        return 0;
      out->uses.push_back(
        {owner, base + e.logical_block, e.physical.block, e.physical.blocks});
      for (uint32_t i = 0; i < e.physical.blocks; ++i) {
        const uint32_t block = e.physical.block + i;
        auto& b = found.try_emplace(block, SharedToMove::Block{block, 0, e.checksums[i]})
                    .first->second;
        ++b.references;
        agree &= b.checksum == e.checksums[i];
      }
      return 0;
    };
    map.for_each(*owners[owner], all_blocks, count);
  }
  for (const auto& [block, b] : found)
    out->blocks.push_back(b);
  return agree && references.is_counted(name, out->blocks) ? 0 : -EIO;
}

int ObjectData::read_shared(const std::vector<OnodeRef>& owners, SharedToMove* what)
{
  std::vector<uint32_t> checksums;
  for (const SharedToMove::Block& b : what->blocks)
    checksums.push_back(b.checksum);
  const auto index_of = [&](uint32_t block) {
    return std::ranges::lower_bound(what->blocks, block, {}, &SharedToMove::Block::block) -
        what->blocks.begin();
  };
  std::vector<ceph::buffer::list> blocks(what->blocks.size());
  for (const SharedToMove::Use& use : what->uses) {
    const size_t first = index_of(use.block);
    // Of each use what none before it has brought.
    for (uint32_t from = 0, end; from < use.blocks; from = end) {
      const bool is_there = blocks[first + from].length() > 0;
      for (end = from + 1; end < use.blocks; ++end) {
        if ((blocks[first + end].length() > 0) != is_there)
          break;
      }
      if (is_there)
        continue;
      const ExtentMap::Piece piece{use.logical_block + from,
                                   Extent{what->name.container, use.block + from, end - from},
                                   checksums.data() + first + from};
      std::vector<ceph::buffer::list> data;
      if (int r = read_pieces(*owners[use.owner], {piece}, &data); r < 0)
        return r;
      for (uint32_t i = 0; i < piece.physical.blocks; ++i)
        blocks[first + from + i].substr_of(data.front(), i * block_bytes, block_bytes);
    }
  }
  for (ceph::buffer::list& block : blocks)
    what->data.claim_append(block);
  ceph_assert(what->data.length() == what->bytes());
  return 0;
}

void ObjectData::move_shared(ObjectTxn& txn, const std::vector<OnodeRef>& owners,
                             SharedToMove&& what)
{
  std::vector<uint32_t> of_memory;
  const std::vector<Extent> extents = write_new_blocks(txn, std::move(what.data), &of_memory);
  // The statistics are those of a pool, and all owners are of one.
  Onode& any = *owners[what.uses.front().owner];
  for (const Extent& freed : references.move(txn, what, extents))
    note_freed(txn, any, freed);
  stats(txn, any)[PoolStats::allocated_bytes] += what.bytes();

  for (const SharedToMove::Use& use : what.uses) {
    const OnodeRef& o = owners[use.owner];
    txn.dirty(o);
    std::vector<MappedExtent> removed;
    map.punch(*o, BlockRange{use.logical_block, use.logical_block + use.blocks}, &removed);
    const size_t first =
        std::ranges::lower_bound(what.blocks, use.block, {}, &SharedToMove::Block::block) -
        what.blocks.begin();
    size_t extent_first = 0;   // of the blocks, that of `extent`
    for (const Extent& extent : extents) {
      const size_t from = std::max(first, extent_first);
      const size_t end = std::min<size_t>(first + use.blocks, extent_first + extent.blocks);
      if (from < end) {
        MappedExtent e;
        e.physical = {extent.container, uint32_t(extent.block + (from - extent_first)),
                      uint32_t(end - from)};
        e.shared = true;
        e.map_block = extent.block;
        for (size_t i = from; i < end; ++i)
          e.checksums.push_back(what.blocks[i].checksum);
        map.insert(*o, use.logical_block + (from - first), e);
      }
      extent_first += extent.blocks;
    }
  }
}

}  // namespace tablestore
