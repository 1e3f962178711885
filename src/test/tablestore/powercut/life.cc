#include "test/tablestore/powercut/life.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/engine/own_threads.h"
#include "test/tablestore/powercut/copier.h"
#include "test/tablestore/powercut/writer.h"

namespace tablestore::powercut {

namespace {

constexpr uint64_t mib = 1 << 20;

std::atomic<bool> orderly_end{false};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "FAILED %s\n", what.c_str());
  std::fflush(stderr);
  std::_Exit(1);
}

void check(const Status& status, const char* doing) {
  if (!status.ok()) fail(std::string(doing) + ": " + status.what());
}

std::unique_ptr<Journal> map_journal(int fd) {
  auto journal = Journal::map(fd);
  check(journal.status(), "a journal");
  return journal.take();
}

std::unique_ptr<Disk> open_disk(const LifeOptions& options, uint64_t shape) {
  FileDiskOptions o;
  o.io_uring = shape % 4 != 3;
  o.lock_wait_ms = 60'000;  // a life that was killed may have I/O in flight
  auto disk = open_file_disk(options.dir, o);
  check(disk.status(), "the directory");
  return disk.take();
}

// Small, so that the log wraps, containers come and go, and the table is flushed, all the time.
EngineOptions engine_options(uint64_t shape) {
  sim::Random random(shape);
  auto one_of = [&](std::initializer_list<uint64_t> values) {
    return *(values.begin() + random() % values.size());
  };
  EngineOptions o;
  o.store_uuid = "power-cut-store!";
  o.log_bytes = one_of({2, 4, 8}) * mib;
  o.segment_bytes = one_of({1, 2}) * mib;
  if (o.log_bytes < 2 * o.segment_bytes) o.segment_bytes = mib;
  o.container_bytes = one_of({4, 8}) * mib;
  o.capacity_bytes = one_of({48, 80}) * mib;
  o.memtable_bytes = one_of({256 << 10, 1 << 20, 64 << 20});
  o.table_cache_bytes = 4 * mib;
  o.prepare_bytes_per_second = one_of({0, 4, 200}) * mib;
  o.punch_bytes_per_second = one_of({0, 200, 200}) * mib;
  o.prepare_ahead_bytes = one_of({256 << 10, 1 << 20, 4 << 20});
  o.stock_bytes = one_of({0, 4, 8}) * mib;
  o.group_bytes_max = one_of({64 << 10, 512 << 10, 4 << 20});
  o.small_data_bytes = one_of({16 << 10, 256 << 10});
  o.quiet_steps = 2;
  o.provision_bytes = one_of({0, 16, 64}) * mib;
  o.capture_chunks_max = one_of({1, 3, 1024});
  o.compress_log = one_of({0, 1, 1});
  return o;
}

// An OSD's threads; beside them, somebody else makes steps of the same work.
class DisturbedThreads : public OwnThreads {
 public:
  std::unique_ptr<Worker> start(const std::string& name, Urgency urgency,
                                std::function<void()> run, std::function<bool()> step) override {
    steps_[name] = step;
    return OwnThreads::start(name, urgency, std::move(run), std::move(step));
  }
  void step(const std::string& name) { steps_.at(name)(); }

 private:
  std::map<std::string, std::function<bool()>> steps_;
};

std::unique_ptr<Engine> open_engine(Disk& disk, uint64_t shape,
                                    std::shared_ptr<DisturbedThreads> threads) {
  EngineOptions o = engine_options(shape);
  o.threads = std::move(threads);
  o.reporter.fatal = [](const std::string& why) { fail("fatal: " + why); };
  o.reporter.log = [](Reporter::Level level, const std::string& line) {
    if (level <= Reporter::Level::warning) std::fprintf(stderr, "%s\n", line.c_str());
  };
  auto engine = Engine::open(disk, std::move(o));
  if (!engine.ok()) fail("the store does not open: " + engine.status().what());
  return engine.take();
}

// What an engine does of its own accord, now and then, more often.
void disturb(Engine& engine, DisturbedThreads& threads, sim::Random& random) {
  switch (random() % 12) {
    case 0: check(engine.checkpoint(), "checkpoint"); return;
    case 1:
      if (random() % 4 == 0) check(engine.compact(), "compaction");
      return;
    case 2: engine.drain(); return;
    case 3:
      if (engine.counters().prepared_bytes) threads.step("prepare");
      return;
    case 4:
    case 5:
    case 6: threads.step("shrink"); return;
    default: return;
  }
}

// Several writers at once, until the orderly end, or until the journal is full: then it is only
// disturbed.
void write(Engine& engine, DisturbedThreads& own, Journal& journal, const sim::State& begin,
           uint64_t seed) {
  sim::Random random(seed);
  const unsigned writers = 1 + unsigned(random() % max_writers);
  std::vector<std::thread> threads;
  std::atomic<bool> full{false};
  for (unsigned w = 0; w < writers; ++w)
    threads.emplace_back([&, w] {
      Writer writer(engine, journal, w, seed, begin);
      for (uint64_t n = 1; !orderly_end && !full; ++n) {
        if (!writer.write()) full = true;
        if (n % 16 == 0)
          if (const std::string d = writer.read(); !d.empty()) fail("of a running store: " + d);
      }
      engine.drain();  // its transactions refer to it
    });
  while (!orderly_end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    disturb(engine, own, random);
    journal.count(engine.counters());
  }
  for (auto& t : threads) t.join();
}

}  // namespace

int make_store(const LifeOptions& options) {
  const uint64_t shape = map_journal(options.journal_fd)->report().shape;
  auto disk = open_disk(options, shape);
  check(Engine::format(*disk, engine_options(shape)), "mkfs");
  return lived;
}

int live(const LifeOptions& options) {
  std::signal(SIGTERM, [](int) { orderly_end = true; });
  const auto previous = map_journal(options.previous_fd);
  const auto journal = map_journal(options.journal_fd);
  const LifeReport& report = journal->report();
  auto disk = open_disk(options, report.shape);
  const auto threads = std::make_shared<DisturbedThreads>();
  auto engine = open_engine(*disk, report.shape, threads);
  sim::State state;
  uint64_t lsn = 0;
  const std::string d = judge(*engine, *previous, report.floor[0], &state, &lsn);
  if (!d.empty()) fail(d);
  if (!report.writes) return lived;
  journal->begin(state, lsn);
  {
    std::optional<Copier> copier;
    if (report.seed % 2) copier.emplace(options.dir, report.seed);
    write(*engine, *threads, *journal, state, report.seed);
  }
  engine->drain();
  check(engine->close(), "close");
  return lived;
}

}  // namespace tablestore::powercut
