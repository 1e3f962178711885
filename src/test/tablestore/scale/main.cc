// Prints how the engine scales with the number of containers: see README.md.
#include <sys/resource.h>
#include <sys/statfs.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "test/tablestore/engine/vast_disk.h"

namespace tablestore {
namespace {

constexpr uint64_t container_bytes = 1 << 30;
constexpr uint32_t blocks = container_bytes / block_bytes;
constexpr uint32_t chunk = BlockBitmap::chunk_blocks;
constexpr double mib = 1 << 20;

double ms_since(std::chrono::steady_clock::time_point start) {
  const auto took = std::chrono::steady_clock::now() - start;
  return std::chrono::duration<double, std::milli>(took).count();
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "tablestore_scale: %s\n", what.c_str());
  std::exit(1);
}
void check(const Status& s) {
  if (!s.ok()) fail(s.what());
}

// So many percent of the slots of 64 KiB are owned, at random.
BlockBitmap fragmented(std::mt19937& random, uint32_t count, uint32_t percent) {
  std::vector<uint64_t> words(count / 64, 0);
  for (uint64_t& word : words)
    for (unsigned slot = 0; slot < 4; ++slot)
      word |= uint64_t(random() % 100 < percent ? 0xffff : 0) << (16 * slot);
  return {count, words};
}

struct Times {
  double mean_us, max_us;
};

// Takes and gives back.
Times allocate(Allocator& allocator, uint64_t request, unsigned times) {
  Times t{0, 0};
  for (unsigned i = 0; i < times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (!allocator.reserve(request)) return {-1, -1};
    const auto extents = allocator.allocate(request, true, nullptr);
    const double us = 1000 * ms_since(start);
    t.mean_us += us / times;
    t.max_us = std::max(t.max_us, us);
    if (i % 2)
      for (const Extent& e : extents) allocator.give_back(e);
  }
  return t;
}

void print_allocator(uint32_t containers, uint32_t percent) {
  std::mt19937 random(percent);
  Allocator allocator;
  for (uint32_t id = 0; id < containers; ++id)
    allocator.add_container(id, id % slot_classes, blocks, BlockBitmap(blocks));
  const BlockBitmap some = fragmented(random, chunk * 64, percent);
  for (uint32_t id = 0; id < containers; ++id)
    for (uint32_t c = 0; c < blocks / chunk; ++c)
      allocator.load(id, c, some.chunk((c + id) % 64), 0);
  check(allocator.finish_recovery());
  std::printf("%u %% full: bitmaps %.1f MiB per TiB\n", percent,
              allocator.bitmap_bytes() / mib / containers * 1024);
  for (const uint64_t request : {1, 16, 256, 1024}) {
    const Times t = allocate(allocator, request, 20000);
    std::printf("  allocate %5zu KiB: mean %.2f us, longest %.0f us\n", size_t(request * 4),
                t.mean_us, t.max_us);
  }
  allocator.mark_all_changed();
  allocator.begin_capture();
  double longest_ms = 0, all_ms = 0, encode_ms = 0;
  unsigned takes = 0;
  for (;; ++takes) {
    auto start = std::chrono::steady_clock::now();
    const auto piece = allocator.take_changed(1024);
    const double ms = ms_since(start);
    longest_ms = std::max(longest_ms, ms);
    all_ms += ms;
    if (piece.empty()) break;
    start = std::chrono::steady_clock::now();
    std::string rows;
    RowWriter writer(rows);
    for (const auto& c : piece) engine_rows::write_allocation(writer, c, 1);
    encode_ms += ms_since(start);
  }
  std::printf("  checkpoint: %u pieces, copied in %.0f ms, the longest in %.2f ms; rows made of "
              "them in %.0f ms\n", takes, all_ms, longest_ms, encode_ms);
  QuietRule rule;
  rule.min_age = 1;
  const auto start = std::chrono::steady_clock::now();
  (void)allocator.idle_container(rule);
  (void)allocator.begin_punch(rule, 256, 4096);
  (void)allocator.begin_restore(std::nullopt, 4096);
  std::printf("  a look for idle, quiet and punched ones: %.3f ms\n", ms_since(start));
}

class AwaitedTxn : public Txn {
 public:
  void durable() noexcept override { durable_ = true; }
  void wait() const {
    while (!durable_) std::this_thread::yield();
  }

 private:
  std::atomic<bool> durable_ = false;
};

// Commits one after the other until `stop`, and returns how long the longest took.
Times commit(Engine& engine, const std::function<bool(unsigned)>& stop) {
  Times t{0, 0};
  unsigned n = 0;
  for (; !stop(n); ++n) {
    auto txn = std::make_shared<AwaitedTxn>();
    txn->put(Family::object, "key" + std::to_string(n % 1000), "value");
    const auto start = std::chrono::steady_clock::now();
    engine.submit(txn);
    txn->wait();
    const double us = 1000 * ms_since(start);
    t.mean_us += us;
    t.max_us = std::max(t.max_us, us);
  }
  t.mean_us /= std::max(n, 1u);
  return t;
}

std::unique_ptr<Engine> open(Disk& disk, const EngineOptions& options, const char* what) {
  const auto start = std::chrono::steady_clock::now();
  auto opened = Engine::open(disk, options);
  check(opened.status());
  std::printf("%s: open in %.2f s\n", what, ms_since(start) / 1000);
  return opened.take();
}

void print_engine(const std::string& directory, uint32_t containers) {
  auto disk = open_file_disk(directory, {});
  check(disk.status());
  EngineOptions options;
  options.store_uuid = "a-store-of-10-TiB";
  options.store_uuid.resize(16);
  options.log_bytes = 256 << 20;
  options.container_bytes = container_bytes;
  options.capacity_bytes = uint64_t(1) << 60;
  options.prepare_bytes_per_second = options.punch_bytes_per_second = 0;
  check(Engine::format(**disk, options));
  VastDisk vast(**disk, containers, container_bytes);
  auto engine = open(vast, options, "nothing is owned");
  Times t = commit(*engine, [](unsigned n) { return n == 2000; });
  std::printf("commits: mean %.0f us, longest %.0f us\n", t.mean_us, t.max_us);
  std::map<uint32_t, BlockBitmap> owned;
  std::mt19937 random(1);
  const BlockBitmap some = fragmented(random, blocks, 50);
  for (uint32_t id = 0; id < containers; ++id) owned.emplace(id, some);
  engine->drain();
  std::atomic<bool> done = false;
  auto start = std::chrono::steady_clock::now();
  std::thread checkpoint([&] {
    check(engine->adopt_owned(owned));
    done = true;
  });
  t = commit(*engine, [&](unsigned) { return done.load(); });
  checkpoint.join();
  std::printf("a checkpoint of all of it in %.1f s (counting included); commits meanwhile: mean "
              "%.0f us, longest %.0f us\n", ms_since(start) / 1000, t.mean_us, t.max_us);
  for (const auto& [name, value] : engine->statistics())
    if (name.starts_with("checkpoint_")) std::printf("  %s %zu\n", name.c_str(), size_t(value));
  owned.clear();
  check(engine->close());
  engine.reset();
  engine = open(vast, options, "half of it is owned, in fragments");
  check(engine->close());
}

}  // namespace
}  // namespace tablestore

int main(int argc, char** argv) {
  using namespace tablestore;
  uint32_t tebibytes = 10;
  std::string base = "/tmp";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--tebibytes"))
      tebibytes = uint32_t(std::atoi(argv[i + 1]));
    else if (!std::strcmp(argv[i], "--dir"))
      base = argv[i + 1];
    else
      fail(std::string("unknown option ") + argv[i]);
  }
  std::printf("%u TiB in containers of 1 GiB\n", tebibytes);
  for (const uint32_t percent : {50, 90, 99}) print_allocator(tebibytes * 1024, percent);
  std::string directory = base + "/tablestore-scale.XXXXXX";
  if (!::mkdtemp(directory.data())) fail("cannot make a directory in " + base);
  print_engine(directory, tebibytes * 1024);
  std::filesystem::remove_all(directory);
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf("most memory in use: %ld MiB\n", usage.ru_maxrss / 1024);
}
