// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// What a transaction keeps in memory of the objects that it changes, and how what a failed one
// changed goes.
#include <functional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "include/encoding.h"
#include "os/tablestore/object/onode_cache.h"
#include "os/tablestore/object/onode_contents.h"
#include "os/tablestore/omap/omap_writer.h"
#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/object_data_fixture.h"

namespace tablestore {

class ObjectTxnTest : public ObjectDataFixture {
 protected:
  static constexpr uint64_t cache_bytes = 1 << 20;

  /// An object of the cache alone.
  OnodeRef add(const std::string& name)
  {
    OnodeRef o = object(name);
    onodes.erase(name);
    return onode_cache.add(o);
  }

  OnodeCache onode_cache{cache_bytes};
};

TEST_F(ObjectTxnTest, WhatATransactionTouchesStaysInTheCacheUntilItIsApplied)
{
  ObjectTxn txn;
  const ghobject_t touched = add("touched")->oid, other = add("other")->oid;
  txn.touch(onode_cache.get(touched));
  onode_cache.clear();
  EXPECT_TRUE(onode_cache.get(touched));
  EXPECT_FALSE(onode_cache.get(other));
  txn.unpin();
  onode_cache.clear();
  EXPECT_FALSE(onode_cache.get(touched));
}

TEST_F(ObjectTxnTest, AnObjectIsTouchedOnceByEachTransaction)
{
  auto first = std::make_unique<ObjectTxn>();
  ObjectTxn second;
  for (int round = 0; round < 3; ++round) {
    for (const char* name : {"a", "b", "c"})
      first->touch(object(name));
  }
  second.touch(object("c"));
  second.dirty(object("a"));
  second.touch(object("a"));
  EXPECT_EQ((std::vector<OnodeRef>{object("a"), object("b"), object("c")}), first->touched_onodes);
  EXPECT_EQ((std::vector<OnodeRef>{object("c"), object("a")}), second.touched_onodes);
  EXPECT_EQ(2u, object("a")->transactions_in_flight);
  EXPECT_EQ(1u, object("b")->transactions_in_flight);
  first->unpin();
  first.reset();
  EXPECT_EQ(1u, object("a")->transactions_in_flight);
  second.unpin();
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(0u, object(name)->transactions_in_flight);
}

TEST_F(ObjectTxnTest, EveryChangeOfOmapTouchesItsObject)
{
  const std::map<std::string, ceph::buffer::list> keys{{"k", {}}, {"l", {}}};
  const std::set<std::string> names{"k"};
  ceph::buffer::list encoded_keys, encoded_names, header;
  encode(keys, encoded_keys);
  encode(names, encoded_names);
  header.append("header");
  const std::vector<std::function<void(OmapWriter&)>> changes{
    [&](OmapWriter& omap) { omap.set_keys(object("a"), encoded_keys); },
    [&](OmapWriter& omap) { omap.remove_keys(object("a"), encoded_names); },
    [&](OmapWriter& omap) { omap.remove_range(object("a"), "k", "z"); },
    [&](OmapWriter& omap) { omap.set_header(object("a"), header); },
    [&](OmapWriter& omap) { omap.clear(object("a")); },
    [&](OmapWriter& omap) {
      object("a")->has_omap = false;   // what a clone makes has none before
      EXPECT_TRUE(omap.clone(object("source"), object("a")).ok());
    },
    [&](OmapWriter& omap) { omap.moved(object("a")); },
  };
  object("source")->has_omap = true;
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    object("a")->has_omap = true;
    ObjectTxn txn;
    OmapWriter omap(*engine, txn, *logger);
    changes[i](omap);
    EXPECT_EQ(1u, object("a")->transactions_in_flight);
    EXPECT_EQ(std::vector<OnodeRef>{object("a")}, txn.touched_onodes);
    omap.mark_changed(TxnMark{nullptr, 5});
    EXPECT_EQ(5u, object("a")->last_omap_change.seq);
    EXPECT_FALSE(object("a")->omap_changed);
    txn.unpin();
    object("a")->last_omap_change = {};
  }
  EXPECT_EQ(0u, object("source")->transactions_in_flight);
}

TEST_F(ObjectTxnTest, WhatIsForgottenLeavesTheCacheThoughItIsPinned)
{
  ObjectTxn failed;
  const ghobject_t oid = add("a")->oid;
  failed.dirty(onode_cache.get(oid));
  const uint64_t bytes_before = onode_cache.bytes();
  EXPECT_GT(bytes_before, 0u);
  for (const OnodeRef& o : failed.touched_onodes) {
    onode_cache.forget(o);
    onode_cache.forget(o);   // of what is not there, nothing
  }
  EXPECT_FALSE(onode_cache.get(oid));
  EXPECT_EQ(0u, onode_cache.bytes());
  EXPECT_EQ(0u, onode_cache.count());
  // Another one of this name may come before the transaction has gone.
  add("a");
  failed.unpin();
  EXPECT_TRUE(onode_cache.get(oid));
}

TEST_F(ObjectTxnTest, AForgottenReferenceMapIsReadFromItsRowAgain)
{
  write("a", 0, pattern(100000, 1));
  clone_range("a", "b", 0, 100000, 0);
  engine->drain();
  auto failed = begin();
  ASSERT_EQ(0, data->remove(*failed, object("b")));
  ASSERT_EQ(0, data->clone_range(*failed, object("a"), object("c"), 0, 100000, 0));
  ASSERT_FALSE(failed->dirty_reference_maps.empty());
  engine->drain();
  for (const ReferenceMapRef& map : failed->dirty_reference_maps)
    references->forget(map);
  for (const char* name : {"a", "b", "c"})
    onodes.erase(name);
  EXPECT_EQ(0u, references->count());
  engine->unreserve(failed->reserved_bytes);
  failed->unpin();
  failed.reset();
  EXPECT_EQ(pattern(100000, 1), read_all("b"));
  object("a");
  check_ownership();
  remove("b");
  EXPECT_EQ(pattern(100000, 1), read_all("a"));
  check_ownership();
}

TEST_F(ObjectTxnTest, BytesOfAFailedTransactionAreNotReadFromTheCache)
{
  write("a", 0, pattern(40000, 1));
  engine->drain();
  auto failed = begin();
  ceph::buffer::list bl;
  bl.append(pattern(40000, 2));
  ASSERT_EQ(0, data->write(*failed, object("a"), 0, bl));
  EXPECT_EQ(pattern(40000, 2), read_all("a"));   // which puts them into the cache
  const std::vector<MappedExtent> written = extents("a");
  engine->drain();
  onodes.erase("a");
  engine->unreserve(failed->reserved_bytes);
  engine->abandon(*failed);
  failed->unpin();
  EXPECT_EQ(pattern(40000, 1), read_all("a"));
  // The slots are taken again by others.
  bool taken_again = false;
  for (unsigned i = 0; i < 200 && !taken_again; ++i) {
    const std::string name = "other" + std::to_string(i);
    write(name, 0, pattern(40000, 10 + i));
    ASSERT_EQ(pattern(40000, 10 + i), read_all(name));
    for (const MappedExtent& e : extents(name)) {
      for (const MappedExtent& w : written)
        taken_again |= e.physical.container == w.physical.container &&
            e.physical.block < w.physical.end() && w.physical.block < e.physical.end();
    }
  }
  EXPECT_TRUE(taken_again);
}

TEST_F(ObjectTxnTest, ContentsMoveAndTheirPlaceInMemoryStays)
{
  ObjectTxn txn;
  const OnodeRef from = object("from"), to = object("to");
  const std::string from_key = from->key;
  from->size = 10;
  from->nid = 77;
  from->has_omap = true;
  from->shards[0].has_row = true;
  from->attrs["_"] = ceph::buffer::copy("value", 5);
  txn.dirty(from);
  move_contents(*from, *to);
  EXPECT_EQ(77u, to->nid);
  EXPECT_EQ(10u, to->size);
  EXPECT_TRUE(to->has_omap && to->exists && to->shards.at(0).has_row);
  EXPECT_EQ(1u, to->attrs.size());
  EXPECT_EQ(0u, to->transactions_in_flight);
  EXPECT_EQ(0u, from->nid);
  EXPECT_TRUE(!from->exists && !from->has_omap && from->attrs.empty() && from->shards.empty());
  EXPECT_TRUE(from->dirty);
  EXPECT_EQ(1u, from->transactions_in_flight);
  EXPECT_EQ(from_key, from->key);
  reset_contents(*to);
  EXPECT_FALSE(to->exists);
  txn.unpin();
}

}  // namespace tablestore
