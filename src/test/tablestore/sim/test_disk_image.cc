// The crash model is what disk_image.h says.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "test/tablestore/sim/sim_disk.h"

namespace tablestore::sim {
namespace {

class DiskImageTest : public testing::Test {
 protected:
  void SetUp() override {
    make_file("a");
    make_file("b");
  }
  // Four blocks of written zeros, all durable.
  void make_file(const std::string& path) {
    const auto id = image.create(path, false);
    image.complete(id, image.submit(id, {.kind = PendingOp::Kind::zeroes, .length = 16384}));
    image.flush(id);
    image.sync_dir("");
  }
  static PagePtr page(char c) {
    auto p = std::make_shared<Page>();
    p->fill(std::byte(c));
    return p;
  }
  uint64_t write(const std::string& path, uint32_t block, char c, bool complete = true) {
    const auto id = image.lookup(path);
    PendingOp op{.offset = block * block_bytes, .length = block_bytes};
    op.pages = {page(c)};
    const uint64_t number = image.submit(id, std::move(op));
    if (complete) image.complete(id, number);
    return number;
  }
  char read(const std::string& path, uint32_t block, size_t byte = 0) {
    return char(image.inode(image.lookup(path)).current.page(block)[byte]);
  }
  DiskImage image;
  Random random{1};
};

TEST_F(DiskImageTest, AFlushCoversCompleteWritesToWrittenExtentsOfEveryFile) {
  write("a", 0, 'x');
  write("b", 1, 'y');
  image.flush(image.lookup("a"));
  image.crash(Fate::drop, random);
  EXPECT_EQ(read("a", 0), 'x');
  EXPECT_EQ(read("b", 1), 'y');
}

TEST_F(DiskImageTest, AFlushDoesNotCoverWhatCompletesAfterIt) {
  const uint64_t late = write("a", 0, 'x', false);
  image.flush(image.lookup("a"));
  image.complete(image.lookup("a"), late);
  image.crash(Fate::drop, random);
  EXPECT_EQ(read("a", 0), 0);
}

TEST_F(DiskImageTest, AFirstTouchNeedsAFlushOfItsOwnFile) {
  const auto id = image.create("new", false);
  image.complete(id, image.submit(id, {.kind = PendingOp::Kind::allocate, .length = 8192}));
  image.flush(id);
  image.sync_dir("");
  write("new", 0, 'x');
  image.flush(image.lookup("a"));
  DiskImage lost = image;
  lost.crash(Fate::drop, random);
  EXPECT_EQ(lost.inode(id).current.extents[0], FileView::Extent::unwritten);
  image.flush(id);
  image.crash(Fate::drop, random);
  EXPECT_EQ(read("new", 0), 'x');
}

// A block that was punched and is in use again is elsewhere on the disk: of two writes to it the
// second stays the second, whatever is flushed.
TEST_F(DiskImageTest, AWriteAfterAPunchNeedsAFlushOfItsOwnFile) {
  const auto id = image.lookup("b");
  for (const auto kind : {PendingOp::Kind::punch, PendingOp::Kind::allocate})
    image.complete(id, image.submit(id, {.kind = kind, .length = 8192}));
  write("b", 0, 'x');
  write("b", 0, 'y');
  image.flush(image.lookup("a"));
  DiskImage lost = image;
  lost.crash(Fate::drop, random);
  EXPECT_EQ(read("b", 0), 'y');
  EXPECT_EQ(char(lost.inode(id).current.page(0)[0]), 0);
  image.flush(id);
  image.crash(Fate::drop, random);
  EXPECT_EQ(read("b", 0), 'y');
}

TEST_F(DiskImageTest, ANewNameNeedsASyncOfItsDirectory) {
  for (const bool buffered : {false, true}) {
    DiskImage lost = image;
    lost.flush(lost.create("c", buffered));
    DiskImage synced = lost;
    lost.crash(Fate::drop, random);
    EXPECT_EQ(lost.lookup("c"), 0u);
    synced.sync_dir("");
    synced.crash(Fate::drop, random);
    EXPECT_NE(synced.lookup("c"), 0u);
  }
}

TEST_F(DiskImageTest, AnAllocationSurvivesInPartsAndASizeAsFarAsItGoes) {
  std::set<uint64_t> sizes;
  for (int i = 0; i < 100; ++i) {
    DiskImage each = image;
    const auto id = each.lookup("a");
    each.complete(id, each.submit(id, {.kind = PendingOp::Kind::allocate, .length = 65536}));
    each.crash(Fate::torn, random);
    const FileView& view = each.inode(id).current;
    sizes.insert(view.size);
    ASSERT_FALSE(view.has_hole(0, view.size));
  }
  EXPECT_EQ(*sizes.begin(), 16384u);
  EXPECT_EQ(*sizes.rbegin(), 65536u);
  EXPECT_GT(sizes.size(), 4u);
}

TEST_F(DiskImageTest, APunchSurvivesInParts) {
  std::set<uint64_t> taken;
  for (int i = 0; i < 100; ++i) {
    DiskImage each = image;
    const auto id = each.lookup("a");
    each.complete(id, each.submit(id, {.kind = PendingOp::Kind::punch, .length = 16384}));
    each.crash(Fate::torn, random);
    taken.insert(each.inode(id).current.taken_blocks);
  }
  EXPECT_EQ(taken, (std::set<uint64_t>{0, 1, 2, 3, 4}));
}

TEST_F(DiskImageTest, WhatIsInFlightIsKnown) {
  const auto id = image.lookup("a");
  const uint64_t number = write("a", 1, 'x', false);
  EXPECT_TRUE(image.in_flight(id, 0, 16384));
  EXPECT_FALSE(image.in_flight(id, 0, 4096));
  EXPECT_FALSE(image.in_flight(id, 8192, 8192));
  image.complete(id, number);
  EXPECT_FALSE(image.in_flight(id, 0, 16384));
}

TEST_F(DiskImageTest, AFailedWriteLeavesAnyOfItsSectorsToAKilledProcess) {
  std::set<std::string> left;
  for (int i = 0; i < 100; ++i) {
    DiskImage each = image;
    std::swap(each, image);
    const uint64_t number = write("a", 0, 'x', false);
    image.fail(image.lookup("a"), number);
    image.crash(Fate::killed, random);
    std::string sectors;
    for (size_t s = 0; s < block_bytes; s += sector_bytes) sectors += read("a", 0, s);
    left.insert(sectors);
    std::swap(each, image);
  }
  EXPECT_GT(left.size(), 10u);
}

// Writes of one block happen in the order of submission: one that failed is over.
TEST_F(DiskImageTest, WhatFailedNeverHappensAfterWhatIsDurable) {
  const auto id = image.lookup("a");
  for (const bool in_place : {true, false}) {
    if (!in_place) image.remap_every_write();
    image.fail(id, image.submit(id, {.kind = PendingOp::Kind::zeroes, .length = 16384}));
    write("a", 1, 'x');
    image.flush(id);
    for (int i = 0; i < 50; ++i)
      for (const Fate fate : {Fate::keep, Fate::torn, Fate::scrambled}) {
        DiskImage each = image;
        each.crash(fate, random);
        ASSERT_EQ(char(each.inode(id).current.page(1)[0]), 'x') << fate_name(fate);
      }
    EXPECT_FALSE(image.inode(id).pending.empty()) << "the rest of it may still have happened";
    image.crash(Fate::drop, random);
  }
}

TEST_F(DiskImageTest, UnflushedSectorsAreKeptDroppedOrOverwrittenEachByItself) {
  bool kept = false, dropped = false, other = false, mixed = false;
  for (int i = 0; i < 200; ++i) {
    DiskImage each = image;
    std::swap(each, image);
    write("a", 0, 'x');
    image.crash(Fate::scrambled, random);
    bool kept_here = false, dropped_here = false;
    for (size_t s = 0; s < block_bytes; s += sector_bytes) {
      const char c = read("a", 0, s);
      kept_here |= c == 'x';
      dropped_here |= c == 0;
      other |= c != 'x' && c != 0;
    }
    kept |= kept_here, dropped |= dropped_here, mixed |= kept_here && dropped_here;
    std::swap(each, image);
  }
  EXPECT_TRUE(kept && dropped && other && mixed);
}

TEST_F(DiskImageTest, AKilledProcessLeavesItsWritesUndurable) {
  write("a", 0, 'x');
  image.crash(Fate::killed, random);
  EXPECT_EQ(read("a", 0), 'x');
  image.crash(Fate::drop, random);
  EXPECT_EQ(read("a", 0), 0);
}

TEST_F(DiskImageTest, ABufferedFileKeepsWhatWasSynced) {
  const auto id = image.create("t", true);
  image.sync_dir("");
  const std::string synced(5000, 's'), appended(9000, 'n');
  image.append(id, std::as_bytes(std::span(synced)));
  image.flush(id);
  image.append(id, std::as_bytes(std::span(appended)));
  for (int i = 0; i < 100; ++i) {
    DiskImage each = image;
    each.crash(Fate::scrambled, random);
    const FileView& view = each.inode(id).current;
    ASSERT_GE(view.size, 5000u);
    ASSERT_LE(view.size, 14000u);
    for (uint64_t at = 0; at < view.size; ++at) {
      const char c = char(view.page(uint32_t(at / block_bytes))[at % block_bytes]);
      if (at < 5000) {
        ASSERT_EQ(c, 's') << at;
      } else {
        ASSERT_TRUE(c == 'n' || c == 0) << at;
      }
    }
  }
}

TEST_F(DiskImageTest, WhatIsAppendedIsTornBySectors) {
  const auto id = image.create("t", true);
  image.sync_dir("");
  const std::string synced(100, 's'), appended(3000, 'n');
  image.append(id, std::as_bytes(std::span(synced)));
  image.flush(id);
  image.append(id, std::as_bytes(std::span(appended)));
  bool later_only = false;
  for (int i = 0; i < 200; ++i) {
    DiskImage each = image;
    each.crash(Fate::scrambled, random);
    const FileView& view = each.inode(id).current;
    if (view.size > 1024)
      later_only |= char(view.page(0)[511]) == 0 && char(view.page(0)[512]) == 'n';
    ASSERT_EQ(char(view.page(0)[99]), 's');
  }
  EXPECT_TRUE(later_only);
}

TEST_F(DiskImageTest, ACopyIsNotChangedThroughTheOriginal) {
  const DiskImage copy = image;
  write("a", 0, 'x');
  EXPECT_EQ(char(copy.inode(copy.lookup("a")).current.page(0)[0]), 0);
}

}  // namespace
}  // namespace tablestore::sim
