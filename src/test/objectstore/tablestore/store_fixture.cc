// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/store_fixture.h"

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include "common/Cond.h"
#include "common/ceph_context.h"
#include "common/ceph_time.h"
#include "common/config.h"
#include "common/ceph_crypto.h"
#include "common/errno.h"
#include "global/global_context.h"
#include "include/ceph_hash.h"
#include "include/stringify.h"

namespace fs = std::filesystem;

namespace tablestore_test {

std::string store_type()
{
  const char* type = ::getenv("TABLESTORE_TEST_STORE");
  return type ? type : "tablestore";
}

bool is_tablestore()
{
  return store_type() == "tablestore";
}

std::map<std::string, std::string> test_settings()
{
  return {
    {"enable_experimental_unrecoverable_data_corrupting_features", "*"},
    {"tablestore_log_size", "64M"},
    {"tablestore_segment_size", "16M"},
    {"tablestore_capacity", "4G"},
    {"tablestore_cache_size", "64M"},
    {"tablestore_table_memtable_size", "8M"},
    {"tablestore_prepare_rate", "20M"},
    {"tablestore_stock_size", "0"},
    {"bluestore_block_size", "4294967296"},
    {"bluestore_fsck_on_mkfs", "false"},
    {"bluestore_fsck_on_mount", "false"},
    {"bluestore_fsck_on_umount", "false"},
    {"log_to_stderr", "false"},
    {"err_to_stderr", "false"},
    {"log_file", "/dev/null"},
  };
}

namespace {

uint64_t mix(uint64_t x)
{
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

bufferlist content(uint64_t seed, uint64_t length, uint64_t offset)
{
  bufferlist bl;
  if (length == 0)
    return bl;
  const uint64_t stream = mix(seed);
  const uint64_t first = offset / 8;
  const uint64_t end = (offset + length + 7) / 8;
  bufferptr words(ceph::buffer::create_aligned((end - first) * 8, 4096));
  auto* out = reinterpret_cast<uint64_t*>(words.c_str());
  for (uint64_t i = first; i < end; ++i)
    *out++ = mix(stream + i);
  bl.append(bufferptr(words, offset % 8, length));
  return bl;
}

bufferlist to_bl(const std::string& s)
{
  bufferlist bl;
  bl.append(s);
  return bl;
}

bufferlist zeros(uint64_t length)
{
  bufferlist bl;
  bl.append_zero(length);
  return bl;
}

::testing::AssertionResult same(const bufferlist& expected, const bufferlist& actual)
{
  if (expected.contents_equal(actual))
    return ::testing::AssertionSuccess();
  auto failure = ::testing::AssertionFailure();
  if (expected.length() != actual.length())
    failure << "expected " << expected.length() << " bytes, found " << actual.length() << "; ";
  const std::string e = expected.to_str();
  const std::string a = actual.to_str();
  const auto [at, other] = std::mismatch(e.begin(), e.begin() + std::min(e.size(), a.size()),
                                         a.begin());
  const size_t where = at - e.begin();
  return failure << "they differ from byte " << where << " on, expected "
                 << std::hex << (where < e.size() ? int(uint8_t(e[where])) : -1) << ", found "
                 << (where < a.size() ? int(uint8_t(a[where])) : -1) << std::dec;
}

coll_t pg(int64_t pool, uint32_t ps)
{
  return coll_t(spg_t(pg_t(ps, pool), shard_id_t::NO_SHARD));
}

ghobject_t object(const std::string& name, int64_t pool, uint32_t hash)
{
  return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, hash, pool, ""));
}

ghobject_t object(const std::string& name, int64_t pool)
{
  return object(name, pool, ceph_str_hash_rjenkins(name.data(), name.size()));
}

ghobject_t temp_object(const std::string& name, int64_t pool, uint32_t hash)
{
  return object(name, hobject_t::get_temp_pool(pool), hash);
}

std::unique_ptr<ObjectStore> make_store(const std::string& type, const std::string& dir)
{
  return ObjectStore::create(g_ceph_context, type, dir);
}

std::string make_test_dir()
{
  std::string name = fs::current_path().string() + "/tablestore_test.XXXXXX";
  if (!::mkdtemp(name.data()))
    throw std::runtime_error("cannot make a directory for a test: " + cpp_strerror(errno));
  return name;
}

std::map<std::string, std::string> snapshot_of(const std::string& dir)
{
  std::map<std::string, std::string> files;
  for (auto p = fs::recursive_directory_iterator(dir); p != fs::recursive_directory_iterator();
       ++p) {
    const auto& entry = *p;
    const std::string path = entry.path().string();
    if (entry.path().filename() == "table")
      p.disable_recursion_pending();
    if (!entry.is_regular_file()) {
      files[path] = "no file";
      continue;
    }
    std::ifstream in(path, std::ios::binary);
    ceph::crypto::SHA256 sha;
    std::vector<char> chunk(MiB);
    while (in.read(chunk.data(), chunk.size()) || in.gcount() > 0)
      sha.Update(reinterpret_cast<const unsigned char*>(chunk.data()), in.gcount());
    unsigned char digest[CEPH_CRYPTO_SHA256_DIGESTSIZE];
    sha.Final(digest);
    files[path].assign(reinterpret_cast<char*>(digest), sizeof(digest));
  }
  return files;
}

bool eventually(const std::function<bool()>& condition)
{
  const auto end = ceph::mono_clock::now() + std::chrono::minutes(5);
  while (!condition()) {
    if (ceph::mono_clock::now() > end)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

void queue(ObjectStore& store, Handle& ch, Transaction&& t)
{
  EXPECT_EQ(0, store.queue_transaction(ch, std::move(t)));
}

void commit(ObjectStore& store, Handle& ch, Transaction&& t)
{
  C_SaferCond durable;
  t.register_on_commit(&durable);
  queue(store, ch, std::move(t));
  EXPECT_EQ(0, durable.wait());
}

void wait_durable(Handle& ch)
{
  C_SaferCond durable;
  if (!ch->flush_commit(&durable)) {
    EXPECT_EQ(0, durable.wait());
  }
}

void StoreFixture::SetUp()
{
  make_and_mount();
}

void StoreFixture::make_and_mount()
{
  dir = make_test_dir();
  store = new_store();
  ASSERT_TRUE(store) << "no store of type " << store_type();
  store->set_cache_shards(2);
  ASSERT_EQ(0, store->mkfs());
  ASSERT_EQ(0, store->mount());
  mounted = true;
}

void StoreFixture::TearDown()
{
  if (mounted)
    umount();
  if (store && expect_clean && !HasFatalFailure()) {
    const int errors = store->fsck(true);
    EXPECT_TRUE(errors == 0 || errors == -EOPNOTSUPP) << "fsck found " << errors;
  }
  store.reset();
  auto& conf = g_ceph_context->_conf;
  for (auto p = saved_settings.rbegin(); p != saved_settings.rend(); ++p)
    conf.set_val_or_die(p->first, p->second);
  conf.apply_changes(nullptr);
  std::error_code ignored;
  if (!HasFailure() || !::getenv("TABLESTORE_TEST_KEEP"))
    fs::remove_all(dir, ignored);
}

void StoreFixture::set(const std::string& option, const std::string& value)
{
  auto& conf = g_ceph_context->_conf;
  std::string before;
  ASSERT_EQ(0, conf.get_val(option, &before)) << option;
  saved_settings.emplace_back(option, before);
  conf.set_val_or_die(option, value);
  conf.apply_changes(nullptr);
}

void StoreFixture::umount()
{
  mounted = false;
  ASSERT_EQ(0, store->umount());
}

void StoreFixture::reopen(bool mount_it)
{
  store.reset();
  store = new_store();
  ASSERT_TRUE(store);
  store->set_cache_shards(2);
  if (!mount_it)
    return;
  ASSERT_EQ(0, store->mount());
  mounted = true;
}

void StoreFixture::remount(std::initializer_list<Handle*> handles)
{
  std::vector<coll_t> cids;
  for (Handle* ch : handles) {
    cids.push_back((*ch)->cid);
    ch->reset();
  }
  umount();
  reopen();
  auto cid = cids.begin();
  for (Handle* ch : handles) {
    *ch = store->open_collection(*cid++);
    ASSERT_TRUE(*ch) << "collection " << *std::prev(cid) << " is gone";
  }
}

Handle StoreFixture::make_collection(const coll_t& cid, int bits)
{
  Handle ch = store->create_new_collection(cid);
  Transaction t;
  t.create_collection(cid, bits);
  queue(ch, std::move(t));
  return ch;
}

void StoreFixture::write(Handle& ch, const ghobject_t& oid, uint64_t offset, const bufferlist& bl)
{
  Transaction t;
  bufferlist copy = bl;
  t.write(ch->cid, oid, offset, copy.length(), copy);
  queue(ch, std::move(t));
}

void StoreFixture::touch(Handle& ch, const ghobject_t& oid)
{
  Transaction t;
  t.touch(ch->cid, oid);
  queue(ch, std::move(t));
}

void StoreFixture::remove(Handle& ch, const ghobject_t& oid)
{
  Transaction t;
  t.remove(ch->cid, oid);
  queue(ch, std::move(t));
}

bufferlist StoreFixture::read(Handle& ch, const ghobject_t& oid, uint64_t offset, uint64_t length)
{
  bufferlist bl;
  const int r = store->read(ch, oid, offset, length, bl);
  EXPECT_EQ(r, r < 0 ? 0 : int(bl.length())) << oid;
  return bl;
}

uint64_t StoreFixture::size_of(Handle& ch, const ghobject_t& oid)
{
  struct stat st = {};
  EXPECT_EQ(0, store->stat(ch, oid, &st)) << oid;
  return st.st_size;
}

std::string StoreFixture::attr(Handle& ch, const ghobject_t& oid, const std::string& name)
{
  bufferptr value;
  const int r = store->getattr(ch, oid, name.c_str(), value);
  return r < 0 ? "error " + stringify(r) : std::string(value.c_str(), value.length());
}

std::map<std::string, std::string> StoreFixture::omap(Handle& ch, const ghobject_t& oid)
{
  bufferlist header;
  std::map<std::string, bufferlist> values;
  EXPECT_EQ(0, store->omap_get(ch, oid, &header, &values)) << oid;
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : values)
    out[key] = value.to_str();
  return out;
}

std::string StoreFixture::omap_header(Handle& ch, const ghobject_t& oid)
{
  bufferlist header;
  EXPECT_EQ(0, store->omap_get_header(ch, oid, &header)) << oid;
  return header.to_str();
}

std::vector<ghobject_t> StoreFixture::list(Handle& ch)
{
  std::vector<ghobject_t> ls;
  ghobject_t next;
  EXPECT_EQ(0, store->collection_list(ch, ghobject_t(), ghobject_t::get_max(), INT_MAX, &ls,
                                      &next));
  EXPECT_TRUE(next.is_max());
  return ls;
}

}  // namespace tablestore_test
