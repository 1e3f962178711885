// The disk that loses power: is it as unkind as it says, and not more?
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "test/tablestore/powercut/cut_disk.h"

namespace tablestore::powercut {
namespace {

constexpr uint64_t disk_bytes = 1 << 20;
constexpr uint64_t sector = 512;

std::vector<std::byte> filled(uint64_t bytes, int with) {
  return std::vector<std::byte>(bytes, std::byte(with));
}

// The first byte of each of the sectors of [offset, +length).
std::vector<int> sectors(const Image& image, uint64_t offset, uint64_t length) {
  std::vector<int> found;
  for (uint64_t at = offset; at < offset + length; at += sector) {
    std::vector<std::byte> bytes(sector);
    image.read(at, bytes);
    EXPECT_EQ(std::ranges::count(bytes, bytes[0]), int64_t(sector)) << "torn sector at " << at;
    found.push_back(int(bytes[0]));
  }
  return found;
}

class CutDiskTest : public testing::Test {
 protected:
  void write(uint64_t offset, uint64_t length, int with) {
    disk.write(offset, filled(length, with));
  }
  Image cut(Fate fate) { return disk.cut(fate, random); }

  Random random{7};
  CutDisk disk{Image(disk_bytes), {.first_sector_bytes = 0}};
};

TEST_F(CutDiskTest, ReadsSeeWhatWasWrittenBeforeAnyFlush) {
  write(4096, 8192, 1);
  std::vector<std::byte> found(8192);
  disk.read(4096, found);
  EXPECT_EQ(found, filled(8192, 1));
}

TEST_F(CutDiskTest, WhatWasFlushedSurvivesEveryFate) {
  write(512, 8192, 1);
  disk.flush();
  for (unsigned fate = 0; fate < fates; ++fate)
    EXPECT_EQ(sectors(cut(Fate(fate)), 512, 8192), std::vector<int>(16, 1));
}

TEST_F(CutDiskTest, WhatWasNotFlushedIsLostOrKeptAsTheFateSays) {
  write(0, 4096, 1);
  disk.flush();
  write(0, 4096, 2);
  EXPECT_EQ(sectors(cut(Fate::none), 0, 4096), std::vector<int>(8, 1));
  EXPECT_EQ(sectors(cut(Fate::all), 0, 4096), std::vector<int>(8, 2));
}

TEST_F(CutDiskTest, AWriteIsTornBetweenAnySectorsAndNowhereElse) {
  write(1024, 2048, 1);
  std::set<std::vector<int>> outcomes;
  for (int i = 0; i < 1000; ++i) outcomes.insert(sectors(cut(Fate::sectors), 1024, 2048));
  EXPECT_EQ(outcomes.size(), 16u);  // each of four sectors, there or not
}

TEST_F(CutDiskTest, LargerSectorsAreNotTorn) {
  CutDisk large(Image(disk_bytes), {.sector_bytes = 4096, .first_sector_bytes = 0});
  large.write(512, filled(8192, 1));  // touches three of them
  std::set<std::vector<int>> outcomes;
  for (int i = 0; i < 200; ++i)
    outcomes.insert(sectors(large.cut(Fate::sectors, random), 0, 12288));
  EXPECT_EQ(outcomes.size(), 8u);
}

TEST_F(CutDiskTest, TheFirstSectorMayBeLarger) {
  CutDisk d(Image(disk_bytes), {.first_sector_bytes = 4096});
  d.write(1024, filled(4096, 1));  // and two small ones
  std::set<std::vector<int>> outcomes;
  for (int i = 0; i < 200; ++i)
    outcomes.insert(sectors(d.cut(Fate::sectors, random), 1024, 4096));
  EXPECT_EQ(outcomes.size(), 8u);
  for (const auto& found : outcomes)
    EXPECT_EQ(std::count(found.begin(), found.begin() + 6, found[0]), 6);
}

TEST_F(CutDiskTest, ALaterWriteMayOvertakeAnEarlierOne) {
  write(0, 512, 1);
  write(4096, 512, 2);
  std::set<std::vector<int>> outcomes;
  for (int i = 0; i < 200; ++i) {
    const Image image = cut(Fate::writes);
    outcomes.insert({sectors(image, 0, 512)[0], sectors(image, 4096, 512)[0]});
  }
  EXPECT_EQ(outcomes.size(), 4u);
}

TEST_F(CutDiskTest, EveryFateKeepsAndLosesSomething) {
  for (unsigned fate = unsigned(Fate::writes); fate < fates; ++fate) {
    CutDisk d(Image(disk_bytes), {});
    for (int i = 0; i < 8; ++i) d.write(uint64_t(i) * 4096, filled(4096, 1));
    int kept = 0, lost = 0;
    for (int i = 0; i < 100; ++i)
      for (int s : sectors(d.cut(Fate(fate), random), 0, 8 * 4096)) ++(s ? kept : lost);
    EXPECT_GT(kept, 0) << fate_name(Fate(fate));
    EXPECT_GT(lost, 0) << fate_name(Fate(fate));
  }
}

TEST_F(CutDiskTest, ZerosAreAWriteToo) {
  write(0, 8192, 1);
  disk.flush();
  disk.zero(512, 4096);
  EXPECT_EQ(sectors(cut(Fate::none), 0, 8192), std::vector<int>(16, 1));
  EXPECT_EQ(std::ranges::count(sectors(cut(Fate::all), 0, 8192), 0), 8);
  disk.flush();
  EXPECT_EQ(std::ranges::count(sectors(cut(Fate::none), 0, 8192), 0), 8);
}

TEST_F(CutDiskTest, AFlushDoesNotCoverWhatCameAfterIt) {
  // It takes its time, so that a write comes meanwhile; repeated until one did.
  CutDisk slow(Image(disk_bytes), {.slow_flush_us = 20'000});
  for (int round = 1;; ++round) {
    std::atomic<bool> flushed{false};
    std::optional<Image> at_cut;
    std::thread flush([&] {
      slow.flush();
      flushed = true;
    });
    while (slow.counts().flushes < uint64_t(round)) std::this_thread::yield();
    slow.write(0, filled(512, 1));
    const bool came_meanwhile = !flushed;
    flush.join();
    if (!came_meanwhile) {
      slow.zero(0, 512);
      slow.flush();
      ++round;
      continue;
    }
    EXPECT_EQ(sectors(slow.cut(Fate::none, random), 0, 512)[0], 0);
    return;
  }
}

TEST_F(CutDiskTest, TheCutComesBeforeTheRequestAfterSoMany) {
  std::optional<Image> image;
  disk.cut_after(2, [&](CutDisk& d) { image = d.cut(Fate::all, random); });
  write(0, 512, 1);
  write(512, 512, 2);
  EXPECT_FALSE(image);
  write(1024, 512, 3);
  ASSERT_TRUE(image);
  EXPECT_EQ(sectors(*image, 0, 1536), (std::vector<int>{1, 2, 0}));
}

TEST_F(CutDiskTest, ACancelledCutDoesNotCome) {
  disk.cut_after(0, [](CutDisk&) { FAIL(); });
  disk.cancel();
  write(0, 512, 1);
}

TEST(ImageTest, CopiesDoNotSeeEachOthersWrites) {
  Image a(disk_bytes);
  a.write(0, filled(4096, 1));
  Image b = a;
  a.write(512, filled(512, 2));
  b.zero(1024, 512);
  EXPECT_EQ(sectors(a, 0, 2048), (std::vector<int>{1, 2, 1, 1}));
  EXPECT_EQ(sectors(b, 0, 2048), (std::vector<int>{1, 1, 0, 1}));
}

}  // namespace
}  // namespace tablestore::powercut
