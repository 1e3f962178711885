// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// The bytes of objects, on a real engine.

#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "include/rados.h"
#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/object_data_fixture.h"

namespace tablestore {

using ObjectDataTest = ObjectDataFixture;
using Mapped = std::map<uint64_t, uint64_t>;

TEST_F(ObjectDataTest, SmallObjectIsInlineAndTakesNoBlocks)
{
  const std::string bytes = pattern(3000, 1);
  write("a", 0, bytes);
  EXPECT_EQ(bytes, read_all("a"));
  EXPECT_TRUE(extents("a").empty());
  EXPECT_EQ(3000, totals[PoolStats::inline_bytes]);
  EXPECT_EQ((Mapped{{100, 2900}}), fiemap("a", 100));
  check_ownership();
  reopen(false);
  EXPECT_EQ(bytes, read_all("a"));
}

TEST_F(ObjectDataTest, InlineObjectThatGrowsBecomesBlocks)
{
  const std::string head = pattern(5000, 1), tail = pattern(9000, 2);
  write("a", 0, head);
  write("a", 4000, tail);
  EXPECT_EQ(head.substr(0, 4000) + tail, read_all("a"));
  EXPECT_FALSE(object("a")->inline_data);
  check_ownership();
  evict("a");
  EXPECT_EQ(head.substr(0, 4000) + tail, read_all("a"));
  EXPECT_EQ(0, totals[PoolStats::inline_bytes]);
  EXPECT_FALSE(get(Family::data, inline_key(object("a")->nid)).has_value());
}

TEST_F(ObjectDataTest, InlineObjectAndAWriteFarBehindItLeaveAHole)
{
  const std::string head = pattern(100, 1), tail = pattern(100, 2);
  write("a", 0, head);
  write("a", 1 << 20, tail);
  EXPECT_EQ((Mapped{{0, 4096}, {1 << 20, 100}}), fiemap("a"));
  EXPECT_EQ(head, read("a", 0, 100));
  EXPECT_EQ(std::string(1000, '\0'), read("a", 100, 1000));
  EXPECT_EQ(tail, read("a", 1 << 20, 4096));
  EXPECT_EQ("", read("a", (1 << 20) + 100, 1));
  check_ownership();
}

TEST_F(ObjectDataTest, OverwriteTakesNewBlocksAndFreesTheOldOnes)
{
  write("a", 0, pattern(64 << 10, 1));
  const std::vector<MappedExtent> before = extents("a");
  write("a", 8192, pattern(4096, 2));
  const std::string expected = pattern(64 << 10, 1).replace(8192, 4096, pattern(4096, 2));
  EXPECT_EQ(expected, read_all("a"));
  EXPECT_EQ(64 << 10, totals[PoolStats::allocated_bytes]);
  EXPECT_EQ(before.size() + 2, extents("a").size());
  check_ownership();
}

// Whatever the cache knows of blocks, it forgets when they get another owner.
TEST_F(ObjectDataTest, BlocksThatAreWrittenAnewAreReadAnew)
{
  std::set<std::pair<uint32_t, uint32_t>> read_before;
  bool again = false;
  for (uint64_t seed = 1; !again; ++seed) {
    ASSERT_LT(seed, 1000u) << "no block is used twice";
    write("a", 0, pattern(64 << 10, seed));
    ASSERT_EQ(pattern(64 << 10, seed), read_all("a"));
    engine->drain();
    ASSERT_EQ(pattern(64 << 10, seed), read_all("a"));   // what is not in flight goes to the cache
    for (const MappedExtent& e : extents("a"))
      again |= !read_before.emplace(e.physical.container, e.physical.block).second;
    remove("a");
  }
}

TEST_F(ObjectDataTest, UnalignedWriteKeepsItsNeighbours)
{
  std::string expected = pattern(40000, 1);
  write("a", 0, expected);
  uint64_t seed = 2;
  for (const auto& [offset, length] : std::vector<std::pair<uint64_t, uint64_t>>{
         {1, 1}, {4095, 2}, {5000, 10000}, {8192, 100}, {12200, 88}, {39999, 1}, {39990, 3000}}) {
    const std::string bytes = pattern(length, seed++);
    write("a", offset, bytes);
    expected.resize(std::max<size_t>(expected.size(), offset + length));
    expected.replace(offset, length, bytes);
    ASSERT_EQ(expected, read_all("a")) << offset;
  }
  engine->drain();
  cache->clear();
  EXPECT_EQ(expected, read_all("a"));
  check_ownership();
}

TEST_F(ObjectDataTest, BytesBeyondATruncatedEndReadAsZerosWhenItGrowsAgain)
{
  for (uint64_t size : {3000, 30000}) {
    const std::string name = std::to_string(size);
    write(name, 0, pattern(size, 1));
    truncate(name, size - 1000);
    truncate(name, size);
    EXPECT_EQ(pattern(size, 1).replace(size - 1000, 1000, std::string(1000, '\0')),
              read_all(name));
  }
  check_ownership();
}

TEST_F(ObjectDataTest, ObjectOfHolesHasNoExtents)
{
  truncate("a", 10 << 20);
  zero("b", 1 << 20, 1 << 20);
  EXPECT_EQ(10u << 20, object("a")->size);
  EXPECT_EQ(2u << 20, object("b")->size);
  EXPECT_TRUE(fiemap("a").empty());
  EXPECT_TRUE(fiemap("b").empty());
  EXPECT_EQ(std::string(12345, '\0'), read("a", 777, 12345));
  EXPECT_EQ(0, totals[PoolStats::allocated_bytes]);
  check_ownership();
}

TEST_F(ObjectDataTest, ZeroedBlocksBecomeAHole)
{
  write("a", 0, pattern(1 << 20, 1));
  zero("a", 5000, 500000);
  std::string expected = pattern(1 << 20, 1);
  expected.replace(5000, 500000, std::string(500000, '\0'));
  EXPECT_EQ(expected, read_all("a"));
  EXPECT_EQ((Mapped{{0, 8192}, {503808, (1 << 20) - 503808}}), fiemap("a"));
  check_ownership();
}

TEST_F(ObjectDataTest, LargeWriteFromScatteredMemory)
{
  const std::string expected = pattern(5 << 20, 9);
  ceph::buffer::list bl;
  std::mt19937 random(1);
  for (size_t at = 0; at < expected.size();) {
    const size_t length = std::min<size_t>(1 + random() % 50000, expected.size() - at);
    bl.append(ceph::buffer::copy(expected.data() + at, length));
    at += length;
  }
  auto txn = begin();
  ASSERT_EQ(0, data->write(*txn, object("a"), 123, bl));
  submit(txn);
  EXPECT_EQ(expected, read("a", 123, expected.size()));
  engine->drain();
  cache->clear();
  EXPECT_EQ(expected, read("a", 123, expected.size(), CEPH_OSD_OP_FLAG_FADVISE_DONTNEED));
  EXPECT_EQ(0u, cache->bytes());
  EXPECT_EQ(expected, read("a", 123, expected.size()));
  EXPECT_GT(cache->bytes(), 0u);
  check_ownership();
}

TEST_F(ObjectDataTest, SmallOverwriteOfALargeObjectRewritesOneShard)
{
  write("a", 0, pattern(4 << 20, 1));
  auto txn = begin();
  ceph::buffer::list bl;
  bl.append(pattern(4096, 2));
  const size_t before = txn->row_bytes();
  ASSERT_EQ(0, data->write(*txn, object("a"), 1 << 20, bl));
  data->write_out(*txn, object("a"));
  EXPECT_LT(txn->row_bytes() - before, 600u);
  submit(txn);
  evict("a");
  EXPECT_EQ(pattern(4096, 2), read("a", 1 << 20, 4096));
  EXPECT_EQ(1u, object("a")->shards.size());
}

TEST_F(ObjectDataTest, FirstShardMovesBetweenOnodeAndRow)
{
  const std::string bytes = pattern(50 << 10, 1);
  write("a", 0, bytes);
  engine->drain();
  const std::string key = shard_key(object("a")->nid, 0);
  EXPECT_FALSE(get(Family::object, key).has_value());
  truncate("a", 300 << 10);
  evict("a");
  EXPECT_TRUE(get(Family::object, key).has_value());
  EXPECT_EQ(bytes, read("a", 0, bytes.size()));
  truncate("a", 50 << 10);
  evict("a");
  EXPECT_FALSE(get(Family::object, key).has_value());
  EXPECT_EQ(bytes, read_all("a"));
  remove("a");
  check_ownership();
}

TEST_F(ObjectDataTest, RemoveLeavesNoRows)
{
  write("inline", 0, pattern(10, 1));
  write("blocks", 0, pattern(2 << 20, 1));
  engine->drain();
  evict("blocks");
  remove("inline");
  remove("blocks");
  engine->drain();
  EXPECT_EQ(0u, rows(Family::object, all_shards_range()));
  EXPECT_EQ(0u, rows(Family::data, {}));
  EXPECT_EQ(PoolStats().values, totals.values);
  check_ownership();
}

TEST_F(ObjectDataTest, CloneSharesAllBlocks)
{
  const std::string bytes = pattern((4 << 20) - 1000, 1);
  write("a", 0, bytes);
  const int64_t allocated = totals[PoolStats::allocated_bytes];
  clone_range("a", "b", 0, bytes.size(), 0);
  EXPECT_EQ(bytes, read_all("b"));
  EXPECT_EQ(allocated, totals[PoolStats::allocated_bytes]);
  check_ownership();
  write("a", 100000, pattern(50000, 2));
  EXPECT_EQ(bytes, read_all("b"));
  check_ownership();
  reopen(true);
  EXPECT_EQ(bytes, read_all("b"));
  EXPECT_EQ(pattern(50000, 2), read("a", 100000, 50000));
  remove("a");
  EXPECT_EQ(bytes, read_all("b"));
  check_ownership();
  remove("b");
  check_ownership();
  EXPECT_EQ(0, totals[PoolStats::allocated_bytes]);
  EXPECT_EQ(0u, rows(Family::super, reference_maps_range()));
}

TEST_F(ObjectDataTest, CloneOfACloneCountsOwners)
{
  write("a", 0, pattern(20000, 1));
  clone_range("a", "b", 0, 20000, 0);
  clone_range("b", "c", 0, 20000, 0);
  for (const MappedExtent& e : extents("c"))
    EXPECT_TRUE(e.shared);
  check_ownership();
  remove("b");
  check_ownership();
  remove("a");
  check_ownership();
  EXPECT_EQ(pattern(20000, 1), read_all("c"));
}

TEST_F(ObjectDataTest, CloneRangeCopiesWhatIsNotAligned)
{
  const std::string bytes = pattern(600000, 1);
  write("a", 0, bytes);
  clone_range("a", "b", 1000, 500000, 1000 + (2 << 20));
  EXPECT_EQ(bytes.substr(1000, 500000), read("b", 1000 + (2 << 20), 500000));
  check_ownership();
  clone_range("a", "b", 1000, 500000, 7);
  EXPECT_EQ(bytes.substr(1000, 500000), read("b", 7, 500000));
  EXPECT_EQ(bytes.substr(1000, 500000), read("b", 1000 + (2 << 20), 500000));
  check_ownership();
}

TEST_F(ObjectDataTest, CloneRangeWithinOneObject)
{
  const std::string bytes = pattern(400000, 1);
  write("a", 0, bytes);
  clone_range("a", "a", 4096, 100000, 200704);
  EXPECT_EQ(std::string(bytes).replace(200704, 100000, bytes, 4096, 100000), read_all("a"));
  check_ownership();
}

TEST_F(ObjectDataTest, CloneRangeOfAHoleMakesAHole)
{
  truncate("a", 1 << 20);
  write("b", 0, pattern(1 << 20, 1));
  clone_range("a", "b", 0, 1 << 19, 0);
  EXPECT_EQ((Mapped{{1 << 19, 1 << 19}}), fiemap("b"));
  EXPECT_EQ(std::string(1 << 19, '\0'), read("b", 0, 1 << 19));
  check_ownership();
}

TEST_F(ObjectDataTest, ObjectsOfOtherHashesGetACopy)
{
  write("a", 0, pattern(100000, 1));
  object("b")->oid.hobj.set_hash(2);
  clone_range("a", "b", 0, 100000, 0);
  EXPECT_EQ(pattern(100000, 1), read_all("b"));
  for (const MappedExtent& e : extents("a"))
    EXPECT_FALSE(e.shared);
  check_ownership();
}

TEST_F(ObjectDataTest, SeveralChangesOfOneTransactionSeeEachOther)
{
  auto txn = begin();
  ceph::buffer::list first, second;
  first.append(pattern(20000, 1));
  second.append(pattern(5000, 2));
  const OnodeRef a = object("a"), b = object("b");
  ASSERT_EQ(0, data->write(*txn, a, 0, first));
  ASSERT_EQ(0, data->write(*txn, a, 9000, second));
  ASSERT_EQ(0, data->clone_range(*txn, a, b, 0, 20000, 0));
  ASSERT_EQ(0, data->write(*txn, a, 9000, first));
  ASSERT_EQ(0, data->truncate(*txn, b, 14500));
  submit(txn);
  EXPECT_EQ(pattern(20000, 1).replace(9000, 5000, pattern(5000, 2)).substr(0, 14500),
            read_all("b"));
  EXPECT_EQ(pattern(20000, 1).substr(0, 9000) + pattern(20000, 1), read_all("a"));
  check_ownership();
  reopen(true);
  EXPECT_EQ(pattern(20000, 1).substr(0, 9000) + pattern(20000, 1), read_all("a"));
  check_ownership();
}

TEST_F(ObjectDataTest, FragmentedObjectReadsAsOne)
{
  std::string expected = pattern(1 << 20, 1);
  write("a", 0, expected);
  std::mt19937 random(5);
  for (unsigned i = 0; i < 300; ++i) {
    const uint64_t offset = random() % 256 * block_bytes;
    const std::string bytes = pattern(block_bytes, i);
    write("a", offset, bytes);
    expected.replace(offset, bytes.size(), bytes);
  }
  EXPECT_EQ(expected, read_all("a"));
  engine->drain();
  EXPECT_EQ(expected, read("a", 0, 1 << 20, CEPH_OSD_OP_FLAG_FADVISE_DONTNEED));
  const MappedExtent e = extents("a")[100];
  damage(e.physical, 0);
  cache->clear();
  ceph::buffer::list out;
  EXPECT_EQ(-EIO, data->read(object("a"), 0, 1 << 20, out, 0));
  check_ownership();
}

TEST_F(ObjectDataTest, ReadersLoadAnObjectTogether)
{
  const std::string bytes = pattern(2 << 20, 1), small = pattern(5000, 2);
  write("a", 0, bytes);
  write("b", 0, small);
  for (int round = 0; round < 5; ++round) {
    evict("a");
    evict("b");
    cache->clear();
    const OnodeRef a = object("a"), b = object("b");
    std::vector<std::thread> readers;
    for (unsigned t = 0; t < 4; ++t) {
      readers.emplace_back([&, t] {
        for (unsigned i = 0; i < 20; ++i) {
          const uint64_t offset = (t * 7 + i * 13) % 20 * 100000;
          ceph::buffer::list out, out_small;
          ASSERT_EQ(90000, data->read(a, offset, 90000, out, 0));
          ASSERT_TRUE(bytes.compare(offset, 90000, out.to_str()) == 0);
          ASSERT_EQ(5000, data->read(b, 0, 9000, out_small, 0));
          ASSERT_TRUE(small == out_small.to_str());
          std::map<uint64_t, uint64_t> mapped;
          ASSERT_EQ(0, data->fiemap(a, 0, 2 << 20, mapped));
        }
      });
    }
    for (auto& reader : readers)
      reader.join();
  }
}

TEST_F(ObjectDataTest, DamagedBlockIsAnErrorAndTheOthersAreNot)
{
  write("a", 0, pattern(100000, 1));
  engine->drain();
  const MappedExtent e = extents("a").front();
  damage(e.physical, 5000);
  ceph::buffer::list out;
  EXPECT_EQ(-EIO, data->read(object("a"), 0, 100000, out, 0));
  EXPECT_EQ(0u, out.length());
  EXPECT_EQ(-EIO, data->read(object("a"), 4096, 1, out, 0));
  EXPECT_EQ(pattern(100000, 1).substr(0, 4096), read("a", 0, 4096));
  auto txn = begin();
  ceph::buffer::list one;
  one.append("x");
  ASSERT_EQ(0, data->write(*txn, object("a"), 5000, one));
  EXPECT_EQ(-EIO, data->read(object("a"), 4096, 1, out, 0)) << "only a part of it is known";
  EXPECT_EQ(-EIO, data->read(object("a"), 5000, 1, out, 0));
  ASSERT_EQ(0, data->write(*txn, object("a"), 0, [] {
    ceph::buffer::list bl;
    bl.append(pattern(8192, 2));
    return bl;
  }()));
  submit(txn);
  EXPECT_EQ(pattern(8192, 2), read("a", 0, 8192));
  check_ownership();
}

TEST_F(ObjectDataTest, DamagedShardIsAnErrorUntilItIsReplaced)
{
  write("a", 0, pattern(1 << 20, 1));
  engine->drain();
  auto damaging = std::make_shared<Txn>();
  damaging->put(Family::object, shard_key(object("a")->nid, 4), "not a shard");
  engine->submit(damaging);
  evict("a");
  ceph::buffer::list out;
  EXPECT_EQ(-EIO, data->read(object("a"), 300000, 10, out, 0));
  EXPECT_EQ(-EIO, data->load_all(object("a")));
  EXPECT_EQ(pattern(1 << 20, 1).substr(0, 1000), read("a", 0, 1000));
  write("a", 200000, pattern(400000, 2));
  EXPECT_EQ(pattern(400000, 2), read("a", 200000, 400000));
  evict("a");
  EXPECT_EQ(pattern(400000, 2), read("a", 200000, 400000));
}

TEST_F(ObjectDataTest, DamagedObjectCanBeRemoved)
{
  write("a", 0, pattern(1 << 20, 1));
  engine->drain();
  auto damaging = std::make_shared<Txn>();
  damaging->erase(Family::object, shard_key(object("a")->nid, 2));
  engine->submit(damaging);
  evict("a");
  remove("a");
  engine->drain();
  EXPECT_EQ(0u, rows(Family::object, all_shards_range()));
  // what the missing row referred to
  EXPECT_EQ(int64_t(shard_span_bytes), totals[PoolStats::allocated_bytes]);
}

TEST_F(ObjectDataTest, DamagedInlineDataIsAnError)
{
  write("a", 0, pattern(1000, 1));
  engine->drain();
  auto damaging = std::make_shared<Txn>();
  damaging->put(Family::data, inline_key(object("a")->nid), pattern(1000, 2));
  engine->submit(damaging);
  evict("a");
  ceph::buffer::list out;
  EXPECT_EQ(-EIO, data->read(object("a"), 0, 1000, out, 0));
  write("a", 0, pattern(1000, 3));
  EXPECT_EQ(pattern(1000, 3), read_all("a"));
}

namespace {

/// Offsets and lengths near where things meet: blocks, shards, the inline limit.
uint64_t interesting(std::mt19937& random, uint64_t max)
{
  static const uint64_t marks[] = {0,     4096, 8192, shard_span_bytes, 2 * shard_span_bytes,
                                   wide_shard_span_blocks * block_bytes,
                                   2 * wide_shard_span_blocks * block_bytes};
  uint64_t x;
  switch (random() % 4) {
  case 0:
    x = random() % max;
    break;
  case 1:
    x = random() % max / block_bytes * block_bytes;
    break;
  case 2:
    x = random() % 10000;
    break;
  default:
    x = marks[random() % std::size(marks)] + random() % 3;
    x = x > 0 ? x - random() % 2 : 0;
  }
  return x % max;
}

}  // namespace

/// Random changes, against a vector of bytes for each object.
class ObjectDataModel : public ObjectDataFixture, public testing::WithParamInterface<unsigned> {
 protected:
  static constexpr uint64_t size_max = 900000;
  static constexpr unsigned objects = 5;

  ObjectDataModel() { wide_every = 2; }
  std::string name() { return std::string(1, 'a' + random() % objects); }

  void check(const std::string& name)
  {
    const std::string& bytes = model[name];
    ASSERT_EQ(bytes.size(), object(name)->size) << name;
    const uint64_t offset = interesting(random, size_max);
    const uint64_t length = interesting(random, size_max);
    const uint32_t flags = random() % 4 ? 0 : CEPH_OSD_OP_FLAG_FADVISE_DONTNEED;
    const std::string expected =
      offset < bytes.size() ? bytes.substr(offset, length) : std::string();
    ASSERT_TRUE(expected == read(name, offset, length, flags))
      << name << " " << offset << "~" << length;
    uint64_t position = 0;
    for (const auto& [start, mapped] : fiemap(name)) {
      ASSERT_TRUE(bytes.find_first_not_of('\0', position) >= start);
      position = start + mapped;
    }
    ASSERT_LE(position, bytes.size());
    ASSERT_TRUE(bytes.find_first_not_of('\0', position) == std::string::npos);
  }

  void change(ObjectTxn& txn)
  {
    const std::string n = name();
    std::string& bytes = model[n];
    const uint64_t offset = interesting(random, size_max);
    uint64_t length = interesting(random, size_max - offset);
    const auto grow = [](std::string& s, uint64_t size) { s.resize(std::max(s.size(), size)); };
    switch (random() % 10) {
    default: {
      if (random() % 3)
        length %= 20000;
      const std::string written = pattern(length, random());
      ceph::buffer::list bl;
      bl.append(written);
      ASSERT_EQ(0, data->write(txn, object(n), offset, bl));
      if (length > 0) {
        grow(bytes, offset + length);
        bytes.replace(offset, length, written);
      }
      break;
    }
    case 5:
      ASSERT_EQ(0, data->zero(txn, object(n), offset, length));
      if (length > 0) {
        grow(bytes, offset + length);
        bytes.replace(offset, length, length, '\0');
      }
      break;
    case 6:
      ASSERT_EQ(0, data->truncate(txn, object(n), offset));
      bytes.resize(offset);
      break;
    case 7:
      if (random() % 3 == 0) {
        ASSERT_EQ(0, data->remove(txn, object(n)));
        bytes.clear();
      }
      break;
    case 8: {
      const std::string to = name();
      if (to != n) {
        ASSERT_EQ(0, data->remove(txn, object(to)));
        ASSERT_EQ(0, data->clone_range(txn, object(n), object(to), 0, bytes.size(), 0));
        model[to] = bytes;
      }
      break;
    }
    case 9:
      clone_part(txn, n, offset, length);
    }
  }

  void clone_part(ObjectTxn& txn, const std::string& from, uint64_t offset, uint64_t length)
  {
    const std::string to = name();
    const std::string source = model[from];
    if (offset >= source.size())
      return;
    length = std::min(length, source.size() - offset);
    uint64_t to_offset = interesting(random, size_max - length);
    if (random() % 4) {
      to_offset = std::min(to_offset / block_bytes * block_bytes + offset % block_bytes,
                           size_max - length);
    }
    if (from == to && to_offset < offset + length && offset < to_offset + length)
      return;
    ASSERT_EQ(0, data->clone_range(txn, object(from), object(to), offset, length, to_offset));
    if (length > 0) {
      std::string& target = model[to];
      target.resize(std::max(target.size(), to_offset + length));
      target.replace(to_offset, length, source, offset, length);
    }
  }

  std::mt19937 random;
  std::map<std::string, std::string> model;
};

TEST_P(ObjectDataModel, BehavesLikeAVectorOfBytes)
{
  random.seed(GetParam());
  for (unsigned step = 0; step < 400; ++step) {
    SCOPED_TRACE(step);
    auto txn = begin();
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      change(*txn);
      if (HasFatalFailure())
        return;
    }
    submit(txn);
    check(name());
    if (random() % 20 == 0)
      evict(name());
    if (random() % 50 == 0)
      check_ownership();
    if (random() % 80 == 0) {
      reopen(random() % 2);
      for (const auto& [n, bytes] : model)
        check(n);
    }
    if (HasFatalFailure())
      return;
  }
  for (const auto& [n, bytes] : model) {
    ASSERT_TRUE(bytes == read_all(n)) << n;
    remove(n);
  }
  check_ownership();
  EXPECT_EQ(PoolStats().values, totals.values);
}

// Objects have left memory before each change: it loads what it needs to count right.
TEST_P(ObjectDataModel, StoredBytesEqualARecountAfterEachChange)
{
  random.seed(GetParam() + 1000);
  for (unsigned step = 0; step < 300; ++step) {
    SCOPED_TRACE(step);
    auto txn = begin();
    change(*txn);
    submit(txn);
    engine->drain();
    ASSERT_EQ(stored_bytes_of_rows(), totals[PoolStats::stored_bytes]);
    for (const auto& [n, bytes] : model)
      evict(n);
    if (HasFatalFailure())
      return;
  }
}

// Where the shard of the last block is damaged, the object can still be written elsewhere.
TEST_F(ObjectDataTest, ObjectWhoseLastShardIsDamagedCanGrowAndBeWrittenElsewhere)
{
  const uint64_t size = (1 << 20) - 100;
  object("a")->span_blocks = wide_shard_span_blocks;
  write("a", 0, pattern(size, 1));
  engine->drain();
  auto damaging = std::make_shared<Txn>();
  damaging->put(Family::object, shard_key(object("a")->nid, 3), "not a shard");
  engine->submit(damaging);
  evict("a");
  write("a", 1000, pattern(10000, 2));
  EXPECT_EQ(pattern(10000, 2), read("a", 1000, 10000));
  evict("a");
  write("a", 2 << 20, pattern(10000, 3));
  EXPECT_EQ(pattern(10000, 3), read("a", 2 << 20, 10000));
  evict("a");
  truncate("a", 3 << 20);
  truncate("a", 4096);
  EXPECT_EQ(pattern(size, 1).substr(0, 1000) + pattern(10000, 2).substr(0, 3096), read_all("a"));
  // What the damaged shard held is for fsck to take out.
  EXPECT_EQ(static_cast<int64_t>(size - 191 * block_bytes), totals[PoolStats::stored_bytes]);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ObjectDataModel, testing::Range(1u, 7u));

}  // namespace tablestore
