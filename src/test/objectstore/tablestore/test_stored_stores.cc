// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Small stores that earlier releases have written, in stores/: this program reads the same from
// them, and goes on. How one is made: stores/README.md.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include <unistd.h>

#include "common/ceph_crypto.h"
#include "test/objectstore/tablestore/child_program.h"
#include "test/objectstore/tablestore/collection_model.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;
namespace fs = std::filesystem;

namespace {

std::string digest(const bufferlist& bl)
{
  ceph::crypto::SHA256 sha;
  for (const auto& piece : bl.buffers())
    sha.Update(reinterpret_cast<const unsigned char*>(piece.c_str()), piece.length());
  unsigned char bytes[CEPH_CRYPTO_SHA256_DIGESTSIZE];
  sha.Final(bytes);
  std::ostringstream text;
  for (unsigned i = 0; i < 8; ++i)
    text << std::hex << (bytes[i] >> 4) << (bytes[i] & 15);
  return text.str();
}

void describe_object(ObjectStore& store, Handle& ch, const ghobject_t& oid, std::ostream& out)
{
  struct stat st;
  bufferlist data, header;
  ASSERT_EQ(0, store.stat(ch, oid, &st)) << oid;
  ASSERT_EQ(st.st_size, store.read(ch, oid, 0, 0, data)) << oid;
  out << "  " << oid << " size " << st.st_size << " data " << digest(data);
  std::map<std::string, bufferptr, std::less<>> attrs;
  ASSERT_EQ(0, store.getattrs(ch, oid, attrs)) << oid;
  for (const auto& [name, value] : attrs) {
    bufferlist bl;
    bl.append(value);
    out << " attr " << name << "=" << digest(bl);
  }
  std::map<std::string, bufferlist> rows;
  ASSERT_EQ(0, store.omap_get(ch, oid, &header, &rows)) << oid;
  if (header.length())
    out << " header " << digest(header);
  for (const auto& [key, value] : rows)
    out << " omap " << key << "=" << digest(value);
  out << "\n";
}

/// All that a store has, as text: what is compared.
std::string description_of(ObjectStore& store)
{
  std::ostringstream out;
  std::vector<coll_t> collections;
  EXPECT_EQ(0, store.list_collections(collections));
  std::sort(collections.begin(), collections.end());
  for (const coll_t& cid : collections) {
    Handle ch = store.open_collection(cid);
    out << cid << " bits " << store.collection_bits(ch) << "\n";
    std::vector<ghobject_t> objects;
    EXPECT_EQ(0, store.collection_list(ch, ghobject_t(), ghobject_t::get_max(), INT_MAX, &objects,
                                       nullptr));
    for (const ghobject_t& oid : objects)
      describe_object(store, ch, oid, out);
  }
  return out.str();
}

void add(Transaction& t, const coll_t& cid, const ghobject_t& oid, uint64_t offset, uint64_t length)
{
  bufferlist bl = content(length, length, offset);
  t.write(cid, oid, offset, length, bl);
}

ghobject_t snapshot_of(ghobject_t head, snapid_t snap)
{
  head.hobj.snap = snap;
  return head;
}

/// One of everything that has a form of its own on disk.
Transaction of_all_kinds(const coll_t& cid, int64_t pool)
{
  Transaction t;
  const auto oid = [&](const std::string& name) { return object(name, pool, 8); };
  add(t, cid, oid("inline"), 0, 11);
  add(t, cid, oid("block"), 0, 4096);
  add(t, cid, oid("odd"), 0, 10000);
  add(t, cid, oid("shards"), 0, 270001);
  add(t, cid, oid("hole"), 300000, 5000);
  add(t, cid, oid("overwritten"), 0, 30000);
  add(t, cid, oid("overwritten"), 5000, 3000);
  t.truncate(cid, oid("overwritten"), 25000);
  t.zero(cid, oid("overwritten"), 8192, 4096);
  add(t, cid, oid("head"), 0, 60000);
  t.clone(cid, oid("head"), snapshot_of(oid("head"), 1));
  add(t, cid, oid("head"), 4096, 20000);
  t.clone(cid, oid("head"), snapshot_of(oid("head"), 2));
  add(t, cid, oid("head"), 40000, 5000);
  t.touch(cid, oid("empty"));
  ghobject_t generation = oid("generation");
  generation.generation = 7;
  add(t, cid, generation, 0, 3000);
  add(t, cid, object("~name!#\x01 of\xff bytes", pool, 8), 0, 17);
  bufferlist value = content(1, 500), header = to_bl("a header");
  t.setattr(cid, oid("odd"), "_", value);
  t.setattr(cid, oid("odd"), "snapset", header);
  t.omap_setheader(cid, oid("empty"), header);
  std::map<std::string, bufferlist> rows{{"a", value}, {"b", header}, {"", value}};
  t.omap_setkeys(cid, oid("empty"), rows);
  t.omap_rmkey(cid, oid("empty"), "b");
  t.set_alloc_hint(cid, oid("shards"), 4 * MiB, 4 * MiB,
                   CEPH_OSD_ALLOC_HINT_FLAG_SEQUENTIAL_WRITE);
  for (unsigned n = 0; n < 100; ++n) {   // alike, so that the log compresses them
    t.touch(cid, oid("alike " + std::to_string(n)));
    t.setattr(cid, oid("alike " + std::to_string(n)), "_", value);
  }
  add(t, cid, oid("removed"), 0, 30000);
  t.remove(cid, oid("removed"));
  return t;
}

/// A half that is in the table, and one that is in the log alone: the process ends as by kill -9.
int write_stored(const std::string& dir, int)
{
  const std::string inside = dir + "/store";
  fs::create_directories(inside);
  auto store = make_store("tablestore", inside);
  if (store->mkfs() < 0 || store->mount() < 0)
    return 1;
  for (const int64_t pool : {1, 2}) {
    const coll_t cid = pg(pool);
    Handle ch = store->create_new_collection(cid);
    Transaction t;
    t.create_collection(cid, pool == 2 ? 3 : 0);
    commit(*store, ch, std::move(t));
    commit(*store, ch, of_all_kinds(cid, pool));
    // Its names belong to no placement group in particular.
    CollectionModel model(cid, pool, 17, 20000);
    for (unsigned i = 0; pool == 1 && i < 40; ++i)
      commit(*store, ch, model.next());
    ch.reset();
    if (pool == 1 && (store->umount() < 0 || store->mount() < 0))
      return 1;
  }
  std::ofstream(dir + "/contents") << description_of(*store);
  ::_exit(0);
}
const ChildProgram write_stored_program{"write-stored", &write_stored};

std::vector<std::string> stored()
{
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(__FILE__).parent_path() / "stores"))
    if (entry.path().extension() == ".xz")
      names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class StoredStores : public StoreFixture, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override
  {
    place = make_test_dir();
    const auto tar = fs::path(__FILE__).parent_path() / "stores" / GetParam();
    ASSERT_EQ(0, ::system(("tar -C " + place + " -xSf " + tar.string()).c_str())) << tar;
    dir = place + "/store";
    std::ifstream in(place + "/contents");
    contents.assign(std::istreambuf_iterator<char>(in), {});
    reopen();
  }
  void TearDown() override
  {
    StoreFixture::TearDown();
    fs::remove_all(place);
  }

  std::string place, contents;
};

TEST_P(StoredStores, HoldWhatTheyHeldWhenTheyWereWritten)
{
  ASSERT_FALSE(contents.empty());
  EXPECT_EQ(contents, description_of(*store));
  remount();
  EXPECT_EQ(contents, description_of(*store));
}

TEST_P(StoredStores, GoOnBeingWritten)
{
  const coll_t cid = pg(1);
  Handle ch = store->open_collection(cid);
  ASSERT_TRUE(ch);
  commit(ch, of_all_kinds(cid, 1));
  write(ch, object("new", 1, 8), 0, content(5, 300000));
  for (const ghobject_t& oid : list(ch))
    if (oid.hobj.is_snap())
      remove(ch, oid);
  remount({&ch});
  EXPECT_TRUE(same(content(5, 300000), read(ch, object("new", 1, 8))));
}

INSTANTIATE_TEST_SUITE_P(Of, StoredStores, ::testing::ValuesIn(stored()),
                         [](const auto& info) {
                           std::string name;
                           for (char c : info.param.substr(0, info.param.find(".tar")))
                             name += std::isalnum(c) ? c : '_';
                           return name;
                         });

}  // namespace
