// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// How large the caches may be, and which of them: memory/.
#include <gtest/gtest.h>

#include "common/ceph_context.h"
#include "global/global_context.h"
#include "include/mempool.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/memory/cache_share.h"
#include "os/tablestore/mounted_store.h"
#include "os/tablestore/txn/txn_throttle.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;
using tablestore::AgeBins;
using tablestore::CacheShare;
using tablestore::CacheShares;
using tablestore::DataCache;
using tablestore::MemoryLimits;
using tablestore::Onode;
using tablestore::OnodeCache;
using tablestore::OnodeRef;
using tablestore::block_bytes;
using PriorityCache::Priority;

namespace {

constexpr uint64_t plenty = 256 * MiB;

OnodeRef make_onode(unsigned number)
{
  auto onode = std::make_shared<Onode>();
  onode->oid = object("object-" + std::to_string(number), 1, number * 2654435761u);
  onode->key = std::string(64, 'k');
  return onode;
}

uint64_t in_pool(mempool::pool_index_t pool)
{
  return mempool::get_pool(pool).allocated_bytes();
}

void fill(DataCache& cache, uint32_t first_block, uint32_t blocks)
{
  for (uint32_t block = first_block; block < first_block + blocks; ++block)
    cache.put(tablestore::Run{0, block, 1}, zeros(block_bytes));
}

/// What a cache asks for at each priority, where it is given nothing.
template <typename Cache>
std::vector<uint64_t> requests(const CacheShare<Cache>& share)
{
  std::vector<uint64_t> all;
  for (int pri = 0; pri <= Priority::LAST; ++pri)
    all.push_back(share.request_cache_bytes(Priority(pri), plenty));
  return all;
}

}  // namespace

TEST(TableStoreAgeBins, CountsBytesByWhenTheyWereLastUsed)
{
  AgeBins bins;
  bins.set_count(3);
  AgeBins::Bin a, b;
  bins.use(a, 100);
  bins.use(b, 10);
  bins.shift();
  bins.use(a, 100);
  EXPECT_EQ(100u, bins.sum(0, 1));
  EXPECT_EQ(10u, bins.sum(1, 2));
  AgeBins::resize(b, 10, 30);
  EXPECT_EQ(130u, bins.sum(0, 3));
  bins.shift();
  bins.shift();
  EXPECT_EQ(100u, bins.sum(0, 3));   // b's bin has been shifted out
  bins.use(b, 30);
  EXPECT_EQ(30u, bins.sum(0, 1));
  EXPECT_EQ(0u, bins.sum(5, 9));
}

TEST(TableStoreCacheShare, AsksForWhatWasUsedOfLateFirst)
{
  DataCache cache(plenty);
  CacheShare<DataCache> share(cache, "data");
  share.import_bins({1, 3});
  fill(cache, 0, 40);
  share.shift_bins();
  fill(cache, 100, 20);
  bufferlist found;
  ASSERT_TRUE(cache.get(tablestore::Run{0, 0, 5}, found));
  std::vector<uint64_t> wanted(Priority::LAST + 1);
  wanted[Priority::PRI1] = 25 * block_bytes;
  wanted[Priority::PRI2] = 35 * block_bytes;
  EXPECT_EQ(wanted, requests(share));

  for (int i = 0; i < 5; ++i)
    share.shift_bins();
  fill(cache, 200, 1);
  wanted[Priority::PRI1] = block_bytes;
  wanted[Priority::PRI2] = 0;
  wanted[Priority::PRI10] = 60 * block_bytes;   // older than all bins, and still asked for
  EXPECT_EQ(wanted, requests(share));
}

TEST(TableStoreCacheShare, AsksForNoMoreThanIsMissing)
{
  DataCache cache(plenty);
  CacheShare<DataCache> share(cache, "data");
  share.import_bins({1});
  fill(cache, 0, 10);
  share.add_cache_bytes(Priority::PRI1, 4 * block_bytes);
  EXPECT_EQ(6 * block_bytes, share.request_cache_bytes(Priority::PRI1, plenty));
  share.add_cache_bytes(Priority::PRI1, 7 * block_bytes);
  EXPECT_EQ(0, share.request_cache_bytes(Priority::PRI1, plenty));
  EXPECT_EQ(11 * block_bytes, share.get_cache_bytes());
}

TEST(TableStoreCacheShare, ByAgeAreNeverMoreOrLessThanAll)
{
  OnodeCache cache(plenty);
  CacheShare<OnodeCache> share(cache, "onodes");
  share.import_bins({1, 2, 6});
  std::vector<OnodeRef> held;
  for (unsigned i = 0; i < 3000; ++i) {
    OnodeRef onode = cache.add(make_onode(i));
    if (i % 10 == 0) {
      onode->attrs["name"] = bufferptr(1000);
      cache.update_size(onode);
    }
    if (i % 100 == 0)
      share.shift_bins();
    if (i % 7 == 0)
      cache.get(make_onode(i / 2)->oid);
    if (i % 50 == 49)
      cache.forget(onode);
    if (i % 1000 == 999)
      cache.resize(cache.bytes() / 2);
    uint64_t sum = 0;
    for (const uint64_t bytes : requests(share))
      sum += bytes;
    ASSERT_EQ(cache.bytes(), sum) << i;
  }
  cache.resize(plenty);
  cache.clear();
  EXPECT_EQ(0u, cache.bytes());
}

TEST(TableStoreOnodeCache, ASmallerSizeEvictsDownToIt)
{
  OnodeCache cache(plenty);
  for (unsigned i = 0; i < 10000; ++i)
    cache.add(make_onode(i));
  const uint64_t before = cache.bytes();
  ASSERT_GT(before, 4 * MiB);
  cache.resize(before / 4);
  EXPECT_LE(cache.bytes(), before / 4);
  EXPECT_GT(cache.bytes(), before / 8);
}

TEST(TableStoreOnodeCache, IsInItsMempool)
{
  const uint64_t before = in_pool(mempool::mempool_tablestore_onode);
  {
    OnodeCache cache(plenty);
    for (unsigned i = 0; i < 1000; ++i)
      cache.add(make_onode(i));
    EXPECT_EQ(before + cache.bytes(), in_pool(mempool::mempool_tablestore_onode));
    cache.resize(cache.bytes() / 2);
    EXPECT_EQ(before + cache.bytes(), in_pool(mempool::mempool_tablestore_onode));
  }
  EXPECT_EQ(before, in_pool(mempool::mempool_tablestore_onode));
}

TEST(TableStoreTxnThrottle, WhatItHasLetThroughIsInItsMempool)
{
  const tablestore::StoreOptions options(g_ceph_context);
  const uint64_t before = in_pool(mempool::mempool_tablestore_txc);
  std::optional<tablestore::TxnThrottle> owner(std::in_place, g_ceph_context, options);
  tablestore::TxnThrottle& throttle = *owner;
  throttle.get(1, 5000);
  throttle.get(2, 300);
  EXPECT_EQ(before + 5300, in_pool(mempool::mempool_tablestore_txc));
  throttle.put(1, 300);
  EXPECT_EQ(before + 5000, in_pool(mempool::mempool_tablestore_txc));
  throttle.put(1, 4000);
  EXPECT_EQ(before + 1000, in_pool(mempool::mempool_tablestore_txc));
  owner.reset();   // as at the end of a store that was not umounted
  EXPECT_EQ(before, in_pool(mempool::mempool_tablestore_txc));
}

TEST(TableStoreMemoryLimits, CachesGetWhatBaseAndFragmentationLeave)
{
  MemoryLimits limits{.target = 4096 * MiB, .base = 768 * MiB, .cache_min = 128 * MiB,
                      .fragmentation = 0.25, .resize_interval_seconds = 1};
  EXPECT_EQ((3072 - 768) * MiB, limits.cache_max());
  EXPECT_EQ((3072 - 768 - 100) * MiB, limits.cache_max(100 * MiB));
  EXPECT_EQ(128 * MiB, limits.cache_max(2300 * MiB));
  limits.target = 896 * MiB;
  EXPECT_EQ(128 * MiB, limits.cache_max());
}

/// A store that follows osd_memory_target.
class StoreMemory : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "of TableStore";
    set("tablestore_cache_size", "0");
    limit(896 * MiB, 600 * MiB);   // 161 MiB for caches
    make_and_mount();
    ch = make_collection(pg(1));
  }
  void limit(uint64_t target, uint64_t base)
  {
    set("osd_memory_base", std::to_string(base));
    set("osd_memory_target", std::to_string(target));
  }
  tablestore::MountedStore& parts() { return static_cast<TableStore&>(*store).parts(); }
  uint64_t of_table() { return parts().engine.memory().table_cache_bytes; }
  uint64_t in_caches()
  {
    return of_table() + parts().onodes.bytes() + parts().data_cache.bytes();
  }

  static ghobject_t numbered(unsigned i) { return object("object-" + std::to_string(i)); }
  static constexpr unsigned large = 96, small = 20000;

  /// 384 MiB of data, some ten MiB of onodes, and rows of omap that no file of the table can do
  /// without.
  void fill()
  {
    for (unsigned i = 0; i < large; ++i) {
      Transaction t;
      t.write(ch->cid, numbered(i), 0, 4 * MiB, content(i, 4 * MiB));
      std::map<std::string, bufferlist> keys;
      for (unsigned k = 0; k < 200; ++k)
        keys["key-" + std::to_string(k)] = content(i * 1000 + k, 2 * KiB);
      t.omap_setkeys(ch->cid, numbered(i), keys);
      queue(ch, std::move(t));
    }
    for (unsigned i = large; i < large + small; i += 100) {
      Transaction t;
      for (unsigned n = i; n < i + 100; ++n)
        t.touch(ch->cid, numbered(n));
      queue(ch, std::move(t));
    }
    wait_durable(ch);
  }
  void read_all()
  {
    for (unsigned i = 0; i < large; ++i) {
      ASSERT_TRUE(same(content(i, 4 * MiB), read(ch, numbered(i))));
      ASSERT_EQ(200u, omap(ch, numbered(i)).size());
      parts().memory.tick();   // as a second that has passed
      most_in_caches = std::max(most_in_caches, in_caches());
    }
    for (unsigned i = large; i < large + small; ++i)
      size_of(ch, numbered(i));
    most_in_caches = std::max(most_in_caches, in_caches());
  }

  Handle ch;
  uint64_t most_in_caches = 0;
};

TEST_F(StoreMemory, CachesKeepWithinWhatTheTargetLeaves)
{
  fill();
  ASSERT_EQ(0, store->flush_cache());
  read_all();
  const uint64_t most = MemoryLimits{.target = 896 * MiB, .base = 600 * MiB,
                                     .cache_min = 128 * MiB, .fragmentation = 0.15}.cache_max();
  EXPECT_LE(most_in_caches, most);
  EXPECT_GT(most_in_caches, 64 * MiB);   // there is more to hold than fits
  const tablestore::EngineMemory memory = parts().engine.memory();
  EXPECT_LE(memory.memtable_bytes, 20 * MiB);   // of 8 MiB
  EXPECT_EQ(0u, memory.in_flight_bytes);
}

TEST_F(StoreMemory, ATargetThatIsLoweredIsMet)
{
  limit(4096 * MiB, 600 * MiB);
  parts().memory.tick();
  fill();
  ASSERT_EQ(0, store->flush_cache());
  read_all();
  ASSERT_GT(in_caches(), 200 * MiB) << "nothing to give back";
  limit(896 * MiB, 700 * MiB);   // the least that there is for caches: 128 MiB
  parts().memory.tick();
  EXPECT_LE(in_caches(), 128 * MiB);
  limit(4096 * MiB, 600 * MiB);
  EXPECT_TRUE(eventually([this] {
    read_all();
    return in_caches() > 200 * MiB;
  }));
}

TEST_F(StoreMemory, ASumThatIsFixedIsKeptWhateverTheTarget)
{
  fill();
  set("tablestore_cache_size", "40M");
  parts().memory.tick();
  EXPECT_LE(in_caches(), 40 * MiB);
  limit(4096 * MiB, 600 * MiB);
  read_all();
  EXPECT_LE(most_in_caches, 40 * MiB);
  EXPECT_LE(of_table(), uint64_t(CacheShares::table * 40 * MiB));
  set("tablestore_cache_size", "0");
  EXPECT_TRUE(eventually([this] {
    read_all();
    return in_caches() > 200 * MiB;
  }));
}

TEST_F(StoreMemory, NothingIsLeftInTheMempoolOfTransactions)
{
  for (unsigned i = 0; i < 50; ++i)
    write(ch, numbered(i), 0, content(i, 64 * KiB));
  umount();
  EXPECT_EQ(0u, in_pool(mempool::mempool_tablestore_txc));
}

TEST_F(StoreMemory, WhatIsReadIsInTheMempoolOfData)
{
  // Not by what this process has mapped, of which earlier tests are a part.
  set("tablestore_cache_size", std::to_string(160 * MiB));
  commit(ch, [this] {
    Transaction t;
    t.write(ch->cid, numbered(0), 0, 4 * MiB, content(0, 4 * MiB));
    return t;
  }());
  remount({&ch});   // nothing is in flight, so the object is read as one and kept in copies
  const uint64_t before = in_pool(mempool::mempool_tablestore_data);
  ASSERT_TRUE(same(content(0, 4 * MiB), read(ch, numbered(0))));
  EXPECT_GE(in_pool(mempool::mempool_tablestore_data), before + 4 * MiB);
  EXPECT_EQ(parts().data_cache.bytes(), in_pool(mempool::mempool_tablestore_data) - before);
}
