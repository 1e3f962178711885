// A store in a fresh directory of the real file system, that can be crashed and opened again.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/io/file_disk.h"

namespace tablestore {

inline std::string make_test_directory(const std::string& name) {
  const char* base = std::getenv("TABLESTORE_TEST_DIR");
  std::string pattern = (base ? std::string(base) : testing::TempDir()) + "/" + name + ".XXXXXX";
  EXPECT_NE(::mkdtemp(pattern.data()), nullptr) << pattern;
  return pattern;
}

// Memory with a pattern, kept alive by the writes that use it.
inline std::shared_ptr<BlockMemory> make_data(uint64_t blocks, uint64_t seed) {
  auto memory = std::make_shared<BlockMemory>(blocks * block_bytes);
  uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;
  for (size_t i = 0; i < memory->size(); i += 8) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    std::memcpy(memory->data() + i, &x, 8);
  }
  return memory;
}

// Waits for itself alone: the markers of drain() are groups of their own, which vouch for what was
// before them.
class AwaitedTxn : public Txn {
 public:
  void durable() noexcept override { durable_ = true; }
  void applied() noexcept override { applied_ = true; }
  bool is_durable() const { return durable_; }
  bool is_applied() const { return applied_; }
  void wait_durable() const {
    while (!durable_) std::this_thread::yield();
  }
  void wait_applied() const {
    while (!applied_) std::this_thread::yield();
  }

 private:
  std::atomic<bool> durable_ = false;
  std::atomic<bool> applied_ = false;
};

class EngineFixture : public testing::Test {
 protected:
  void SetUp() override {
    directory = make_test_directory("engine");
    options.store_uuid = std::string("0123456789abcdef");
    options.log_bytes = 8 << 20;
    options.compress_log = false;  // where something lies in the log is as its rows are long
    options.segment_bytes = 2 << 20;
    options.container_bytes = 8 << 20;
    options.capacity_bytes = 1 << 30;
    options.memtable_bytes = 4 << 20;
    options.table_cache_bytes = 8 << 20;
    options.end_patience_ms = 300'000;  // less only where that end is what is judged
    disk = open_disk();
  }
  void TearDown() override {
    engine.reset();
    disk.reset();
    std::filesystem::remove_all(directory);
  }
  std::unique_ptr<Disk> open_disk() {
    FileDiskOptions o;
    o.lock_wait_ms = 500;
    o.parkable_open_max = parkable_open_max;
    auto opened = open_file_disk(directory, o);
    EXPECT_TRUE(opened.ok()) << opened.status().what();
    return opened.take();
  }
  void format() {
    const Status s = Engine::format(*disk, options);
    ASSERT_TRUE(s.ok()) << s.what();
  }
  void open() {
    auto opened = Engine::open(*disk, options);
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    engine = opened.take();
  }
  void crash_and_open() {
    engine.reset();
    open();
  }
  void close_and_open() {
    const Status s = engine->close();
    ASSERT_TRUE(s.ok()) << s.what();
    crash_and_open();
  }
  // Reserves and writes; what it needs of the data is in the result.
  struct Written {
    std::vector<Extent> extents;
    std::vector<uint32_t> checksums;
  };
  Written write(Txn& txn, uint64_t blocks, uint64_t seed) {
    const Status s = engine->reserve(blocks * block_bytes);
    EXPECT_TRUE(s.ok()) << s.what();
    auto data = make_data(blocks, seed);
    const iovec iov{data->data(), data->size()};
    Written w;
    w.extents = engine->write(txn, {&iov, 1}, data, &w.checksums);
    return w;
  }
  void expect_data(const std::vector<Extent>& extents, uint64_t seed) {
    uint64_t blocks = 0;
    for (const Extent& e : extents) blocks += e.blocks;
    const auto expected = make_data(blocks, seed);
    BlockMemory found(blocks * block_bytes);
    uint64_t at = 0;
    for (const Extent& e : extents) {
      const Status s = engine->read(e, found.span().subspan(at, e.length_bytes()));
      ASSERT_TRUE(s.ok()) << s.what();
      at += e.length_bytes();
    }
    ASSERT_EQ(std::memcmp(found.data(), expected->data(), found.size()), 0);
  }
  std::optional<std::string> get(Family family, const std::string& key) {
    std::string value;
    auto found = engine->get(family, key, &value);
    EXPECT_TRUE(found.ok()) << found.status().what();
    if (!*found) return std::nullopt;
    return value;
  }
  // Submits and waits until it is durable and applied.
  void commit(std::shared_ptr<Txn> txn) {
    engine->submit(std::move(txn));
    engine->drain();
  }

  std::string directory;
  EngineOptions options;
  size_t parkable_open_max = 0;  // of the disk; before SetUp()
  std::unique_ptr<Disk> disk;
  std::unique_ptr<Engine> engine;
};

}  // namespace tablestore
