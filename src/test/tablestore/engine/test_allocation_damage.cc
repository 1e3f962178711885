// Rows of the allocation map that cannot be read: what they said of blocks can be counted anew, so
// the store opens, and hands out nothing that may have an owner.
#include <algorithm>
#include <fstream>

#include "flaky_table.h"
#include "os/tablestore/engine/troubles.h"
#include "test/tablestore/engine/engine_fixture.h"
#include "test/tablestore/sim/stepped_threads.h"

namespace tablestore {
namespace {

class AllocationDamageTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    options.container_bytes = container_bytes();
    options.table_options = "disable_auto_compactions=true;compression=kNoCompression";
    options.troubles = troubles;
    options.reporter.log = [this](Reporter::Level, const std::string& line) {
      said += line + "\n";
    };
    ASSERT_NO_FATAL_FAILURE(format());
    ASSERT_NO_FATAL_FAILURE(open());
    auto txn = std::make_shared<Txn>();
    first = write(*txn, 100, 1);
    txn->put(Family::object, "first", "1");
    commit(txn);
    ASSERT_TRUE(engine->checkpoint().ok());
  }
  virtual uint64_t container_bytes() const { return 8 << 20; }
  // Another file of the table, with the rows "applied" and "log_start", and of the map what has
  // changed since.
  void checkpoint_with(const std::string& key, uint64_t blocks) {
    auto txn = std::make_shared<Txn>();
    if (blocks > 0) second = write(*txn, blocks, 2);
    txn->put(Family::object, key, "v");
    commit(txn);
    ASSERT_TRUE(engine->checkpoint().ok());
  }
  // In the oldest file that has a row of the map, or so many files behind it.
  void damage_oldest_row_of_the_map(size_t behind = 0) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/table"))
      if (entry.path().extension() == ".sst") files.push_back(entry.path());
    std::ranges::sort(files);
    for (const auto& path : files) {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      const size_t at = bytes.find(std::string("\0alloc", 6));
      if (at == std::string::npos || behind-- > 0) continue;
      file.clear();
      file.seekp(std::streamoff(at + 2));
      file.put('x');
      ASSERT_TRUE(file.good());
      return;
    }
    FAIL() << "no row of the map in any file";
  }
  std::map<uint32_t, BlockBitmap> owned_by(const std::vector<Written>& all) {
    std::map<uint32_t, BlockBitmap> owned;
    for (const Written& w : all)
      for (const Extent& e : w.extents)
        owned.try_emplace(e.container, BlockBitmap(uint32_t(options.container_bytes / block_bytes)))
            .first->second.set(e.block, e.blocks);
    return owned;
  }
  // Without the containers that are made ahead of use.
  std::map<uint32_t, BlockBitmap> owned_blocks() {
    auto owned = engine->owned_blocks();
    std::erase_if(owned, [](const auto& c) { return c.second.count() == 0; });
    return owned;
  }
  static uint64_t count(const std::map<uint32_t, BlockBitmap>& owned) {
    uint64_t blocks = 0;
    for (const auto& [container, bitmap] : owned) blocks += bitmap.count();
    return blocks;
  }
  std::filesystem::path path_of(uint32_t container) {
    for (const auto& e : std::filesystem::recursive_directory_iterator(directory + "/containers"))
      if (e.path().filename() == std::to_string(container)) return e.path();
    ADD_FAILURE() << "no container " << container;
    return {};
  }
  void expect_first_block() {
    const Extent block{first.extents[0].container, first.extents[0].block, 1};
    BlockMemory found(block_bytes);
    const Status s = engine->read(block, found.span());
    ASSERT_TRUE(s.ok()) << s.what();
    EXPECT_EQ(std::memcmp(found.data(), make_data(100, 1)->data(), block_bytes), 0);
  }
  bool told() { return troubles->all().contains("ALLOCATION_UNKNOWN"); }

  const std::shared_ptr<Troubles> troubles = std::make_shared<Troubles>();
  std::string said;
  Written first, second;
};

TEST_F(AllocationDamageTest, ARowThatWasReplacedIsNotMissed) {
  ASSERT_NO_FATAL_FAILURE(checkpoint_with("second", 7));
  const auto owned = owned_blocks();
  engine.reset();
  ASSERT_NO_FATAL_FAILURE(damage_oldest_row_of_the_map());
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_FALSE(told());
  EXPECT_TRUE(engine->knows_owners());
  EXPECT_EQ(owned_blocks(), owned);
  expect_data(first.extents, 1);
}

TEST_F(AllocationDamageTest, WhereARowIsLostAllBlocksCountAsOwnedUntilTheyAreCounted) {
  ASSERT_NO_FATAL_FAILURE(checkpoint_with("second", 0));
  // In the log alone: a new owner, and one who is gone.
  auto txn = std::make_shared<Txn>();
  const Written kept = write(*txn, 3, 3);
  const Written gone = write(*txn, 5, 4);
  commit(txn);
  txn = std::make_shared<Txn>();
  for (const Extent& e : gone.extents) txn->free(e);
  commit(txn);
  const auto owned = owned_blocks();
  engine.reset();
  ASSERT_NO_FATAL_FAILURE(damage_oldest_row_of_the_map());
  for (int life = 0; life < 3; ++life) {
    ASSERT_NO_FATAL_FAILURE(open());
    EXPECT_TRUE(told()) << life;
    EXPECT_FALSE(engine->knows_owners());
    EXPECT_FALSE(engine->needs_adoption());
    const auto counted = engine->owned_blocks();
    for (const auto& [container, bitmap] : owned)
      for (uint32_t b = bitmap.next_set(0); b < bitmap.blocks(); b = bitmap.next_set(b + 1))
        ASSERT_TRUE(counted.at(container).test(b)) << b;
    EXPECT_GT(count(engine->owned_blocks()), count(owned));
    expect_data(first.extents, 1);
    expect_data(kept.extents, 3);
    // It is used meanwhile: what is handed out has no owner.
    txn = std::make_shared<Txn>();
    const Written more = write(*txn, 50, 9);
    commit(txn);
    expect_data(first.extents, 1);
    expect_data(kept.extents, 3);
    expect_data(more.extents, 9);
    txn = std::make_shared<Txn>();
    for (const Extent& e : more.extents) txn->free(e);
    commit(txn);
    if (life == 1) {
      ASSERT_TRUE(engine->checkpoint().ok());
    }
    engine.reset();
    troubles->clear("ALLOCATION_UNKNOWN");
  }
  ASSERT_NO_FATAL_FAILURE(open());
  const auto rows = owned_by({first, kept});
  const Status s = engine->adopt_owned(rows);
  ASSERT_TRUE(s.ok()) << s.what();
  for (int life = 0; life < 2; ++life) {
    EXPECT_FALSE(told());
    EXPECT_TRUE(engine->knows_owners());
    EXPECT_EQ(count(engine->owned_blocks()), count(rows));
    ASSERT_NO_FATAL_FAILURE(crash_and_open());
  }
  expect_data(first.extents, 1);
  expect_data(kept.extents, 3);
}

class ChunkDamageTest : public AllocationDamageTest {
 protected:
  uint64_t container_bytes() const override { return 20 << 20; }  // two chunks
};

// Of the two rows in the block that has rotten, one was replaced since.
TEST_F(ChunkDamageTest, OnlyTheChunkWhoseRowIsLostCountsAsOwned) {
  auto txn = std::make_shared<Txn>();
  const Written all = write(*txn, container_bytes() / block_bytes, 2);
  commit(txn);
  const auto checkpoint_without = [&](const Extent& extent) {
    auto change = std::make_shared<Txn>();
    change->free(extent);
    commit(change);
    ASSERT_TRUE(engine->checkpoint().ok());
  };
  const Extent &in_first = all.extents.front(), &in_second = all.extents.back();
  const uint32_t container = in_first.container, chunk = BlockBitmap::chunk_blocks;
  ASSERT_EQ(in_second.container, container);
  ASSERT_LT(in_first.block, chunk);
  ASSERT_GE(in_second.block, chunk);
  ASSERT_NO_FATAL_FAILURE(checkpoint_without(in_first));
  ASSERT_NO_FATAL_FAILURE(checkpoint_without(in_second));
  auto owned = owned_blocks();
  engine.reset();
  ASSERT_NO_FATAL_FAILURE(damage_oldest_row_of_the_map(1));
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_TRUE(told());
  owned.at(container).set(0, chunk);
  EXPECT_EQ(owned_blocks(), owned);
  expect_data(first.extents, 1);
}

// Freed by an object that was removed: no longer in use.
TEST_F(AllocationDamageTest, WhatObjectsGiveUpIsFreeAgain) {
  ASSERT_NO_FATAL_FAILURE(checkpoint_with("second", 0));
  engine.reset();
  ASSERT_NO_FATAL_FAILURE(damage_oldest_row_of_the_map());
  ASSERT_NO_FATAL_FAILURE(open());
  const uint64_t before = count(engine->owned_blocks());
  auto txn = std::make_shared<Txn>();
  for (const Extent& e : first.extents) txn->free(e);
  commit(txn);
  EXPECT_EQ(count(engine->owned_blocks()), before - 100);
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  EXPECT_EQ(count(engine->owned_blocks()), before - 100);
  EXPECT_TRUE(told());
}

// Nobody can tell whether it was being made at a crash, or was cut, and objects have the rest.
TEST_F(AllocationDamageTest, AContainerThatIsTooShortIsKept) {
  ASSERT_NO_FATAL_FAILURE(checkpoint_with("second", 0));
  engine.reset();
  ASSERT_NO_FATAL_FAILURE(damage_oldest_row_of_the_map());
  const auto cut = path_of(first.extents[0].container);
  std::filesystem::resize_file(cut, first.extents[0].offset_bytes() + block_bytes);
  for (int life = 0; life < 3; ++life) {
    ASSERT_NO_FATAL_FAILURE(open());
    EXPECT_TRUE(told()) << life;
    EXPECT_EQ(std::filesystem::file_size(cut), options.container_bytes);
    EXPECT_EQ(said.find(cut.filename().string() + " was too short") != std::string::npos,
              life == 0);
    said.clear();
    expect_first_block();
    auto txn = std::make_shared<Txn>();
    const Written more = write(*txn, 50, 9);
    commit(txn);
    expect_first_block();
    expect_data(more.extents, 9);
    engine.reset();
    troubles->clear("ALLOCATION_UNKNOWN");
  }
  // What objects had in what is gone can be freed as all else.
  ASSERT_NO_FATAL_FAILURE(open());
  const uint64_t before = count(engine->owned_blocks());
  auto txn = std::make_shared<Txn>();
  for (const Extent& e : first.extents) txn->free(e);
  commit(txn);
  EXPECT_EQ(count(engine->owned_blocks()), before - 100);
  const Status s = engine->adopt_owned({});
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(count(engine->owned_blocks()), 0u);
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  EXPECT_FALSE(told());
}

// An object may be in what the allocator takes for free.
TEST_F(AllocationDamageTest, OneThatIsOpenedForRepairGivesNothingBackUntilOwnersAreKnown) {
  const auto rows = engine->owned_blocks();
  engine.reset();
  const auto threads = std::make_shared<sim::SteppedThreads>();
  options.threads = threads;
  options.for_repair = true;
  ASSERT_NO_FATAL_FAILURE(open());
  for (const char* work : {"prepare", "shrink", "relieve"})
    EXPECT_FALSE(threads->has(work)) << work;
  const Status s = engine->adopt_owned(rows);
  ASSERT_TRUE(s.ok()) << s.what();
  for (const char* work : {"prepare", "shrink", "relieve"})
    EXPECT_TRUE(threads->has(work)) << work;
  engine.reset();
}

// The next one finds everything as this one was to leave it, and nothing stands still meanwhile.
TEST_F(AllocationDamageTest, AnAdoptionThatMeetsAFullFileSystemCanBeRepeated) {
  engine.reset();
  const auto threads = std::make_shared<sim::SteppedThreads>();
  options.threads = threads;
  threads->when_stalled([] {});  // time passes
  FlakyTable flaky(*disk);
  auto opened = Engine::open(flaky, options);
  ASSERT_TRUE(opened.ok()) << opened.status().what();
  engine = opened.take();
  ASSERT_TRUE(threads->has("prepare"));
  flaky.set_full(true);
  EXPECT_EQ(engine->adopt_owned({}).code(), ENOSPC);
  EXPECT_TRUE(threads->has("prepare"));
  flaky.set_full(false);
  const Status s = engine->adopt_owned({});
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_TRUE(threads->has("prepare"));
  EXPECT_EQ(count(engine->owned_blocks()), 0u);
  engine.reset();
}

}  // namespace
}  // namespace tablestore
