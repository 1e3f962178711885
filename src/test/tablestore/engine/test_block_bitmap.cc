#include <algorithm>
#include <gtest/gtest.h>

#include <random>

#include "os/tablestore/engine/container/block_bitmap.h"

namespace tablestore {
namespace {

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
  EXPECT_EQ(bitmap.find_clear_run(0, 4), 64u);
  EXPECT_EQ(bitmap.find_clear_run(65, 4), std::nullopt);
  EXPECT_EQ(bitmap.find_clear_run(0, 8), std::nullopt);
  EXPECT_EQ(BlockBitmap(100).find_clear_run(0, 64), 0u);
  EXPECT_EQ(BlockBitmap(100).find_clear_run(1, 64), std::nullopt);
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
    const uint32_t blocks = 1 + random() % 2200;
    BlockBitmap bitmap(blocks), other(blocks);
    std::vector<bool> bits(blocks), other_bits(blocks);
    for (int i = 0; i < 30; ++i) {
      const uint32_t first = random() % blocks;
      const uint32_t count = random() % std::min<uint32_t>(blocks - first + 1, 200);
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
      ASSERT_EQ(bitmap.find_clear_run(first, run), expected) << first << " " << run;
      ASSERT_EQ(bitmap.find_clear_run(first, run, other, limit), expected_both);
    }
  }
}

}  // namespace
}  // namespace tablestore
