// One account of space: what is free can be had by whatever comes next, and a store that is full
// gets out of that again.
#include <chrono>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <random>

#include "os/tablestore/engine/space/space_account.h"
#include "test/tablestore/engine/engine_fixture.h"
#include "test/tablestore/engine/small_disk.h"
#include "test/tablestore/sim/stepped_threads.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t mib = 1 << 20;

// --- what the table may need

TEST(TableReserveTest, ALogOfRowsCanAlwaysBeFlushed) {
  EXPECT_EQ(table_reserve_bytes({}, 64 * mib, false), 64 * mib);
  EXPECT_EQ(table_reserve_bytes({}, 64 * mib, true) + ballast_bytes(64 * mib), 64 * mib);
}

TEST(TableReserveTest, ItFollowsTheTableAndWhatIsToBeCompacted) {
  const uint64_t log = 64 * mib;
  EXPECT_EQ(table_reserve_bytes({400 * mib, 0}, log, false), log + 100 * mib);
  EXPECT_EQ(table_reserve_bytes({400 * mib, 150 * mib}, log, false), log + 150 * mib);
  EXPECT_EQ(table_reserve_bytes({400 * mib, 400 * mib}, log, false), log + 200 * mib);
  EXPECT_EQ(table_reserve_bytes({100'000 * mib, 9'000 * mib}, log, false), log + 1024 * mib);
}

// --- a store on a small file system

class SpaceTest : public EngineFixture {
 protected:
  static constexpr uint64_t disk_bytes = 160 * mib;

  void SetUp() override {
    EngineFixture::SetUp();
    options.capacity_bytes = 0;
    options.container_bytes = 4 * mib;
    options.prepare_bytes_per_second = 0;
    options.reporter.log = [this](Reporter::Level level, const std::string& line) {
      std::lock_guard lock(error_mutex_);  // from any thread
      if (level == Reporter::Level::error) last_error_ = line;
    };
  }
  void TearDown() override {
    engine.reset();
    small.reset();
    EngineFixture::TearDown();
  }
  void format_small(uint64_t bytes = disk_bytes) {
    small.emplace(*disk, directory, bytes);
    const Status s = Engine::format(*small, options);
    ASSERT_TRUE(s.ok()) << s.what();
    open_small();
  }
  void open_small() {
    options.troubles = std::make_shared<Troubles>();
    auto opened = Engine::open(*small, options);
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    engine = opened.take();
  }
  template <typename Done>
  static bool eventually(Done done) {
    const auto end = std::chrono::steady_clock::now() + 2min;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }
  // False: it is not durable, and nothing gets on.
  bool committed(std::shared_ptr<AwaitedTxn> txn) {
    engine->submit(txn);
    return eventually([&] { return txn->is_durable(); });
  }
  // That no compression makes smaller.
  std::string bytes_of(uint64_t n) {
    std::string value(n, 0);
    for (uint64_t at = 0; at + 8 <= n; at += 8) {
      const uint64_t word = random_();
      std::memcpy(&value[at], &word, 8);
    }
    return value;
  }
  // Puts omap until there is nothing available; false where a commit hangs before.
  bool fill_with_omap(uint64_t* written) {
    for (int i = 0; engine->space().available_bytes > 0; ++i) {
      auto txn = std::make_shared<AwaitedTxn>();
      txn->put(Family::omap, "o" + std::to_string(i), bytes_of(256 << 10));
      if (!committed(txn)) return false;
      *written += 256 << 10;
    }
    return true;
  }
  bool has_trouble(const std::string& name) { return options.troubles->all().contains(name); }
  // Objects of 1 MiB, as long as there is space.
  std::vector<std::vector<Extent>> fill_with_objects() {
    std::vector<std::vector<Extent>> objects;
    while (engine->reserve(mib).ok()) {
      engine->unreserve(mib);
      auto txn = std::make_shared<AwaitedTxn>();
      objects.push_back(write(*txn, 256, objects.size()).extents);
      txn->put(Family::object, "d" + std::to_string(objects.size() - 1), "onode");
      EXPECT_TRUE(committed(txn));
    }
    return objects;
  }
  bool remove(const std::vector<Extent>& object, size_t number) {
    auto txn = std::make_shared<AwaitedTxn>();
    for (const Extent& e : object) txn->free(e);
    txn->erase(Family::object, "d" + std::to_string(number));
    return committed(txn);
  }

  std::optional<SmallDisk> small;
  std::string last_error() {
    std::lock_guard lock(error_mutex_);
    return last_error_;
  }

 private:
  std::mutex error_mutex_;
  std::string last_error_;
  std::mt19937_64 random_{1};
};

TEST_F(SpaceTest, ErasedRowsGiveTheirSpaceBackToAFullStoreThatGetsNoMoreWrites) {
  options.compact_on_deletion_window = 1000;
  options.compact_on_deletion_trigger = 500;
  format_small();
  std::vector<std::string> keys;
  while (engine->space().available_bytes > 8 * mib) {
    auto put = std::make_shared<AwaitedTxn>();
    for (unsigned i = 0; i < 64; ++i) {
      keys.push_back("o" + std::to_string(1'000'000 + keys.size()));
      put->put(Family::omap, keys.back(), bytes_of(8 << 10));
    }
    ASSERT_TRUE(committed(put)) << last_error();
  }
  ASSERT_TRUE(engine->checkpoint().ok());
  const uint64_t before = engine->space().table_bytes;
  auto erase = std::make_shared<AwaitedTxn>();
  for (const std::string& key : keys) erase->erase(Family::omap, key);
  ASSERT_TRUE(committed(erase));
  EXPECT_TRUE(eventually([&] { return engine->space().table_bytes < before / 2; }))
      << keys.size() << " rows, " << before << " bytes, " << engine->space().table_bytes;
}

// Nobody else would: what a client has removed shows as used for as long as nobody writes.
TEST_F(SpaceTest, ErasedRowsAreFlushedWhereSpaceIsPlentyWhenThereWereNoMoreForAMinute) {
  const auto threads = std::make_shared<sim::SteppedThreads>();
  options.threads = threads;
  format_small();
  const auto erase_many = [&] {
    auto erase = std::make_shared<Txn>();
    for (unsigned i = 0; i < 5000; ++i) erase->erase(Family::omap, std::to_string(i));
    commit(std::move(erase));
  };
  const auto flushed_after = [&](unsigned seconds) {
    const uint64_t before = engine->counters().checkpoints;
    for (unsigned step = 0; step < seconds * 10; ++step) threads->step("relieve");
    threads->step_all("checkpoint");
    return engine->counters().checkpoints - before;
  };
  erase_many();
  EXPECT_EQ(flushed_after(50), 0u);
  erase_many();
  EXPECT_EQ(flushed_after(50), 0u) << "though there were more in between";
  EXPECT_EQ(flushed_after(15), 1u);
  EXPECT_EQ(flushed_after(200), 0u) << "there are none any more";
}

TEST_F(SpaceTest, TheTableGetsWhatIsFreeInContainersAndTheEndIsSeenComing) {
  options.provision_bytes = 96 * mib;
  format_small();
  const uint64_t at_first = engine->space().available_bytes;
  EXPECT_GE(at_first, 96 * mib);
  uint64_t written = 0;
  ASSERT_TRUE(fill_with_omap(&written)) << "after " << written / mib << " MiB: " << last_error();
  EXPECT_GE(written, at_first / 3);  // a table needs space to compact
  // What an OSD does when it is full still works, and so do its removals and the next start.
  for (int i = 0; i < 100; ++i) {
    auto txn = std::make_shared<AwaitedTxn>();
    txn->erase(Family::omap, "o" + std::to_string(i));
    ASSERT_TRUE(committed(txn)) << i;
  }
  const Status closed = engine->close();
  EXPECT_TRUE(closed.ok()) << closed.what();
  engine.reset();
  open_small();
  EXPECT_FALSE(get(Family::omap, "o0"));
  EXPECT_TRUE(get(Family::omap, "o101"));
}

// A compaction has the last space while the store is closed.
class SpaceThatACompactionHas : public SpaceTest {
 protected:
  void SetUp() override {
    SpaceTest::SetUp();
    // However many files there are before it begins.
    options.table_options = "level0_slowdown_writes_trigger=1000;level0_stop_writes_trigger=1000";
    small.emplace(*disk, directory, disk_bytes);
    small->set_without_ballast();  // it would do
    small->hold_compactions(true);
    ASSERT_TRUE(Engine::format(*small, options).ok());
    ASSERT_NO_FATAL_FAILURE(open_small());
    for (int files = 0; files < 50 && !small->is_compaction_held(); ++files) {
      ASSERT_NO_FATAL_FAILURE(put(mib));
      ASSERT_TRUE(engine->checkpoint().ok());
    }
    ASSERT_TRUE(eventually([&] { return small->is_compaction_held(); })) << "nothing is compacted";
    ASSERT_NO_FATAL_FAILURE(put(row_bytes));
  }
  void TearDown() override {
    small->hold_compactions(false);
    SpaceTest::TearDown();
  }
  static constexpr uint64_t row_bytes = 64 << 10;
  void put(uint64_t bytes) {
    auto txn = std::make_shared<AwaitedTxn>();
    txn->put(Family::omap, "o", bytes_of(bytes));
    ASSERT_TRUE(committed(txn)) << last_error();
  }
  std::future<Status> close_until_a_flush_is_refused() {
    const unsigned before = small->refusals();
    auto closed = std::async(std::launch::async, [this] { return engine->close(); });
    EXPECT_TRUE(eventually([&] { return small->refusals() > before; }));
    std::this_thread::sleep_for(300ms);  // it begins to wait
    return closed;
  }
};

TEST_F(SpaceThatACompactionHas, IsThereForTheCheckpointWhenTheCompactionHasEnded) {
  small->set_other_bytes(uint64_t(1) << 60);
  auto closed = close_until_a_flush_is_refused();
  small->set_other_bytes(0);
  small->hold_compactions(false);
  const Status s = closed.get();
  EXPECT_TRUE(s.ok()) << s.what();
}

TEST_F(SpaceThatACompactionHas, IsThereForTheCheckpointWhenTheCompactionHasFailed) {
  small->set_other_bytes(small->available_bytes());
  auto closed = close_until_a_flush_is_refused();
  EXPECT_LT(small->available_bytes(), row_bytes);
  small->hold_compactions(false);
  const Status s = closed.get();
  EXPECT_TRUE(s.ok()) << s.what();
}

TEST_F(SpaceTest, WhatIsAvailableIsThereForObjectsToo) {
  format_small();
  fill_with_objects();
  EXPECT_LT(engine->space().available_bytes, mib + 4 * mib);  // a container is made as a whole
  uint64_t written = 0;
  EXPECT_TRUE(fill_with_omap(&written));
  EXPECT_TRUE(engine->checkpoint().ok());
}

// Free space in containers, in pieces smaller than are ever punched in peace.
TEST_F(SpaceTest, RowsGetWhatIsFreeInSmallPieces) {
  format_small();
  auto objects = fill_with_objects();
  for (size_t i = 0; i < objects.size(); ++i) {  // the first half of each
    auto txn = std::make_shared<AwaitedTxn>();
    const Extent& e = objects[i].front();
    txn->free({e.container, e.block, e.blocks / 2});
    ASSERT_TRUE(committed(txn));
  }
  engine->drain();
  const uint64_t available = engine->space().available_bytes;
  ASSERT_GE(available, 20 * mib);
  uint64_t written = 0;
  ASSERT_TRUE(fill_with_omap(&written)) << "after " << written / mib << " MiB: " << last_error();
  EXPECT_GE(written, available / 3);
  const Status s = engine->checkpoint();
  EXPECT_TRUE(s.ok()) << s.what();
}

// --- something else fills the file system

TEST_F(SpaceTest, AStoreOnAFileSystemThatOthersFilledOpensAndDeletes) {
  format_small();
  const auto objects = fill_with_objects();
  ASSERT_GT(objects.size(), 40u);
  ASSERT_TRUE(eventually([&] { return engine->space().ballast_bytes > 0; }));
  engine.reset();
  small->set_other_bytes(small->available_bytes());
  open_small();
  EXPECT_EQ(engine->space().ballast_bytes, 0u);
  EXPECT_EQ(engine->space().available_bytes, 0u);
  EXPECT_TRUE(engine->reserve(0).ok());
  EXPECT_EQ(engine->reserve(1).code(), ENOSPC);
  EXPECT_TRUE(eventually([&] { return has_trouble("TABLE_SHORT_OF_SPACE"); }));
  // More rows than the log has room for: what removals free is what the table is flushed with.
  for (size_t i = 0; i < objects.size() / 2; ++i) {
    ASSERT_TRUE(remove(objects[i], i)) << i;
    auto txn = std::make_shared<AwaitedTxn>();
    txn->put(Family::omap, "log of " + std::to_string(i), bytes_of(256 << 10));
    ASSERT_TRUE(committed(txn)) << i << ": " << last_error();
  }
  EXPECT_TRUE(engine->checkpoint().ok());
}

// What waits for the table may be no more than the log holds: behind it wait the removals that the
// table gets its space from.
TEST_F(SpaceTest, RemovalsGetDurableHoweverManyRowsWaitForSpace) {
  options.log_bytes = 128 * mib;
  format_small(400 * mib);
  const auto objects = fill_with_objects();
  ASSERT_GT(objects.size(), 40u);
  uint64_t others = 0;
  for (int tries = 0; engine->checkpoint().ok(); ++tries) {
    ASSERT_LT(tries, 100);
    small->set_other_bytes(others += small->available_bytes());
    auto txn = std::make_shared<AwaitedTxn>();
    txn->put(Family::omap, "first " + std::to_string(tries), bytes_of(256 << 10));
    ASSERT_TRUE(committed(txn));
  }
  for (int i = 0; i < 96; ++i) {
    auto txn = std::make_shared<AwaitedTxn>();
    txn->put(Family::omap, "o" + std::to_string(i), bytes_of(256 << 10));
    ASSERT_TRUE(committed(txn)) << i << ": " << last_error();
  }
  for (size_t i = 0; i < 40; ++i) ASSERT_TRUE(remove(objects[i], i)) << i;
  EXPECT_TRUE(eventually([&] { return engine->checkpoint().ok(); }));
}

TEST_F(SpaceTest, WhatHasToBeWrittenIsWrittenAlsoOnAFileSystemThatOthersFilled) {
  options.log_bytes = 16 * mib;
  options.segment_bytes = 4 * mib;
  options.last_resort_bytes = 3 * mib;
  format_small();
  fill_with_objects();
  EXPECT_EQ(engine->space().available_bytes / mib, 0u);
  uint64_t others = small->available_bytes();
  small->set_other_bytes(others);
  ASSERT_TRUE(eventually([&] { return has_trouble("TABLE_SHORT_OF_SPACE"); }));
  for (int life = 0; life < 3; ++life) {
    ASSERT_EQ(engine->reserve(mib).code(), ENOSPC);
    ASSERT_TRUE(engine->reserve_at_last(mib).ok()) << life;
    auto txn = std::make_shared<AwaitedTxn>();
    auto data = make_data(256, life);
    const iovec iov{data->data(), data->size()};
    std::vector<uint32_t> checksums;
    engine->write(*txn, {&iov, 1}, data, &checksums);
    ASSERT_TRUE(committed(txn)) << life << ": " << last_error();
    engine.reset();
    small->set_other_bytes(others += small->available_bytes());
    ASSERT_NO_FATAL_FAILURE(open_small());
  }
  EXPECT_EQ(engine->reserve_at_last(mib).code(), ENOSPC);
}

// The ballast was used before; what little there is would not do for the rows to replay, which are
// more than the table keeps in memory.
TEST_F(SpaceTest, AStoreOpensAlsoWithoutABallast) {
  options.log_bytes = 64 * mib;
  options.memtable_bytes = mib;
  format_small(3 * disk_bytes);
  const auto objects = fill_with_objects();
  ASSERT_TRUE(eventually([&] { return engine->space().ballast_bytes > 0; }));
  ASSERT_TRUE(engine->checkpoint().ok());
  ASSERT_TRUE(disk->remove("ballast").ok());
  small->set_other_bytes(small->available_bytes() - mib);
  constexpr int rows = 19;  // more than the lane is ahead of a table that has space
  for (int i = 0; i < rows; ++i) {
    auto txn = std::make_shared<AwaitedTxn>();
    txn->put(Family::omap, "o" + std::to_string(i), bytes_of(mib));
    ASSERT_TRUE(committed(txn)) << i;
  }
  for (int life = 0; life < 2; ++life) {
    engine.reset();
    ASSERT_NO_FATAL_FAILURE(open_small());
    for (int i = 0; i < rows; ++i) EXPECT_TRUE(get(Family::omap, "o" + std::to_string(i)));
  }
  for (size_t i = 0; i < 3 * rows; ++i) ASSERT_TRUE(remove(objects[i], i)) << i;
  ASSERT_TRUE(engine->checkpoint().ok());
  // Once there is space, the table takes no more memory than it is to: of these rows most are
  // flushed, though the log does not ask for it.
  small->set_other_bytes(0);
  for (int i = 0; i < rows; ++i) {
    auto txn = std::make_shared<AwaitedTxn>();
    txn->put(Family::omap, "p" + std::to_string(i), bytes_of(mib));
    ASSERT_TRUE(committed(txn)) << i;
  }
  ASSERT_TRUE(engine->wait_applied());
  EXPECT_TRUE(eventually([&] { return engine->memory().memtable_bytes < 10 * mib; }))
      << engine->memory().memtable_bytes;
}

// Others take at once whatever comes back, also the ballast.
TEST_F(SpaceTest, AStoreOpensAgainAndAgainWhereNotAByteIsAvailable) {
  format_small();
  const auto objects = fill_with_objects();
  ASSERT_TRUE(eventually([&] { return engine->space().ballast_bytes > 0; }));
  engine.reset();
  ASSERT_TRUE(disk->remove("ballast").ok());
  // Nobody but the start makes anything, not even RocksDB's own log, of which the last is removed.
  options.threads = std::make_shared<sim::SteppedThreads>();
  for (int life = 0; life < 5; ++life) {
    engine.reset();
    small->set_other_bytes(disk_bytes - std::min(disk_bytes, small->used_bytes()));
    ASSERT_EQ(small->available_bytes(), 0u);
    ASSERT_NO_FATAL_FAILURE(open_small()) << life;
  }
  engine.reset();
  options.threads = nullptr;
  open_small();
  small->set_other_bytes(small->available_bytes());
  for (size_t i = 0; i < objects.size() / 2; ++i) ASSERT_TRUE(remove(objects[i], i)) << i;
  EXPECT_TRUE(engine->checkpoint().ok());
}

TEST_F(SpaceTest, WhatOthersTakeIsGivenByTheBallastAndMadeAgainLater) {
  format_small();
  fill_with_objects();
  ASSERT_TRUE(eventually([&] { return engine->space().ballast_bytes > 0; }));
  const uint64_t ballast = engine->space().ballast_bytes;
  small->set_other_bytes(small->available_bytes());
  auto txn = std::make_shared<AwaitedTxn>();
  txn->put(Family::omap, "k", bytes_of(mib));
  ASSERT_TRUE(committed(txn));
  const Status s = engine->checkpoint();
  EXPECT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(engine->space().ballast_bytes, 0u);
  EXPECT_TRUE(eventually([&] { return has_trouble("TABLE_SHORT_OF_SPACE"); }));
  small->set_other_bytes(0);
  EXPECT_TRUE(eventually([&] { return engine->space().ballast_bytes == ballast; }));
  EXPECT_TRUE(eventually([&] { return !has_trouble("TABLE_SHORT_OF_SPACE"); }));
}

// --- a quota, which statfs need not know of

TEST_F(SpaceTest, AQuotaThatWasRaisedIsNoticedThoughNobodyWantsSpace) {
  format_small();
  small->set_error(EDQUOT);
  small->set_other_bytes(small->available_bytes());
  EXPECT_EQ(engine->reserve(64 * mib).code(), EDQUOT);
  EXPECT_TRUE(has_trouble("GROWTH_FAILED"));
  small->set_other_bytes(0);
  EXPECT_TRUE(eventually([&] { return !has_trouble("GROWTH_FAILED"); }));
  EXPECT_GT(engine->space().available_bytes, 0u);
}

TEST_F(SpaceTest, AQuotaThatIsUsedUpIsAFullFileSystemToTheTableToo) {
  format_small();
  ASSERT_TRUE(eventually([&] { return engine->space().ballast_bytes > 0; }));
  small->set_other_bytes(small->available_bytes());
  small->set_error(EDQUOT);
  EXPECT_EQ(engine->reserve(64 * mib).code(), EDQUOT);
  EXPECT_TRUE(has_trouble("GROWTH_FAILED"));
  EXPECT_EQ(engine->space().available_bytes, 0u);
  for (const char* key : {"a", "b"}) {
    for (int i = 0; i < 3; ++i) {
      auto txn = std::make_shared<AwaitedTxn>();
      txn->put(Family::omap, key + std::to_string(i), bytes_of(mib));
      ASSERT_TRUE(committed(txn));
    }
    const Status s = engine->checkpoint();  // the first one has the ballast's space
    EXPECT_EQ(s.code(), *key == 'a' ? 0 : ENOSPC) << s.what();
  }
  small->set_other_bytes(0);
  EXPECT_TRUE(eventually([&] { return engine->checkpoint().ok(); }));
  const Status reserved = engine->reserve(mib);
  EXPECT_TRUE(reserved.ok()) << reserved.what();
  EXPECT_FALSE(has_trouble("GROWTH_FAILED"));
}

// --- the capacity

TEST_F(SpaceTest, TheCapacityHoldsForAllOfTheStoreAlsoAfterARestart) {
  options.capacity_bytes = 128 * mib;
  format_small(1024 * mib);
  const auto objects = fill_with_objects();
  const uint64_t slack = 4 * mib;  // logs of RocksDB, directories
  EXPECT_LE(small->used_bytes(), options.capacity_bytes + slack);
  for (size_t i = 0; i < objects.size(); ++i)
    if (i % 4) {
      ASSERT_TRUE(remove(objects[i], i));
    }
  engine->drain();
  uint64_t written = 0;
  ASSERT_TRUE(fill_with_omap(&written));
  EXPECT_GE(written, 16 * mib);
  EXPECT_TRUE(eventually([&] { return small->used_bytes() <= options.capacity_bytes + slack; }))
      << small->used_bytes() / mib;
  engine.reset();
  open_small();
  EXPECT_LE(small->used_bytes(), options.capacity_bytes + slack);
}

}  // namespace
}  // namespace tablestore
