// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Blocks of the table that have rotten, with rows of the store's own in them: what follows from
// others is counted, what does not is there twice.
#include <filesystem>
#include <fstream>

#include "os/tablestore/TableStore.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/home/copied_row.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "os/tablestore/mounted_store.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table_properties.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"

using namespace tablestore;
using namespace tablestore_test;
namespace fs = std::filesystem;

class StoreRottenRows : public StoreRowsFixture {
 protected:
  void SetUp() override
  {
    // Each row has a block of its own: none of the engine's rows is hit. Its key is not in the
    // index.
    set("tablestore_table_options",
        "compression=kNoCompression;disable_auto_compactions=true;"
        "block_based_table_factory={block_size=16;index_shortening=kShortenSeparators}");
    StoreRowsFixture::SetUp();
  }
  /// Of changes of a row, as the table has them.
  static constexpr std::string_view puts_and_sums{"\1\2", 2}, erasures{"\0", 1};
  /// The row's block, in each file of the table that has one of it. The store is not mounted then.
  void let_rot(const std::string& key, std::string_view kinds = puts_and_sums)
  {
    if (mounted)
      close();
    unsigned found = 0;
    for (const auto& entry : fs::directory_iterator(dir + "/table")) {
      if (entry.path().extension() == ".sst")
        found += rot_in(entry.path(), key, kinds);
    }
    EXPECT_GT(found, 0u) << key;
  }
  void let_both_rot(const std::string& key)
  {
    let_rot(key);
    let_rot(copy_key(key));
  }
  /// Nothing of the store's own rows can be read, only their copies.
  void let_own_rows_rot()
  {
    if (mounted)
      close();
    unsigned found = 0;
    for (const auto& entry : fs::directory_iterator(dir + "/table")) {
      if (entry.path().extension() != ".sst")
        continue;
      rocksdb::SstFileReader reader({});
      ASSERT_TRUE(reader.Open(entry.path()).ok());
      if (reader.GetTableProperties()->column_family_name != "default")
        continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-2, std::ios::end);
      file.put('#');
      EXPECT_TRUE(file.good());
      ++found;
    }
    EXPECT_GT(found, 0u);
  }
  void expect_alert()
  {
    EXPECT_NE(std::string::npos, alert("TABLESTORE_ROWS_DAMAGED").find("--op repair"));
  }
  /// The block itself stays damaged until repair; the rows do not.
  void expect_mount_has_mended()
  {
    close();
    mount_again();
    EXPECT_EQ(std::string(), alert("TABLESTORE_ROWS_DAMAGED"));
    close();
  }
  void expect_repaired()
  {
    EXPECT_GT(store->fsck(true), 0) << "the file is damaged";
    store->repair(true);   // counts the file
    EXPECT_EQ(0, store->fsck(true));
    expect_objects_whole();
    EXPECT_EQ(std::string(), alert("TABLESTORE_ROWS_DAMAGED"));
    EXPECT_EQ(std::string(), alert("TABLESTORE_TABLE_DAMAGED"));
  }

 private:
  /// In a block a key is followed by the kind of the change and its number. Elsewhere, as in the
  /// index, it is not.
  static unsigned rot_in(const fs::path& path, const std::string& key, std::string_view kinds)
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const std::string all(std::istreambuf_iterator<char>(file), {});
    file.clear();
    unsigned found = 0;
    for (size_t at = all.find(key); at != std::string::npos; at = all.find(key, at + 1)) {
      const bool is_copy = at > 0 && all[at - 1] == 'c';
      const size_t behind = at + key.size();
      if (is_copy || behind >= all.size() || kinds.find(all[behind]) == kinds.npos)
        continue;
      file.seekp(at);
      file.put('#');
      ++found;
    }
    EXPECT_TRUE(file.good());
    return found;
  }
};

TEST_F(StoreRottenRows, OfACollectionCostNothing)
{
  for (const bool copy : {false, true}) {
    SCOPED_TRACE(copy);
    const std::string key = collection_key(pg(1));
    let_rot(copy ? copy_key(key) : key);
    EXPECT_GT(store->fsck(false), 0);
    expect_objects_whole();
    expect_alert();
    EXPECT_EQ(0, store->collection_bits(ch));
    expect_mount_has_mended();
    expect_repaired();
  }
}

TEST_F(StoreRottenRows, OfACollectionAreMadeAnewByARepair)
{
  for (const bool copy : {false, true}) {
    SCOPED_TRACE(copy);
    const std::string key = collection_key(pg(1));
    let_rot(copy ? copy_key(key) : key);
    expect_repaired();
  }
}

TEST_F(StoreRottenRows, OfACollectionThatWasRemovedDoNotBringItBack)
{
  Handle gone = make_collection(pg(3), 2);
  wait_durable(gone);
  close();
  mount_again();
  gone = store->open_collection(pg(3));
  Transaction t;
  t.remove_collection(pg(3));
  commit(gone, std::move(t));
  gone.reset();
  // What says that it is gone is in the table's newest file, what was there before in an older one.
  let_rot(collection_key(pg(3)), erasures);
  for (int round = 0; round < 2; ++round) {
    mount_again();
    EXPECT_FALSE(store->collection_exists(pg(3)));
    close();
  }
  expect_repaired();
  EXPECT_FALSE(store->collection_exists(pg(3)));
}

TEST_F(StoreRottenRows, OfACollectionAndItsCopyRefuseTheMountAndItIsNotTakenForGone)
{
  expect_clean = false;
  Handle other = make_collection(pg(2));
  const ghobject_t oid = object("object", 2, 0x10);
  write(other, oid, 0, content(5, 5000));
  const ghobject_t own = ghobject_t::make_pgmeta(1, 0, shard_id_t::NO_SHARD);
  touch(ch, own);
  wait_durable(other);
  wait_durable(ch);
  other.reset();
  let_both_rot(collection_key(pg(1)));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(-EIO, store->mount());
    ASSERT_EQ(0, store->mount_readonly());
    EXPECT_FALSE(store->collection_exists(pg(1)));
    other = store->open_collection(pg(2));
    ASSERT_TRUE(other);
    EXPECT_TRUE(same(content(5, 5000), read(other, oid)));
    other.reset();
    EXPECT_EQ(0, store->umount_readonly());
    EXPECT_GT(store->fsck(false), 0);
    EXPECT_GT(store->repair(false), 0);
  }
}

TEST_F(StoreRottenRows, OfACollectionAndItsCopyArePutBackWhereTheOthersLeaveNoDoubt)
{
  make_eight();
  let_both_rot(collection_key(of_eight));
  EXPECT_EQ(-EIO, store->mount());
  expect_repaired();
  expect_of_eight_whole();
}

TEST_F(StoreRottenRows, ThatDescribeTheStoreOrItsNumbersCostNothing)
{
  for (const char* name : {"store", "nid_max"}) {
    for (const bool copy : {false, true}) {
      SCOPED_TRACE(name);
      const std::string key = meta_key(name);
      let_rot(copy ? copy_key(key) : key);
      EXPECT_GT(store->fsck(false), 0);
      expect_objects_whole();
      expect_alert();
      expect_mount_has_mended();
      expect_repaired();
      // Of both, what they say follows from the objects.
      if (key == meta_key("nid_max"))
        continue;
      let_both_rot(key);
      EXPECT_GT(store->fsck(false), 0);
      expect_objects_whole();
      expect_alert();
      write(ch, object("new", 1, 0x30), 0, content(3, 100));
      EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
      expect_mount_has_mended();
      expect_repaired();
    }
  }
}

TEST_F(StoreRottenRows, BothOfThoseBehindWhereLostNamesWouldBeMakeAllNamesCountAsLost)
{
  const std::string key = meta_key("nid_max");
  ASSERT_LT(lost_names_range().second, key);
  let_both_rot(key);
  EXPECT_GT(store->fsck(false), 0);
  expect_objects_whole();
  expect_alert();
  struct stat st;
  EXPECT_EQ(-EIO, store->stat(ch, object("of which nothing is known", 1, 0x31), &st, true));
  write(ch, object("new", 1, 0x30), 0, content(3, 100));
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
  close();
  store->repair(true);
  expect_objects_whole();
  expect_clean = false;   // until the loss is settled
}

TEST_F(StoreRottenRows, OfPoolStatisticsAreCountedByRepair)
{
  store_statfs_t before, after;
  bool per_pool_omap;
  ASSERT_EQ(0, store->pool_statfs(1, &before, &per_pool_omap));
  let_rot(pool_stats_key(1));
  for (int round = 0; round < 2; ++round) {
    expect_objects_whole();
    expect_alert();
    close();
  }
  expect_repaired();
  ASSERT_EQ(0, store->pool_statfs(1, &after, &per_pool_omap));
  EXPECT_EQ(before.data_stored, after.data_stored);
  EXPECT_EQ(before.allocated, after.allocated);
}

// The copies are enough. Which blocks are free is counted anew by a repair.
TEST_F(StoreRottenRows, OfTheStoreAllAtOnceEndNoService)
{
  expect_clean = false;
  let_own_rows_rot();
  for (int life = 0; life < 2; ++life) {
    expect_objects_whole();
    EXPECT_NE(std::string::npos, alert("TABLESTORE_ALLOCATION_UNKNOWN").find("--op repair"));
    const ghobject_t oid = object("meanwhile", 1, 0x10 + life);
    write(ch, oid, 0, content(4 + life, MiB));
    EXPECT_TRUE(same(content(4 + life, MiB), read(ch, oid)));
    close();
  }
  EXPECT_LE(0, store->repair(false));
  EXPECT_LE(0, store->repair(false));
  EXPECT_EQ(0, store->fsck(true));
  expect_objects_whole();
  for (const char* name : {"ROWS_DAMAGED", "TABLE_DAMAGED", "ALLOCATION_UNKNOWN", "LOG_LOSS"})
    EXPECT_EQ(std::string(), alert(std::string("TABLESTORE_") + name));
  write(ch, object("new", 1, 0x30), 0, content(3, MiB));
  remount({&ch});
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
  EXPECT_TRUE(same(content(3, MiB), read(ch, object("new", 1, 0x30))));
}

// There where one of the two is: else somebody would be given blocks that others own.
TEST_F(StoreRottenRows, OneOfTwoIsEnoughToSayThatOwnersAreNotKnown)
{
  const std::string row = engine_rows::ownership_unknown();
  for (const Family left_out : {Family::super, engine_rows::of_copies}) {
    SCOPED_TRACE(size_t(left_out));
    if (!mounted)
      mount_again();
    auto txn = std::make_shared<Txn>();
    for (const Family family : {Family::super, engine_rows::of_copies}) {
      if (family != left_out)
        txn->put(family, row, "");
    }
    static_cast<TableStore&>(*store).parts().engine.submit(txn);
    close();
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(-EIO, store->mount());
      EXPECT_EQ(-EIO, store->repair(false)) << "nobody has accepted a loss";
    }
    set("tablestore_accept_log_loss", "true");
    EXPECT_EQ(-EIO, store->mount()) << "before the repair";
    EXPECT_LE(0, store->repair(false));
    set("tablestore_accept_log_loss", "false");
    expect_objects_whole();
  }
}

class StoreRottenLostNames : public StoreRottenRows {
 protected:
  /// From `a` on and before `z`.
  void lose(const ghobject_t& a, const ghobject_t& z)
  {
    if (!mounted)
      mount_again();
    parts().lost_names.lose(onode_key(a), onode_key(z));
    close();
  }
  void know(const ghobject_t& oid)
  {
    mount_again();
    auto txn = std::make_shared<Txn>();
    parts().lost_names.know(*txn, onode_key(oid));
    parts().engine.submit(txn);
    close();
  }
  MountedStore& parts() { return static_cast<TableStore&>(*store).parts(); }
  int stat(const ghobject_t& oid)
  {
    struct stat st;
    return store->stat(ch, oid, &st);
  }
  /// Of objects that have no row. Twice, and then once more after a repair.
  void expect_stats(int of_gone, int of_next, int of_other)
  {
    for (int life = 0; life < 3; ++life) {
      SCOPED_TRACE(life);
      if (mounted)
        close();
      if (life == 2) {
        EXPECT_LE(0, store->repair(false));
      }
      mount_again();
      EXPECT_EQ(of_gone, stat(gone));
      EXPECT_EQ(of_next, stat(next));
      EXPECT_EQ(of_other, stat(other));
      EXPECT_EQ(0, stat(large));
    }
  }

  const ghobject_t gone = object("gone", 1, 0x28);
  const ghobject_t next = object("next", 1, 0x2c);
  const ghobject_t other = object("other", 1, 0x2e);
  const std::string row = lost_names_key(onode_key(gone));
};

TEST_F(StoreRottenLostNames, ForgetNone)
{
  expect_clean = false;
  lose(gone, next);
  for (const bool copy : {false, true}) {
    SCOPED_TRACE(copy);
    let_rot(copy ? copy_key(row) : row);
    mount_again();
    expect_alert();
    expect_mount_has_mended();
    expect_stats(-EIO, -ENOENT, -ENOENT);
    close();
    EXPECT_EQ(0, store->fsck(true));
  }
}

// What was there before is smaller.
TEST_F(StoreRottenLostNames, ForgetNoneThatWereLostLater)
{
  expect_clean = false;
  lose(gone, next);
  lose(next, other);
  let_rot(row);
  expect_stats(-EIO, -EIO, -ENOENT);
}

// Nobody knows which they were.
TEST_F(StoreRottenLostNames, AreAllNamesWhereTheCopyIsRottenToo)
{
  expect_clean = false;
  lose(gone, next);
  let_both_rot(row);
  expect_stats(-EIO, -EIO, -EIO);
  EXPECT_NE(std::string::npos, alert("TABLESTORE_OBJECTS_LOST").find("settle"));
}

TEST_F(StoreRottenLostNames, AreNotKnownWhereThatCannotBeRead)
{
  expect_clean = false;
  lose(gone, other);
  know(next);
  expect_stats(-EIO, -ENOENT, -ENOENT);
  let_rot(known_name_key(onode_key(next)), puts_and_sums);
  expect_stats(-EIO, -EIO, -ENOENT);
}

// What says that it was lost again is in the table's newest file.
TEST_F(StoreRottenLostNames, AreNotKnownWhereTheyWereLostAgain)
{
  expect_clean = false;
  lose(gone, other);
  know(next);
  lose(next, other);
  let_rot(known_name_key(onode_key(next)), erasures);
  expect_stats(-EIO, -EIO, -ENOENT);
}

// Where nothing is lost, a rotten block costs no names.
TEST_F(StoreRottenLostNames, AreNoneWhereNoneWereLost)
{
  expect_clean = false;
  let_rot(meta_key("store"));
  expect_stats(-ENOENT, -ENOENT, -ENOENT);
}
