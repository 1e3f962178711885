// The engine as its user sees it: commits, order, crashes, refusals.
#include <atomic>
#include <barrier>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "engine_fixture.h"
#include "os/tablestore/engine/format/label.h"
#include "test/tablestore/engine/disk_wrapper.h"
#include "test/tablestore/sim/stepped_threads.h"

namespace tablestore {
namespace {

class EngineTest : public EngineFixture {};

// In the order in which they come, from the lane's thread and from the one that applies.
class Notes {
 public:
  void add(std::string note) {
    std::lock_guard lock(mutex_);
    notes_.push_back(std::move(note));
  }
  std::vector<std::string> all() {
    std::lock_guard lock(mutex_);
    return notes_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

// Notes the order of what happens to it.
class NotingTxn : public Txn {
 public:
  explicit NotingTxn(Notes* notes, std::string name) : notes_(notes), name_(std::move(name)) {}
  void durable() noexcept override { notes_->add("durable " + name_); }
  void applied() noexcept override { notes_->add("applied " + name_); }

 private:
  Notes* notes_;
  std::string name_;
};

uint64_t owned(Engine& engine) {
  uint64_t blocks = 0;
  for (const auto& [container, bitmap] : engine.owned_blocks()) blocks += bitmap.count();
  return blocks;
}

TEST_F(EngineTest, RowsAndDataSurviveACrash) {
  format();
  open();
  auto txn = std::make_shared<Txn>();
  txn->put(Family::object, "a", "1");
  txn->put(Family::omap, "b", "2");
  const Written w = write(*txn, 40, 7);
  commit(txn);
  crash_and_open();
  EXPECT_EQ(get(Family::object, "a"), "1");
  EXPECT_EQ(get(Family::omap, "b"), "2");
  EXPECT_EQ(get(Family::data, "a"), std::nullopt);
  expect_data(w.extents, 7);
  EXPECT_EQ(owned(*engine), 40u);
  EXPECT_EQ(engine->counters().recovered_transactions, 2u);  // and drain's marker
}

TEST_F(EngineTest, ACleanCloseLeavesNothingToReplay) {
  format();
  open();
  auto txn = std::make_shared<Txn>();
  txn->put(Family::object, "a", "1");
  const Written w = write(*txn, 5, 7);
  commit(txn);
  close_and_open();
  EXPECT_EQ(engine->counters().recovered_groups, 0u);
  EXPECT_EQ(get(Family::object, "a"), "1");
  expect_data(w.extents, 7);
}

TEST_F(EngineTest, DataIsReadBackWhileItIsInFlight) {
  format();
  open();
  auto txn = std::make_shared<Txn>();
  const Written w = write(*txn, 300, 3);
  expect_data(w.extents, 3);
  commit(txn);
  expect_data(w.extents, 3);
}

TEST_F(EngineTest, ChecksumsAreThoseOfTheBlocks) {
  format();
  open();
  auto txn = std::make_shared<Txn>();
  const Written w = write(*txn, 3, 3);
  EXPECT_EQ(w.checksums.size(), 3u);
  EXPECT_NE(w.checksums[0], w.checksums[1]);
  commit(txn);
}

TEST_F(EngineTest, LaterRowsOfATransactionWin) {
  format();
  open();
  auto txn = std::make_shared<Txn>();
  for (int i = 0; i < 10; ++i) txn->put(Family::omap, "k" + std::to_string(i), "old");
  txn->erase_range(Family::omap, "k2", "k5");
  txn->put(Family::omap, "k3", "new");
  txn->erase(Family::omap, "k9");
  const int64_t deltas[] = {5, -1};
  txn->add("P", deltas);
  txn->add("P", deltas);
  commit(txn);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(get(Family::omap, "k2"), std::nullopt);
    EXPECT_EQ(get(Family::omap, "k3"), "new");
    EXPECT_EQ(get(Family::omap, "k5"), "old");
    EXPECT_EQ(get(Family::omap, "k9"), std::nullopt);
    const auto row = get(Family::super, "P");
    ASSERT_TRUE(row && row->size() == 16);
    int64_t sums[2];
    std::memcpy(sums, row->data(), 16);
    EXPECT_EQ(sums[0], 10);  // also after recovery: counters are applied exactly once
    EXPECT_EQ(sums[1], -2);
    crash_and_open();
  }
}

TEST_F(EngineTest, CallbacksComeInLogOrderAndDurableBeforeApplied) {
  format();
  open();
  Notes notes;
  for (int i = 0; i < 50; ++i) {
    auto txn = std::make_shared<NotingTxn>(&notes, std::to_string(i));
    txn->put(Family::object, "k", std::to_string(i));
    engine->submit(txn);
  }
  engine->drain();
  ASSERT_EQ(notes.all().size(), 100u);
  int durable = 0, applied = 0;
  for (const std::string& n : notes.all()) {
    if (n == "durable " + std::to_string(durable)) ++durable;
    else if (n == "applied " + std::to_string(applied)) ++applied;
    else FAIL() << n;
    EXPECT_GE(durable, applied);
  }
  EXPECT_EQ(get(Family::object, "k"), "49");
}

TEST_F(EngineTest, OneFlushPerGroupOnceSpaceIsPrepared) {
  options.prepare_bytes_per_second = 4ull << 30;
  format();
  open();
  auto first = std::make_shared<Txn>();
  write(*first, 1, 0);
  commit(first);
  // The preparer writes ahead in a class that is in use: wait until it has.
  for (int i = 0; i < 3000 && engine->counters().prepared_bytes < (4u << 20); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_GE(engine->counters().prepared_bytes, 4u << 20);
  const uint64_t flushes = engine->counters().flushes, groups = engine->counters().groups;
  for (int i = 0; i < 20; ++i) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, "k", "v");
    write(*txn, 1, uint64_t(i));
    commit(txn);
  }
  EXPECT_GE(engine->counters().groups - groups, 20u);
  EXPECT_EQ(engine->counters().flushes - flushes, engine->counters().groups - groups);
}

// Five blocks of rows that are much alike.
class CompressedGroups : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    options.compress_log = true;
    options.vouch_after_ms = 0;  // a group for a machine that is slow would come between these
  }
  void commit_rows() {
    auto txn = std::make_shared<AwaitedTxn>();
    for (int i = 0; i < 20; ++i)
      txn->put(Family::object, "k" + std::to_string(i), std::string(1000, 'v'));
    engine->submit(txn);
    txn->wait_durable();
  }
  uint64_t used() {
    for (const auto& [name, value] : engine->statistics())
      if (name == "log_used_bytes") return value;
    return 0;
  }
};

TEST_F(CompressedGroups, TakeLessOfTheLog) {
  format();
  open();
  commit_rows();
  EXPECT_EQ(engine->counters().log_saved_bytes, 4 * block_bytes);
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  EXPECT_EQ(get(Family::object, "k19"), std::string(1000, 'v'));
}

TEST_F(CompressedGroups, AreNotInAStoreThatWasMadeWithoutThem) {
  options.compress_log = false;
  format();
  options.compress_log = true;
  open();
  commit_rows();
  EXPECT_EQ(engine->counters().log_saved_bytes, 0u);
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  EXPECT_EQ(get(Family::object, "k19"), std::string(1000, 'v'));
}

// What the log bounds is bounded by what its groups take unpacked, also after a restart.
TEST_F(CompressedGroups, CountAsWhatTheyTakeUnpacked) {
  format();
  open();
  const uint64_t before = used();
  for (int i = 0; i < 10; ++i) commit_rows();
  EXPECT_GE(used() - before, 50 * block_bytes);
  const uint64_t after = used();
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  EXPECT_EQ(used(), after + 2 * block_bytes);  // the groups that begin an epoch
  ASSERT_TRUE(engine->checkpoint().ok());
  EXPECT_LE(used(), 4 * block_bytes);
}

// Which covers the log: it is the same disk's cache.
TEST_F(EngineTest, AFirstTouchFlushesItsContainer) {
  options.prepare_bytes_per_second = 0;
  format();
  open();
  auto txn = std::make_shared<Txn>();
  write(*txn, 1, 0);
  commit(txn);
  EXPECT_GE(engine->counters().container_flushes, 1u);
  EXPECT_EQ(engine->counters().flushes, engine->counters().groups);
}

TEST_F(EngineTest, FirstTouchesOfSeveralContainersFlushEach) {
  options.prepare_bytes_per_second = 0;
  format();
  open();
  auto txn = std::make_shared<Txn>();
  std::set<uint32_t> containers;
  for (const Extent& e : write(*txn, (20 << 20) / block_bytes, 0).extents)
    containers.insert(e.container);
  ASSERT_GE(containers.size(), 3u);
  commit(txn);
  EXPECT_EQ(engine->counters().container_flushes, containers.size());
  EXPECT_EQ(engine->counters().flushes, engine->counters().groups + containers.size() - 1);
}

TEST_F(EngineTest, FreedSlotsAreHandedOutAgain) {
  options.capacity_bytes = 64 << 20;
  format();
  open();
  const uint64_t before = engine->space().available_bytes;
  for (int round = 0; round < 20; ++round) {
    auto txn = std::make_shared<Txn>();
    const Written w = write(*txn, 2048, uint64_t(round));  // 8 MiB
    commit(txn);
    expect_data(w.extents, uint64_t(round));
    auto freeing = std::make_shared<Txn>();
    for (const Extent& e : w.extents) freeing->free(e);
    commit(freeing);
  }
  EXPECT_EQ(owned(*engine), 0u);
  EXPECT_EQ(engine->space().available_bytes, before);
}

// Somebody lists the containers at the moment in which one of them has no name.
TEST_F(EngineTest, ContainersAreListedWhileOneChangesItsClass) {
  struct Renaming : public DiskWrapper {
    using DiskWrapper::DiskWrapper;
    Status rename(const std::string& from, const std::string& to) override {
      const Status s = DiskWrapper::rename(from, to);
      while_renaming();
      return s;
    }
    std::function<void()> while_renaming = [] {};
  };
  auto renaming = std::make_unique<Renaming>(std::shared_ptr<Disk>(std::move(disk)));
  Renaming& names = *renaming;
  disk = std::move(renaming);
  options.prepare_bytes_per_second = 0;  // nobody else makes containers
  format();
  open();
  auto large = std::make_shared<Txn>();
  const Written w = write(*large, (24 << 20) / block_bytes, 1);
  commit(large);
  auto freeing = std::make_shared<Txn>();
  for (const Extent& e : w.extents) freeing->free(e);
  commit(freeing);
  engine->checkpoint();
  std::vector<ContainerUsage> listed;
  names.while_renaming = [&] { listed = engine->containers(); };
  for (int i = 0; i < 200 && listed.empty(); ++i) {
    auto small = std::make_shared<Txn>();
    write(*small, 16, uint64_t(i));
    commit(small);
  }
  names.while_renaming = [] {};
  ASSERT_FALSE(listed.empty()) << "none has changed its class";
  for (const ContainerUsage& each : listed)
    EXPECT_TRUE(each.path.ends_with("/" + std::to_string(each.container))) << each.path;
}

TEST_F(EngineTest, PartsOfASlotCanBeFreed) {
  format();
  open();
  auto txn = std::make_shared<Txn>();
  const Written w = write(*txn, 16, 1);
  ASSERT_EQ(w.extents.size(), 1u);
  commit(txn);
  auto freeing = std::make_shared<Txn>();
  freeing->free({w.extents[0].container, w.extents[0].block + 3, 5});
  commit(freeing);
  crash_and_open();
  EXPECT_EQ(owned(*engine), 11u);
}

TEST_F(EngineTest, AnAbandonedTransactionGivesItsSlotsBack) {
  format();
  open();
  const uint64_t before = engine->space().available_bytes;
  Txn txn;
  write(txn, 100, 1);
  engine->abandon(txn);
  EXPECT_EQ(engine->space().available_bytes, before);
  engine->drain();
  EXPECT_EQ(owned(*engine), 0u);
}

TEST_F(EngineTest, ReservationsSayNoSpaceInTimeAndTakeNothing) {
  options.capacity_bytes = 64 << 20;
  format();
  open();
  const uint64_t available = engine->space().available_bytes;
  EXPECT_EQ(engine->reserve(available + block_bytes).code(), ENOSPC);
  ASSERT_TRUE(engine->reserve(available).ok());
  EXPECT_EQ(engine->reserve(block_bytes).code(), ENOSPC);
  engine->unreserve(available);
  EXPECT_TRUE(engine->reserve(available).ok());
  engine->unreserve(available);
}

TEST_F(EngineTest, AllThatWasPromisedCanBeWrittenAndDeletedWhenFull) {
  options.capacity_bytes = 64 << 20;
  format();
  open();
  std::vector<Written> all;
  uint64_t seed = 0;
  for (uint64_t blocks = 700; blocks > 0;) {
    if (!engine->reserve(blocks * block_bytes).ok()) {
      blocks /= 2;
      continue;
    }
    engine->unreserve(blocks * block_bytes);
    auto txn = std::make_shared<Txn>();
    all.push_back(write(*txn, blocks, seed++));
    engine->submit(txn);
  }
  engine->drain();
  EXPECT_EQ(engine->space().available_bytes, 0u);
  for (size_t i = 0; i < all.size(); ++i) expect_data(all[i].extents, i);
  auto freeing = std::make_shared<Txn>();
  for (const Written& w : all)
    for (const Extent& e : w.extents) freeing->free(e);
  commit(freeing);
  EXPECT_EQ(owned(*engine), 0u);
  EXPECT_TRUE(engine->reserve(32 << 20).ok());
}

TEST_F(EngineTest, TheLogIsRecycledManyTimesOver) {
  format();
  open();
  const std::string value(100000, 'v');
  for (int i = 0; i < 500; ++i) {  // 50 MB through a log of 8 MiB
    auto txn = std::make_shared<Txn>();
    txn->put(Family::data, "k" + std::to_string(i % 50), value + std::to_string(i));
    engine->submit(txn);
  }
  engine->drain();
  EXPECT_GT(engine->counters().checkpoints, 3u);
  crash_and_open();
  for (int i = 450; i < 500; ++i)
    EXPECT_EQ(get(Family::data, "k" + std::to_string(i % 50)), value + std::to_string(i));
}

// Each group asks for a checkpoint while the log is half full, also while one is being made.
TEST_F(EngineTest, ThereIsOneCheckpointForEachHalfOfTheLog) {
  const auto threads = std::make_shared<sim::SteppedThreads>();
  options.threads = threads;
  format();
  open();
  const Counters& c = engine->counters();
  const std::string value(1 << 20, 'v');
  const auto log_used_bytes = [this] {
    for (const auto& [name, number] : engine->statistics())
      if (name == "log_used_bytes") return number;
    ADD_FAILURE() << "no such statistic";
    return options.log_bytes;
  };
  for (int half = 1; half <= 3; ++half) {
    while (log_used_bytes() <= options.log_bytes / 2) {
      threads->step("checkpoint");
      ASSERT_EQ(c.checkpoints, uint64_t(half - 1));
      auto txn = std::make_shared<Txn>();
      txn->put(Family::data, "k", value);
      commit(txn);
    }
    ASSERT_TRUE(engine->checkpoint().ok());
    ASSERT_EQ(c.checkpoints, uint64_t(half));
    threads->step("checkpoint");  // what was asked for before that one was done
    ASSERT_EQ(c.checkpoints, uint64_t(half));
  }
}

// As by a crash, with a group in hand that waits for space in the log. Nobody but the lane has the
// group's transactions, and their data is still on its way to the disk.
TEST_F(EngineTest, ALaneThatWaitsForTheLogCanBeStopped) {
  format();
  open();
  class StuckTxn : public Txn {
   public:
    void applied() noexcept override { released.wait(false); }
    std::atomic<bool> released = false;
  };
  auto stuck = std::make_shared<StuckTxn>();  // no checkpoint comes past it
  engine->submit(stuck);
  const Counters& counters = engine->counters();
  for (int i = 0; counters.log_full_waits == 0; ++i) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::data, "k" + std::to_string(i), std::string(100000, 'v'));
    write(*txn, 1, uint64_t(i));
    engine->submit(std::move(txn));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::thread stops([this] { engine = nullptr; });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  stuck->released = true;
  stuck->released.notify_all();
  stops.join();
  open();
  EXPECT_EQ(get(Family::data, "k0"), std::string(100000, 'v'));
}

TEST_F(EngineTest, TheLogFollowsTheCapacityWhereNoSizeIsGiven) {
  options.log_bytes = 0;
  const std::pair<uint64_t, uint64_t> sizes[] = {
      {32 << 20, 4 << 20}, {256 << 20, 16 << 20}, {250 << 20, 14 << 20}, {1ull << 40, 512 << 20}};
  for (const auto& [capacity, log] : sizes) {
    engine.reset();
    disk.reset();
    std::filesystem::remove_all(directory);
    std::filesystem::create_directory(directory);
    disk = open_disk();
    options.capacity_bytes = capacity;
    if (disk->space()->available_bytes < std::min<uint64_t>(capacity, 8ull << 30))
      GTEST_SKIP() << "not enough space here";
    format();
    open();
    EXPECT_EQ(engine->space().log_bytes, log) << capacity;
  }
}

TEST_F(EngineTest, AGroupIsNotLargerThanTheLogAllows) {
  options.log_bytes = 2 << 20;
  options.segment_bytes = 1 << 20;
  options.threads = std::make_shared<sim::SteppedThreads>();  // all that is submitted waits
  format();
  open();
  const std::string value(900000, 'v');
  for (int i = 0; i < 4; ++i) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::data, "k" + std::to_string(i), value);
    engine->submit(txn);
  }
  for (int i = 0; i < 20; ++i) {  // small ones share groups
    auto txn = std::make_shared<Txn>();
    txn->put(Family::data, "s" + std::to_string(i), "v");
    engine->submit(txn);
  }
  engine->drain();
  EXPECT_EQ(engine->counters().groups, 5u);
  crash_and_open();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(get(Family::data, "k" + std::to_string(i)), value);
}

// Clients, each of which has the next transaction when the one before is durable: one flush serves
// all. Without waiting for each other they would make two teams that take turns.
class WaitsForClientsTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    options.gather_percent = 100000;  // also on a machine that does much else
    format();
    open();
  }

  // Whether the lane waits for any of eight that write so many blocks each, and how often it may.
  bool are_waited_for(uint64_t blocks, int rounds) {
    class Told : public Txn {
     public:
      void durable() noexcept override { durable_.set_value(); }
      void wait() { durable_.get_future().wait(); }

     private:
      std::promise<void> durable_;
    };
    const uint64_t before = engine->counters().gathers;
    const auto waited = [&] { return engine->counters().gathers > before; };
    std::vector<std::thread> clients;
    for (uint64_t client = 0; client < 8; ++client)
      clients.emplace_back([&, client] {
        for (int i = 0; i < rounds && !waited(); ++i) {
          auto txn = std::make_shared<Told>();
          write(*txn, blocks, client);
          engine->submit(txn);
          txn->wait();
        }
      });
    for (auto& client : clients) client.join();
    return waited();
  }
};

// What that saves depends on the machine: GatheringModelTest. Where threads wake late all eight may
// be back before the lane looks, so it has thousands of chances.
TEST_F(WaitsForClientsTest, WhoeverWasJustServedIsWaitedFor) {
  EXPECT_TRUE(are_waited_for(1, 3000));
}

// A larger group has more data to write, and takes longer.
TEST_F(WaitsForClientsTest, WhoBringsMuchDataIsNotWaitedFor) {
  EXPECT_FALSE(are_waited_for(40, 30));  // 160 KiB
  EXPECT_TRUE(are_waited_for(1, 3000));
}

// More data than the lane takes along itself, from several threads, abandoned and in flight at a
// crash.
TEST_F(EngineTest, MuchDataIsWrittenBesideTheLane) {
  format();
  open();
  std::vector<Written> kept(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t, &kept] {
      for (int i = 0; i < 10; ++i) {
        auto txn = std::make_shared<Txn>();
        kept[t] = write(*txn, 300, uint64_t(t * 100 + i));
        if (i < 9)
          for (const Extent& e : kept[t].extents) txn->free(e);
        engine->submit(txn);
        Txn given_up;
        write(given_up, 200, 7);
        engine->abandon(given_up);
      }
    });
  for (auto& thread : threads) thread.join();
  engine->drain();
  EXPECT_EQ(owned(*engine), 4u * 300);
  auto unfinished = std::make_shared<Txn>();
  write(*unfinished, 500, 1);
  engine->submit(unfinished);
  crash_and_open();
  for (int t = 0; t < 4; ++t) expect_data(kept[t].extents, uint64_t(t * 100 + 9));
}

// While the lane flushes, the disk does something for those that come next.
TEST_F(EngineTest, NotMuchDataWaitsForTheLane) {
  format();
  open();
  commit(std::make_shared<Txn>());
  auto write_requests = [&] {
    for (const auto& [name, value] : engine->statistics())
      if (name == "write_requests") return value;
    return UINT64_MAX;
  };
  const uint64_t before = write_requests();
  std::vector<std::pair<std::shared_ptr<Txn>, Written>> written;
  auto write_one = [&] {
    auto txn = std::make_shared<Txn>();
    auto w = write(*txn, 16, written.size());
    written.emplace_back(txn, w);
  };
  for (int i = 0; i < 12; ++i) write_one();
  EXPECT_EQ(write_requests(), before);
  write_one();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (write_requests() == before &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_GT(write_requests(), before);
  for (const auto& w : written) engine->submit(w.first);
  engine->drain();
  for (size_t i = 0; i < written.size(); ++i) expect_data(written[i].second.extents, i);
  // The lane has taken what waited: others may.
  const uint64_t after = write_requests();
  write_one();
  EXPECT_EQ(write_requests(), after);
  commit(written.back().first);
}

TEST_F(EngineTest, CrashAfterCrashDoesNotFillTheLog) {
  format();
  open();
  for (int i = 0; i < 40; ++i) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::data, "k", std::string(300000, 'a' + char(i % 26)));
    engine->submit(txn);
    engine->drain();
    crash_and_open();
    ASSERT_EQ(get(Family::data, "k"), std::string(300000, 'a' + char(i % 26)));
  }
}

TEST_F(EngineTest, WhatWasNotSubmittedDoesNotHappen) {
  format();
  open();
  auto txn = std::make_shared<Txn>();
  txn->put(Family::object, "a", "1");
  commit(txn);
  Txn lost;
  lost.put(Family::object, "a", "2");
  write(lost, 10, 1);
  engine->abandon(lost);
  crash_and_open();
  EXPECT_EQ(get(Family::object, "a"), "1");
  EXPECT_EQ(owned(*engine), 0u);
}

// Changes bytes of a container behind the engine's back.
void poke(const std::string& directory, const Extent& e, const void* bytes, size_t n) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(directory + "/containers")) {
    if (entry.path().filename() != std::to_string(e.container)) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(std::streamoff(e.offset_bytes()));
    file.write(static_cast<const char*>(bytes), std::streamsize(n));
    ASSERT_TRUE(file.good());
  }
}

TEST_F(EngineTest, DataThatALaterGroupVouchesForIsNotJudgedAgain) {
  format();
  open();
  auto first = std::make_shared<AwaitedTxn>();
  first->put(Family::object, "a", "1");
  const Written w = write(*first, 1, 2);
  engine->submit(first);
  first->wait_applied();
  auto second = std::make_shared<AwaitedTxn>();
  second->put(Family::object, "b", "2");
  engine->submit(second);
  second->wait_applied();
  engine.reset();
  // As if the slot had been freed and written anew since: recovery must not take that for a torn
  // group.
  poke(directory, w.extents.at(0), "damage", 6);
  open();
  EXPECT_EQ(get(Family::object, "a"), "1");
  EXPECT_EQ(get(Family::object, "b"), "2");
}

TEST_F(EngineTest, AnUnfinishedLastGroupIsCutOffForGood) {
  options.vouch_after_ms = 0;
  format();
  open();
  auto first = std::make_shared<Txn>();
  first->put(Family::object, "a", "1");
  commit(first);
  auto last = std::make_shared<AwaitedTxn>();
  last->put(Family::object, "a", "2");
  const Written w = write(*last, 1, 9);
  engine->submit(last);
  last->wait_applied();
  engine.reset();
  // As if the data had not reached the disk before the power went.
  poke(directory, w.extents.at(0), "torn", 4);
  open();
  EXPECT_EQ(get(Family::object, "a"), "1");
  EXPECT_EQ(owned(*engine), 0u);
  engine.reset();
  // The data turns up after all: the group must not come back.
  const auto data = make_data(1, 9);
  poke(directory, w.extents.at(0), data->data(), data->size());
  open();
  EXPECT_EQ(get(Family::object, "a"), "1");
  EXPECT_EQ(owned(*engine), 0u);
}

// However many blocks there are, and however they lie: no log has room for each of them.
TEST_F(EngineTest, WhatRowsDoNotOwnIsGivenUpWithoutARecordForEachBlock) {
  format();
  open();
  auto txn = std::make_shared<Txn>();
  const Written w = write(*txn, 4096, 1);
  commit(txn);
  const uint64_t available = engine->space().available_bytes;
  const uint64_t logged = engine->counters().log_bytes;
  std::map<uint32_t, BlockBitmap> every_second = engine->owned_blocks();
  std::erase_if(every_second, [](const auto& c) { return c.second.count() == 0; });
  for (auto& [container, owned] : every_second)
    for (uint32_t b = 0; b < owned.blocks(); b += 2) owned.clear(b, 1);
  const Status s = engine->adopt_owned(every_second);
  ASSERT_TRUE(s.ok()) << s.what();
  auto adopted = engine->owned_blocks();
  std::erase_if(adopted, [](const auto& c) { return c.second.count() == 0; });  // made ahead
  EXPECT_EQ(adopted, every_second);
  EXPECT_EQ(engine->space().available_bytes, available + 2048 * block_bytes);
  EXPECT_LE(engine->counters().log_bytes, logged + 8 * block_bytes);
  ASSERT_TRUE(engine->reserve(block_bytes).ok());
  EXPECT_EQ(engine->adopt_owned({}).code(), EBUSY);  // somebody is about to write
  engine->unreserve(block_bytes);
  crash_and_open();
  EXPECT_EQ(owned(*engine), 2048u);
  ASSERT_TRUE(engine->adopt_owned({}).ok());
  crash_and_open();
  EXPECT_EQ(owned(*engine), 0u);
}

TEST_F(EngineTest, IsRefusedWhileItIsOpen) {
  format();
  open();
  auto other_disk = open_disk();
  auto other = Engine::open(*other_disk, options);
  EXPECT_EQ(other.status().code(), EBUSY) << other.status().what();
}

TEST_F(EngineTest, RefusesWhatIsNoStoreOrAnotherOrTwice) {
  EXPECT_EQ(Engine::open(*disk, options).status().code(), ENOENT);
  format();
  EXPECT_EQ(Engine::format(*disk, options).code(), EEXIST);
  options.store_uuid = "another store!!!";
  EXPECT_EQ(Engine::open(*disk, options).status().code(), EINVAL);
}

TEST_F(EngineTest, MkfsWritesWhatIsProvisioned) {
  options.provision_bytes = 35 << 20;
  std::vector<std::string> lines;
  options.reporter.log = [&](Reporter::Level level, const std::string& line) {
    if (level == Reporter::Level::info) lines.push_back(line);
  };
  format();
  EXPECT_EQ(lines, (std::vector<std::string>{"mkfs: 32 of 32 MiB of containers are written"}));
  open();
  EXPECT_EQ(engine->space().container_bytes, 32u << 20);
  std::map<std::string, uint64_t> all;
  for (const auto& [name, value] : engine->statistics()) all[name] = value;
  EXPECT_EQ(all["class_4096K_free_bytes"], 32u << 20);
  EXPECT_EQ(all["class_4096K_unwritten_free_bytes"], 0u);
  EXPECT_GT(all["bitmap_bytes"], 0u);
  auto txn = std::make_shared<Txn>();
  const Written w = write(*txn, 3, 1);
  commit(txn);
  EXPECT_EQ(engine->counters().container_flushes, 0u);
  EXPECT_EQ(engine->counters().containers_created, 0u);
  crash_and_open();
  expect_data(w.extents, 1);
}

TEST_F(EngineTest, ProvisioningNoMoreThanTheCapacity) {
  options.provision_bytes = 1 << 30;
  options.capacity_bytes = 64 << 20;
  format();
  open();
  EXPECT_LE(engine->space().container_bytes, 64u << 20);
  EXPECT_GE(engine->space().container_bytes, 40u << 20);
}

TEST_F(EngineTest, MkfsThatFindsNoSpaceToProvisionNamesTheOption) {
  options.provision_bytes = uint64_t(1) << 50;
  options.capacity_bytes = 0;
  const Status s = Engine::format(*disk, options);
  EXPECT_EQ(s.code(), ENOSPC);
  EXPECT_NE(s.what().find("tablestore_provision_size"), std::string::npos) << s.what();
  EXPECT_EQ(Engine::open(*disk, options).status().code(), ENOENT);
  options.provision_bytes = 0;
  format();
}

TEST_F(EngineTest, AContainerIsFoundUnderItsOldNameOrItsNewOne) {
  options.provision_bytes = 16 << 20;
  format();
  open();
  auto txn = std::make_shared<Txn>();
  const Written w = write(*txn, 1, 1);
  commit(txn);
  engine.reset();
  // As a crash before the syncs may leave it, with what was written before.
  const uint32_t other = 1 - w.extents[0].container;
  std::filesystem::rename(directory + "/containers/10/" + std::to_string(other),
                          directory + "/containers/00/7");
  open();
  expect_data(w.extents, 1);
  auto next = std::make_shared<Txn>();
  const Written in_it = write(*next, 1, 2);
  commit(next);
  EXPECT_EQ(in_it.extents[0].container, 7u);
  crash_and_open();
  expect_data(in_it.extents, 2);
  expect_data(w.extents, 1);
}

TEST_F(EngineTest, AMissingContainerIsNamed) {
  format();
  open();
  auto txn = std::make_shared<Txn>();
  const Written w = write(*txn, 1, 1);
  commit(txn);
  ASSERT_TRUE(engine->close().ok());
  engine.reset();
  std::filesystem::remove_all(directory + "/containers/00");
  std::filesystem::create_directory(directory + "/containers/00");
  auto opened = Engine::open(*disk, options);
  EXPECT_EQ(opened.status().code(), EIO);
  EXPECT_NE(opened.status().what().find(std::to_string(w.extents[0].container)),
            std::string::npos)
      << opened.status().what();
}

TEST_F(EngineTest, ABarrierIsPassedByNothing) {
  options.small_data_bytes = 0;
  format();
  open();
  Notes notes;
  int sequencers[3];
  for (int round = 0; round < 20; ++round) {
    auto large = std::make_shared<NotingTxn>(&notes, "large" + std::to_string(round));
    large->sequencer = &sequencers[0];
    write(*large, 1024, uint64_t(round));
    auto barrier = std::make_shared<NotingTxn>(&notes, "barrier" + std::to_string(round));
    barrier->sequencer = &sequencers[1];
    barrier->barrier = true;
    auto after = std::make_shared<NotingTxn>(&notes, "after" + std::to_string(round));
    after->sequencer = &sequencers[2];
    engine->submit(large);
    engine->submit(barrier);
    engine->submit(after);
  }
  engine->drain();
  std::vector<std::string> durable;
  for (const std::string& n : notes.all())
    if (n.starts_with("durable")) durable.push_back(n.substr(8));
  ASSERT_EQ(durable.size(), 60u);
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(durable[size_t(round) * 3], "large" + std::to_string(round));
    EXPECT_EQ(durable[size_t(round) * 3 + 1], "barrier" + std::to_string(round));
    EXPECT_EQ(durable[size_t(round) * 3 + 2], "after" + std::to_string(round));
  }
}

TEST_F(EngineTest, WhatFollowsAnotherSequencerDoesNotPassIt) {
  options.small_data_bytes = 0;
  format();
  open();
  Notes notes;
  int sequencers[3];
  for (int round = 0; round < 20; ++round) {
    auto large = std::make_shared<NotingTxn>(&notes, "large" + std::to_string(round));
    large->sequencer = &sequencers[0];
    write(*large, 1024, uint64_t(round));
    auto follower = std::make_shared<NotingTxn>(&notes, "follower" + std::to_string(round));
    follower->sequencer = &sequencers[1];
    follower->follows = {&sequencers[0]};
    auto next = std::make_shared<NotingTxn>(&notes, "next" + std::to_string(round));
    next->sequencer = &sequencers[2];
    next->follows = {&sequencers[1]};
    engine->submit(large);
    engine->submit(follower);
    engine->submit(next);
    engine->drain();
  }
  std::vector<std::string> durable;
  for (const std::string& n : notes.all())
    if (n.starts_with("durable")) durable.push_back(n.substr(8));
  ASSERT_EQ(durable.size(), 60u);
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(durable[size_t(round) * 3], "large" + std::to_string(round));
    EXPECT_EQ(durable[size_t(round) * 3 + 1], "follower" + std::to_string(round));
    EXPECT_EQ(durable[size_t(round) * 3 + 2], "next" + std::to_string(round));
  }
}

// The lane has nothing to do but to discard a transaction, and just then one comes to commit:
// nobody else will wake the lane for it.
TEST_F(EngineTest, WhatComesBesideADiscardIsNotForgotten) {
  format();
  open();
  constexpr int rounds = 3000;
  std::barrier both(2);
  std::atomic<bool> stands_still = false;
  std::thread discards([&] {
    for (int i = 0; i < rounds && !stands_still; ++i) {
      Txn given_up;
      write(given_up, 1, 1);
      both.arrive_and_wait();
      engine->abandon(given_up);
      both.arrive_and_wait();
    }
  });
  class WaitedTxn : public Txn {
   public:
    void durable() noexcept override { is_durable = true; }
    std::atomic<bool> is_durable = false;
  };
  for (int i = 0; i < rounds && !stands_still; ++i) {
    auto txn = std::make_shared<WaitedTxn>();
    txn->put(Family::object, "k", std::to_string(i));
    both.arrive_and_wait();
    const auto come =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(i % 300 * 100);
    while (std::chrono::steady_clock::now() < come) {
    }
    engine->submit(txn);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!txn->is_durable && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (!txn->is_durable) {
      ADD_FAILURE() << "transaction " << i << " stands still";
      stands_still = true;
      engine->submit(std::make_shared<Txn>());  // which wakes the lane
    }
    both.arrive_and_wait();
  }
  discards.join();
}

TEST_F(EngineTest, ManyThreadsWriteAndReadAtOnce) {
  format();
  open();
  std::vector<std::thread> threads;
  char sequencers[8];
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t, sequencer = &sequencers[t]] {
      std::vector<Written> mine;
      for (int i = 0; i < 40; ++i) {
        auto txn = std::make_shared<Txn>();
        txn->sequencer = sequencer;
        txn->put(Family::object, std::to_string(t) + "/" + std::to_string(i), "v");
        mine.push_back(write(*txn, 1 + uint64_t(i) % 70, uint64_t(t * 1000 + i)));
        engine->submit(txn);
        expect_data(mine.back().extents, uint64_t(t * 1000 + i));
      }
      engine->drain();
      for (int i = 0; i < 40; ++i) expect_data(mine[size_t(i)].extents, uint64_t(t * 1000 + i));
    });
  }
  for (auto& t : threads) t.join();
  crash_and_open();
  for (int t = 0; t < 8; ++t)
    EXPECT_EQ(get(Family::object, std::to_string(t) + "/39"), "v");
}

}  // namespace
}  // namespace tablestore
