// Lane, bulk writer, borrowers, voucher and checkpointer, while threads are held up, under a seed,
// at the points at which work changes hands: nothing is lost, nobody waits for ever, and the thread
// sanitizer has more than one order of things to look at.
//
// TABLESTORE_SCHEDULES=first:count runs other seeds than the usual ones.
#include <cstdio>
#include <random>
#include <thread>

#include "engine_fixture.h"
#include "os/tablestore/engine/own_threads.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

// A thread gets its own random numbers where it first changes hands.
class HeldUpThreads : public OwnThreads {
 public:
  explicit HeldUpThreads(uint64_t seed) : life_(++lives_), seed_(seed) {}
  void hand_over() override {
    thread_local uint64_t life = 0;
    thread_local std::minstd_rand random;
    if (std::exchange(life, life_) != life_) random.seed(uint32_t(seed_ * 64 + ++threads_));
    const auto choice = random() % 32;
    if (choice < 8) std::this_thread::yield();
    if (choice == 8) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
  }

 private:
  static inline std::atomic<uint64_t> lives_ = 0;
  const uint64_t life_;
  const uint64_t seed_;
  std::atomic<uint64_t> threads_ = 0;
};

// Ends the process where a schedule takes longer than any should: somebody waits for ever.
class Watchdog {
 public:
  explicit Watchdog(uint64_t seed)
      : thread_([this, seed] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, 5min, [this] { return over_; })) return;
          std::fprintf(stderr, "schedule %llu stands still\n", (unsigned long long)seed);
          std::abort();
        }) {}
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

class SchedulesTest : public EngineFixture {
 protected:
  static constexpr int clients = 3;
  static constexpr int rounds = 60;

  // One client: its own row says how far it is, and its own blocks hold the number of the round.
  struct Client {
    char sequencer = 0;
    std::atomic<int> durable{-1};  // the last round of which it was told
    std::vector<Written> written;  // by round
  };
  class ClientTxn : public Txn {
   public:
    ClientTxn(Client& client, int round) : client_(client), round_(round) {
      sequencer = &client.sequencer;
    }
    void durable() noexcept override {
      if (client_.durable.exchange(round_) != round_ - 1) std::abort();  // in order
    }

   private:
    Client& client_;
    const int round_;
  };

  SchedulesTest() {
    options.log_bytes = 4 << 20;
    options.segment_bytes = 1 << 20;
    options.group_bytes_max = 64 << 10;
    options.small_data_bytes = 32 << 10;
    options.quick_flush_us = 1'000'000'000;
    options.vouch_after_ms = 1;
  }
  void run_client(int n, uint64_t seed) {
    Client& client = all[n];
    std::minstd_rand random(uint32_t(seed * clients + n + 1));
    for (int round = 0; round < rounds; ++round) {
      auto txn = std::make_shared<ClientTxn>(client, round);
      txn->put(Family::object, name(n), std::to_string(round));
      txn->put(Family::data, name(n), std::string(random() % 20000, 'r'));
      const uint64_t blocks = random() % 4 ? 1 + random() % 3 : 20 + random() % 60;
      client.written.push_back(write(*txn, blocks, data_seed(n, round)));
      if (round > 0)
        for (const Extent& e : client.written[round - 1].extents) txn->free(e);
      txn->barrier = random() % 16 == 0;
      if (random() % 3 == 0)
        engine->submit(txn);
      else if (engine->submit_here(txn))
        engine->commit_here();
      expect_data(client.written.back().extents, data_seed(n, round));
      switch (random() % 12) {
        case 0: engine->drain(); break;
        case 1: engine->vouch(); break;
        case 2: EXPECT_TRUE(engine->checkpoint().ok()); break;
        case 3: {
          Txn given_up;
          write(given_up, 1 + random() % 40, 1);
          engine->abandon(given_up);
          break;
        }
        // Alone for a while, so that the lane lends itself and the voucher has its turn.
        case 4: std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5)); break;
        default: break;
      }
    }
  }
  void expect_recovered(bool everything) {
    uint64_t owned = 0, wanted = 0;
    for (const auto& [container, bitmap] : engine->owned_blocks()) owned += bitmap.count();
    for (int n = 0; n < clients; ++n) {
      const auto row = get(Family::object, name(n));
      ASSERT_TRUE(row || all[n].durable < 0);
      if (!row) continue;
      const int last = std::stoi(*row);
      EXPECT_GE(last, everything ? rounds - 1 : all[n].durable.load());
      expect_data(all[n].written[last].extents, data_seed(n, last));
      for (const Extent& e : all[n].written[last].extents) wanted += e.blocks;
    }
    EXPECT_EQ(owned, wanted);
  }
  void run_schedule(uint64_t seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    const Watchdog watchdog(seed);
    all = std::vector<Client>(clients);
    options.threads = std::make_shared<HeldUpThreads>(seed);
    open();
    std::vector<std::thread> threads;
    for (int n = 0; n < clients; ++n)
      threads.emplace_back([this, n, seed] { run_client(n, seed); });
    for (auto& thread : threads) thread.join();
    const bool everything = seed % 2;
    if (everything) engine->drain();
    crash_and_open();
    expect_recovered(everything);
    auto clear = std::make_shared<Txn>();
    for (int n = 0; n < clients; ++n) {
      if (const auto row = get(Family::object, name(n)))
        for (const Extent& e : all[n].written[std::stoi(*row)].extents) clear->free(e);
      clear->erase(Family::object, name(n));
    }
    commit(clear);
    ASSERT_TRUE(engine->close().ok());
    engine.reset();
  }
  static std::string name(int client) { return "client" + std::to_string(client); }
  static uint64_t data_seed(int client, int round) { return uint64_t(client) * 1000 + round; }

  std::vector<Client> all;
};

TEST_F(SchedulesTest, NothingIsLostAndNobodyWaitsForEver) {
  unsigned long long first = 1, count = 8;
  if (const char* wanted = std::getenv("TABLESTORE_SCHEDULES")) {
    ASSERT_EQ(std::sscanf(wanted, "%llu:%llu", &first, &count), 2) << wanted;
  }
  format();
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) run_schedule(seed);
}

}  // namespace
}  // namespace tablestore
