// Containers on a disk in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "os/tablestore/engine/container/containers.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "test/tablestore/engine/memory_disk.h"

namespace tablestore {

inline constexpr uint64_t container_test_mib = 1 << 20;

class ContainersFixture : public testing::Test {
 protected:
  void SetUp() override {
    options.container_bytes = 4 * container_test_mib;
    options.prepare_ahead_bytes = 2 * container_test_mib;
    options.quiet_steps = 2;
    make_disk(256 * container_test_mib);
  }
  void make_disk(uint64_t bytes) {
    containers = nullptr;
    disk = std::make_unique<MemoryDisk>(bytes);
    ASSERT_TRUE(Containers::format(*disk).ok());
    disk->take_calls();
  }
  // Opens, with a log that says that these are owned.
  Status open(const std::vector<Extent>& owned = {}) {
    containers = nullptr;
    containers = std::make_unique<Containers>(*disk, options, counters);
    if (Status s = containers->open(); !s.ok()) return s;
    for (const Extent& extent : owned) containers->allocator().replay_owned(extent, 1);
    return containers->allocator().finish_recovery();
  }
  void open_empty() {
    const Status s = open();
    ASSERT_TRUE(s.ok()) << s.what();
  }
  std::vector<Extent> take(uint64_t bytes) {
    const Status s = containers->reserve(bytes);
    EXPECT_TRUE(s.ok()) << s.what();
    if (!s.ok()) return {};
    return containers->allocate(bytes);
  }
  // As the commit lane does when the data is durable.
  void own(const std::vector<Extent>& extents) {
    for (const Extent& extent : extents) {
      containers->allocator().mark_written(extent);
      containers->allocator().mark_owned(extent);
    }
  }
  void give_up(const std::vector<Extent>& extents) {
    for (const Extent& extent : extents) {
      containers->allocator().mark_freed(extent);
      containers->allocator().give_back(extent);
    }
  }
  void write(const Extent& extent, char fill) {
    BlockMemory memory(extent.length_bytes());
    std::memset(memory.data(), fill, memory.size());
    File& file = containers->file(extent.container);
    ASSERT_TRUE(file.write(extent.offset_bytes(), memory.span()).ok());
  }
  // Runs steps until one finds nothing to do; the number that did something.
  int prepare_all() {
    return run_all([](Containers& c, uint64_t* bytes) { return c.prepare_step(bytes); });
  }
  int shrink_all() {
    int worked = 0;
    for (uint64_t i = 0; i <= options.quiet_steps; ++i) worked += run_all(&Containers::shrink_step);
    return worked;
  }
  template <typename Step>
  int run_all(Step step) {
    for (int worked = 0;; ++worked) {
      uint64_t bytes = 0;
      const auto done = std::invoke(step, *containers, &bytes);
      EXPECT_TRUE(done.ok()) << done.status().what();
      if (!done.ok() || *done == Worked::nothing_to_do) return worked;
    }
  }
  // From now on the rest of the store needs so much.
  void lack(uint64_t taken_bytes, uint64_t reserve_bytes) {
    others = {taken_bytes, reserve_bytes};
    containers->set_others([this] { return others; });
  }
  int relieve_all() {
    for (int worked = 0;; ++worked) {
      uint64_t bytes = 0;
      const auto done = containers->relieve_step(0, &bytes);
      EXPECT_TRUE(done.ok()) << done.status().what();
      if (!done.ok() || *done == Worked::nothing_to_do) return worked;
    }
  }
  // So many free containers of the largest class, all written, and no class in use.
  void make_free_large(int count) {
    open_empty();
    std::vector<std::vector<Extent>> extents;
    for (int i = 0; i < count; ++i) {
      extents.push_back(take(4 * container_test_mib));
      write(extents.back()[0], 'x');
    }
    open_empty();
    counters.containers_created = 0;
  }
  void take_until_reclassed() {
    for (int i = 0; i < 9; ++i) own(take(64 << 10));
    ASSERT_EQ(counters.containers_reclassed, 1u);
  }
  static uint64_t blocks_of(const std::vector<Extent>& extents) {
    uint64_t blocks = 0;
    for (const Extent& extent : extents) blocks += extent.blocks;
    return blocks;
  }
  AllocatorUsage usage() { return containers->allocator().usage(); }
  std::vector<std::string> files(const std::string& slot_class) {
    return *disk->list("containers/" + slot_class);
  }

  ContainerOptions options;
  OtherSpace others;
  Counters counters;
  std::unique_ptr<MemoryDisk> disk;
  std::unique_ptr<Containers> containers;
};

}  // namespace tablestore
