// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// The order of rows is the order of objects: listing depends on it.

#include <algorithm>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "common/pretty_binary.h"
#include "os/tablestore/rows/keys.h"

using namespace tablestore;

namespace {

/// Few values of each field, of the kind that go wrong, so that neighbours in the order are common.
class RandomObjects {
 public:
  explicit RandomObjects(uint64_t seed) : random(seed) {}

  std::string string()
  {
    static const std::string pieces[] = {
      "", "a", "b", "!", "\"", "#", "$", "}", "~", std::string("\0", 1), "\x7f", "\x80", "\xff",
      "<", "=", ">", "~7e", "#23", "ab", std::string("a\0b", 3)};
    std::string s;
    for (int i = pick(3); i > 0; --i) {
      s += pieces[pick(std::size(pieces))];
    }
    return s;
  }

  ghobject_t object()
  {
    static const int64_t pools[] = {std::numeric_limits<int64_t>::min(), -3, -2, -1, 0, 1, 255,
                                    std::numeric_limits<int64_t>::max()};
    static const uint32_t hashes[] = {0, 1, 2, 0x80000000u, 0x7fffffffu, 0xffffffffu, 0xfffffffeu};
    static const uint64_t snaps[] = {0, 1, 0x100, CEPH_NOSNAP, CEPH_SNAPDIR};
    static const uint64_t generations[] = {0, 1, 0xff00, ghobject_t::NO_GEN};
    static const int8_t shards[] = {-1, 0, 1, 127, -128};
    const std::string key = pick(2) ? string() : std::string();
    return ghobject_t(hobject_t(object_t(string()), key, snaps[pick(std::size(snaps))],
                                hashes[pick(std::size(hashes))], pools[pick(std::size(pools))],
                                pick(2) ? string() : std::string()),
                      generations[pick(std::size(generations))],
                      shard_id_t(shards[pick(std::size(shards))]));
  }

  size_t pick(size_t below) { return random() % below; }

 private:
  std::mt19937_64 random;
};

bool in_range(const std::string& key, const std::string& start, const std::string& end)
{
  return start <= key && key < end;
}

}  // namespace

TEST(TableStoreKeys, OnodeKeyDecodesToTheObject)
{
  RandomObjects objects(1);
  for (int i = 0; i < 20000; ++i) {
    const ghobject_t oid = objects.object();
    ghobject_t decoded;
    ASSERT_TRUE(decode_onode_key(onode_key(oid), &decoded)) << oid;
    ASSERT_EQ(oid, decoded);
    ASSERT_EQ(oid.hobj.get_key(), decoded.hobj.get_key());
  }
}

// Else two keys would be one object.
TEST(TableStoreKeys, OnodeKeysThatAreWrittenInAnotherWayAreNone)
{
  const hobject_t keyed(object_t("name"), "locator", 3, 0x12345678, 4, "a#b");
  const std::string key = onode_key(ghobject_t(keyed));
  ghobject_t decoded;
  ASSERT_TRUE(decode_onode_key(key, &decoded));
  auto refused = [&](std::string_view part, std::string_view other) {
    std::string changed = key;
    const size_t at = changed.find(part);
    ASSERT_NE(std::string::npos, at) << part;
    changed.replace(at, part.size(), other);
    EXPECT_FALSE(decode_onode_key(changed, &decoded)) << pretty_binary_string(changed);
  };
  refused("a#23b", "a#41b");             // needs no escape
  refused("a#23b", "a~23b");             // the other escape's
  refused("a#23b", "a\x01" "b");        // needs one
  refused("!>name!", "!<name!");         // name and key compare otherwise
  refused("locator!>name!", "name!>name!");
  refused("locator!>name!", "!>name!");  // no key at all
}

TEST(TableStoreKeys, CollectionNamesThatAreWrittenInAnotherWayAreNone)
{
  const coll_t pg(spg_t(pg_t(0x1a, 3), shard_id_t(1)));
  coll_t decoded;
  for (const coll_t& cid : {coll_t(), pg, pg.get_temp(), coll_t(spg_t(pg_t(0, 12)))}) {
    ASSERT_TRUE(decode_collection_key(collection_key(cid), &decoded)) << cid;
    EXPECT_EQ(cid, decoded);
  }
  for (const char* key : {"C", "Cmeta ", "C3.1A_head", "C03.1a_head", "C 3.1a_head", "C3.1a",
                          "C3.1", "C3.1as1_tail", "C3.1as1s1_head", "C3.1as300_head", "C_head",
                          "Mmeta", "C99999999999999999999.1_head", "C3.1a_head_head"}) {
    EXPECT_FALSE(decode_collection_key(key, &decoded)) << key;
  }
  EXPECT_FALSE(decode_collection_key("", &decoded));
}

TEST(TableStoreKeys, OnodeKeysOrderAsObjects)
{
  RandomObjects objects(2);
  std::vector<ghobject_t> oids;
  for (int i = 0; i < 1500; ++i) {
    oids.push_back(objects.object());
  }
  // many that differ in the name and key only
  for (int i = 0; i < 500; ++i) {
    oids.emplace_back(hobject_t(object_t(objects.string()), objects.string(), 1, 7, 3, ""));
  }
  std::vector<std::string> keys;
  for (const ghobject_t& oid : oids) {
    keys.push_back(onode_key(oid));
  }
  for (size_t i = 0; i < oids.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto by_object = oids[i] <=> oids[j];
      const int by_key = keys[i].compare(keys[j]);
      ASSERT_EQ(by_object < 0, by_key < 0) << oids[i] << " and " << oids[j];
      ASSERT_EQ(by_object > 0, by_key > 0) << oids[i] << " and " << oids[j];
    }
  }
}

TEST(TableStoreKeys, MaxObjectsSortLast)
{
  RandomObjects objects(3);
  const std::string max = onode_key(ghobject_t::get_max());
  const auto [first, last] = all_onodes_range();
  for (int i = 0; i < 2000; ++i) {
    const ghobject_t oid = objects.object();
    const std::string key = onode_key(oid);
    ASSERT_LT(key, max);
    ASSERT_TRUE(in_range(key, first, last));
    const ghobject_t hobject_max(hobject_t(hobject_t::get_max()), ghobject_t::NO_GEN,
                                 oid.shard_id);
    ASSERT_LT(oid, hobject_max);
    ASSERT_LT(key, onode_key(hobject_max));
    ghobject_t above = hobject_max;
    above.shard_id = shard_id_t(oid.shard_id.id == 127 ? 127 : oid.shard_id.id + 1);
    if (above.shard_id != oid.shard_id) {
      above.hobj = hobject_t();
      ASSERT_LT(onode_key(hobject_max), onode_key(above));
    }
  }
  ghobject_t ignored;
  EXPECT_FALSE(decode_onode_key(max, &ignored));
}

TEST(TableStoreKeys, DamagedOnodeKeysAreRefused)
{
  ghobject_t ignored;
  const ghobject_t oid(hobject_t(object_t("name~"), "key#", 4, 5, 6, "space"), 7, shard_id_t(1));
  const std::string key = onode_key(oid);
  for (size_t length = 0; length < key.size(); ++length) {
    EXPECT_FALSE(decode_onode_key(key.substr(0, length), &ignored)) << length;
  }
  EXPECT_FALSE(decode_onode_key(key + "x", &ignored));
  EXPECT_FALSE(decode_onode_key("x" + key.substr(1), &ignored));
  EXPECT_FALSE(decode_onode_key(shard_key(1, 2), &ignored));
}

TEST(TableStoreKeys, CollectionRangeHoldsItsObjectsOnly)
{
  RandomObjects objects(4);
  for (int i = 0; i < 5000; ++i) {
    ghobject_t oid = objects.object();
    oid.hobj.pool = objects.pick(2) ? 5 : -2 - 5;
    oid.shard_id = objects.pick(2) ? shard_id_t::NO_SHARD : shard_id_t(2);
    const int bits = objects.pick(33);
    const uint32_t ps = bits == 0 ? 0 : oid.hobj.get_hash() & (0xffffffffu >> (32 - bits));
    const uint32_t other_ps = bits == 0 ? 0 : ps ^ (1u << (bits - 1));
    std::string temp_start, temp_end, start, end;
    const std::string key = onode_key(oid);

    collection_key_range(coll_t(spg_t(pg_t(ps, 5), oid.shard_id)), bits, &temp_start, &temp_end,
                         &start, &end);
    const bool temp = oid.hobj.pool < 0;
    ASSERT_EQ(temp, in_range(key, temp_start, temp_end)) << oid << " bits " << bits;
    ASSERT_EQ(!temp, in_range(key, start, end)) << oid << " bits " << bits;
    ASSERT_LE(temp_end, start);

    if (bits > 0) {
      collection_key_range(coll_t(spg_t(pg_t(other_ps, 5), oid.shard_id)), bits, &temp_start,
                           &temp_end, &start, &end);
      ASSERT_FALSE(in_range(key, temp_start, temp_end));
      ASSERT_FALSE(in_range(key, start, end));
    }
    collection_key_range(coll_t(spg_t(pg_t(ps, 6), oid.shard_id)), bits, &temp_start, &temp_end,
                         &start, &end);
    ASSERT_FALSE(in_range(key, temp_start, temp_end));
    ASSERT_FALSE(in_range(key, start, end));
  }
}

TEST(TableStoreKeys, MetaCollectionHoldsAllHashes)
{
  std::string temp_start, temp_end, start, end;
  collection_key_range(coll_t(), 0, &temp_start, &temp_end, &start, &end);
  EXPECT_EQ(temp_start, temp_end);
  for (uint32_t hash : {0u, 1u, 0xffffffffu}) {
    const ghobject_t oid(hobject_t(object_t("\xff\xff"), "", CEPH_NOSNAP, hash, -1, "\xff"));
    EXPECT_TRUE(in_range(onode_key(oid), start, end)) << hash;
  }
  const ghobject_t other(hobject_t(object_t("a"), "", CEPH_NOSNAP, 0, 0, ""));
  EXPECT_FALSE(in_range(onode_key(other), start, end));
}

TEST(TableStoreKeys, OtherKeysDecodeToTheirParts)
{
  uint64_t nid;
  uint32_t a, b;
  int64_t pool;
  ASSERT_TRUE(decode_shard_key(shard_key(0x0102030405060708, 9), &nid, &a));
  EXPECT_EQ(0x0102030405060708u, nid);
  EXPECT_EQ(9u, a);
  ASSERT_TRUE(decode_inline_key(inline_key(77), &nid));
  EXPECT_EQ(77u, nid);
  ASSERT_TRUE(decode_reference_map_key(reference_map_key(3, 0xfffffff0), &a, &b));
  EXPECT_EQ(3u, a);
  EXPECT_EQ(0xfffffff0u, b);
  for (int64_t p : {std::numeric_limits<int64_t>::min(), int64_t(-3), int64_t(0), int64_t(9)}) {
    ASSERT_TRUE(decode_pool_stats_key(pool_stats_key(p), &pool));
    EXPECT_EQ(p, pool);
  }
  for (const coll_t& cid : {coll_t(), coll_t(spg_t(pg_t(0x1f, 4), shard_id_t(2)))}) {
    coll_t decoded;
    ASSERT_TRUE(decode_collection_key(collection_key(cid), &decoded));
    EXPECT_EQ(cid, decoded);
  }
}

TEST(TableStoreKeys, RangesOfAHashHoldTempObjectsAndOthersEachOnce)
{
  const auto of = [](int64_t pool, uint32_t hash, const char* name) {
    return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, hash, pool, ""));
  };
  for (const int64_t pool : {int64_t(3), int64_t(-5), int64_t(-1)}) {
    const auto ranges = same_hash_ranges(of(pool, 0x1234, "any"));
    const auto count = [&](const ghobject_t& oid) {
      int times = 0;
      for (const auto& [first, last] : ranges)
        times += in_range(onode_key(oid), first, last);
      return times;
    };
    EXPECT_EQ(1, count(of(pool, 0x1234, "other")));
    EXPECT_EQ(1, count(of(-2 - pool, 0x1234, "other")));
    EXPECT_EQ(0, count(of(pool, 0x1235, "other")));
    EXPECT_EQ(0, count(of(pool, 0x91234, "other")));
    EXPECT_EQ(0, count(of(pool + 1, 0x1234, "other")));
  }
}

TEST(TableStoreKeys, OmapRangesHoldOneObjectOrOnePool)
{
  const std::string prefix = omap_prefix(3, 10);
  const std::string next_object = omap_prefix(3, 11);
  const std::string other_pool = omap_prefix(-4, 10);
  const auto [first, last] = omap_key_range(prefix);
  const auto [all_first, all_last] = omap_range(prefix);
  const auto [pool_first, pool_last] = omap_pool_range(3);
  for (const std::string& user_key :
       {std::string(), std::string("\xff\xff"), std::string("a\0", 2)}) {
    const std::string key = omap_key(prefix, user_key);
    EXPECT_TRUE(in_range(key, first, last));
    EXPECT_TRUE(in_range(key, all_first, all_last));
    EXPECT_TRUE(in_range(key, pool_first, pool_last));
    EXPECT_EQ(user_key, decode_omap_key(prefix, key));
    EXPECT_FALSE(in_range(omap_key(next_object, user_key), all_first, all_last));
    EXPECT_TRUE(in_range(omap_key(next_object, user_key), pool_first, pool_last));
    EXPECT_FALSE(in_range(omap_key(other_pool, user_key), pool_first, pool_last));
  }
  EXPECT_FALSE(in_range(omap_header_key(prefix), first, last));
  EXPECT_TRUE(in_range(omap_header_key(prefix), all_first, all_last));
  int64_t pool;
  uint64_t nid;
  ASSERT_TRUE(decode_omap_prefix(omap_header_key(other_pool), &pool, &nid));
  EXPECT_EQ(-4, pool);
  EXPECT_EQ(10u, nid);
}
