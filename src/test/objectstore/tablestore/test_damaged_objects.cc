// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Rows of objects that cannot be read: what an OSD does with such objects in scrub, recovery and
// client writes must work, must never give other bytes, and must not end the process.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"

using namespace tablestore;
using namespace tablestore_test;

class StoreDamagedObject : public StoreRowsFixture {
 protected:
  void SetUp() override
  {
    // Only for what is expected to be refused; an OSD ends there.
    set("objectstore_debug_throw_on_failed_txc", "true");
    StoreRowsFixture::SetUp();
  }

  /// 0, or what the transaction throws.
  int outcome(Transaction&& t)
  {
    try {
      store->queue_transaction(ch, std::move(t));
    } catch (int error) {
      return error;
    }
    return 0;
  }
  int outcome(const std::function<void(Transaction&)>& f)
  {
    Transaction t;
    f(t);
    return outcome(std::move(t));
  }
  void lose(const ghobject_t& oid)
  {
    expect_clean = false;
    damage_onode(oid);
    mount_again();
  }
  int read_result(const ghobject_t& oid, uint64_t offset = 0, uint64_t length = 0)
  {
    bufferlist bl;
    return store->read(ch, oid, offset, length, bl);
  }
  /// It is there, and no reader gets anything of it.
  void expect_lost(const ghobject_t& oid)
  {
    struct stat st;
    bufferptr value;
    bufferlist bl;
    std::map<std::string, bufferptr, std::less<>> attrs;
    std::map<std::string, bufferlist> values;
    std::map<uint64_t, uint64_t> extents;
    EXPECT_TRUE(store->exists(ch, oid));
    EXPECT_EQ(-EIO, store->stat(ch, oid, &st, true));
    EXPECT_EQ(-EIO, read_result(oid));
    EXPECT_EQ(-EIO, store->fiemap(ch, oid, 0, MiB, extents));
    EXPECT_EQ(-EIO, store->getattr(ch, oid, "_", value));
    EXPECT_EQ(-EIO, store->getattrs(ch, oid, attrs));
    EXPECT_EQ(-EIO, store->omap_get(ch, oid, &bl, &values));
    const auto all = list(ch);
    EXPECT_EQ(1, std::count(all.begin(), all.end(), oid));
  }
  void expect_lost_for_good(const ghobject_t& oid)
  {
    expect_lost(oid);
    remount({&ch});
    expect_lost(oid);
  }
  /// Its first bytes cannot be read, and nothing else of it is lost.
  void expect_start_lost_for_good(const ghobject_t& oid)
  {
    for (const bool again : {false, true}) {
      if (again)
        remount({&ch});
      struct stat st;
      EXPECT_EQ(0, store->stat(ch, oid, &st, true));
      EXPECT_EQ(-EIO, read_result(oid, 0, 10));
    }
  }
  /// What an OSD sends to recover a whole object (ReplicatedBackend::submit_push_data).
  void push(Transaction& t, const ghobject_t& target, const bufferlist& data)
  {
    bufferlist copy = data;
    std::map<std::string, bufferlist, std::less<>> attrs{{"_", to_bl("info")}};
    std::map<std::string, bufferlist> keys{{"pushed", to_bl("value")}};
    t.remove(ch->cid, target);
    t.touch(ch->cid, target);
    t.set_alloc_hint(ch->cid, target, data.length(), data.length(), 0);
    t.rmattrs(ch->cid, target);
    t.omap_clear(ch->cid, target);
    t.truncate(ch->cid, target, data.length());
    t.omap_setheader(ch->cid, target, to_bl("header"));
    t.write(ch->cid, target, 0, copy.length(), copy);
    t.omap_setkeys(ch->cid, target, keys);
    t.setattrs(ch->cid, target, attrs);
  }
  void expect_pushed(const ghobject_t& oid, const bufferlist& data)
  {
    EXPECT_TRUE(same(data, read(ch, oid)));
    EXPECT_EQ("info", attr(ch, oid, "_"));
    EXPECT_EQ("value", omap(ch, oid)["pushed"]);
    EXPECT_EQ(1u, omap(ch, oid).size());
    EXPECT_EQ("header", omap_header(ch, oid));
  }
  /// What the damaged row owned is nobody's: repair finds it, and nothing else.
  void expect_clean_after_repair()
  {
    close();
    EXPECT_EQ(0, store->repair(false));
    EXPECT_EQ(0, store->fsck(true));
    mount_again();
  }
};

TEST_F(StoreDamagedObject, IsAnErrorToReadersAndNotGone)
{
  lose(large);
  expect_lost(large);
  EXPECT_TRUE(same(content(2, 300), read(ch, small)));
  EXPECT_NE(std::string(), alert("TABLESTORE_OBJECTS_DAMAGED"));
}

TEST_F(StoreDamagedObject, IsNotToldOfOnceItCanBeReadAgain)
{
  const std::string good = row(Family::object, onode_key(large));
  lose(large);
  expect_lost(large);
  EXPECT_NE(std::string(), alert("TABLESTORE_OBJECTS_DAMAGED"));
  auto txn = std::make_shared<Txn>();
  txn->put(Family::object, onode_key(large), good);
  auto& engine = static_cast<TableStore&>(*store).parts().engine;
  engine.submit(txn);
  engine.drain();
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
  EXPECT_EQ(std::string(), alert("TABLESTORE_OBJECTS_DAMAGED"));
}

TEST_F(StoreDamagedObject, CanBeRemoved)
{
  lose(large);
  EXPECT_EQ(0, outcome([&](Transaction& t) { t.remove(ch->cid, large); }));
  EXPECT_FALSE(store->exists(ch, large));
  EXPECT_EQ(1u, list(ch).size());
  expect_clean_after_repair();
  EXPECT_EQ(1u, list(ch).size());
}

TEST_F(StoreDamagedObject, IsReplacedByRecovery)
{
  for (const ghobject_t& oid : {large, small}) {
    lose(oid);
    EXPECT_EQ(0, outcome([&](Transaction& t) { push(t, oid, content(3, 100000)); }));
    expect_pushed(oid, content(3, 100000));
    remount({&ch});
    expect_pushed(oid, content(3, 100000));
  }
  EXPECT_EQ(std::string(), alert("TABLESTORE_OBJECTS_DAMAGED"));
  expect_clean_after_repair();
  expect_pushed(large, content(3, 100000));
  expect_pushed(small, content(3, 100000));
}

TEST_F(StoreDamagedObject, IsReplacedByRecoveryThroughATemporaryObject)
{
  const ghobject_t temp = temp_object("recovering", 1, 0x10);
  lose(large);
  EXPECT_EQ(0, outcome([&](Transaction& t) { push(t, temp, content(3, 3 * MiB)); }));
  expect_lost(large);
  EXPECT_EQ(0, outcome([&](Transaction& t) {
    t.remove(ch->cid, large);
    t.collection_move_rename(ch->cid, temp, ch->cid, large);
  }));
  expect_pushed(large, content(3, 3 * MiB));
  expect_clean_after_repair();
  expect_pushed(large, content(3, 3 * MiB));
}

TEST_F(StoreDamagedObject, TouchAndPartialChangesDoNotMakeItLookWhole)
{
  const std::map<std::string, bufferlist> keys{{"key", to_bl("new")}};
  const std::set<std::string> names{"key"};
  bufferlist page = content(9, 4096), value = to_bl("v");
  std::map<std::string, bufferlist, std::less<>> attrs{{"a", value}, {"b", value}};
  const std::vector<std::function<void(Transaction&)>> changes = {
    [&](Transaction& t) { t.touch(ch->cid, large); },
    [&](Transaction& t) { t.write(ch->cid, large, 0, page.length(), page); },
    [&](Transaction& t) { t.write(ch->cid, large, 5 * MiB, page.length(), page); },
    [&](Transaction& t) { t.zero(ch->cid, large, 0, 8192); },
    [&](Transaction& t) { t.truncate(ch->cid, large, 0); },
    [&](Transaction& t) { t.setattr(ch->cid, large, "_", value); },
    [&](Transaction& t) { t.setattrs(ch->cid, large, attrs); },
    [&](Transaction& t) { t.rmattr(ch->cid, large, "_"); },
    [&](Transaction& t) { t.rmattrs(ch->cid, large); },
    [&](Transaction& t) { t.set_alloc_hint(ch->cid, large, 1, 1, 0); },
    [&](Transaction& t) { t.omap_setkeys(ch->cid, large, keys); },
    [&](Transaction& t) { t.omap_setheader(ch->cid, large, value); },
    [&](Transaction& t) { t.omap_rmkeys(ch->cid, large, names); },
    [&](Transaction& t) { t.omap_rmkeyrange(ch->cid, large, "a", "z"); },
    [&](Transaction& t) { t.omap_clear(ch->cid, large); },
    [&](Transaction& t) { t.clone_range(ch->cid, small, large, 0, 10, 0); },
  };
  lose(large);
  for (size_t n = 0; n < changes.size(); ++n) {
    SCOPED_TRACE(n);
    // What follows in the same transaction is for another object, and is done.
    const ghobject_t after = object("after " + std::to_string(n), 1, 0x30);
    EXPECT_EQ(0, outcome([&](Transaction& t) {
      changes[n](t);
      t.write(ch->cid, after, 0, page.length(), page);
    }));
    EXPECT_TRUE(same(page, read(ch, after)));
    expect_lost(large);
  }
  expect_lost_for_good(large);
  EXPECT_EQ(0, outcome([&](Transaction& t) { push(t, large, content(3, 100000)); }));
  expect_pushed(large, content(3, 100000));
  expect_clean_after_repair();
}

TEST_F(StoreDamagedObject, AChangeThatWasDroppedIsRememberedWhenTheRowCanBeReadAgain)
{
  // As where the disk could not read a block of the table for a moment: what it holds is older than
  // a write that was acknowledged.
  lose(large);
  bufferlist page = content(9, 4096);
  EXPECT_EQ(0, outcome([&](Transaction& t) {
    t.write(ch->cid, large, 0, page.length(), page);
  }));
  ObjectContents now;
  now.decode(row(Family::object, onode_key(large)));
  EXPECT_TRUE(now.lost);
  mount_again();
  expect_lost(large);
}

TEST_F(StoreDamagedObject, IsReplacedByWhatDefinesAllOfIt)
{
  const ghobject_t source = object("source", 1, 0x10), moved = object("moved", 1, 0x10);
  write(ch, source, 0, content(5, 200000));
  write(ch, moved, 0, content(6, 70000));
  lose(large);
  EXPECT_EQ(0, outcome([&](Transaction& t) { t.create(ch->cid, large); }));
  EXPECT_EQ(0u, size_of(ch, large));
  lose(large);
  EXPECT_EQ(0, outcome([&](Transaction& t) { t.clone(ch->cid, source, large); }));
  EXPECT_TRUE(same(content(5, 200000), read(ch, large)));
  lose(large);
  EXPECT_EQ(0, outcome([&](Transaction& t) {
    t.collection_move_rename(ch->cid, moved, ch->cid, large);
  }));
  EXPECT_TRUE(same(content(6, 70000), read(ch, large)));
  EXPECT_FALSE(store->exists(ch, moved));
  expect_clean_after_repair();
  EXPECT_TRUE(same(content(6, 70000), read(ch, large)));
  EXPECT_TRUE(same(content(5, 200000), read(ch, source)));
}

TEST_F(StoreDamagedObject, WhatIsMadeOfItIsLostToo)
{
  const ghobject_t copy = object("copy", 1, 0x10), part = object("part", 1, 0x10);
  write(ch, part, 0, content(7, 100000));
  lose(large);
  EXPECT_EQ(0, outcome([&](Transaction& t) {
    t.clone(ch->cid, large, copy);
    t.clone_range(ch->cid, large, part, 0, 4096, 8192);
  }));
  expect_lost_for_good(copy);
  expect_lost_for_good(part);
  const ghobject_t stashed(large.hobj, 7, shard_id_t::NO_SHARD);
  EXPECT_EQ(0, outcome([&](Transaction& t) {
    t.collection_move_rename(ch->cid, large, ch->cid, stashed);
  }));
  EXPECT_FALSE(store->exists(ch, large));
  expect_lost_for_good(stashed);
  EXPECT_EQ(0, outcome([&](Transaction& t) {
    for (const auto& oid : {copy, part, stashed})
      t.remove(ch->cid, oid);
  }));
  EXPECT_EQ(1u, list(ch).size());
  expect_clean_after_repair();
}

TEST_F(StoreDamagedObject, ThatNoOtherOsdHasIsAnErrorToItsChanges)
{
  // A placement group's own log: to drop a change of it would be to forget acknowledged writes.
  const ghobject_t pgmeta = ghobject_t::make_pgmeta(1, 0, shard_id_t::NO_SHARD);
  const std::map<std::string, bufferlist> keys{{"key", to_bl("new")}};
  touch(ch, pgmeta);
  lose(pgmeta);
  EXPECT_EQ(-EIO, outcome([&](Transaction& t) { t.omap_setkeys(ch->cid, pgmeta, keys); }));
  EXPECT_EQ(-EIO, outcome([&](Transaction& t) { t.touch(ch->cid, pgmeta); }));
  EXPECT_TRUE(store->exists(ch, pgmeta));
  EXPECT_EQ(0, outcome([&](Transaction& t) { t.remove(ch->cid, pgmeta); }));
  EXPECT_FALSE(store->exists(ch, pgmeta));
}

TEST_F(StoreDamagedObject, OfTheMetaCollectionIsReplacedByAWriteFromItsStart)
{
  // OSD maps and the superblock are written whole.
  const ghobject_t map = object("osdmap", -1, 0x10);
  Handle meta = make_collection(coll_t::meta());
  bufferlist bl = content(1, 5000);
  write(meta, map, 0, bl);
  wait_durable(meta);
  meta.reset();
  lose(map);
  meta = store->open_collection(coll_t::meta());
  EXPECT_EQ(-EIO, outcome([&](Transaction& t) {
    t.write(coll_t::meta(), map, 100, bl.length(), bl);
  }));
  EXPECT_EQ(0, outcome([&](Transaction& t) {
    t.write(coll_t::meta(), map, 0, bl.length(), bl);
  }));
  EXPECT_TRUE(same(bl, read(meta, map)));
}

// ---- other rows of an object

class StoreDamagedPart : public StoreDamagedObject {
 protected:
  void damage_first(Family family, const std::pair<std::string, std::string>& range)
  {
    expect_clean = false;
    damage_row(family, first_key(family, range));
    mount_again();
  }
  /// Of the container file, where it lies.
  void overwrite_block(const Extent& extent)
  {
    std::string path;
    for (const auto& file : std::filesystem::recursive_directory_iterator(dir + "/containers")) {
      if (file.path().filename() == std::to_string(extent.container))
        path = file.path().string();
    }
    ASSERT_NE(std::string(), path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(extent.offset_bytes() + 17);
    file.write("rot", 3);
    ASSERT_TRUE(file.good()) << path;
  }
};

TEST_F(StoreDamagedPart, OfTheExtentMapStaysUnreadableWhereItIsNotReplaced)
{
  bufferlist page = content(9, 100);
  const std::vector<std::function<void(Transaction&)>> changes = {
    [&](Transaction& t) { t.write(ch->cid, large, 1000, page.length(), page); },
    [&](Transaction& t) { t.zero(ch->cid, large, 1000, 10); },
    [&](Transaction& t) { t.truncate(ch->cid, large, 1000); },
  };
  for (const auto& change : changes) {
    damage_first(Family::object, all_shards_range());
    EXPECT_EQ(-EIO, read_result(large, 0, 10));
    EXPECT_TRUE(same(content(1, 1000, 512 * KiB), read(ch, large, 512 * KiB, 1000)));
    EXPECT_EQ(0, outcome([&](Transaction& t) { change(t); }));
    expect_start_lost_for_good(large);
    EXPECT_EQ(0, outcome([&](Transaction& t) { push(t, large, content(1, MiB)); }));
    expect_clean_after_repair();
  }
  damage_first(Family::object, all_shards_range());
  const ghobject_t copy = object("copy", 1, 0x10);
  EXPECT_EQ(0, outcome([&](Transaction& t) { t.clone(ch->cid, large, copy); }));
  expect_start_lost_for_good(copy);
  EXPECT_TRUE(same(content(1, 1000, 512 * KiB), read(ch, copy, 512 * KiB, 1000)));
  EXPECT_TRUE(same(content(1, 1000, 512 * KiB), read(ch, large, 512 * KiB, 1000)))
      << "what is only read from keeps what is good";
  EXPECT_EQ(0, outcome([&](Transaction& t) {
    t.remove(ch->cid, large);
    t.remove(ch->cid, copy);
  }));
  expect_clean_after_repair();
}

TEST_F(StoreDamagedPart, OfInlineDataCostsTheObjectThatIsChangedInPart)
{
  bufferlist piece = content(9, 10);
  const std::vector<std::function<void(Transaction&)>> changes = {
    [&](Transaction& t) { t.write(ch->cid, small, 100, piece.length(), piece); },
    [&](Transaction& t) { t.truncate(ch->cid, small, 10); },
    [&](Transaction& t) { t.truncate(ch->cid, small, 100000); },
    [&](Transaction& t) { t.write(ch->cid, small, 100000, piece.length(), piece); },
  };
  for (const auto& change : changes) {
    damage_first(Family::data, {});
    EXPECT_EQ(-EIO, read_result(small));
    EXPECT_EQ(0, outcome([&](Transaction& t) { change(t); }));
    EXPECT_EQ(-EIO, read_result(small));
    remount({&ch});
    EXPECT_EQ(-EIO, read_result(small));
    EXPECT_EQ(0, outcome([&](Transaction& t) { push(t, small, content(2, 300)); }));
    expect_clean_after_repair();
    expect_pushed(small, content(2, 300));
  }
  damage_first(Family::data, {});
  write(ch, small, 0, content(2, 300));
  EXPECT_TRUE(same(content(2, 300), read(ch, small))) << "all of it was written anew";
  expect_clean_after_repair();
}

TEST_F(StoreDamagedPart, OfReferencesDoesNotStopRemovalAndOverwrite)
{
  const ghobject_t copy = object("copy", 1, 0x10), second = object("second copy", 1, 0x10);
  Transaction t;
  t.clone(ch->cid, large, copy);
  commit(ch, std::move(t));
  damage_first(Family::super, reference_maps_range());
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
  write(ch, copy, 4096, content(3, 8192));
  EXPECT_EQ(0, outcome([&](Transaction& t) { t.truncate(ch->cid, copy, 20000); }));
  EXPECT_EQ(0, outcome([&](Transaction& t) { t.clone(ch->cid, large, second); }));
  expect_lost_for_good(second);
  EXPECT_TRUE(same(content(1, MiB), read(ch, large))) << "a failed clone harms nothing else";
  EXPECT_TRUE(same(content(3, 8192), read(ch, copy, 4096, 8192)));
  remove(ch, second);
  expect_clean_after_repair();
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
  remove(ch, large);
  EXPECT_TRUE(same(content(3, 8192), read(ch, copy, 4096, 8192)));
  remove(ch, copy);
  close();
  EXPECT_EQ(0, store->fsck(true));
  mount_again();
}

TEST_F(StoreDamagedPart, OfABlockStaysAnErrorOfThatBlockWhenItIsChangedInPart)
{
  // Where this is the only copy, the rest of the object must not go.
  expect_clean = false;
  write(ch, object("victim", 1, 0x40), 0, content(4, 64 * KiB));
  const ghobject_t victim = object("victim", 1, 0x40);
  wait_durable(ch);
  std::vector<MappedExtent> extents;
  {
    auto& parts = static_cast<TableStore&>(*store).parts();
    OnodeRef o = parts.onodes.get(victim);
    ASSERT_TRUE(o);
    extents = o->shards.at(0).extents;
  }
  close();
  overwrite_block(extents.front().physical);
  mount_again();
  EXPECT_EQ(-EIO, read_result(victim, 0, 100));
  bufferlist piece = content(9, 100);
  EXPECT_EQ(0, outcome([&](Transaction& t) {
    t.write(ch->cid, victim, 1000, piece.length(), piece);
    t.setattr(ch->cid, victim, "_", piece);
  }));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(-EIO, read_result(victim, 0, 100)) << "nobody knows these bytes";
    EXPECT_TRUE(same(content(4, 60 * KiB, 4096), read(ch, victim, 4096, 60 * KiB)));
    remount({&ch});
  }
  write(ch, victim, 0, content(5, 4096));
  EXPECT_TRUE(same(content(5, 4096), read(ch, victim, 0, 4096)));
  close();
  EXPECT_EQ(0, store->fsck(true));
  mount_again();
}

TEST_F(StoreDamagedPart, OfTheExtentMapIsMappedSoThatWhoReadsItGetsTheError)
{
  damage_first(Family::object, all_shards_range());
  std::map<uint64_t, uint64_t> mapped;
  EXPECT_EQ(0, store->fiemap(ch, large, 1000, MiB - 2000, mapped));
  EXPECT_EQ((std::map<uint64_t, uint64_t>{{1000, MiB - 2000}}), mapped);
  interval_set<uint64_t> all(std::move(mapped));
  bufferlist bl;
  EXPECT_EQ(-EIO, store->readv(ch, large, all, bl, 0));
  mapped.clear();
  EXPECT_EQ(0, store->fiemap(ch, large, 512 * KiB, 1000, mapped));
  EXPECT_EQ((std::map<uint64_t, uint64_t>{{512 * KiB, 1000}}), mapped) << "what can be read";
}

TEST_F(StoreDamagedPart, WithoutSpaceToMarkWhatIsLostTheObjectIsLost)
{
  const ghobject_t copy = object("copy", 1, 0x10);
  damage_first(Family::object, all_shards_range());
  auto& engine = static_cast<TableStore&>(*store).parts().engine;
  uint64_t taken = 0;
  for (const uint64_t step : {64 * MiB, 1 * MiB, 64 * KiB, 4 * KiB}) {
    while (engine.reserve(step).ok())
      taken += step;
  }
  // Enough for what the operations say that they need.
  engine.unreserve(48 * KiB);
  EXPECT_EQ(0, outcome([&](Transaction& t) { t.clone(ch->cid, large, copy); }));
  expect_lost(copy);
  EXPECT_TRUE(same(content(1, 1000, 512 * KiB), read(ch, large, 512 * KiB, 1000)));
  EXPECT_EQ(-EIO, read_result(large, 0, 10)) << "and no zeros";
  EXPECT_EQ(0, outcome([&](Transaction& t) { t.truncate(ch->cid, large, 1000); }));
  expect_lost(large);
  engine.unreserve(taken - 48 * KiB);
  expect_lost_for_good(large);
  expect_lost_for_good(copy);
  EXPECT_EQ(0, outcome([&](Transaction& t) { push(t, large, content(3, 100000)); }));
  EXPECT_EQ(0, outcome([&](Transaction& t) { t.remove(ch->cid, copy); }));
  expect_clean_after_repair();
  expect_pushed(large, content(3, 100000));
}

TEST(DamagedObjectsTest, MoreThanAreRememberedAreNotForgotten)
{
  const std::string name = "OBJECTS_DAMAGED";
  Troubles troubles;
  DamagedObjects damaged(troubles);
  const auto oid = [](int n) { return object("object " + std::to_string(n)); };
  const auto line = [&] { return troubles.all().contains(name) ? troubles.all()[name] : ""; };
  for (int n = 0; n < 1000; ++n)
    damaged.add(oid(n));
  EXPECT_TRUE(line().starts_with("1000 ")) << line();
  damaged.add(oid(0));
  EXPECT_TRUE(line().starts_with("1000 ")) << line();
  damaged.add(oid(1000));
  EXPECT_TRUE(line().starts_with("more than 1000 ")) << line();
  damaged.forget(oid(0));
  EXPECT_TRUE(line().starts_with("at least 999 ")) << line();
  for (int n = 1; n < 1000; ++n)
    damaged.forget(oid(n));
  EXPECT_NE("", line()) << "one is lost still";
  damaged.add(oid(1000));
  EXPECT_TRUE(line().starts_with("at least 1 ")) << line();
}

TEST(DamagedObjectsTest, TheLineGoesWithTheLastOfThem)
{
  Troubles troubles;
  DamagedObjects damaged(troubles);
  damaged.add(object("a"));
  damaged.add(object("b"));
  damaged.forget(object("a"));
  damaged.forget(object("c"));
  EXPECT_EQ(1u, troubles.all().size());
  damaged.forget(object("b"));
  EXPECT_TRUE(troubles.all().empty());
}
