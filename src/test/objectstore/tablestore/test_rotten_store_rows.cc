// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Blocks of the table that have rotten, with rows of the store's own in them: what follows from
// others is counted, what does not is there twice.
#include <filesystem>
#include <fstream>

#include "os/tablestore/collection/collections.h"
#include "os/tablestore/home/copied_row.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"

using namespace tablestore;
using namespace tablestore_test;
namespace fs = std::filesystem;

class StoreRottenRows : public StoreRowsFixture {
 protected:
  void SetUp() override
  {
    // Each row has a block of its own: none of the engine's rows is hit.
    set("tablestore_table_options",
        "compression=kNoCompression;disable_auto_compactions=true;"
        "block_based_table_factory={block_size=16}");
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
  void expect_alert()
  {
    EXPECT_NE(std::string::npos, alert("TABLESTORE_ROWS_DAMAGED").find("--op repair"));
  }
  /// The block itself stays damaged until repair; the rows do not. Whether names that a repair had
  /// given up were there as well, nobody knows.
  void expect_mount_has_mended()
  {
    close();
    mount_again();
    const std::string said = alert("TABLESTORE_ROWS_DAMAGED");
    EXPECT_TRUE(said.empty() || said.starts_with("rows of the store are damaged: which names of "))
        << said;
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
  const coll_t cid = pg(2, 5);
  for (uint32_t ps : {0, 1, 2, 3, 4, 6, 7})
    make_collection(pg(2, ps), 3);
  Handle damaged = make_collection(cid, 3);
  const ghobject_t oid = object("object", 2, 0xd);
  write(damaged, oid, 0, content(5, 5000));
  touch(damaged, ghobject_t::make_pgmeta(2, 5, shard_id_t::NO_SHARD));
  wait_durable(damaged);
  damaged.reset();
  let_both_rot(collection_key(cid));
  EXPECT_EQ(-EIO, store->mount());
  expect_repaired();
  damaged = store->open_collection(cid);
  ASSERT_TRUE(damaged);
  EXPECT_EQ(3, store->collection_bits(damaged));
  EXPECT_TRUE(same(content(5, 5000), read(damaged, oid)));
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
