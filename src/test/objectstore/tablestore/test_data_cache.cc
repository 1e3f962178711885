// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include <map>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "include/mempool.h"
#include "os/tablestore/object/data_cache.h"

using namespace tablestore;
using ceph::bufferlist;

namespace {

constexpr uint64_t plenty = 256 << 20;

/// Blocks that say which they are, and of which generation.
bufferlist content(const Extent& extent, uint32_t generation = 0)
{
  ceph::buffer::ptr memory(ceph::buffer::create_aligned(extent.length_bytes(), block_bytes));
  auto* words = reinterpret_cast<uint32_t*>(memory.c_str());
  for (uint64_t i = 0; i < extent.length_bytes() / 4; ++i)
    words[i] = (extent.block + i * 4 / block_bytes) * 2654435761u + extent.container + generation;
  bufferlist bl;
  bl.push_back(std::move(memory));
  return bl;
}

bool holds(DataCache& cache, const Extent& extent, uint32_t generation = 0)
{
  bufferlist found;
  if (!cache.get(extent, found)) {
    EXPECT_EQ(0u, found.length());
    return false;
  }
  EXPECT_TRUE(found.contents_equal(content(extent, generation)));
  return true;
}

}  // namespace

TEST(TableStoreDataCache, FindsPartsAndSequencesOfWhatWasPut)
{
  DataCache cache(plenty);
  cache.put(Extent{1, 10, 20}, content(Extent{1, 10, 20}));
  cache.put(Extent{1, 30, 100}, content(Extent{1, 30, 100}));
  EXPECT_TRUE(holds(cache, Extent{1, 10, 20}));
  EXPECT_TRUE(holds(cache, Extent{1, 15, 3}));
  EXPECT_TRUE(holds(cache, Extent{1, 10, 120}));
  EXPECT_TRUE(holds(cache, Extent{1, 60, 10}));
  EXPECT_FALSE(holds(cache, Extent{1, 9, 2}));
  EXPECT_FALSE(holds(cache, Extent{1, 129, 2}));
  EXPECT_FALSE(holds(cache, Extent{2, 10, 1}));
  EXPECT_EQ(120 * block_bytes, cache.bytes());
}

TEST(TableStoreDataCache, GetAppendsToWhatIsThere)
{
  DataCache cache(plenty);
  cache.put(Extent{0, 5, 1}, content(Extent{0, 5, 1}));
  bufferlist out;
  out.append("before");
  ASSERT_TRUE(cache.get(Extent{0, 5, 1}, out));
  EXPECT_EQ(6 + block_bytes, out.length());
  ASSERT_FALSE(cache.get(Extent{0, 5, 2}, out));
  EXPECT_EQ(6 + block_bytes, out.length());
}

TEST(TableStoreDataCache, ForgetsExactlyWhatWasInvalidated)
{
  DataCache cache(plenty);
  cache.put(Extent{0, 0, 200}, content(Extent{0, 0, 200}));
  cache.invalidate(Extent{0, 50, 40});
  EXPECT_TRUE(holds(cache, Extent{0, 0, 50}));
  EXPECT_TRUE(holds(cache, Extent{0, 90, 110}));
  for (uint32_t block = 50; block < 90; ++block)
    EXPECT_FALSE(holds(cache, Extent{0, block, 1}));
  EXPECT_EQ(160 * block_bytes, cache.bytes());
}

TEST(TableStoreDataCache, LastPutWins)
{
  DataCache cache(plenty);
  cache.put(Extent{0, 0, 64}, content(Extent{0, 0, 64}, 1));
  cache.put(Extent{0, 10, 5}, content(Extent{0, 10, 5}, 2));
  EXPECT_TRUE(holds(cache, Extent{0, 0, 10}, 1));
  EXPECT_TRUE(holds(cache, Extent{0, 10, 5}, 2));
  EXPECT_TRUE(holds(cache, Extent{0, 15, 49}, 1));
  EXPECT_EQ(64 * block_bytes, cache.bytes());
}

TEST(TableStoreDataCache, LeastRecentlyUsedGoFirst)
{
  // all in one granule, so in one shard of 8 blocks
  DataCache cache(16 * 8 * block_bytes);
  for (uint32_t block = 0; block < 8; ++block)
    cache.put(Extent{0, block, 1}, content(Extent{0, block, 1}));
  EXPECT_TRUE(holds(cache, Extent{0, 0, 1}));
  cache.put(Extent{0, 20, 2}, content(Extent{0, 20, 2}));
  EXPECT_TRUE(holds(cache, Extent{0, 0, 1}));
  EXPECT_FALSE(holds(cache, Extent{0, 1, 1}));
  EXPECT_FALSE(holds(cache, Extent{0, 2, 1}));
  EXPECT_TRUE(holds(cache, Extent{0, 3, 1}));
  cache.resize(16 * 2 * block_bytes);
  EXPECT_EQ(2 * block_bytes, cache.bytes());
  cache.clear();
  EXPECT_EQ(0u, cache.bytes());
}

TEST(TableStoreDataCache, DoesNotPinLargerMemory)
{
  DataCache cache(plenty);
  const bufferlist large = content(Extent{0, 0, 64});
  bufferlist part;
  part.substr_of(large, block_bytes, block_bytes);
  const int references = large.front().raw_nref();
  cache.put(Extent{0, 1, 1}, part);
  EXPECT_EQ(references, large.front().raw_nref());
  EXPECT_TRUE(holds(cache, Extent{0, 1, 1}));
}

TEST(TableStoreDataCache, IsInItsMempool)
{
  const auto in_pool = [] {
    return mempool::get_pool(mempool::mempool_tablestore_data).allocated_bytes();
  };
  const uint64_t before = in_pool();
  {
    DataCache cache(plenty);
    cache.put(Extent{0, 0, 8}, content(Extent{0, 0, 8}));
    // Parts of larger memory, which are copied; then the head and tail that an overlap leaves.
    bufferlist part;
    part.substr_of(content(Extent{0, 0, 64}), 0, 8 * block_bytes);
    cache.put(Extent{0, 16, 8}, part);
    cache.put(Extent{0, 32, 8}, content(Extent{0, 32, 8}));
    cache.invalidate(Extent{0, 34, 1});
    EXPECT_EQ(23 * block_bytes, cache.bytes());
    EXPECT_EQ(before + cache.bytes(), in_pool());
  }
  EXPECT_EQ(before, in_pool());
}

TEST(TableStoreDataCache, BehavesLikeAMapOfBlocks)
{
  std::mt19937 random(3);
  DataCache cache(plenty);
  std::map<uint32_t, uint32_t> model;  // block -> generation
  for (uint32_t step = 1; step < 4000; ++step) {
    Extent extent{0, static_cast<uint32_t>(random() % 300), 0};
    extent.blocks = 1 + random() % (random() % 4 ? 8 : 130);
    switch (random() % 3) {
    case 0:
      cache.put(extent, content(extent, step));
      for (uint32_t b = extent.block; b < extent.end(); ++b)
        model[b] = step;
      break;
    case 1:
      cache.invalidate(extent);
      for (uint32_t b = extent.block; b < extent.end(); ++b)
        model.erase(b);
      break;
    case 2: {
      bufferlist expected;
      bool all = true;
      for (uint32_t b = extent.block; b < extent.end() && all; ++b) {
        all = model.count(b);
        if (all)
          expected.append(content(Extent{0, b, 1}, model[b]));
      }
      bufferlist found;
      ASSERT_EQ(all, cache.get(extent, found));
      ASSERT_TRUE(!all || expected.contents_equal(found));
      break;
    }
    }
    ASSERT_EQ(model.size() * block_bytes, cache.bytes());
  }
}

TEST(TableStoreDataCache, ThreadsDoNotDisturbEachOther)
{
  DataCache cache(4 << 20);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 2000; ++i) {
        const Extent extent{0, static_cast<uint32_t>(random() % 1000),
                            static_cast<uint32_t>(1 + random() % 16)};
        bufferlist found;
        if (cache.get(extent, found)) {
          ASSERT_TRUE(found.contents_equal(content(extent)));
        } else if (random() % 4 == 0) {
          cache.invalidate(extent);
        } else {
          cache.put(extent, content(extent));
        }
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  EXPECT_LE(cache.bytes(), uint64_t(4 << 20));
}
