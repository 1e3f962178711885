// What grows with the store, counted exactly, at ten terabytes: memory of the bitmaps, what a
// checkpoint does while the commit lane stands, and what is done for each container at the start.
#include "os/tablestore/engine/container/allocator.h"
#include "test/tablestore/engine/engine_fixture.h"
#include "test/tablestore/engine/vast_disk.h"

namespace tablestore {
namespace {

constexpr uint32_t blocks = (1u << 30) / block_bytes;  // of a container of 1 GiB
constexpr uint32_t chunk = BlockBitmap::chunk_blocks;
constexpr uint32_t tebibyte = 1024, ten_tebibytes = 10 * tebibyte;  // in containers
constexpr uint64_t mib = 1 << 20;

BlockBitmap every_other(uint32_t count) {
  return BlockBitmap(count, std::vector<uint64_t>(count / 64, 0x5555555555555555));
}

void add(Allocator& allocator, uint32_t containers, const BlockBitmap& unwritten,
         const BlockBitmap& punched = BlockBitmap(0)) {
  for (uint32_t id = 0; id < containers; ++id)
    allocator.add_container(id, slot_classes - 1, blocks, unwritten, punched);
}

BlockBitmap all(uint32_t count) {
  BlockBitmap bitmap(count);
  bitmap.set(0, count);
  return bitmap;
}

// --- memory

TEST(BitmapMemory, OfATebibyteThatIsFragmentedEverywhereIsAtMost40MiB) {
  Allocator allocator;
  add(allocator, tebibyte, BlockBitmap(blocks));
  for (uint32_t id = 0; id < tebibyte; ++id)
    for (uint32_t c = 0; c < blocks / chunk; ++c) allocator.load(id, c, every_other(chunk), 0);
  // Of each container some chunks have changed since the last checkpoint, and some blocks are held.
  for (uint32_t id = 0; id < tebibyte; ++id) allocator.replay_owned({id, 1, 1}, 1);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  ASSERT_TRUE(allocator.reserve(1000));
  const auto held = allocator.allocate(1000, true, nullptr);
  EXPECT_LE(allocator.bitmap_bytes(), 40 * mib);
  EXPECT_GE(allocator.bitmap_bytes(), 32 * mib);
}

TEST(BitmapMemory, OfATebibyteThatIsAlikeIsNextToNothing) {
  for (const auto& unwritten : {BlockBitmap(blocks), all(blocks)}) {
    for (const bool owned : {false, true}) {
      Allocator allocator;
      add(allocator, tebibyte, unwritten);
      for (uint32_t id = 0; owned && id < tebibyte; ++id)
        for (uint32_t c = 0; c < blocks / chunk; ++c) allocator.load(id, c, all(chunk), 0);
      ASSERT_TRUE(allocator.finish_recovery().ok());
      EXPECT_LE(allocator.bitmap_bytes(), 3 * mib);
    }
  }
}

// What was given back in the midst of what is in use is bits, too.
TEST(BitmapMemory, OfATebibyteThatIsPunchedEverywhereIsThatOfTwoBitmaps) {
  Allocator allocator;
  BlockBitmap holes(blocks);
  for (uint32_t b = 0; b < blocks; b += 512) holes.set(b, 256);
  add(allocator, tebibyte, holes, holes);
  BlockBitmap owned(chunk);
  for (uint32_t b = 256; b < chunk; b += 512) owned.set(b, 256);
  for (uint32_t id = 0; id < tebibyte; ++id)
    for (uint32_t c = 0; c < blocks / chunk; ++c) allocator.load(id, c, owned, 0);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  EXPECT_LE(allocator.bitmap_bytes(), 70 * mib);
}

// What comes and goes leaves nothing behind.
TEST(BitmapMemory, IsThatOfWhatIsThereNow) {
  Allocator allocator;
  add(allocator, 4, BlockBitmap(blocks));
  ASSERT_TRUE(allocator.finish_recovery().ok());
  const uint64_t before = allocator.bitmap_bytes();
  ASSERT_TRUE(allocator.reserve(20000));
  const auto extents = allocator.allocate(20000, true, nullptr);
  for (const Extent& e : extents) allocator.mark_owned(e);
  EXPECT_GT(allocator.bitmap_bytes(), before);
  for (const Extent& e : extents) {
    allocator.mark_freed(e);
    allocator.give_back(e);
  }
  allocator.begin_capture();
  while (!allocator.take_changed(100).empty()) {
  }
  EXPECT_EQ(allocator.bitmap_bytes(), before);
}

// --- checkpoints

TEST(CaptureOfTenTebibytes, IsInPiecesOfHalfAMebibyte) {
  Allocator allocator;
  add(allocator, ten_tebibytes, BlockBitmap(blocks));
  // One chunk of each container is fragmented, and all have changed.
  for (uint32_t id = 0; id < ten_tebibytes; ++id) allocator.load(id, 7, every_other(chunk), 0);
  ASSERT_TRUE(allocator.finish_recovery().ok());
  allocator.mark_all_changed();
  allocator.begin_capture();
  uint64_t takes = 1, chunks = 0, longest_bytes = 0;
  for (;; ++takes) {
    const auto piece = allocator.take_changed(1024);
    if (piece.empty()) break;
    uint64_t bytes = 0;
    for (const auto& c : piece) bytes += c.owned.blocks() / 8;
    longest_bytes = std::max(longest_bytes, bytes);
    chunks += piece.size();
  }
  EXPECT_EQ(chunks, 64u * ten_tebibytes);
  EXPECT_EQ(takes, 641u);
  EXPECT_EQ(longest_bytes, 512u << 10);
}

class TenTebibytesTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    options.container_bytes = 1 << 30;
    options.capacity_bytes = uint64_t(20) << 40;
    options.prepare_bytes_per_second = options.punch_bytes_per_second = 0;
    options.memtable_bytes = 64 << 20;
    ASSERT_NO_FATAL_FAILURE(format());
    vast = std::make_unique<VastDisk>(*disk, ten_tebibytes, options.container_bytes);
    ASSERT_NO_FATAL_FAILURE(open_vast());
  }
  void TearDown() override {
    engine.reset();
    vast.reset();
    EngineFixture::TearDown();
  }
  void open_vast() {
    engine.reset();
    auto opened = Engine::open(*vast, options);
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    engine = opened.take();
  }
  std::map<std::string, uint64_t> counters() {
    const auto all = engine->statistics();
    return {all.begin(), all.end()};
  }
  std::unique_ptr<VastDisk> vast;
};

TEST_F(TenTebibytesTest, TheLaneStandsForNoMoreThanAPieceOfACheckpoint) {
  std::map<uint32_t, BlockBitmap> owned;
  for (uint32_t id = 0; id < ten_tebibytes; ++id) owned.emplace(id, all(blocks));
  ASSERT_TRUE(engine->adopt_owned(owned).ok());
  auto counted = counters();
  EXPECT_EQ(counted["checkpoint_chunks"], 64u * ten_tebibytes);
  EXPECT_EQ(counted["checkpoint_takes"], 641u);
  EXPECT_EQ(counted["checkpoint_take_chunks_max"], 1024u);

  ASSERT_NO_FATAL_FAILURE(open_vast());
  EXPECT_EQ(engine->owned_blocks(), owned);
  // Of what changes, only that.
  auto txn = std::make_shared<Txn>();
  for (uint32_t id = 0; id < ten_tebibytes; id += 1024) txn->free({id, 5, 1});
  commit(txn);
  ASSERT_TRUE(engine->checkpoint().ok());
  counted = counters();
  EXPECT_EQ(counted["checkpoint_chunks"], 10u);
  EXPECT_EQ(counted["checkpoint_takes"], 2u);
}

TEST_F(TenTebibytesTest, TheStartFlushesOnceForAllContainers) {
  EXPECT_EQ(vast->flushes_of_all(), 1u);
  EXPECT_EQ(vast->container_flushes(), 1u);
  EXPECT_EQ(engine->owned_blocks().size(), ten_tebibytes);
}

}  // namespace
}  // namespace tablestore
