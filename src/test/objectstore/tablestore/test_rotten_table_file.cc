// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// A file of the table rots: the store serves everything else, and a repair leaves objects whole or
// missing.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include <unistd.h>

#include "global/global_context.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"
#include "os/tablestore/rows/keys.h"
#include "rocksdb/file_system.h"
#include "rocksdb/sst_file_reader.h"
#include "test/objectstore/tablestore/child_program.h"
#include "test/objectstore/tablestore/flaky_disk.h"
#include "test/objectstore/tablestore/store_fixture.h"
#include "test/objectstore/tablestore/wrapped_surroundings.h"

using namespace tablestore;
using namespace tablestore_test;
namespace fs = std::filesystem;

class StoreRottenTableFile : public StoreFixture {
 protected:
  static constexpr unsigned count = 1000;

  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "knows tablestore's files";
    set("tablestore_table_options", "compression=kNoCompression");
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }
  static ghobject_t oid(unsigned i) { return object("object" + std::to_string(i)); }
  static std::string text(unsigned i)
  {
    return "<" + std::to_string(i) + ">" + std::string(100, char('a' + i % 26));
  }
  static std::map<std::string, std::string> keys_of(unsigned i)
  {
    std::map<std::string, std::string> keys;
    for (int k = 0; k < 10; ++k)
      keys["key" + std::to_string(k)] = "omap" + text(i);
    return keys;
  }
  void make_objects(bool with_omap)
  {
    for (unsigned i = 0; i < count; ++i) {
      Transaction t;
      t.touch(ch->cid, oid(i));
      auto attr = to_bl("attr" + text(i));
      t.setattr(ch->cid, oid(i), "a", attr);
      if (with_omap) {
        std::map<std::string, bufferlist> keys;
        for (const auto& [key, value] : keys_of(i))
          keys[key] = to_bl(value);
        t.omap_setkeys(ch->cid, oid(i), keys);
      }
      queue(ch, std::move(t));
    }
  }
  /// The table file that has those bytes loses its end; the store is not mounted.
  void cut(const std::string& bytes)
  {
    for (const auto& entry : fs::directory_iterator(dir + "/table")) {
      if (entry.path().extension() != ".sst")
        continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string all(std::istreambuf_iterator<char>(file), {});
      if (all.find(bytes) == std::string::npos)
        continue;
      fs::resize_file(entry.path(), all.size() / 2);
      return;
    }
    FAIL() << "the bytes are in no file of the table";
  }
  using Place = std::function<uint64_t(const std::string& path, size_t of_bytes)>;
  /// Where those bytes are in the table, or elsewhere in their file; the store is not mounted.
  void let_rot(const std::string& bytes,
               const Place& place = [](const std::string&, size_t at) { return at; })
  {
    for (const auto& entry : fs::directory_iterator(dir + "/table")) {
      if (entry.path().extension() != ".sst")
        continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      const std::string all(std::istreambuf_iterator<char>(file), {});
      size_t at = all.find(bytes);
      if (at == std::string::npos)
        continue;
      at = place(entry.path(), at);
      file.clear();
      file.seekp(at);
      file.put(char(all[at] ^ 1));
      ASSERT_TRUE(file.good());
      return;
    }
    FAIL() << "the bytes are in no file of the table";
  }
  /// The top level of the filter of the file that has those bytes.
  void let_filter_rot(const std::string& bytes)
  {
    ASSERT_NO_FATAL_FAILURE(let_rot(bytes, [](const std::string& path, size_t) {
      rocksdb::SstFileReader reader{rocksdb::Options()};
      EXPECT_TRUE(reader.Open(path).ok());
      const auto properties = reader.GetTableProperties();
      return properties->data_size + properties->filter_size - 20;
    }));
  }
  void rot_and_open(const std::string& bytes)
  {
    ch.reset();
    umount();
    ASSERT_NO_FATAL_FAILURE(let_rot(bytes));
    expect_clean = false;
    ASSERT_NO_FATAL_FAILURE(open());
  }
  void open()
  {
    ASSERT_NO_FATAL_FAILURE(reopen());
    ch = store->open_collection(pg(1));
    ASSERT_TRUE(ch);
  }
  /// Leaves as errors that many objects that scrub has to bring back.
  void repair(int* lost_objects)
  {
    ch.reset();
    umount();
    EXPECT_NE(0, store->fsck(true));
    EXPECT_GT(store->repair(false), 0);
    *lost_objects = store->repair(false);
    EXPECT_EQ(*lost_objects, store->fsck(true));
    ASSERT_NO_FATAL_FAILURE(open());
    expect_clean = *lost_objects == 0;
  }
  /// 0, -ENOENT, -EIO; what is there is as it was.
  int look_at(unsigned i)
  {
    bufferptr value;
    const int r = store->getattr(ch, oid(i), "a", value);
    if (r == 0) {
      EXPECT_EQ("attr" + text(i), std::string(value.c_str(), value.length()));
    }
    return r;
  }
  std::set<unsigned> those_with(int error)
  {
    std::set<unsigned> found;
    for (unsigned i = 0; i < count; ++i) {
      if (look_at(i) == error)
        found.insert(i);
    }
    return found;
  }
  /// In pieces, as a backfill lists. -EIO says that something is missing, in whatever piece.
  std::set<ghobject_t> listed(int expected_result)
  {
    std::vector<ghobject_t> all;
    int result = 0;
    for (ghobject_t next; !next.is_max();) {
      std::vector<ghobject_t> some;
      const int r = store->collection_list(ch, next, ghobject_t::get_max(), 100, &some, &next);
      all.insert(all.end(), some.begin(), some.end());
      EXPECT_TRUE(r == 0 || r == -EIO);
      result = std::min(result, r);
      if (r != 0 && r != -EIO)
        break;
    }
    EXPECT_EQ(expected_result, result);
    return {all.begin(), all.end()};
  }
  tablestore::Engine& engine() { return static_cast<TableStore&>(*store).parts().engine; }
  /// In the table, and readable.
  size_t rows(Family family, const std::string& first, const std::string& end)
  {
    engine().drain();
    size_t count = 0;
    auto it = engine().iterate(family, first, end, AtDamage::step_over);
    for (it->seek(first); it->valid(); it->next())
      ++count;
    return count;
  }
  uint64_t nid_of(const ghobject_t& oid)
  {
    std::string row;
    engine().drain();
    EXPECT_TRUE(*engine().get(Family::object, onode_key(oid), &row));
    ObjectContents object;
    object.decode(row);
    return object.nid;
  }
  /// With so many keys that its omap is in many blocks of the table.
  static constexpr unsigned many = 500;
  static std::string many_text(unsigned k) { return "many" + text(k); }
  void set_many_keys(const ghobject_t& oid)
  {
    Transaction t;
    std::map<std::string, bufferlist> keys;
    for (unsigned k = 0; k < many; ++k)
      keys["key" + std::to_string(1000 + k)] = to_bl(many_text(k));
    t.touch(ch->cid, oid);
    t.omap_setkeys(ch->cid, oid, keys);
    commit(ch, std::move(t));
  }
  int omap_result(const ghobject_t& oid)
  {
    bufferlist header;
    std::map<std::string, bufferlist> keys;
    return store->omap_get(ch, oid, &header, &keys);
  }
  bool has_alert(const std::string& name)
  {
    osd_alert_list_t alerts;
    store_statfs_t statfs;
    EXPECT_EQ(0, store->statfs(&statfs, &alerts));
    return alerts.contains("TABLESTORE_" + name);
  }
  void settle() { static_cast<TableStore&>(*store).parts().lost_names.settle(); }
  /// As a push of recovery does.
  void bring_back(unsigned i)
  {
    Transaction t;
    t.remove(ch->cid, oid(i));
    t.touch(ch->cid, oid(i));
    auto attr = to_bl("attr" + text(i));
    t.setattr(ch->cid, oid(i), "a", attr);
    commit(ch, std::move(t));
  }
  void expect_errors_of_all_reads(const ghobject_t& oid)
  {
    struct stat st;
    bufferlist data;
    std::map<std::string, bufferptr, std::less<>> attrs;
    std::map<uint64_t, uint64_t> mapped;
    EXPECT_EQ(-EIO, store->stat(ch, oid, &st));
    EXPECT_EQ(-EIO, store->read(ch, oid, 0, 0, data));
    EXPECT_EQ(-EIO, store->getattrs(ch, oid, attrs));
    EXPECT_EQ(-EIO, store->fiemap(ch, oid, 0, 100, mapped));
    EXPECT_EQ(-EIO, omap_result(oid));
    EXPECT_TRUE(store->exists(ch, oid));
  }

  Handle ch;
};

TEST_F(StoreRottenTableFile, ObjectsInARottenBlockAreErrorsUntilTheyAreBroughtBack)
{
  make_objects(false);
  ASSERT_NO_FATAL_FAILURE(rot_and_open("attr" + text(500)));
  const auto lost = those_with(-EIO);
  EXPECT_TRUE(lost.contains(500));
  EXPECT_GT(lost.size(), 4u);
  EXPECT_LT(lost.size(), 60u);
  EXPECT_EQ(count - lost.size(), those_with(0).size());
  EXPECT_TRUE(has_alert("TABLE_DAMAGED"));
  const auto there = listed(-EIO);
  EXPECT_FALSE(there.contains(oid(500)));
  EXPECT_GE(there.size(), count - lost.size());
  for (unsigned i = 0; i < count; ++i)
    EXPECT_TRUE(lost.contains(i) || there.contains(oid(i)));
  // A repair gives up the rows, and remembers whose they may have been; so does the next one.
  for (int round = 0; round < 2; ++round) {
    int lost_objects = 0;
    if (round == 0) {
      ASSERT_NO_FATAL_FAILURE(repair(&lost_objects));
    } else {
      ch.reset();
      umount();
      EXPECT_EQ(0, store->repair(false));
      ASSERT_NO_FATAL_FAILURE(open());
    }
    EXPECT_EQ(0, lost_objects);
    EXPECT_FALSE(has_alert("TABLE_DAMAGED"));
    EXPECT_TRUE(has_alert("OBJECTS_LOST"));
    EXPECT_EQ(lost, those_with(-EIO));
    EXPECT_EQ(count - lost.size(), those_with(0).size());
    EXPECT_EQ(count - lost.size(), listed(-EIO).size());
    expect_errors_of_all_reads(oid(500));
  }
  for (const unsigned i : lost)
    bring_back(i);
  EXPECT_EQ(count, those_with(0).size());
  EXPECT_EQ(count, listed(-EIO).size());
  settle();
  EXPECT_FALSE(has_alert("OBJECTS_LOST"));
  EXPECT_EQ(count, listed(0).size());
}

/// It helps to find rows, and has none.
TEST_F(StoreRottenTableFile, AFilterThatRotsCostsNoObject)
{
  make_objects(true);
  ch.reset();
  umount();
  ASSERT_NO_FATAL_FAILURE(let_filter_rot("omap" + text(500)));
  expect_clean = false;
  ASSERT_NO_FATAL_FAILURE(open());
  int lost_objects = -1;
  ASSERT_NO_FATAL_FAILURE(repair(&lost_objects));
  EXPECT_EQ(0, lost_objects);
  EXPECT_EQ(count, those_with(0).size());
  for (unsigned i = 0; i < count; ++i)
    EXPECT_EQ(keys_of(i), omap(ch, oid(i))) << i;
}

TEST_F(StoreRottenTableFile, WhatIsDoneToALostObjectIsKnownFromThenOn)
{
  make_objects(false);
  ASSERT_NO_FATAL_FAILURE(rot_and_open("attr" + text(500)));
  const auto lost = those_with(-EIO);
  ASSERT_GT(lost.size(), 4u);
  int lost_objects = 0;
  ASSERT_NO_FATAL_FAILURE(repair(&lost_objects));
  auto p = lost.begin();
  const unsigned written = *p++, removed = *p++, removed_later = *p++, renamed = *p++;
  // It might cut off what the object had.
  write(ch, oid(written), 4096, content(1, 100));
  remove(ch, oid(removed));
  bring_back(removed_later);
  remove(ch, oid(removed_later));
  Transaction t;
  const ghobject_t elsewhere = object("elsewhere", 1, oid(renamed).hobj.get_hash());
  t.collection_move_rename(ch->cid, oid(renamed), ch->cid, elsewhere);
  commit(ch, std::move(t));
  for (int round = 0; round < 3; ++round) {
    struct stat st;
    EXPECT_EQ(-EIO, look_at(written));
    EXPECT_EQ(-ENOENT, look_at(removed));
    EXPECT_EQ(-ENOENT, look_at(removed_later));
    EXPECT_EQ(-ENOENT, look_at(renamed));
    EXPECT_EQ(-EIO, store->stat(ch, elsewhere, &st));
    EXPECT_EQ(-EIO, look_at(*lost.rbegin()));
    if (round == 2)
      break;
    ch.reset();
    umount();
    // Rows that say that an object is lost are errors, and nothing else is.
    EXPECT_EQ(2, round == 0 ? store->fsck(true) : store->repair(false));
    ASSERT_NO_FATAL_FAILURE(open());
  }
  settle();
  EXPECT_EQ(-EIO, look_at(written));
  EXPECT_EQ(-ENOENT, look_at(*lost.rbegin()));
  remove(ch, oid(written));
  remove(ch, elsewhere);
  ASSERT_NO_FATAL_FAILURE(remount({&ch}));
  EXPECT_EQ(lost, those_with(-ENOENT));
  EXPECT_FALSE(has_alert("OBJECTS_LOST"));
  expect_clean = true;
}

TEST_F(StoreRottenTableFile, ACollectionThatIsRemovedTakesItsLostNamesWithIt)
{
  make_objects(false);
  ASSERT_NO_FATAL_FAILURE(rot_and_open("attr" + text(500)));
  const auto lost = those_with(-EIO);
  int lost_objects = 0;
  ASSERT_NO_FATAL_FAILURE(repair(&lost_objects));
  for (unsigned i = 0; i < count; ++i) {
    if (!lost.contains(i))
      remove(ch, oid(i));
  }
  Transaction t;
  t.remove_collection(ch->cid);
  commit(ch, std::move(t));
  ch.reset();
  EXPECT_FALSE(has_alert("OBJECTS_LOST"));
  ch = make_collection(pg(1));
  EXPECT_EQ(count, those_with(-ENOENT).size());
  ASSERT_NO_FATAL_FAILURE(remount({&ch}));
  EXPECT_EQ(count, those_with(-ENOENT).size());
  EXPECT_TRUE(listed(0).empty());
}

// The names of all its objects lie between those of two others, and may have been lost.
TEST_F(StoreRottenTableFile, APlacementGroupIsMadeAmongLostNames)
{
  const ghobject_t low = object("low", 2), high = object("high", 4);
  std::vector<std::pair<Handle, ghobject_t>> made{{make_collection(pg(2)), low},
                                                  {make_collection(pg(4)), high}};
  for (auto& [handle, oid] : made) {
    Transaction t;
    t.touch(handle->cid, oid);
    auto attr = to_bl("attr of " + oid.hobj.oid.name);
    t.setattr(handle->cid, oid, "a", attr);
    queue(handle, std::move(t));
  }
  made.clear();
  ASSERT_NO_FATAL_FAILURE(rot_and_open("attr of high"));
  int lost_objects = 0;
  ASSERT_NO_FATAL_FAILURE(repair(&lost_objects));
  Handle between = store->create_new_collection(pg(3));
  const ghobject_t pgmeta = ghobject_t::make_pgmeta(3, 0, shard_id_t::NO_SHARD);
  Transaction t;
  t.create_collection(pg(3), 0);
  t.touch(pg(3), pgmeta);
  std::map<std::string, bufferlist> keys{{"_info", to_bl("value")}};
  t.omap_setkeys(pg(3), pgmeta, keys);
  commit(between, std::move(t));
  EXPECT_EQ("value", omap(between, pgmeta)["_info"]);
  struct stat st;
  EXPECT_EQ(-EIO, store->stat(between, object("other", 3), &st));
  Handle last = store->open_collection(pg(4));
  EXPECT_EQ(-EIO, store->stat(last, high, &st));
  remove(last, high);
  settle();
}

TEST_F(StoreRottenTableFile, OfPoolStatisticsThoseAreCountedAnewThatCannotBeRead)
{
  constexpr int64_t pools = 200, rotten = 100;
  const auto size_of = [](int64_t pool) { return uint64_t(pool == rotten ? 123457 : 1000 + pool); };
  for (int64_t pool = 2; pool < pools; ++pool) {
    Handle of_pool = make_collection(pg(pool));
    // A sum that is in no row of an object.
    write(of_pool, object("object", pool), 0, content(pool, size_of(pool) - 500));
    write(of_pool, object("another", pool), 0, content(pool, 500));
    wait_durable(of_pool);
  }
  const auto stored = [&](int64_t pool) {
    store_statfs_t stats;
    bool per_pool_omap;
    EXPECT_EQ(0, store->pool_statfs(pool, &stats, &per_pool_omap));
    return uint64_t(stats.data_stored);
  };
  const uint64_t size = size_of(rotten);
  ASSERT_NO_FATAL_FAILURE(
      rot_and_open(std::string(reinterpret_cast<const char*>(&size), sizeof(size))));
  EXPECT_EQ(0u, stored(rotten));
  const auto known = [&] {
    int count = 0;
    for (int64_t pool = 2; pool < pools; ++pool)
      count += stored(pool) == size_of(pool);
    return count;
  };
  const int readable = known();
  EXPECT_GT(readable, 50);
  ch.reset();
  umount();
  // What the first mount has written is what the second finds.
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(readable, known());
  int lost_objects = 0;
  ASSERT_NO_FATAL_FAILURE(repair(&lost_objects));
  EXPECT_EQ(0, lost_objects);
  EXPECT_EQ(pools - 2, known());
}

TEST_F(StoreRottenTableFile, ObjectsThatHaveLostOmapGiveEioAfterARepair)
{
  make_objects(true);
  ASSERT_NO_FATAL_FAILURE(rot_and_open("omap" + text(500)));
  EXPECT_EQ(count, those_with(0).size());
  std::set<unsigned> lost;
  for (unsigned i = 0; i < count; ++i) {
    bufferlist header;
    std::map<std::string, bufferlist> keys;
    const int r = store->omap_get(ch, oid(i), &header, &keys);
    if (r < 0) {
      EXPECT_EQ(-EIO, r);
      lost.insert(i);
    } else {
      EXPECT_EQ(keys_of(i), omap(ch, oid(i)));
    }
  }
  EXPECT_TRUE(lost.contains(500));
  EXPECT_LT(lost.size(), 10u);
  EXPECT_TRUE(has_alert("TABLE_DAMAGED"));
  int lost_objects = 0;
  ASSERT_NO_FATAL_FAILURE(repair(&lost_objects));
  const auto given_up = those_with(-EIO);
  EXPECT_EQ(given_up.size(), size_t(lost_objects));
  EXPECT_LT(given_up.size(), lost.size() + 3);
  for (unsigned i = 0; i < count; ++i) {
    if (given_up.contains(i))
      continue;
    EXPECT_FALSE(lost.contains(i));
    EXPECT_EQ(keys_of(i), omap(ch, oid(i)));
  }
}

TEST_F(StoreRottenTableFile, ARepairGivesUpWhatHasLostOmapHoweverManyBlocksAreRotten)
{
  // More places than anybody wants to read of.
  make_objects(true);
  ch.reset();
  umount();
  expect_clean = false;
  std::set<unsigned> victims;
  for (unsigned i = 10; i < count; i += 40) {
    ASSERT_NO_FATAL_FAILURE(let_rot("omap" + text(i)));
    victims.insert(i);
  }
  ASSERT_NO_FATAL_FAILURE(open());
  int lost_objects = 0;
  ASSERT_NO_FATAL_FAILURE(repair(&lost_objects));
  for (unsigned i = 0; i < count; ++i) {
    if (look_at(i) == 0) {
      EXPECT_FALSE(victims.contains(i)) << i;
      EXPECT_EQ(keys_of(i), omap(ch, oid(i))) << i;
    }
  }
  EXPECT_LT(lost_objects, int(victims.size() * 7));
}

TEST_F(StoreRottenTableFile, ACloneOfOmapThatCannotBeReadAsAWholeLeavesNothing)
{
  const ghobject_t source = object("source", 1, 0x11), copy = object("copy", 1, 0x11);
  set_many_keys(source);
  ASSERT_NO_FATAL_FAILURE(rot_and_open(many_text(250)));
  EXPECT_EQ(-EIO, omap_result(source));
  const std::string behind = omap_range(omap_prefix(1, nid_of(source))).second;
  const std::string end = omap_pool_range(1).second;
  Transaction t;
  t.clone(ch->cid, source, copy);
  t.touch(ch->cid, oid(1));
  commit(ch, std::move(t));
  // All of the transaction but the copy, and of that nothing.
  EXPECT_TRUE(store->exists(ch, oid(1)));
  EXPECT_EQ(-EIO, omap_result(copy));
  struct stat st;
  EXPECT_EQ(-EIO, store->stat(ch, copy, &st));
  EXPECT_EQ(0u, rows(Family::omap, behind, end));
  EXPECT_EQ(0, store->stat(ch, source, &st));
  remove(ch, copy);
  EXPECT_FALSE(store->exists(ch, copy));
}

TEST_F(StoreRottenTableFile, ACollectionGoesWithTheRowsThatCannotBeRead)
{
  set("objectstore_debug_throw_on_failed_txc", "true");
  make_objects(false);
  ASSERT_NO_FATAL_FAILURE(rot_and_open("attr" + text(500)));
  const auto lost = those_with(-EIO);
  // As PG::do_delete_work does.
  for (;;) {
    std::vector<ghobject_t> some;
    ghobject_t next;
    store->collection_list(ch, ghobject_t(), ghobject_t::get_max(), 100, &some, &next);
    if (some.empty())
      break;
    Transaction t;
    for (const ghobject_t& oid : some)
      t.remove(ch->cid, oid);
    queue(ch, std::move(t));
  }
  Transaction t;
  t.remove_collection(ch->cid);
  try {
    store->queue_transaction(ch, std::move(t));
  } catch (int error) {
    FAIL() << "an OSD ends there: " << error;
  }
  EXPECT_FALSE(store->collection_exists(pg(1)));
  ch.reset();
  // A placement group that comes back has nothing of the old one, also where the disk could give it
  // again.
  ch = make_collection(pg(1));
  for (const unsigned i : lost)
    EXPECT_EQ(-ENOENT, look_at(i));
  ch.reset();
  umount();
  EXPECT_GT(store->repair(false), 0);
  EXPECT_EQ(0, store->repair(false));
  ASSERT_NO_FATAL_FAILURE(open());
  // What the table had said of the removal was above the damage, which nobody remembers.
  EXPECT_EQ(lost, those_with(-EIO));
  EXPECT_EQ(count - lost.size(), those_with(-ENOENT).size());
  settle();
  EXPECT_EQ(count, those_with(-ENOENT).size());
  expect_clean = true;
}

TEST_F(StoreRottenTableFile, ACollectionWithObjectsIsNotRemovedThoughSomeCannotBeRead)
{
  set("objectstore_debug_throw_on_failed_txc", "true");
  make_objects(false);
  ASSERT_NO_FATAL_FAILURE(rot_and_open("attr" + text(500)));
  Transaction t;
  t.remove_collection(ch->cid);
  EXPECT_THROW(store->queue_transaction(ch, std::move(t)), int);
  EXPECT_TRUE(store->collection_exists(pg(1)));
  EXPECT_GT(those_with(0).size(), count - 60);
}

// A placement group's own object has its log, which no other OSD has like this: what can be read of
// it stays, and it is never served as if it were whole.
TEST_F(StoreRottenTableFile, ARepairKeepsWhatIsLeftOfAnObjectThatIsTheOsdsOwn)
{
  const ghobject_t pgmeta = ghobject_t::make_pgmeta(1, 0, shard_id_t::NO_SHARD);
  make_objects(false);
  set_many_keys(pgmeta);
  const auto [first, end] = omap_range(omap_prefix(-1, nid_of(pgmeta)));
  ASSERT_EQ(many, rows(Family::omap, first, end));
  ASSERT_NO_FATAL_FAILURE(rot_and_open(many_text(250)));
  ch.reset();
  umount();
  EXPECT_GT(store->repair(false), 1);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(1, store->repair(false));
    EXPECT_EQ(1, store->fsck(true));
    ASSERT_NO_FATAL_FAILURE(open());
    EXPECT_EQ(-EIO, omap_result(pgmeta));
    const size_t left = rows(Family::omap, first, end);
    EXPECT_GT(left, many - 100);
    EXPECT_LT(left, many);
    EXPECT_EQ(count, those_with(0).size());
    ch.reset();
    umount();
  }
  ASSERT_NO_FATAL_FAILURE(open());
  remove(ch, pgmeta);
  wait_durable(ch);
  EXPECT_EQ(0u, rows(Family::omap, first, end));
  expect_clean = true;
}

// Their numbers are behind it, and before the next pool's; so they would lie in the gap that the
// rotten block leaves, if nobody knew where it ends.
TEST_F(StoreRottenTableFile, ARepairGivesUpNoOmapOfObjectsThatAreYoungerThanTheFile)
{
  const ghobject_t old = object("old"), young = object("young");
  set_many_keys(old);
  Handle behind = make_collection(pg(2));
  const ghobject_t other_pool = object("other", 2);
  Transaction t;
  std::map<std::string, bufferlist> keys{{"key", to_bl("value")}};
  t.touch(behind->cid, other_pool);
  t.omap_setkeys(behind->cid, other_pool, keys);
  commit(behind, std::move(t));
  behind.reset();
  ASSERT_NO_FATAL_FAILURE(rot_and_open(many_text(many - 1)));
  Transaction later;
  later.touch(ch->cid, young);
  later.omap_setkeys(ch->cid, young, keys);
  commit(ch, std::move(later));
  ch.reset();
  umount();
  EXPECT_GT(store->repair(false), 1);
  EXPECT_EQ(1, store->repair(false));
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(-EIO, omap_result(old));
  EXPECT_EQ(0, omap_result(young));
}

/// Objects of the OSD's own, whose onodes come first.
class StoreRottenOwnOnodes : public StoreRottenTableFile {
 protected:
  void SetUp() override
  {
    StoreRottenTableFile::SetUp();
    if (!is_tablestore())
      return;
    meta = make_collection(coll_t::meta());
    make_objects(false);
    set_many_keys(pgmeta);
    Transaction t;
    std::map<std::string, bufferlist> keys{{"SNA_1", to_bl("clones")}};
    t.touch(meta->cid, mapper);
    t.omap_setkeys(meta->cid, mapper, keys);
    commit(meta, std::move(t));
    omap_rows = omap_range(omap_prefix(-1, nid_of(pgmeta)));
    const std::vector<ghobject_t> all = list(ch);
    ASSERT_EQ(pgmeta, all[0]);
    beside = attr(ch, all[1], "a");
  }
  void TearDown() override
  {
    meta.reset();
    StoreRottenTableFile::TearDown();
  }
  /// Neither can be read any more.
  void rot_own_onodes()
  {
    meta.reset();
    ASSERT_NO_FATAL_FAILURE(rot_and_open(beside));
    meta = store->open_collection(coll_t::meta());
    EXPECT_EQ(-EIO, omap_result(pgmeta));
    EXPECT_EQ(-EIO, result_of_mapper());
  }
  int result_of_mapper()
  {
    bufferlist header;
    std::map<std::string, bufferlist> keys;
    return store->omap_get(meta, mapper, &header, &keys);
  }
  void repair_own()
  {
    meta.reset();
    int lost_objects = 0;
    ASSERT_NO_FATAL_FAILURE(repair(&lost_objects));
    EXPECT_EQ(0, lost_objects);
    meta = store->open_collection(coll_t::meta());
  }
  size_t own_rows() { return rows(Family::omap, omap_rows.first, omap_rows.second); }

  const ghobject_t pgmeta = ghobject_t::make_pgmeta(1, 0, shard_id_t::NO_SHARD);
  const ghobject_t mapper = object("snapmapper", -1, 0x10);
  std::pair<std::string, std::string> omap_rows;
  std::string beside;   ///< an attribute in the same block
  Handle meta;
};

TEST_F(StoreRottenOwnOnodes, ComeBackByARepairWithAllOfTheirOmap)
{
  ASSERT_NO_FATAL_FAILURE(rot_own_onodes());
  ASSERT_NO_FATAL_FAILURE(repair_own());
  EXPECT_EQ(many, omap(ch, pgmeta).size());
  EXPECT_EQ("clones", omap(meta, mapper)["SNA_1"]);
  EXPECT_EQ(many, own_rows());
  settle();
  EXPECT_EQ(many, omap(ch, pgmeta).size());
}

TEST_F(StoreRottenOwnOnodes, WithoutSecondRowsAreErrorsAndTheirOmapStaysUntilTheLossIsSettled)
{
  auto txn = std::make_shared<Txn>();
  for (const ghobject_t& oid : {pgmeta, mapper})
    txn->erase(Family::super, own_onode_key(onode_key(oid)));
  engine().submit(txn);
  ASSERT_NO_FATAL_FAILURE(rot_own_onodes());
  ASSERT_NO_FATAL_FAILURE(repair_own());
  EXPECT_EQ(-EIO, omap_result(pgmeta));
  EXPECT_TRUE(store->exists(ch, pgmeta));
  // An OSD would make an empty one.
  EXPECT_TRUE(store->exists(meta, mapper));
  EXPECT_EQ(many, own_rows());
  settle();
  EXPECT_FALSE(store->exists(meta, mapper));
  ch.reset();
  meta.reset();
  umount();
  EXPECT_GT(store->fsck(false), 0);
  EXPECT_EQ(0, store->repair(false));
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(0u, own_rows());
}

TEST_F(StoreRottenOwnOnodes, ThatHaveLostOmapTooStayErrors)
{
  ASSERT_NO_FATAL_FAILURE(rot_own_onodes());
  ch.reset();
  meta.reset();
  umount();
  ASSERT_NO_FATAL_FAILURE(let_rot(many_text(250)));
  EXPECT_GT(store->repair(false), 1);
  EXPECT_EQ(1, store->repair(false));
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(-EIO, omap_result(pgmeta));
  EXPECT_LT(own_rows(), many);
}

TEST_F(StoreRottenOwnOnodes, GoWithTheirSecondRows)
{
  const std::string second = own_onode_key(onode_key(pgmeta));
  EXPECT_EQ(1u, rows(Family::super, second, second + '\0'));
  remove(ch, pgmeta);
  EXPECT_EQ(0u, rows(Family::super, second, second + '\0'));
  meta.reset();
  ASSERT_NO_FATAL_FAILURE(remount({&ch}));
  EXPECT_EQ(-ENOENT, omap_result(pgmeta));
}

TEST_F(StoreRottenTableFile, ARepairGivesUpWhatHadOmapInAFileThatIsLostAsAWhole)
{
  make_objects(true);
  ch.reset();
  umount();
  ASSERT_NO_FATAL_FAILURE(cut("omap" + text(500)));
  expect_clean = false;
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(-EIO, omap_result(oid(500)));
  touch(ch, object("without omap"));
  wait_durable(ch);
  int lost_objects = 0;
  ASSERT_NO_FATAL_FAILURE(repair(&lost_objects));
  for (unsigned i = 0; i < count; ++i) {
    if (look_at(i) == 0) {
      EXPECT_EQ(keys_of(i), omap(ch, oid(i))) << i;
    }
  }
  struct stat st;
  EXPECT_EQ(0, store->stat(ch, object("without omap"), &st));
}

namespace {

/// Ends the process before the table makes or removes its n-th file.
class MortalFs : public rocksdb::FileSystemWrapper {
 public:
  MortalFs(const std::shared_ptr<rocksdb::FileSystem>& below, int files)
    : FileSystemWrapper(below), left(files) {}
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* dbg) override
  {
    count_down();
    return FileSystemWrapper::DeleteFile(path, options, dbg);
  }
  const char* Name() const override { return "MortalFs"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* out,
                                    rocksdb::IODebugContext* dbg) override
  {
    count_down();
    return FileSystemWrapper::NewWritableFile(path, options, out, dbg);
  }

 private:
  void count_down()
  {
    if (left-- == 0)
      ::kill(::getpid(), SIGKILL);
  }
  std::atomic<int> left;
};

class MortalDisk : public FlakyDisk {
 public:
  MortalDisk(std::unique_ptr<Disk> below, int files)
    : FlakyDisk(std::move(below)), fs(std::make_shared<MortalFs>(FlakyDisk::table_fs(), files)) {}
  std::shared_ptr<rocksdb::FileSystem> table_fs() override { return fs; }

 private:
  const std::shared_ptr<MortalFs> fs;
};

constexpr const char* files_variable = "TABLESTORE_TEST_FILES";

int repair_and_die(const std::string& dir, int)
{
  const int files = std::stoi(::getenv(files_variable));
  TableStore store(g_ceph_context, dir,
                   std::make_shared<WrappedSurroundings<MortalDisk>>(dir, files));
  return store.repair(false) < 0;
}

const ChildProgram program{"repair-and-die", &repair_and_die};

}  // namespace

class StoreKilledRepair : public StoreRottenTableFile {
 protected:
  /// Of a store with a block that has rotten where those bytes are.
  void kill_repairs(const std::string& bytes)
  {
    make_objects(true);
    ch.reset();
    umount();
    ASSERT_NO_FATAL_FAILURE(let_rot(bytes));
    expect_clean = false;
    const std::string rotten = dir + ".rotten";
    fs::copy(dir, rotten, fs::copy_options::recursive);
    int status = -SIGKILL, files = 0;
    for (; status == -SIGKILL; ++files) {
      SCOPED_TRACE(files);
      store.reset();
      fs::remove_all(dir);
      fs::copy(rotten, dir, fs::copy_options::recursive);
      ASSERT_EQ(0, ::setenv(files_variable, std::to_string(files).c_str(), 1));
      status = Child("repair-and-die", dir).wait();
      reopen(false);
      EXPECT_LE(0, store->repair(false));
      ASSERT_NO_FATAL_FAILURE(open());
      for (unsigned i = 0; i < count; ++i) {
        const int r = look_at(i);
        EXPECT_TRUE(r == 0 || r == -EIO) << i;
        if (r == 0) {
          EXPECT_EQ(keys_of(i), omap(ch, oid(i))) << i;
        }
      }
      EXPECT_EQ(-EIO, look_at(500));
      ch.reset();
      umount();
    }
    EXPECT_EQ(0, status);
    EXPECT_GT(files, 10);
    fs::remove_all(rotten);
    reopen();
  }
};

TEST_F(StoreKilledRepair, ForgetsNoOmap)
{
  ASSERT_NO_FATAL_FAILURE(kill_repairs("omap" + text(500)));
}

TEST_F(StoreKilledRepair, ForgetsNoObject)
{
  ASSERT_NO_FATAL_FAILURE(kill_repairs("attr" + text(500)));
}
