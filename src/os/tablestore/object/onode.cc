// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include "os/tablestore/object/onode.h"

#include <algorithm>
#include <limits>

#include "include/ceph_assert.h"
#include "os/tablestore/rows/row_codec.h"

namespace tablestore {

namespace {

constexpr uint8_t shard_version = newest_shard_version;
constexpr uint8_t shard_compat = 1;
/// A row has the version that it needs, which is the oldest program, too, that may read it.
constexpr uint8_t wide_onode_version = 1;
constexpr uint8_t lost_onode_version = 2;     ///< not to be taken for an empty object
constexpr uint8_t narrow_onode_version = newest_onode_version;

constexpr uint8_t flag_inline_data = 1;
constexpr uint8_t flag_has_omap = 2;
constexpr uint8_t flag_lost = 4;
constexpr uint8_t flag_narrow_shards = 8;

constexpr uint64_t u32_max = std::numeric_limits<uint32_t>::max();
/// What no object has is damage; it also keeps a damaged count from taking all memory.
constexpr uint64_t shards_max = object_bytes_max / shard_span_bytes + 1;

std::string_view view_of(const ceph::buffer::ptr& p)
{
  return p.length() ? std::string_view(p.c_str(), p.length()) : std::string_view();
}

void encode_extents(const std::vector<MappedExtent>& extents, ValueWriter& out)
{
  out.varint(extents.size());
  uint32_t position = 0;
  for (const MappedExtent& e : extents) {
    ceph_assert(e.checksums.size() == e.physical.blocks);
    ceph_assert(e.logical_block >= position && e.logical_end() <= wide_shard_span_blocks);
    out.varint(e.logical_block - position);
    out.varint(uint64_t(e.physical.blocks) << 1 | (e.shared ? 1 : 0));
    out.varint(e.physical.container);
    out.varint(e.physical.block);
    if (e.shared)
      out.varint(e.physical.block - e.map_block);
    for (uint32_t checksum : e.checksums)
      out.u32(checksum);
    position = e.logical_end();
  }
}

std::vector<MappedExtent> decode_extents(ValueReader& in, uint32_t span_blocks)
{
  std::vector<MappedExtent> extents(in.varint_up_to(span_blocks));
  uint32_t position = 0;
  for (MappedExtent& e : extents) {
    e.logical_block = position + in.varint_up_to(span_blocks - position);
    const uint64_t blocks_and_shared = in.varint();
    const uint64_t blocks = blocks_and_shared >> 1;
    if (blocks == 0 || blocks > span_blocks - e.logical_block)
      throw_malformed("extent reaches beyond its shard");
    e.physical.blocks = blocks;
    e.physical.container = in.varint_up_to(u32_max);
    e.physical.block = in.varint_up_to(u32_max - blocks);
    e.shared = blocks_and_shared & 1;
    if (e.shared) {
      // What is shared was one extent of one slot, so its name is not far.
      const uint64_t farthest = largest_slot_blocks - blocks;
      e.map_block =
        e.physical.block - in.varint_up_to(std::min<uint64_t>(e.physical.block, farthest));
    }
    e.checksums.resize(blocks);
    for (uint32_t& checksum : e.checksums)
      checksum = in.u32();
    position = e.logical_end();
  }
  return extents;
}

void encode_bits(const std::vector<bool>& bits, ValueWriter& out)
{
  out.varint(bits.size());
  for (size_t i = 0; i < bits.size(); i += 8) {
    uint8_t byte = 0;
    for (size_t j = i; j < std::min(i + 8, bits.size()); ++j)
      byte |= (bits[j] ? 1 : 0) << (j - i);
    out.u8(byte);
  }
}

std::vector<bool> decode_bits(ValueReader& in)
{
  std::vector<bool> bits(in.varint_up_to(shards_max));
  for (size_t i = 0; i < bits.size(); i += 8) {
    const uint8_t byte = in.u8();
    for (size_t j = i; j < std::min(i + 8, bits.size()); ++j)
      bits[j] = byte >> (j - i) & 1;
  }
  return bits;
}

}  // namespace

MappedExtent MappedExtent::slice(uint32_t first, uint32_t blocks) const
{
  ceph_assert(first + blocks <= physical.blocks);
  MappedExtent part;
  part.logical_block = logical_block + first;
  part.physical = Extent{physical.container, physical.block + first, blocks};
  part.shared = shared;
  part.looked_at = looked_at;
  part.map_block = map_block;
  part.checksums.assign(checksums.begin() + first, checksums.begin() + first + blocks);
  return part;
}

void ExtentShard::punch(uint32_t first, uint32_t end, std::vector<MappedExtent>* removed)
{
  auto from = std::find_if(extents.begin(), extents.end(),
                           [first](const MappedExtent& e) { return e.logical_end() > first; });
  auto to = std::find_if(from, extents.end(),
                         [end](const MappedExtent& e) { return e.logical_block >= end; });
  if (from == to)
    return;
  std::vector<MappedExtent> kept;
  for (auto e = from; e != to; ++e) {
    const uint32_t cut_first = std::max(e->logical_block, first);
    const uint32_t cut_end = std::min(e->logical_end(), end);
    if (cut_first > e->logical_block)
      kept.push_back(e->slice(0, cut_first - e->logical_block));
    if (cut_end < e->logical_end())
      kept.push_back(e->slice(cut_end - e->logical_block, e->logical_end() - cut_end));
    removed->push_back(e->slice(cut_first - e->logical_block, cut_end - cut_first));
  }
  extents.insert(extents.erase(from, to), std::make_move_iterator(kept.begin()),
                 std::make_move_iterator(kept.end()));
  dirty = true;
}

void ExtentShard::insert(MappedExtent e)
{
  auto next = std::find_if(extents.begin(), extents.end(), [&e](const MappedExtent& other) {
    return other.logical_block >= e.logical_block;
  });
  ceph_assert(e.logical_end() <= wide_shard_span_blocks);
  ceph_assert(next == extents.end() || e.logical_end() <= next->logical_block);
  ceph_assert(next == extents.begin() || std::prev(next)->logical_end() <= e.logical_block);
  extents.insert(next, std::move(e));
  dirty = true;
}

std::string ExtentShard::encode() const
{
  ValueWriter out;
  encode_extents(extents, out);
  return out.finish(shard_version, shard_compat);
}

void ExtentShard::decode(ceph::buffer::list::const_iterator& p)
{
  ceph::buffer::ptr raw;
  auto peek = p;
  peek.copy_shallow(peek.get_remaining(), raw);
  ValueReader in(shard_version, view_of(raw));
  extents = decode_extents(in, wide_shard_span_blocks);
  p += in.frame_bytes();
}

void ObjectContents::set_shard_present(uint32_t index, bool present)
{
  if (present) {
    if (index >= shards_present.size())
      shards_present.resize(index + 1);
    shards_present[index] = true;
    return;
  }
  if (index < shards_present.size())
    shards_present[index] = false;
  while (!shards_present.empty() && !shards_present.back())
    shards_present.pop_back();
}

std::string ObjectContents::encode() const
{
  const bool narrow = span_blocks == shard_span_blocks;
  ValueWriter out;
  out.varint(nid);
  out.varint(size);
  out.u8((inline_data ? flag_inline_data : 0) | (has_omap ? flag_has_omap : 0) |
         (lost ? flag_lost : 0) | (narrow ? flag_narrow_shards : 0));
  if (inline_data)
    out.u32(inline_checksum);
  out.signed_varint(omap_pool);
  out.varint(alloc_hint_flags);
  out.varint(expected_object_size);
  out.varint(expected_write_size);
  encode_bits(shards_present, out);
  out.varint(attrs.size());
  for (const auto& [name, value] : attrs) {
    out.varint(name.size());
    out.bytes(name);
    out.varint(value.length());
    out.bytes(view_of(value));
  }
  if (embeds_shard() && has_shard(0))
    encode_extents(shards.at(0).extents, out);
  const uint8_t version =
    narrow ? narrow_onode_version : lost ? lost_onode_version : wide_onode_version;
  return out.finish(version, version);
}

void ObjectContents::decode(std::string_view row)
{
  const ceph::buffer::ptr kept = ceph::buffer::copy(row.data(), row.size());
  ValueReader in(newest_onode_version, view_of(kept));
  nid = in.varint();
  size = in.varint_up_to(object_bytes_max);
  const uint8_t flags = in.u8();
  inline_data = flags & flag_inline_data;
  has_omap = flags & flag_has_omap;
  lost = flags & flag_lost;
  span_blocks = flags & flag_narrow_shards ? shard_span_blocks : wide_shard_span_blocks;
  inline_checksum = inline_data ? in.u32() : 0;
  omap_pool = in.signed_varint();
  alloc_hint_flags = in.varint_up_to(u32_max);
  expected_object_size = in.varint_up_to(u32_max);
  expected_write_size = in.varint_up_to(u32_max);
  shards_present = decode_bits(in);
  const uint64_t shards_most =
    inline_data ? 0 : (size + span_bytes() - 1) / span_bytes();
  if (shards_present.size() > shards_most ||
      (!shards_present.empty() && !shards_present.back()))
    throw_malformed("shards beyond the end of the object");
  attrs.clear();
  for (uint64_t left = in.varint(); left > 0; --left) {
    const std::string_view name = in.bytes(in.varint());
    const std::string_view value = in.bytes(in.varint());
    const auto offset = static_cast<unsigned>(value.data() - kept.c_str());
    attrs.emplace(name, ceph::buffer::ptr(kept, offset, value.size()));
  }
  shards.clear();
  if (embeds_shard() && has_shard(0))
    shards[0].extents = decode_extents(in, span_blocks);
  inline_has_row = inline_data;
}

}  // namespace tablestore
