// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include "test/objectstore/tablestore/object_data_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include "global/global_context.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/rows/keys.h"

namespace tablestore {

namespace {

/// More than any operation of these tests needs.
constexpr uint64_t reservation = 24 << 20;

ceph::buffer::list to_bl(const std::string& s)
{
  ceph::buffer::list bl;
  bl.append(s);
  return bl;
}

/// Lets go of its objects when it is applied.
class AppliedTxn : public ObjectTxn {
 public:
  void applied() noexcept override { unpin(); }
};

ghobject_t oid_of(const std::string& name, int64_t pool)
{
  return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, 1, pool, ""));
}

}  // namespace

std::string pattern(uint64_t length, uint64_t seed)
{
  std::string s(length, '\0');
  uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
  for (char& c : s) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    c = static_cast<char>(x | 1);  // never a zero
  }
  return s;
}

void ObjectDataFixture::SetUp()
{
  EngineFixture::SetUp();
  format();
  open();
  open_layers();
}

void ObjectDataFixture::TearDown()
{
  close_layers();
  EngineFixture::TearDown();
}

void ObjectDataFixture::open_layers()
{
  cache = std::make_unique<DataCache>(16 << 20);
  references = std::make_unique<ReferenceMaps>(g_ceph_context, *engine);
  logger = make_perf_counters(g_ceph_context);
  spurious_reads =
    std::make_unique<SpuriousReads>(g_ceph_context, store_options, *logger, troubles,
                                    std::chrono::minutes(10));
  slow_ops = std::make_unique<SlowOps>(g_ceph_context, store_options, *logger);
  data = std::make_unique<ObjectData>(
    ObjectData::Parts{g_ceph_context, *engine, *references, *cache, *spurious_reads, *slow_ops,
                      *logger},
    inline_max);
}

void ObjectDataFixture::close_layers()
{
  if (engine)
    engine->drain();
  data.reset();
  slow_ops.reset();
  spurious_reads.reset();
  if (logger)
    remove_perf_counters(g_ceph_context, std::exchange(logger, nullptr));
  references.reset();
  cache.reset();
}

void ObjectDataFixture::reopen(bool crash)
{
  close_layers();
  std::set<std::string> names;
  for (const auto& [name, o] : onodes)
    names.insert(name);
  onodes.clear();
  if (crash)
    crash_and_open();
  else
    close_and_open();
  open_layers();
  for (const std::string& name : names)
    object(name);
}

OnodeRef ObjectDataFixture::object(const std::string& name)
{
  OnodeRef& o = onodes[name];
  if (!o) {
    o = std::make_shared<Onode>();
    o->oid = oid_of(name, pool);
    o->key = onode_key(o->oid);
    if (const auto row = get(Family::object, o->key)) {
      o->decode(*row);
    } else {
      o->nid = next_nid++;
      if (wide_every && o->nid % wide_every == 0)
        o->span_blocks = wide_shard_span_blocks;
      o->omap_pool = pool;
    }
    o->exists = true;
  }
  return o;
}

void ObjectDataFixture::evict(const std::string& name)
{
  engine->drain();
  // one without a row is new: it takes a new number then
  onodes.erase(name);
  object(name);
  references->trim();
}

std::shared_ptr<ObjectTxn> ObjectDataFixture::begin()
{
  auto txn = std::make_shared<AppliedTxn>();
  const Status s = engine->reserve(reservation);
  EXPECT_TRUE(s.ok()) << s.what();
  txn->reserved_bytes = reservation;
  txn->sequencer = this;
  return txn;
}

void ObjectDataFixture::submit(std::shared_ptr<ObjectTxn> txn)
{
  for (const OnodeRef& o : txn->touched_onodes) {
    ASSERT_TRUE(o->dirty);
    data->write_out(*txn, o);
    txn->put(Family::object, o->key, o->encode());
    o->dirty = false;
  }
  for (const auto& map : txn->dirty_reference_maps)
    references->write_out(*txn, *map);
  for (const auto& [p, delta] : txn->pool_deltas) {
    ASSERT_EQ(pool, p);
    for (size_t i = 0; i < delta.values.size(); ++i)
      totals.values[i] += delta.values[i];
  }
  engine->unreserve(txn->reserved_bytes);
  txn->reserved_bytes = 0;
  engine->submit(std::move(txn));
}

void ObjectDataFixture::write(const std::string& name, uint64_t offset, const std::string& bytes)
{
  auto txn = begin();
  ASSERT_EQ(0, data->write(*txn, object(name), offset, to_bl(bytes)));
  submit(txn);
}

void ObjectDataFixture::zero(const std::string& name, uint64_t offset, uint64_t length)
{
  auto txn = begin();
  ASSERT_EQ(0, data->zero(*txn, object(name), offset, length));
  submit(txn);
}

void ObjectDataFixture::truncate(const std::string& name, uint64_t size)
{
  auto txn = begin();
  ASSERT_EQ(0, data->truncate(*txn, object(name), size));
  submit(txn);
}

void ObjectDataFixture::remove(const std::string& name)
{
  auto txn = begin();
  ASSERT_EQ(0, data->remove(*txn, object(name)));
  submit(txn);
}

void ObjectDataFixture::clone_range(const std::string& from, const std::string& to,
                                    uint64_t from_offset, uint64_t length, uint64_t to_offset)
{
  auto txn = begin();
  ASSERT_EQ(0, data->clone_range(*txn, object(from), object(to), from_offset, length, to_offset));
  submit(txn);
}

std::string ObjectDataFixture::read(const std::string& name, uint64_t offset, uint64_t length,
                                    uint32_t flags)
{
  ceph::buffer::list out;
  const int r = data->read(object(name), offset, length, out, flags);
  EXPECT_EQ(r, static_cast<int>(out.length()));
  return out.to_str();
}

std::string ObjectDataFixture::read_all(const std::string& name)
{
  return read(name, 0, object(name)->size);
}

std::map<uint64_t, uint64_t> ObjectDataFixture::fiemap(const std::string& name, uint64_t offset,
                                                       uint64_t length)
{
  std::map<uint64_t, uint64_t> mapped;
  EXPECT_EQ(0, data->fiemap(object(name), offset, length, mapped));
  return mapped;
}

std::vector<MappedExtent> ObjectDataFixture::extents(const std::string& name)
{
  std::vector<MappedExtent> all;
  const OnodeRef o = object(name);
  EXPECT_EQ(0, data->load_all(o));
  for (const auto& [index, shard] : o->shards)
    all.insert(all.end(), shard.extents.begin(), shard.extents.end());
  return all;
}

uint64_t ObjectDataFixture::mapped_bytes(const Onode& o)
{
  uint64_t bytes = 0;
  for (const auto& [index, shard] : o.shards) {
    for (const MappedExtent& e : shard.extents) {
      const uint64_t start = index * o.span_bytes() + e.logical_block * block_bytes;
      bytes += std::min(o.size, start + e.physical.length_bytes()) - start;
    }
  }
  return bytes;
}

int64_t ObjectDataFixture::stored_bytes_of_rows()
{
  int64_t bytes = 0;
  const auto [first, last] = all_onodes_range();
  const auto p = engine->iterate(Family::object, first, last);
  for (p->seek_to_first(); p->valid(); p->next()) {
    auto o = std::make_shared<Onode>();
    o->decode(p->value());
    EXPECT_EQ(0, data->load_all(o));
    bytes += o->inline_data ? o->size : mapped_bytes(*o);
  }
  return bytes;
}

unsigned ObjectDataFixture::rows(Family family, const std::pair<std::string, std::string>& range)
{
  unsigned count = 0;
  const auto p = engine->iterate(family, range.first, range.second);
  for (p->seek_to_first(); p->valid(); p->next())
    ++count;
  return count;
}

void ObjectDataFixture::check_ownership()
{
  engine->drain();
  std::map<std::pair<uint32_t, uint32_t>, unsigned> owners;  // of unshared blocks
  std::map<std::pair<uint32_t, uint32_t>, unsigned> sharers;
  PoolStats expected;
  for (const auto& [name, o] : onodes) {
    for (const MappedExtent& e : extents(name)) {
      for (uint32_t i = 0; i < e.physical.blocks; ++i)
        ++(e.shared ? sharers : owners)[{e.physical.container, e.physical.block + i}];
    }
    expected[PoolStats::stored_bytes] += o->inline_data ? o->size : mapped_bytes(*o);
    expected[PoolStats::inline_bytes] += o->inline_data ? o->size : 0;
  }
  const auto [first, last] = reference_maps_range();
  const auto p = engine->iterate(Family::super, first, last);
  for (p->seek_to_first(); p->valid(); p->next()) {
    ReferenceMap map;
    ASSERT_TRUE(decode_reference_map_key(p->key(), &map.container, &map.first_block));
    map.decode(p->value());
    for (const auto& [block, run] : map.runs) {
      for (uint32_t i = 0; i < run.blocks; ++i) {
        const std::pair<uint32_t, uint32_t> where{map.container, block + i};
        ASSERT_EQ(run.references, sharers[where]) << where.first << ":" << where.second;
        sharers.erase(where);
        ASSERT_EQ(1u, ++owners[where]);
      }
    }
  }
  ASSERT_TRUE(sharers.empty());
  std::set<std::pair<uint32_t, uint32_t>> by_log;
  for (const auto& [container, bitmap] : engine->owned_blocks()) {
    for (uint32_t block = 0; block < bitmap.blocks(); ++block) {
      if (bitmap.test(block))
        by_log.insert({container, block});
    }
  }
  for (const auto& [where, count] : owners) {
    ASSERT_EQ(1u, count) << where.first << ":" << where.second;
    ASSERT_TRUE(by_log.count(where)) << where.first << ":" << where.second;
  }
  ASSERT_EQ(owners.size(), by_log.size());
  expected[PoolStats::allocated_bytes] = owners.size() * block_bytes;
  ASSERT_EQ(expected.values, totals.values);
}

void ObjectDataFixture::damage(const Extent& extent, uint64_t offset)
{
  // containers/<class>/<n>
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() ||
        entry.path().parent_path().parent_path().filename() != "containers" ||
        std::strtoul(entry.path().filename().c_str(), nullptr, 10) != extent.container)
      continue;
    const int fd = ::open(entry.path().c_str(), O_RDWR);
    ASSERT_GE(fd, 0);
    char c;
    const off_t at = extent.offset_bytes() + offset;
    ASSERT_EQ(1, ::pread(fd, &c, 1, at));
    c ^= 1;
    ASSERT_EQ(1, ::pwrite(fd, &c, 1, at));
    ASSERT_EQ(0, ::fsync(fd));
    ::close(fd);
    return;
  }
  FAIL() << "container " << extent.container << " not found in " << directory;
}

}  // namespace tablestore
