// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Rows of onodes, shards and shared slots: they come back as they were, and damage is noticed.

#include <random>

#include <gtest/gtest.h>

#include "common/error_code.h"
#include "os/tablestore/object/onode.h"
#include "os/tablestore/rows/row_codec.h"
#include "os/tablestore/object/reference_maps.h"

using namespace tablestore;
using ceph::bufferlist;

namespace {

MappedExtent extent(uint32_t logical_block, uint32_t blocks, uint32_t container, uint32_t block)
{
  MappedExtent e;
  e.logical_block = logical_block;
  e.physical = Extent{container, block, blocks};
  for (uint32_t i = 0; i < blocks; ++i)
    e.checksums.push_back(block * 31 + i);
  return e;
}

ExtentShard example_shard()
{
  ExtentShard s;
  s.insert(extent(0, 1, 0, 0));
  s.insert(extent(2, 16, 7, 1024));
  MappedExtent shared = extent(18, 46, 0xffffffff, 0xfffff000);
  shared.shared = true;
  shared.map_block = 0xffffef00;
  s.insert(shared);
  return s;
}

void expect_equal(const ExtentShard& a, const ExtentShard& b)
{
  ASSERT_EQ(a.extents.size(), b.extents.size());
  for (size_t i = 0; i < a.extents.size(); ++i) {
    EXPECT_EQ(a.extents[i].logical_block, b.extents[i].logical_block);
    EXPECT_EQ(a.extents[i].physical, b.extents[i].physical);
    EXPECT_EQ(a.extents[i].shared, b.extents[i].shared);
    EXPECT_EQ(a.extents[i].map_block, b.extents[i].map_block);
    EXPECT_EQ(a.extents[i].checksums, b.extents[i].checksums);
  }
}

void fill(Onode& o, uint64_t size)
{
  o.nid = 0x123456789abcdef;
  o.size = size;
  o.has_omap = true;
  o.omap_pool = -5;
  o.alloc_hint_flags = 0x80000001;
  o.expected_object_size = 4 << 20;
  o.expected_write_size = 1;
  o.attrs["_"] = ceph::buffer::copy("info\0more", 9);
  o.attrs["empty"] = ceph::buffer::ptr();
  o.attrs[std::string("od\0d", 4)] = ceph::buffer::copy(std::string(300, 'v').data(), 300);
}

void expect_equal(const Onode& a, const Onode& b)
{
  EXPECT_EQ(a.nid, b.nid);
  EXPECT_EQ(a.size, b.size);
  EXPECT_EQ(a.inline_data, b.inline_data);
  EXPECT_EQ(a.inline_checksum, b.inline_checksum);
  EXPECT_EQ(a.has_omap, b.has_omap);
  EXPECT_EQ(a.omap_pool, b.omap_pool);
  EXPECT_EQ(a.alloc_hint_flags, b.alloc_hint_flags);
  EXPECT_EQ(a.expected_object_size, b.expected_object_size);
  EXPECT_EQ(a.expected_write_size, b.expected_write_size);
  EXPECT_EQ(a.span_blocks, b.span_blocks);
  EXPECT_EQ(a.shards_present, b.shards_present);
  ASSERT_EQ(a.attrs.size(), b.attrs.size());
  for (auto p = a.attrs.begin(), q = b.attrs.begin(); p != a.attrs.end(); ++p, ++q) {
    EXPECT_EQ(p->first, q->first);
    ASSERT_EQ(p->second.length(), q->second.length());
    EXPECT_EQ(0, p->second.length() ? p->second.cmp(q->second) : 0);
  }
}

/// Every shortened row and every row with one bit changed must throw.
template <typename Decode>
void expect_damage_noticed(const std::string& row, Decode&& decode)
{
  for (size_t length = 0; length < row.size(); ++length)
    EXPECT_THROW(decode(row.substr(0, length)), ceph::buffer::error) << length;
  for (size_t bit = 0; bit < row.size() * 8; ++bit) {
    std::string damaged = row;
    damaged[bit / 8] ^= 1 << bit % 8;
    EXPECT_THROW(decode(damaged), ceph::buffer::error) << bit;
  }
}

bufferlist to_bl(const std::string& s)
{
  bufferlist bl;
  bl.append(s);
  return bl;
}

}  // namespace

TEST(TableStoreShard, ComesBackAsItWas)
{
  const ExtentShard s = example_shard();
  bufferlist bl = to_bl(s.encode());
  bl.append("what follows");
  ExtentShard decoded;
  auto p = bl.cbegin();
  decoded.decode(p);
  expect_equal(s, decoded);
  EXPECT_EQ(12u, p.get_remaining());
}

TEST(TableStoreShard, DamageIsNoticed)
{
  ExtentShard s;
  s.insert(extent(3, 2, 1, 200));
  MappedExtent e = extent(6, 1, 2, 300);
  e.shared = true;
  e.map_block = 299;
  s.insert(e);
  expect_damage_noticed(s.encode(), [](const std::string& row) {
    const bufferlist damaged = to_bl(row);
    ExtentShard ignored;
    auto p = damaged.cbegin();
    ignored.decode(p);
  });
}

TEST(TableStoreShard, TheNameOfSharedBlocksIsNoFartherThanASlotIsLarge)
{
  for (const uint32_t distance : {0u, largest_slot_blocks - 2, largest_slot_blocks - 1}) {
    MappedExtent e = extent(6, 2, 2, 5000);
    e.shared = true;
    e.map_block = 5000 - distance;
    ExtentShard s, decoded;
    s.insert(e);
    const bufferlist bl = to_bl(s.encode());
    auto p = bl.cbegin();
    if (distance + 2 <= largest_slot_blocks) {
      decoded.decode(p);
      expect_equal(s, decoded);
    } else {
      EXPECT_THROW(decoded.decode(p), ceph::buffer::error);
    }
  }
}

TEST(TableStoreShard, PunchKeepsWhatIsOutside)
{
  // against one number per block: the physical block that it is mapped to
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    ExtentShard s;
    std::vector<uint32_t> model(shard_span_blocks, 0);
    uint32_t next_physical = 1;
    for (int step = 0; step < 30; ++step) {
      const uint32_t first = random() % shard_span_blocks;
      const uint32_t end = first + 1 + random() % (shard_span_blocks - first);
      std::vector<MappedExtent> removed;
      s.punch(first, end, &removed);
      uint32_t unmapped = 0;
      for (const MappedExtent& e : removed) {
        for (uint32_t i = 0; i < e.physical.blocks; ++i) {
          ASSERT_EQ(model[e.logical_block + i], e.physical.block + i);
          ASSERT_TRUE(e.logical_block + i >= first && e.logical_block + i < end);
        }
        unmapped += e.physical.blocks;
      }
      for (uint32_t b = first; b < end; ++b) {
        unmapped -= model[b] != 0;
        model[b] = 0;
      }
      ASSERT_EQ(0u, unmapped);
      if (random() % 3 > 0) {
        s.insert(extent(first, end - first, 0, next_physical));
        for (uint32_t b = first; b < end; ++b)
          model[b] = next_physical++;
      }
      std::vector<uint32_t> mapped(shard_span_blocks, 0);
      for (const MappedExtent& e : s.extents) {
        for (uint32_t i = 0; i < e.physical.blocks; ++i)
          mapped[e.logical_block + i] = e.physical.block + i;
      }
      ASSERT_EQ(model, mapped);
    }
  }
}

TEST(TableStoreOnode, ComesBackAsItWas)
{
  Onode o, decoded;
  fill(o, object_bytes_max);
  o.set_shard_present(0, true);
  o.set_shard_present(19, true);
  decoded.decode(o.encode());
  expect_equal(o, decoded);
  EXPECT_TRUE(decoded.shards.empty());

  Onode empty, decoded_empty;
  decoded_empty.decode(empty.encode());
  expect_equal(empty, decoded_empty);
}

TEST(TableStoreOnode, InlineDataHasItsChecksumInTheOnode)
{
  Onode o, decoded;
  fill(o, 100);
  o.inline_data = true;
  o.inline_checksum = 0xdeadbeef;
  decoded.decode(o.encode());
  expect_equal(o, decoded);
  EXPECT_TRUE(decoded.inline_has_row);
}

TEST(TableStoreOnode, EmbedsTheOnlyShardOfASmallObject)
{
  for (const uint32_t span_blocks : {shard_span_blocks, wide_shard_span_blocks}) {
    Onode o, decoded;
    o.span_blocks = span_blocks;
    fill(o, o.span_bytes());
    o.set_shard_present(0, true);
    o.shards[0].insert(extent(0, 2, 1, 2));
    o.shards[0].insert(extent(span_blocks - 3, 3, 1, 100));
    decoded.decode(o.encode());
    expect_equal(o, decoded);
    ASSERT_EQ(1u, decoded.shards.count(0));
    expect_equal(o.shards[0], decoded.shards[0]);
    EXPECT_FALSE(decoded.shards[0].has_row);

    ++o.size;
    Onode larger;
    larger.decode(o.encode());
    EXPECT_TRUE(larger.shards.empty());
  }
}

// Where a shard ends is in the row; a program that does not know of it refuses the row.
TEST(TableStoreOnode, ARowHasTheVersionThatItNeeds)
{
  const auto version = [](uint32_t span_blocks, bool lost) {
    Onode o, decoded;
    o.span_blocks = span_blocks;
    o.lost = lost;
    const std::string row = o.encode();
    decoded.decode(row);
    EXPECT_EQ(span_blocks, decoded.span_blocks);
    EXPECT_EQ(lost, decoded.lost);
    EXPECT_EQ(row[0], row[1]);
    return int(row[0]);
  };
  EXPECT_EQ(1, version(wide_shard_span_blocks, false));
  EXPECT_EQ(2, version(wide_shard_span_blocks, true));
  EXPECT_EQ(3, version(shard_span_blocks, false));
  EXPECT_EQ(3, version(shard_span_blocks, true));
}

TEST(TableStoreOnode, AnEmbeddedShardThatIsTooLongIsDamage)
{
  Onode o, ignored;
  fill(o, 5000);
  o.set_shard_present(0, true);
  o.shards[0].insert(extent(shard_span_blocks - 1, 2, 1, 2));
  EXPECT_THROW(ignored.decode(o.encode()), ceph::buffer::error);
  o.span_blocks = wide_shard_span_blocks;
  ignored.decode(o.encode());
}

TEST(TableStoreOnode, KeepsOneCopyOfItsRow)
{
  Onode o, decoded;
  fill(o, 1 << 20);
  std::string row = o.encode();
  decoded.decode(row);
  std::fill(row.begin(), row.end(), 'x');
  expect_equal(o, decoded);
  ASSERT_GE(decoded.attrs.size(), 2u);
  for (const auto& [name, value] : decoded.attrs)
    EXPECT_EQ(row.size(), value.raw_length()) << name;
}

TEST(TableStoreOnode, DamageIsNoticed)
{
  Onode o;
  fill(o, 5000);
  o.set_shard_present(0, true);
  o.shards[0].insert(extent(0, 2, 1, 2));
  expect_damage_noticed(o.encode(), [](const std::string& row) {
    Onode ignored;
    ignored.decode(row);
  });
}

// With a right checksum, as a faulty writer would leave it.
TEST(TableStoreOnode, OneThatContradictsItselfIsDamage)
{
  auto refused = [](const Onode& o) {
    Onode ignored;
    EXPECT_THROW(ignored.decode(o.encode()), ceph::buffer::error);
  };
  Onode o, ignored;
  fill(o, 5 * shard_span_bytes);
  o.set_shard_present(4, true);
  ignored.decode(o.encode());
  o.shards_present.push_back(false);
  refused(o);
  o.shards_present.back() = true;
  refused(o);

  Onode too_large;
  too_large.size = object_bytes_max + 1;
  refused(too_large);

  Onode in_line;
  in_line.size = 1 << 20;
  in_line.inline_data = true;
  ignored.decode(in_line.encode());
  in_line.set_shard_present(0, true);
  refused(in_line);
}

TEST(TableStoreOnode, PresentShardsEndAtTheLastOne)
{
  Onode o;
  o.set_shard_present(3, true);
  o.set_shard_present(1, true);
  EXPECT_EQ(4u, o.shards_present.size());
  o.set_shard_present(3, false);
  EXPECT_EQ(2u, o.shards_present.size());
  o.set_shard_present(7, false);
  o.set_shard_present(1, false);
  EXPECT_TRUE(o.shards_present.empty());
}

TEST(TableStoreRowCodec, ReadsWhatANewerCompatibleVersionAppended)
{
  ValueWriter out;
  out.varint(300);
  out.bytes("of a later version");
  const std::string row = out.finish(2, 1);
  ValueReader in(1, row);
  EXPECT_EQ(2, in.version());
  EXPECT_EQ(300u, in.varint());
  EXPECT_EQ(row.size(), in.frame_bytes());
}

TEST(TableStoreRowCodec, RefusesAnIncompatibleVersion)
{
  ValueWriter out;
  const std::string row = out.finish(3, 2);
  EXPECT_THROW(ValueReader(1, row), ceph::buffer::malformed_input);
  EXPECT_NO_THROW(ValueReader(2, row));
}

TEST(TableStoreRowCodec, IntegersComeBackAsTheyWere)
{
  const std::vector<int64_t> values = {0, 1, -1, 63, 64, -64, -65, 127, 128, 1 << 20,
                                       std::numeric_limits<int64_t>::max(),
                                       std::numeric_limits<int64_t>::min()};
  ValueWriter out;
  for (int64_t v : values) {
    out.signed_varint(v);
    out.varint(static_cast<uint64_t>(v));
    out.u32(static_cast<uint32_t>(v));
  }
  const std::string row = out.finish(1, 1);
  ValueReader in(1, row);
  for (int64_t v : values) {
    EXPECT_EQ(v, in.signed_varint());
    EXPECT_EQ(static_cast<uint64_t>(v), in.varint());
    EXPECT_EQ(static_cast<uint32_t>(v), in.u32());
  }
  EXPECT_THROW(in.u8(), ceph::buffer::error);
}

namespace {

/// Blocks 100 to 116 of container 2, with one reference.
struct ExampleMap : ReferenceMap {
  ExampleMap()
  {
    container = 2;
    first_block = 100;
    runs[100] = Run{16, 1};
  }
};

uint32_t total_blocks(const std::vector<Extent>& extents)
{
  uint32_t blocks = 0;
  for (const Extent& e : extents)
    blocks += e.blocks;
  return blocks;
}

}  // namespace

TEST(TableStoreReferenceMap, FreesABlockWithItsLastReference)
{
  ExampleMap map;
  ASSERT_TRUE(map.add_reference(104, 4));
  std::vector<Extent> freed;
  ASSERT_TRUE(map.drop_reference(104, 2, &freed));
  EXPECT_TRUE(freed.empty());
  ASSERT_TRUE(map.drop_reference(102, 4, &freed));
  EXPECT_EQ((std::vector<Extent>{Extent{2, 102, 4}}), freed);
  freed.clear();
  EXPECT_FALSE(map.drop_reference(103, 1, &freed));
  EXPECT_FALSE(map.add_reference(105, 2));
  EXPECT_TRUE(freed.empty());
}

TEST(TableStoreReferenceMap, KeepsItsFirstBlockUntilAllElseIsFree)
{
  ExampleMap map;
  std::vector<Extent> freed;
  ASSERT_TRUE(map.drop_reference(100, 8, &freed));
  EXPECT_EQ((std::vector<Extent>{Extent{2, 101, 7}}), freed);
  EXPECT_FALSE(map.add_reference(100, 1));
  EXPECT_EQ(9u, total_blocks(map.owned()));
  ASSERT_TRUE(map.drop_reference(108, 8, &freed));
  EXPECT_EQ(16u, total_blocks(freed));
  EXPECT_TRUE(map.runs.empty());
}

TEST(TableStoreReferenceMap, CountsReferencesLikeOneNumberPerBlock)
{
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    ExampleMap map;
    std::vector<uint32_t> model(16, 1);
    while (!map.runs.empty()) {
      const uint32_t first = random() % 16;
      const uint32_t blocks = 1 + random() % (16 - first);
      bool all = true;
      for (uint32_t b = first; b < first + blocks; ++b)
        all = all && model[b] > 0;
      std::vector<Extent> freed;
      const bool add = random() % 5 < 2;
      const bool done = add ? map.add_reference(100 + first, blocks)
                            : map.drop_reference(100 + first, blocks, &freed);
      ASSERT_EQ(all, done);
      for (uint32_t b = first; all && b < first + blocks; ++b)
        model[b] += add ? 1 : -1;
      for (const Extent& e : freed) {
        for (uint32_t b = e.block; b < e.end(); ++b)
          ASSERT_EQ(0u, model[b - 100]);
      }
      if (!map.runs.empty()) {
        ReferenceMap decoded;
        decoded.container = 2;
        decoded.first_block = 100;
        decoded.decode(map.encode());
        ASSERT_EQ(map.runs, decoded.runs);
      }
    }
    for (uint32_t references : model)
      ASSERT_EQ(0u, references);
  }
}

// With a right checksum, as a faulty writer would leave it: fsck counts references block by block.
TEST(TableStoreReferenceMap, OneThatContradictsItselfIsDamage)
{
  auto decodes = [](const std::map<uint32_t, ReferenceMap::Run>& runs) {
    ExampleMap map, decoded;
    map.runs = runs;
    try {
      decoded.decode(map.encode());
    } catch (const ceph::buffer::error&) {
      return false;
    }
    return true;
  };
  EXPECT_TRUE(decodes({{100, {largest_slot_blocks, 1}}}));
  EXPECT_FALSE(decodes({{100, {largest_slot_blocks + 1, 1}}}));
  EXPECT_FALSE(decodes({{100, {0xffffff00, 1}}}));
  EXPECT_FALSE(decodes({{100, {1, 1}}, {100 + largest_slot_blocks, {1, 1}}}));
  EXPECT_TRUE(decodes({{100, {1, 0}}, {105, {1, 1}}}));
  EXPECT_FALSE(decodes({{100, {2, 0}}, {105, {1, 1}}}));
  EXPECT_FALSE(decodes({{100, {1, 1}}, {105, {1, 0}}}));
  EXPECT_FALSE(decodes({{101, {1, 1}}}));
  EXPECT_FALSE(decodes({}));
}

TEST(TableStoreReferenceMap, DamageIsNoticed)
{
  ExampleMap map;
  map.add_reference(103, 2);
  expect_damage_noticed(map.encode(), [](const std::string& row) {
    ExampleMap ignored;
    ignored.decode(row);
  });
}
