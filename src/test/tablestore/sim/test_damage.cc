// What a disk does to what lies on it (disk_image.h), and what that may cost (damage_bounds.h).
#include <gtest/gtest.h>

#include <cstring>

#include "test/tablestore/sim/damage_bounds.h"
#include "test/tablestore/sim/machine.h"

namespace tablestore::sim {
namespace {

class DamagedDisk : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* path : {"a", "b"}) {
      const auto id = image.create(path, false);
      image.complete(id, image.submit(id, {.kind = PendingOp::Kind::zeroes, .length = 16384}));
      image.flush(id);
    }
    image.sync_dir("");
    image.remember_previous();
  }
  DiskImage::InodeId id(const char* path) const { return image.lookup(path); }
  uint64_t submit(const char* path, uint32_t block, char c) {
    auto page = std::make_shared<Page>();
    page->fill(std::byte(c));
    PendingOp op{.offset = block * block_bytes, .length = block_bytes};
    op.pages = {page};
    return image.submit(id(path), std::move(op));
  }
  void write(const char* path, uint32_t block, char c) {
    image.complete(id(path), submit(path, block, c));
  }
  static char read(const DiskImage& from, const char* path, uint32_t block) {
    return char(from.inode(from.lookup(path)).current.page(block)[0]);
  }
  DiskImage image;
  Random random{1};
};

TEST_F(DamagedDisk, ABadSectorIsUnreadableUntilItIsWrittenAnew) {
  ASSERT_TRUE(image.make_unreadable(id("a"), 1));
  EXPECT_FALSE(image.readable(id("a"), 0, 8192));
  EXPECT_TRUE(image.readable(id("a"), 0, 4096));
  image.crash(Fate::keep, random);
  EXPECT_FALSE(image.readable(id("a"), 4096, 4096));
  write("a", 1, 'x');
  EXPECT_TRUE(image.readable(id("a"), 4096, 4096));
}

TEST_F(DamagedDisk, WhatWasBeingWrittenAtACrashMayBeUnreadable) {
  image.set_bad_sector_chance(1);
  unsigned unreadable = 0;
  for (int i = 0; i < 50; ++i) {
    DiskImage before = image;
    write("a", 0, 'x');
    image.crash(Fate::scrambled, random);
    unreadable += !image.readable(id("a"), 0, 4096);
    ASSERT_TRUE(image.readable(id("a"), 4096, 4096));
    std::swap(image, before);
  }
  EXPECT_GT(unreadable, 5u);
}

TEST_F(DamagedDisk, AFlushThatDropsLeavesNothingToLaterFlushes) {
  write("a", 0, 'x');
  write("b", 0, 'y');
  image.drop_flush(id("a"), DiskImage::Covered::all);
  EXPECT_EQ(read(image, "a", 0), 0);
  image.flush(id("a"));
  image.flush(id("b"));
  image.crash(Fate::keep, random);
  EXPECT_EQ(read(image, "a", 0), 0);
  EXPECT_EQ(read(image, "b", 0), 0);
}

TEST_F(DamagedDisk, ASyncThatDropsLeavesALengthOfZeros) {
  const auto table = image.create("t", true);
  image.sync_dir("");
  const std::string first(3000, 'f'), dropped(6000, 'd'), last(100, 'l');
  image.append(table, std::as_bytes(std::span(first)));
  image.flush(table);
  image.append(table, std::as_bytes(std::span(dropped)));
  image.drop_flush(table, DiskImage::Covered::own);
  image.append(table, std::as_bytes(std::span(last)));
  image.flush(table);
  image.crash(Fate::drop, random);
  const FileView& view = image.inode(table).current;
  auto byte = [&view](uint64_t at) { return char(view.page(uint32_t(at / 4096))[at % 4096]); };
  EXPECT_EQ(view.size, 9100u);
  EXPECT_EQ(byte(2999), 'f');
  for (uint64_t at = 3000; at < 9000; ++at) ASSERT_EQ(byte(at), 0) << at;
  EXPECT_EQ(byte(9000), 'l');
}

TEST_F(DamagedDisk, WhatALyingFlushPromisedIsLostAndKnown) {
  write("a", 0, 'x');
  image.pretend_flush(id("a"));
  EXPECT_FALSE(image.is_damaged());
  image.crash(Fate::drop, random);
  EXPECT_EQ(read(image, "a", 0), 0);
  EXPECT_TRUE(image.lost_promises());
  EXPECT_TRUE(image.inode(id("a")).damaged.contains(0));
  EXPECT_EQ(read(image.healed(), "a", 0), 'x');
}

TEST_F(DamagedDisk, ANameThatALyingSyncPromisedIsLostAndKnown) {
  SimDisk disk(image, 1 << 20, 1);
  ASSERT_TRUE(disk.open("c", OpenMode::create_new).ok());
  disk.set_faults({.flushes_lie = true});
  ASSERT_TRUE(disk.sync_dir("").ok());
  disk.set_faults({});
  DiskImage left = disk.image();
  left.crash(Fate::drop, random);
  EXPECT_EQ(left.lookup("c"), 0u);
  EXPECT_TRUE(left.lost_promises());
}

TEST_F(DamagedDisk, WhatALyingFlushConvertedIsInPlaceForTheNextOne) {
  const auto a = id("a");
  image.complete(a, image.submit(a, {.kind = PendingOp::Kind::punch, .length = 4096}));
  image.flush(a);
  image.complete(a, image.submit(a, {.kind = PendingOp::Kind::zeroes, .length = 4096}));
  image.pretend_flush(a);
  write("a", 0, 'x');
  image.pretend_flush(id("b"));
  image.crash(Fate::drop, random);
  EXPECT_TRUE(image.inode(a).damaged.contains(0));
}

// A block is made ready, and written while its file is flushed for another reason: that flush does
// not cover it. The next one, of another file, does where the block is in place.
class ConvertedDisk : public DamagedDisk {
 protected:
  void SetUp() override {
    DamagedDisk::SetUp();
    const auto a = id("a");
    image.complete(a, image.submit(a, {.kind = PendingOp::Kind::punch, .length = 4096}));
    image.flush(a);
    image.complete(a, image.submit(a, {.kind = PendingOp::Kind::zeroes, .length = 4096}));
  }
  void write_between_flushes() {
    const uint64_t op = submit("a", 0, 'x');
    image.flush(id("a"));
    image.complete(id("a"), op);
    image.flush(id("b"));
    image.crash(Fate::drop, random);
    EXPECT_EQ(read(image, "a", 0), 0);
  }
};

TEST_F(ConvertedDisk, AnHonestFlushPromisesMoreThanItKeepsAfterALyingOne) {
  image.pretend_flush(id("a"));
  write_between_flushes();
  EXPECT_TRUE(image.lost_promises());
  EXPECT_TRUE(image.inode(id("a")).damaged.contains(0));
  EXPECT_EQ(read(image.healed(), "a", 0), 'x');
}

// Whoever writes to a block that is not in place flushes its file, and has no excuse.
TEST_F(ConvertedDisk, AnHonestFlushOfAnotherFilePromisesNothingOfAFirstTouch) {
  write_between_flushes();
  EXPECT_FALSE(image.is_damaged());
}

// Nor is it one that a flush has lied before, of another block.
TEST_F(ConvertedDisk, ALieOfAnotherBlockIsNoExcuseForAFirstTouch) {
  write("b", 0, 'y');
  image.pretend_flush(id("b"));
  write_between_flushes();
  EXPECT_TRUE(image.lost_promises());
  EXPECT_FALSE(image.inode(id("a")).damaged.contains(0));
}

TEST_F(DamagedDisk, AFlushThatDropsAlsoTakesWhatALyingOnePromised) {
  write("a", 0, 'x');
  image.pretend_flush(id("a"));
  image.drop_flush(id("a"), DiskImage::Covered::all);
  image.crash(Fate::killed, random);
  EXPECT_EQ(read(image, "a", 0), 0);
  EXPECT_TRUE(image.lost_promises());
  EXPECT_TRUE(image.inode(id("a")).damaged.contains(0));
  EXPECT_EQ(read(image.healed(), "a", 0), 'x');
}

TEST_F(DamagedDisk, WhatALyingFlushPromisedIsKnownOfBadSectorsToo) {
  image.set_bad_sector_chance(1);
  write("a", 0, 'x');
  image.pretend_flush(id("a"));
  unsigned unreadable = 0;
  for (int i = 0; i < 50; ++i) {
    DiskImage left = image;
    left.crash(Fate::scrambled, random);
    if (left.readable(id("a"), 0, 4096)) continue;
    ++unreadable;
    const DiskImage healed = left.healed();
    for (uint32_t byte = 0; byte < block_bytes; byte += sector_bytes)
      ASSERT_EQ(char(healed.inode(id("a")).current.page(0)[byte]), 'x') << byte;
  }
  EXPECT_GT(unreadable, 5u);
}

TEST_F(DamagedDisk, ALostWriteIsStillKnownAfterALyingFlush) {
  image.lose(id("a"), submit("a", 0, 'x'));
  image.pretend_flush(id("a"));
  image.crash(Fate::drop, random);
  EXPECT_EQ(read(image, "a", 0), 0);
  EXPECT_TRUE(image.inode(id("a")).damaged.contains(0));
  EXPECT_EQ(read(image.healed(), "a", 0), 'x');
}

// Of a table's file, which is appended to: as a kill and another life may follow, which does not
// sync it again.
class PromisedTableFile : public DamagedDisk {
 protected:
  void SetUp() override {
    DamagedDisk::SetUp();
    table = image.create("t", true);
    image.sync_dir("");
    append(3000, 'k');
    image.flush(table);
    append(6000, 'p');
    image.pretend_flush(table);
  }
  void append(size_t bytes, char c) {
    const std::string text(bytes, c);
    image.append(table, std::as_bytes(std::span(text)));
  }
  static std::string content(const FileView& view) {
    std::string text;
    for (uint64_t at = 0; at < view.size; ++at)
      text += char(view.page(uint32_t(at / block_bytes))[at % block_bytes]);
    return text;
  }
  DiskImage::InodeId table = 0;
  const std::string promised = std::string(3000, 'k') + std::string(6000, 'p');
};

TEST_F(PromisedTableFile, WhatIsLostOfItIsKnown) {
  image.crash(Fate::killed, random);
  EXPECT_FALSE(image.is_damaged());
  image.crash(Fate::drop, random);
  EXPECT_TRUE(image.lost_promises());
  EXPECT_EQ(image.inode(table).current.size, 3000u);
  EXPECT_EQ(image.inode(table).damaged.size(), 3u);
  EXPECT_EQ(content(image.healed().inode(table).current), promised);
}

TEST_F(PromisedTableFile, WhatIsThereIsNoDamage) {
  append(6000, 'n');
  unsigned whole = 0, damaged = 0;
  for (int i = 0; i < 200; ++i) {
    DiskImage left = image;
    left.crash(Fate::scrambled, random);
    const Inode& file = left.inode(table);
    const bool is_kept = content(file.current).starts_with(promised);
    ++(is_kept ? whole : damaged);
    ASSERT_EQ(file.damaged.empty(), is_kept);
    ASSERT_TRUE(content(left.healed().inode(table).current).starts_with(promised));
  }
  EXPECT_GT(whole, 5u);
  EXPECT_GT(damaged, 5u);
}

TEST_F(PromisedTableFile, ALaterSyncKeepsThePromise) {
  append(6000, 'n');
  image.flush(table);
  append(6000, 'm');
  image.crash(Fate::drop, random);
  EXPECT_FALSE(image.is_damaged());
}

TEST_F(PromisedTableFile, ASyncThatDropsItTakesItFromALaterOne) {
  image.drop_flush(table, DiskImage::Covered::own);
  image.flush(table);
  EXPECT_EQ(image.inode(table).damaged.size(), 3u);
  EXPECT_EQ(content(image.healed().inode(table).current), promised);
}

TEST_F(PromisedTableFile, WhatWasCutOffWasNotPromised) {
  image.truncate(table, 2000);
  image.crash(Fate::drop, random);
  EXPECT_FALSE(image.is_damaged());
}

TEST_F(DamagedDisk, WhereNothingIsInPlaceALyingFlushPromisesEachFile) {
  image.remap_every_write();
  write("b", 0, 'y');
  SimDisk disk(image, 1 << 20, 1);
  disk.set_faults({.flushes_lie = true});
  auto file = disk.open("a", OpenMode::read_write);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->flush().ok());
  DiskImage left = disk.image();
  left.crash(Fate::drop, random);
  EXPECT_TRUE(left.inode(id("b")).damaged.contains(0));
}

TEST_F(DamagedDisk, WhereNothingIsInPlaceEachFileNeedsItsOwnFlush) {
  image.remap_every_write();
  write("a", 0, 'x');
  write("b", 0, 'y');
  image.flush(id("a"));
  EXPECT_EQ(image.dirty(), std::vector{id("b")});
  image.crash(Fate::drop, random);
  EXPECT_EQ(read(image, "a", 0), 'x');
  EXPECT_EQ(read(image, "b", 0), 0);
}

TEST_F(DamagedDisk, AStaleBlockHoldsWhatItHeldBefore) {
  for (const char c : {'1', '2', '3'}) {
    write("a", 0, c);
    image.flush(id("a"));
  }
  ASSERT_TRUE(image.revert(id("a"), 0));
  EXPECT_EQ(read(image, "a", 0), '2');
  EXPECT_EQ(read(image.healed(), "a", 0), '3');
  EXPECT_FALSE(image.revert(id("a"), 1)) << "it has been written once";
}

TEST_F(DamagedDisk, ALostWriteIsKnown) {
  image.lose(id("a"), submit("a", 2, 'x'));
  EXPECT_EQ(read(image, "a", 2), 0);
  EXPECT_EQ(read(image.healed(), "a", 2), 'x');
}

// The file system does not know of it, and converts the extent as after any write.
TEST_F(DamagedDisk, TheExtentOfALostWriteIsConverted) {
  const auto a = id("a");
  image.complete(a, image.submit(a, {.kind = PendingOp::Kind::punch, .length = 4096}));
  image.flush(a);
  image.lose(a, submit("a", 0, 'x'));
  image.flush(a);
  EXPECT_EQ(read(image, "a", 0), 0);
  EXPECT_EQ(read(image.healed(), "a", 0), 'x');
  write("a", 0, 'y');
  image.flush(id("b"));
  image.crash(Fate::drop, random);
  EXPECT_EQ(read(image, "a", 0), 'y');
  EXPECT_FALSE(image.is_damaged());
}

TEST_F(DamagedDisk, DamageEndsWithADurableWrite) {
  ASSERT_TRUE(image.rot(id("a"), 0, 12345));
  write("a", 0, 'x');
  DiskImage lost = image;
  lost.crash(Fate::drop, random);
  EXPECT_TRUE(lost.is_damaged());
  image.flush(id("a"));
  EXPECT_FALSE(image.is_damaged());
}

TEST_F(DamagedDisk, AStrayWriteThatDoesNotSurviveIsNoDamage) {
  PendingOp op{.stray = true, .offset = 0, .length = block_bytes};
  auto page = std::make_shared<Page>();
  page->fill(std::byte('s'));
  op.pages = {page};
  image.complete(id("a"), image.submit(id("a"), std::move(op)));
  EXPECT_TRUE(image.is_damaged());
  DiskImage kept = image;
  image.crash(Fate::drop, random);
  EXPECT_FALSE(image.is_damaged());
  kept.flush(id("a"));
  kept.crash(Fate::drop, random);
  EXPECT_EQ(read(kept, "a", 0), 's');
  EXPECT_EQ(read(kept.healed(), "a", 0), 0);
}

TEST_F(DamagedDisk, AStrayWriteOverOneThatMendsABlockIsDamage) {
  ASSERT_TRUE(image.rot(id("a"), 0, 12345));
  write("a", 0, 'x');
  PendingOp op{.stray = true, .offset = 0, .length = block_bytes};
  auto page = std::make_shared<Page>();
  page->fill(std::byte('s'));
  op.pages = {page};
  image.complete(id("a"), image.submit(id("a"), std::move(op)));
  image.flush(id("a"));
  EXPECT_EQ(read(image, "a", 0), 's');
  EXPECT_TRUE(image.inode(id("a")).damaged.contains(0));
  EXPECT_EQ(read(image.healed(), "a", 0), 'x');
}

TEST_F(DamagedDisk, ABadSectorOfAStrayWriteHidesWhatLayThere) {
  write("a", 1, 'o');
  image.flush(id("a"));
  image.set_bad_sector_chance(1);
  for (int i = 0; i < 50; ++i) {
    DiskImage stray = image;
    auto page = std::make_shared<Page>();
    page->fill(std::byte('s'));
    PendingOp op{.stray = true, .offset = block_bytes, .length = block_bytes};
    op.pages = {page};
    stray.complete(id("a"), stray.submit(id("a"), std::move(op)));
    stray.crash(Fate::scrambled, random);
    ASSERT_EQ(read(stray.healed(), "a", 1), 'o');
  }
}

// Whatever has become of a write over it: that is no damage any more.
TEST_F(DamagedDisk, ADamagedBlockThatIsWrittenToHoldsWhatACrashLeaves) {
  write("a", 0, 'o');
  image.flush(id("a"));
  ASSERT_TRUE(image.rot(id("a"), 0, 1));
  unsigned whole = 0;
  for (int i = 0; i < 50; ++i) {
    DiskImage left = image;
    auto page = std::make_shared<Page>();
    page->fill(std::byte('x'));
    PendingOp op{.length = block_bytes};
    op.pages = {page};
    left.complete(id("a"), left.submit(id("a"), std::move(op)));
    left.crash(Fate::torn, random);
    const FileView& view = left.inode(id("a")).current;
    if (std::memcmp(view.page(0), page->data(), block_bytes) != 0) continue;
    ++whole;
    EXPECT_EQ(read(left.healed(), "a", 0), 'x');
  }
  EXPECT_GT(whole, 0u);
}

// A store whose last two transactions write data, after a checkpoint.
class DamagedStore : public testing::Test {
 protected:
  void SetUp() override {
    Machine::provision(0);
    Machine::begin_contents(1);
    Machine machine(Machine::format(), 7, State(), 0);
    ASSERT_TRUE(machine.open().ok());
    write(machine, 0);
    ASSERT_TRUE(machine.engine().checkpoint().ok());
    write(machine, 2);
    write(machine, 4);
    acknowledged = machine.snapshot().acknowledged_lsn;
    image = machine.snapshot().image;
    Random random(1);
    image.crash(Fate::drop, random);
    log = read_live_log(image);
    ASSERT_EQ(log.groups.size(), 2u);
    ASSERT_EQ(log.groups.back().last_lsn, acknowledged);
  }
  static void write(Machine& machine, uint32_t object) {
    const OpOnObject op{Op::write_medium, object, 3};
    machine.transaction({&op, 1});
    machine.commit_all();
  }
  void damage_data(const LiveLog::Group& group, bool unreadable) {
    const auto [container, block] = *group.written.begin();
    for (const auto& [path, id] : image.names())
      if (path.starts_with("containers/") && path.ends_with("/" + std::to_string(container))) {
        ASSERT_TRUE(unreadable ? image.make_unreadable(id, block) : image.rot(id, block, 1));
      }
  }
  void damage_log(uint64_t position) {
    ASSERT_TRUE(image.rot(image.lookup("log/0"), uint32_t(position / block_bytes), 80 * 8));
  }
  void damage_table(const std::string& end) {
    for (const auto& [path, id] : image.names())
      if (path.starts_with("table/") && path.find(end) != std::string::npos) {
        ASSERT_TRUE(image.rot(id, 0, 1));
      }
  }
  Bounds bounds() const { return bounds_of(image, acknowledged); }
  DiskImage image;
  LiveLog log;
  uint64_t acknowledged = 0;
};

TEST_F(DamagedStore, WithoutDamageNothingMayBeLost) {
  EXPECT_EQ(bounds().least_lsn, acknowledged);
  EXPECT_EQ(bounds().refusal, "");
}

TEST_F(DamagedStore, RotInTheLastGroupCostsThatGroup) {
  damage_data(log.groups[1], false);
  EXPECT_EQ(bounds().least_lsn, log.groups[1].first_lsn - 1);
  EXPECT_EQ(bounds().refusal, "");
}

TEST_F(DamagedStore, RotInAGroupThatIsVouchedForCostsNoGroup) {
  damage_data(log.groups[0], false);
  EXPECT_EQ(bounds().least_lsn, acknowledged);
  EXPECT_EQ(bounds().refusal, "");
}

TEST_F(DamagedStore, AnUnreadableBlockOfTheLastGroupMayBeARefusal) {
  damage_data(log.groups[1], true);
  EXPECT_NE(bounds().refusal, "");
  acknowledged = log.groups[1].first_lsn - 1;
  EXPECT_EQ(bounds().refusal, "") << "nobody was told of that group";
}

TEST_F(DamagedStore, DamageInTheLogIsNoLossWhereThereIsAWitness) {
  damage_log(log.groups[1].begin);
  EXPECT_EQ(bounds().least_lsn, log.groups[1].first_lsn - 1) << "no group says that it was durable";
  EXPECT_NE(bounds().refusal, "");
  damage_log(log.groups[0].begin);
  EXPECT_EQ(bounds().least_lsn, log.groups[0].first_lsn - 1) << "its witness is damaged as well";
  image = image.healed();
  damage_log(log.groups[0].begin);
  EXPECT_EQ(bounds().least_lsn, acknowledged);
  EXPECT_NE(bounds().refusal, "");
}

// The engine cannot know that nobody was told of it: what is durable and damaged is refused.
TEST_F(DamagedStore, DamageOfAGroupThatALaterOneVouchesForMayBeARefusal) {
  acknowledged = log.groups[0].first_lsn - 1;
  damage_log(log.groups[0].begin);
  EXPECT_EQ(bounds().least_lsn, acknowledged);
  EXPECT_NE(bounds().refusal, "");
  damage_log(log.groups[1].begin);
  EXPECT_EQ(bounds().refusal, "") << "what vouched for it is damaged as well";
  image = image.healed();
  damage_log(log.groups[1].begin);
  EXPECT_EQ(bounds().refusal, "") << "no group vouches for the last one";
}

// Where rot has hit what no checksum covers, the log goes on behind it, to the next damaged one.
TEST_F(DamagedStore, AGroupBehindOneThatHasAWitnessMayBeLost) {
  log.applied_lsn = log.groups[0].last_lsn;
  damage_log(log.groups[0].begin);
  damage_log(log.groups[1].begin);
  const Bounds found = bounds_of(image, acknowledged, Machine::engine_options(), log);
  EXPECT_NE(found.refusal, "");
  EXPECT_EQ(found.least_lsn, log.groups[1].first_lsn - 1);
}

// The disk has written the later group over the one that it vouches for, and nothing in its place.
TEST_F(DamagedStore, AGroupInAnotherPlaceIsAWitness) {
  const DiskImage::InodeId segment = image.lookup("log/0");
  ASSERT_EQ(log.groups[1].end - log.groups[1].begin, block_bytes);
  acknowledged = log.groups[0].first_lsn - 1;
  auto page = std::make_shared<Page>();
  std::memcpy(page->data(),
              image.inode(segment).current.page(uint32_t(log.groups[1].begin / block_bytes)),
              block_bytes);
  image.overwrite(segment, uint32_t(log.groups[0].begin / block_bytes), page);
  damage_log(log.groups[1].begin);
  EXPECT_NE(bounds().refusal, "");
  damage_log(log.groups[0].begin);
  EXPECT_EQ(bounds().refusal, "") << "that place is damaged as well";
}

// What the table has was durable, too; which blocks it took only the log says.
TEST_F(DamagedStore, DamageOfAGroupThatTheTableHasMayBeARefusal) {
  acknowledged = log.groups[0].last_lsn;
  log.applied_lsn = log.groups[1].last_lsn;
  damage_log(log.groups[1].begin);
  const Bounds found = bounds_of(image, acknowledged, Machine::engine_options(), log);
  EXPECT_EQ(found.least_lsn, acknowledged);
  EXPECT_NE(found.refusal, "");
}

TEST_F(DamagedStore, DamageInFreeLogSpaceCostsNothing) {
  damage_log(log.groups[1].end + 40 * block_bytes);
  EXPECT_EQ(bounds().least_lsn, acknowledged);
  EXPECT_EQ(bounds().refusal, "");
}

TEST_F(DamagedStore, OneCopyOfTheLabelIsEnough) {
  ASSERT_TRUE(image.rot(image.lookup("label"), 0, 1));
  EXPECT_EQ(bounds().refusal, "");
  ASSERT_TRUE(image.rot(image.lookup("label"), 1, 1));
  EXPECT_NE(bounds().refusal, "");
}

TEST_F(DamagedStore, TheTablesManifestMayBeARefusal) {
  damage_table("MANIFEST");
  EXPECT_EQ(bounds().least_lsn, acknowledged);
  EXPECT_NE(bounds().refusal, "");
}

TEST_F(DamagedStore, AFileOfRowsIsNoRefusalUnlessBothCopiesOfTheEnginesOwnAreHit) {
  for (const auto& [name, family] : log.table_files) {
    DiskImage before = image;
    damage_table(name);
    EXPECT_FALSE(bounds().may_refuse()) << name;
    image = before;
  }
  EXPECT_GT(log.table_files.size(), 1u);
  for (const auto& [name, family] : log.table_files) damage_table(name);
  EXPECT_TRUE(bounds().may_refuse());
}

// As flushes that lied may leave it: a later transaction's data is there, and its group is lost.
class ForgetfulDisk : public DamagedStore {
 protected:
  void SetUp() override {
    Machine::provision(0);
    Machine::begin_contents(1);
    before = std::make_unique<Machine>(Machine::format(), 7, State(), 0);
    ASSERT_TRUE(before->open().ok());
    write(*before, 0);
    log = read_live_log(before->snapshot().image);
    ASSERT_TRUE(before->engine().checkpoint().ok());  // so that a recovery does not judge the data
    image = before->snapshot().image;
    const auto [container, block] = *log.groups.back().written.begin();
    for (const auto& [path, id] : image.names()) {
      if (!path.starts_with("containers/") || !path.ends_with("/" + std::to_string(container)))
        continue;
      PendingOp op{.offset = block * block_bytes, .length = block_bytes};
      op.pages = {std::make_shared<Page>()};
      image.complete(id, image.submit(id, std::move(op)));
      image.flush(id);
    }
    ASSERT_FALSE(image.is_damaged());
  }
  // What is left, as a recovery from it is judged.
  void check_remains() const {
    Machine left(image, 8, State(), 0);
    ASSERT_TRUE(left.open().ok());
    left.check_remains(*before);
  }
  std::unique_ptr<Machine> before;
};

TEST_F(ForgetfulDisk, BlocksThatAreStillOwnedHoldWhatWasWritten) {
  EXPECT_THROW(check_remains(), Failure);
}

TEST_F(ForgetfulDisk, BlocksThatWereFreedLaterMayBeOthers) {
  const OpOnObject op{Op::remove, 0, 1};
  before->transaction({&op, 1});
  before->commit_all();
  EXPECT_NO_THROW(check_remains());
}

// Nor may more of a table's file be left than what was there before a sync that lied.
class ForgetfulTable : public ForgetfulDisk {
 protected:
  void SetUp() override {
    ForgetfulDisk::SetUp();
    image = before->snapshot().image;
    for (const auto& [name, family] : read_live_log(image).table_files)
      if (family == 1) path = "table/" + name;
    ASSERT_NE(image.lookup(path), 0u);
  }
  std::string path;
  Random random{1};
};

TEST_F(ForgetfulTable, AFileThatWasPromisedMayBeShorter) {
  const FileView whole = image.inode(image.lookup(path)).current;
  image.remove(path);
  const auto file = image.create(path, true);
  image.sync_dir("table");
  for (uint64_t at = 0; at < whole.size; at += block_bytes)
    image.append(file, {whole.page(uint32_t(at / block_bytes)),
                        std::min(block_bytes, whole.size - at)});
  image.pretend_flush(file);
  EXPECT_NO_THROW(check_remains());
  image.crash(Fate::drop, random);
  EXPECT_NO_THROW(check_remains());
}

TEST_F(ForgetfulTable, AFileWhoseNameWasPromisedMayBeMissing) {
  image.remove(path);
  image.sync_dir("table");
  EXPECT_THROW(check_remains(), Unreadable);
  image.pretend_sync_dir();
  image.crash(Fate::drop, random);
  EXPECT_NO_THROW(check_remains());
}

TEST_F(ForgetfulDisk, OfAnEarlierLifeNothingIsSaid) {
  Machine next(image, 9, State(), before->snapshot().acknowledged_lsn + 1);
  Machine left(image, 8, State(), 0);
  ASSERT_TRUE(left.open().ok());
  EXPECT_NO_THROW(left.check_remains(next));
}

}  // namespace
}  // namespace tablestore::sim
