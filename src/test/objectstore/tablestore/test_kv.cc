// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The rows of a store as ceph-kvstore-tool sees and changes them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "global/global_context.h"
#include "os/tablestore/TableStoreKV.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"

using namespace tablestore_test;

class StoreKV : public StoreRowsFixture {
 protected:
  using Change = std::function<void(KeyValueDB::Transaction&)>;
  /// What submit_transaction() returns; the store is not mounted before and after.
  int change(const Change& f)
  {
    if (mounted)
      close();
    TableStoreKV kv(g_ceph_context, dir);
    std::ostringstream errors;
    EXPECT_EQ(0, kv.open(errors)) << errors.str();
    KeyValueDB::Transaction t = kv.get_transaction();
    f(t);
    return kv.submit_transaction(t);
  }
  std::map<std::string, std::string> rows_of(const std::string& prefix)
  {
    TableStoreKV kv(g_ceph_context, dir);
    std::ostringstream errors;
    EXPECT_EQ(0, kv.open_read_only(errors)) << errors.str();
    std::map<std::string, std::string> rows;
    auto it = kv.get_wholespace_iterator();
    for (it->seek_to_first(prefix); it->valid() && it->raw_key_is_prefixed(prefix); it->next())
      rows[it->key()] = it->value().to_str();
    EXPECT_EQ(0, it->status());
    return rows;
  }
  static bool is_engines(const std::string& key) { return key.starts_with('\0'); }
  static size_t engines(const std::map<std::string, std::string>& rows)
  {
    return std::count_if(rows.begin(), rows.end(),
                         [](const auto& row) { return is_engines(row.first); });
  }
  /// Which blocks are owned is in these rows alone: the next who writes would get those of `large`.
  void expect_blocks_are_known()
  {
    ASSERT_NO_FATAL_FAILURE(reopen());
    ch = store->open_collection(pg(1));
    ASSERT_TRUE(ch);
    write(ch, object("another"), 0, content(3, 2 * MiB));
    EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
  }
};

TEST_F(StoreKV, ChangesRows)
{
  EXPECT_EQ(0, change([](auto& t) { t->set("S", "mine", to_bl("1")); }));
  EXPECT_EQ("1", rows_of("S")["mine"]);
  EXPECT_EQ(0, change([](auto& t) { t->rmkey("S", "mine"); }));
  EXPECT_FALSE(rows_of("S").contains("mine"));
  EXPECT_EQ(1u, rows_of("m").size());
  EXPECT_EQ(0, change([](auto& t) { t->rm_range_keys("m", "", "\xff"); }));
  EXPECT_TRUE(rows_of("m").empty());
  expect_clean = false;
}

TEST_F(StoreKV, NobodyChangesTheEnginesOwnRows)
{
  close();
  const auto before = rows_of("S");
  ASSERT_GT(engines(before), 2u);
  ASSERT_LT(engines(before), before.size());
  for (const auto& [key, value] : before) {
    if (!is_engines(key))
      continue;
    EXPECT_EQ(-EPERM, change([key = key](auto& t) { t->rmkey("S", key); })) << key;
    EXPECT_EQ(-EPERM, change([key = key](auto& t) { t->set("S", key, to_bl("x")); })) << key;
  }
  EXPECT_EQ(-EPERM, change([](auto& t) {
              t->set("S", "mine", to_bl("1"));
              t->rmkey("S", std::string("\0alloc", 6));
            }));
  EXPECT_EQ(engines(before), engines(rows_of("S")));
  EXPECT_FALSE(rows_of("S").contains("mine"));
  expect_blocks_are_known();
}

TEST_F(StoreKV, APrefixThatIsRemovedKeepsTheEnginesOwnRows)
{
  close();
  const size_t before = engines(rows_of("S"));
  EXPECT_EQ(0, change([](auto& t) { t->rmkeys_by_prefix("S"); }));
  EXPECT_EQ(before, engines(rows_of("S")));
  expect_blocks_are_known();
  // The statistics of pools have no copy.
  close();
  EXPECT_EQ(0, store->repair(false));
  EXPECT_EQ(0, store->fsck(true));
}

TEST_F(StoreKV, ARangeThatIsRemovedKeepsTheEnginesOwnRows)
{
  close();
  const size_t before = engines(rows_of("S"));
  EXPECT_EQ(0, change([](auto& t) { t->rm_range_keys("S", "", "\xff"); }));
  EXPECT_EQ(before, engines(rows_of("S")));
  expect_blocks_are_known();
  // The statistics of pools have no copy.
  close();
  EXPECT_EQ(0, store->repair(false));
  EXPECT_EQ(0, store->fsck(true));
}

TEST_F(StoreKV, APrefixThatCannotBeReadIsNotRemovedInPart)
{
  set("tablestore_table_options", "compression=kNoCompression");
  remount({&ch});
  Transaction t;
  std::map<std::string, bufferlist> keys;
  for (int i = 0; i < 3000; ++i)
    keys["key" + std::to_string(10000 + i)] = content(i, 100);
  t.omap_setkeys(ch->cid, small, keys);
  commit(ch, std::move(t));
  close();
  const std::string in_the_middle = content(1500, 100).to_str();
  namespace fs = std::filesystem;
  unsigned rotten = 0;
  for (const auto& entry : fs::directory_iterator(dir + "/table")) {
    if (entry.path().extension() != ".sst")
      continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    const std::string all(std::istreambuf_iterator<char>(file), {});
    if (const size_t at = all.find(in_the_middle); at != std::string::npos) {
      file.clear();
      file.seekp(at);
      file.put(char(all[at] ^ 1));
      ++rotten;
    }
  }
  ASSERT_EQ(1u, rotten);
  expect_clean = false;
  EXPECT_EQ(-EIO, change([](auto& t) { t->rmkeys_by_prefix("m"); }));
  ASSERT_NO_FATAL_FAILURE(reopen());
  ch = store->open_collection(pg(1));
  std::map<std::string, bufferlist> found;
  EXPECT_EQ(0, store->omap_get_values(ch, small, {"key10000", "key12999"}, &found));
  EXPECT_EQ(2u, found.size());
}
