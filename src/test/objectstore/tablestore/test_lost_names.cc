// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Which names of objects nobody knows: ranges of them, and what is known again.
#include "global/global_context.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"

using namespace tablestore;
using namespace tablestore_test;

class StoreLostNames : public StoreRowsFixture {
 protected:
  void SetUp() override
  {
    StoreRowsFixture::SetUp();
    if (is_tablestore())
      load();
  }
  void TearDown() override
  {
    names.reset();
    StoreRowsFixture::TearDown();
  }
  Engine& engine() { return static_cast<TableStore&>(*store).parts().engine; }
  /// As the rows say.
  void load()
  {
    engine().drain();
    names.emplace(g_ceph_context, engine(), troubles);
    const auto mended = std::make_shared<Txn>();
    EXPECT_TRUE(names->load(true, mended.get()).ok());
    EXPECT_EQ(names->damage().empty(), mended->row_bytes() == 0);
    mended->barrier = true;
    engine().submit(mended);
    engine().drain();
  }
  void know(const std::string& key)
  {
    auto txn = std::make_shared<Txn>();
    names->know(*txn, key);
    engine().submit(txn);
  }
  void know_all(const std::string& first, const std::string& end)
  {
    auto txn = std::make_shared<Txn>();
    txn->barrier = true;
    names->know_all(*txn, first, end);
    engine().submit(txn);
  }
  size_t rows(const std::pair<std::string, std::string>& range)
  {
    engine().drain();
    size_t count = 0;
    auto it = engine().iterate(Family::super, range.first, range.second);
    for (it->seek_to_first(); it->valid(); it->next())
      ++count;
    return count;
  }
  size_t ranges() { return rows(lost_names_range()); }
  size_t known() { return rows(known_names_range()); }
  /// Of the names a to z, now and after a restart.
  void expect_hidden(const std::string& letters)
  {
    for (int round = 0; round < 2; ++round) {
      std::string hidden;
      for (char c = 'a'; c <= 'z'; ++c) {
        if (names->hides(name(c)))
          hidden.push_back(c);
      }
      EXPECT_EQ(letters, hidden);
      load();
    }
  }
  static std::string name(char c) { return std::string("o") + c; }

  Troubles troubles;
  std::optional<LostNames> names;
};

TEST_F(StoreLostNames, HideNothingWhereNothingIsLost)
{
  EXPECT_FALSE(names->any());
  EXPECT_FALSE(names->hides_some("", "~"));
  know("oa");
  EXPECT_EQ(0u, known());
  expect_hidden("");
}

TEST_F(StoreLostNames, AreOneRangeWhereTheyTouchOrOverlap)
{
  names->lose("oc", "oe");
  names->lose("oh", "oj");
  EXPECT_EQ(2u, ranges());
  expect_hidden("cdhi");
  names->lose("oe", "of");
  EXPECT_EQ(2u, ranges());
  expect_hidden("cdehi");
  names->lose("od", "oh");
  EXPECT_EQ(1u, ranges());
  expect_hidden("cdefghi");
  names->lose("of", "og");
  names->lose("oc", "oj");
  EXPECT_EQ(1u, ranges());
  expect_hidden("cdefghi");
  EXPECT_TRUE(troubles.all().contains("OBJECTS_LOST"));
}

TEST_F(StoreLostNames, AreKnownOneByOneUntilTheyAreLostAgain)
{
  names->lose("oc", "of");
  know("od");
  know("od");
  know("ox");
  EXPECT_EQ(1u, known());
  expect_hidden("ce");
  names->lose("oa", "od");
  expect_hidden("abce");
  names->lose("od", "oe");
  EXPECT_EQ(0u, known());
  EXPECT_EQ(1u, ranges());
  expect_hidden("abcde");
}

TEST_F(StoreLostNames, AreKnownByRanges)
{
  names->lose("oc", "oj");
  names->lose("om", "oo");
  know_all("oa", "od");
  expect_hidden("defghimn");
  know_all("of", "og");
  EXPECT_EQ(3u, ranges());
  expect_hidden("deghimn");
  know_all("oh", "on");
  expect_hidden("degn");
  EXPECT_TRUE(troubles.all().contains("OBJECTS_LOST"));
  know_all("oa", "oz");
  EXPECT_EQ(0u, ranges());
  EXPECT_FALSE(names->any());
  EXPECT_FALSE(troubles.all().contains("OBJECTS_LOST"));
  expect_hidden("");
}

// A collection that is removed takes what was known of its names with it.
TEST_F(StoreLostNames, AreLostAgainAfterTheirRangeWasKnown)
{
  names->lose("oc", "of");
  know("od");
  know_all("oa", "oz");
  EXPECT_EQ(0u, known());
  load();
  names->lose("oc", "of");
  expect_hidden("cde");
  names->settle();
}

// One that was written by a store that left it there.
TEST_F(StoreLostNames, AreLostAgainWhereARowSaysThatOneWasKnown)
{
  auto txn = std::make_shared<Txn>();
  txn->put(Family::super, known_name_key("od"), {});
  engine().submit(txn);
  load();
  names->lose("oc", "of");
  EXPECT_EQ(0u, known());
  expect_hidden("cde");
  names->settle();
}

TEST_F(StoreLostNames, MakeAListingLackSomethingButForOneThatIsKnown)
{
  names->lose("oc", "oe");
  EXPECT_FALSE(names->hides_some("oa", "oc"));
  EXPECT_TRUE(names->hides_some("oa", "ocx"));
  EXPECT_TRUE(names->hides_some("od", "oz"));
  EXPECT_FALSE(names->hides_some("oe", "oz"));
  names->lose("om", std::string("om") + '\0');
  EXPECT_TRUE(names->hides_some("oe", "oz"));
  know("om");
  EXPECT_FALSE(names->hides_some("oe", "oz"));
}

TEST_F(StoreLostNames, AreNoMoreOnceTheyAreSettled)
{
  names->lose("oc", "oe");
  know("od");
  names->settle();
  EXPECT_EQ(0u, ranges());
  EXPECT_EQ(0u, known());
  EXPECT_FALSE(names->any());
  expect_hidden("");
  EXPECT_FALSE(troubles.all().contains("OBJECTS_LOST"));
}

TEST_F(StoreLostNames, OfADamagedRowAndItsCopyAreAllThatFollow)
{
  names->lose("oc", "oe");
  names->lose("om", "oo");
  const auto damage = [&](bool both) {
    auto txn = std::make_shared<Txn>();
    if (both)
      CopiedRow::put(*txn, lost_names_key("oc"), "bad");
    else
      txn->put(Family::super, lost_names_key("oc"), "bad");
    engine().submit(txn);
    load();
    EXPECT_EQ(1u, names->damage().size());
  };
  damage(false);
  expect_hidden("cdmn");
  damage(true);
  expect_hidden("cdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(1u, ranges());
  names->settle();
}

// They were written by a store that kept them once.
TEST_F(StoreLostNames, GetCopiesWhereTheyHaveNone)
{
  names->lose("oc", "oe");
  auto txn = std::make_shared<Txn>();
  txn->erase(Family::object, copy_key(lost_names_key("oc")));
  engine().submit(txn);
  load();
  EXPECT_EQ(1u, names->damage().size());
  load();
  EXPECT_TRUE(names->damage().empty());
  expect_hidden("cd");
}
