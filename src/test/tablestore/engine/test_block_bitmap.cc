#include <algorithm>
#include <gtest/gtest.h>

#include <random>

#include "os/tablestore/engine/container/block_bitmap.h"

namespace tablestore {
namespace {

constexpr uint32_t chunk = BlockBitmap::chunk_blocks;
constexpr uint32_t no_limit = UINT32_MAX;

std::optional<uint32_t> find_clear_run(const BlockBitmap& bitmap, uint32_t from, uint32_t count) {
  const BlockBitmap* const one[] = {&bitmap};
  return BlockBitmap::find_clear_run(one, from, count, no_limit);
}

TEST(BlockBitmap, StartsClear) {
  BlockBitmap bitmap(100);
  EXPECT_EQ(bitmap.blocks(), 100u);
  EXPECT_EQ(bitmap.count(), 0u);
  EXPECT_FALSE(bitmap.any(0, 100));
  EXPECT_EQ(bitmap.words().size(), 2u);
}

TEST(BlockBitmap, SetAndClearTouchOnlyTheRange) {
  BlockBitmap bitmap(256);
  bitmap.set(60, 80);
  EXPECT_EQ(bitmap.count(), 80u);
  EXPECT_FALSE(bitmap.test(59));
  EXPECT_TRUE(bitmap.all(60, 80));
  EXPECT_FALSE(bitmap.test(140));
  bitmap.clear(64, 64);
  EXPECT_EQ(bitmap.count(), 16u);
  EXPECT_TRUE(bitmap.all(60, 4));
  EXPECT_FALSE(bitmap.any(64, 64));
  EXPECT_TRUE(bitmap.all(128, 12));
}

TEST(BlockBitmap, AnEmptyRangeHasNoneOfAnythingAndAllOfIt) {
  BlockBitmap bitmap(64);
  EXPECT_FALSE(bitmap.any(64, 0));
  EXPECT_TRUE(bitmap.all(64, 0));
  EXPECT_EQ(bitmap.count(64, 0), 0u);
}

TEST(BlockBitmap, GrowKeepsWhatIsThere) {
  BlockBitmap bitmap(0);
  bitmap.grow(10);
  bitmap.set(0, 10);
  bitmap.grow(70);
  EXPECT_EQ(bitmap.blocks(), 70u);
  EXPECT_EQ(bitmap.next_clear(0), 10u);
  bitmap.set(69, 1);
  bitmap.grow(5);
  EXPECT_EQ(bitmap.blocks(), 70u);
  EXPECT_TRUE(bitmap.test(69));
}

TEST(BlockBitmap, ARunThatReachesPastTheEndIsNotFound) {
  BlockBitmap bitmap(70);
  bitmap.set(0, 64);
  EXPECT_EQ(find_clear_run(bitmap, 0, 4), 64u);
  EXPECT_EQ(find_clear_run(bitmap, 65, 4), std::nullopt);
  EXPECT_EQ(find_clear_run(bitmap, 0, 8), std::nullopt);
  EXPECT_EQ(find_clear_run(BlockBitmap(100), 0, 64), 0u);
  EXPECT_EQ(find_clear_run(BlockBitmap(100), 1, 64), std::nullopt);
}

TEST(BlockBitmap, AChunkThatGrowsIsNoLongerAllSet) {
  BlockBitmap bitmap(chunk + 10);
  bitmap.set(0, chunk + 10);
  bitmap.grow(3 * chunk);
  EXPECT_EQ(bitmap.count(), chunk + 10);
  EXPECT_EQ(bitmap.next_clear(0), chunk + 10);
  EXPECT_EQ(bitmap.count(chunk, chunk), 10u);
}

// What is alike costs a pointer per chunk, however it came to be so.
TEST(BlockBitmap, OnlyChunksThatAreNotAlikeTakeMemory) {
  BlockBitmap bitmap(64 * chunk);
  const uint64_t alike = 64 * sizeof(void*);
  EXPECT_EQ(bitmap.memory_bytes(), alike);
  bitmap.set(0, 64 * chunk);
  EXPECT_EQ(bitmap.memory_bytes(), alike);
  bitmap.clear(5, 1);
  const uint64_t one = bitmap.memory_bytes() - alike;
  EXPECT_GE(one, chunk / 8);
  EXPECT_LE(one, chunk / 8 + 8);
  bitmap.clear(chunk - 1, 2);
  EXPECT_EQ(bitmap.memory_bytes(), alike + 2 * one);
  bitmap.set(5, 1);
  bitmap.set(chunk - 1, 1);
  EXPECT_EQ(bitmap.memory_bytes(), alike + one);
  for (uint32_t b = chunk + 1; b < 2 * chunk; ++b) bitmap.clear(b, 1);
  EXPECT_EQ(bitmap.memory_bytes(), alike);
  EXPECT_EQ(bitmap.count(), 63 * chunk);
}

TEST(BlockBitmapDeathTest, ARangeOutsideIsRefused) {
  BlockBitmap bitmap(64);
  EXPECT_DEATH(bitmap.set(60, 5), "lies in its container");
  EXPECT_DEATH(bitmap.clear(UINT32_MAX, 2), "lies in its container");
}

// Every query against a loop over single bits.
TEST(BlockBitmap, AgreesWithSingleBits) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const uint32_t blocks = 1 + random() % (3 * chunk);
    BlockBitmap bitmap(blocks), other(blocks);
    std::vector<bool> bits(blocks), other_bits(blocks);
    for (int i = 0; i < 30; ++i) {
      const uint32_t first = random() % blocks;
      const uint32_t most = random() % 4 ? 200 : 2 * chunk;
      const uint32_t count = random() % std::min<uint32_t>(blocks - first + 1, most);
      const bool set = random() % 3;
      BlockBitmap& target = i % 2 ? bitmap : other;
      set ? target.set(first, count) : target.clear(first, count);
      std::vector<bool>& target_bits = i % 2 ? bits : other_bits;
      std::fill_n(target_bits.begin() + first, count, set);
    }
    for (uint32_t b = 0; b < blocks; ++b) ASSERT_EQ(bitmap.test(b), bits[b]);
    for (int i = 0; i < 50; ++i) {
      const uint32_t first = random() % blocks;
      const uint32_t count = random() % (blocks - first + 1);
      const uint32_t ones = std::count(bits.begin() + first, bits.begin() + first + count, true);
      ASSERT_EQ(bitmap.count(first, count), ones);
      ASSERT_EQ(bitmap.any(first, count), ones > 0);
      ASSERT_EQ(bitmap.all(first, count), ones == count);
      const auto from = bits.begin() + first;
      ASSERT_EQ(bitmap.next_set(first), std::find(from, bits.end(), true) - bits.begin());
      ASSERT_EQ(bitmap.next_clear(first), std::find(from, bits.end(), false) - bits.begin());

      const uint32_t run = 1u << random() % 11;
      const uint32_t limit = random() % (blocks + 1);
      std::optional<uint32_t> expected, expected_both;
      for (uint32_t at = (first + run - 1) / run * run; at + run <= blocks; at += run) {
        bool clear = true, clear_both = at < limit;
        for (uint32_t b = at; b < at + run; ++b) {
          clear = clear && !bits[b];
          clear_both = clear_both && !bits[b] && !other_bits[b];
        }
        if (clear && !expected) expected = at;
        if (clear_both && !expected_both) expected_both = at;
      }
      ASSERT_EQ(find_clear_run(bitmap, first, run), expected) << first << " " << run;
      const BlockBitmap* const both[] = {&bitmap, &other};
      ASSERT_EQ(BlockBitmap::find_clear_run(both, first, run, limit), expected_both);
      uint32_t set = first, clear = first;
      while (set < blocks && !bits[set] && !other_bits[set]) ++set;
      while (clear < blocks && (bits[clear] || other_bits[clear])) ++clear;
      const uint32_t min = 1 + random() % 300, max = min + random() % 300;
      uint32_t found = 0, length = 0;
      for (uint32_t at = 0; at < blocks && length < min; ++at) {
        if (at == 0 || length == 0) found = at;
        length = bits[at] || other_bits[at] ? 0 : length + 1;
      }
      while (length >= min && length < max && found + length < blocks &&
             !bits[found + length] && !other_bits[found + length])
        ++length;
      const auto run_found = BlockBitmap::find_clear_blocks(both, min, max);
      ASSERT_EQ(run_found.count, length < min ? 0 : length);
      if (run_found.count) { ASSERT_EQ(run_found.first, found); }
      ASSERT_EQ(BlockBitmap::next_set(both, first), set);
      ASSERT_EQ(BlockBitmap::next_clear(both, first), clear);
    }
    ASSERT_EQ(BlockBitmap(blocks, bitmap.words()), bitmap);
    BlockBitmap chunks(blocks), sum = bitmap, difference = bitmap;
    for (uint32_t c = 0; c < bitmap.chunks(); ++c) chunks.set_chunk(c, bitmap.chunk(c));
    ASSERT_EQ(chunks, bitmap);
    sum.add(other);
    difference.remove(other);
    for (uint32_t b = 0; b < blocks; ++b) {
      ASSERT_EQ(sum.test(b), bits[b] || other_bits[b]);
      ASSERT_EQ(difference.test(b), bits[b] && !other_bits[b]);
    }
    ASSERT_EQ(sum == difference, other.count() == 0);
    ASSERT_EQ(sum.count(), other.count() + difference.count());
  }
}

}  // namespace
}  // namespace tablestore
