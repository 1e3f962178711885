// The allocator against a reference that keeps one state per block, and under several threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include "os/tablestore/engine/container/allocator.h"

namespace tablestore {
namespace {

constexpr uint32_t chunk_blocks = BlockBitmap::chunk_blocks;
constexpr uint32_t container_blocks = chunk_blocks + 1024;

enum class State : char { free, held, owned, freed, background, punched };

struct Block {
  State state = State::free;
  bool unwritten = true;
};

// Drives an Allocator and the reference with the same random operations, and what a checkpoint and
// a log would keep of them.
class Model {
 public:
  explicit Model(uint32_t seed) : random_(seed), allocator_(std::make_unique<Allocator>()) {
    EXPECT_TRUE(allocator_->finish_recovery().ok());
  }

  void step() {
    switch (random_() % 17) {
      case 0: case 1: case 2: case 3: case 4: allocate(); break;
      case 5: cancel(); break;
      case 6: case 7: commit(); break;
      case 8: case 9: free_part(); break;
      case 10: case 11: release(); break;
      case 12: prepare(); break;
      case 13: punch(); break;
      case 14: restore(); break;
      case 15: change_containers(); break;
      case 16: empty_container(); break;
    }
    if (random_() % 4 == 0) checkpoint();
    if (random_() % 16 == 0) flush();
    if (random_() % 64 == 0) crash();
    check();
  }

 private:
  struct Container {
    unsigned slot_class;
    std::vector<Block> blocks = std::vector<Block>(container_blocks);
  };
  struct Logged {
    Extent extent;
    bool owned;
    uint64_t lsn;
  };
  struct AllocationRow {
    BlockBitmap owned;
    uint64_t as_of;
  };
  void log(const Extent& extent, bool owned) { log_.push_back({extent, owned, next_lsn_++}); }

  std::span<Block> blocks(const Run& run) {
    return std::span(containers_.at(run.container).blocks).subspan(run.block, run.blocks);
  }
  void move(const Run& run, State from, State to) {
    for (Block& block : blocks(run)) {
      ASSERT_EQ(int(block.state), int(from));
      block.state = to;
    }
  }
  uint64_t count(State state) const {
    uint64_t total = 0;
    for (const auto& [id, container] : containers_) {
      for (const Block& block : container.blocks) total += block.state == state;
    }
    return total;
  }
  Extent take_random(std::vector<Extent>& extents) {
    std::swap(extents[random_() % extents.size()], extents.back());
    const Extent extent = extents.back();
    extents.pop_back();
    return extent;
  }
  Extent split_random(const Extent& whole, std::vector<Extent>* rest) {
    Extent part = whole;
    part.block += random_() % whole.blocks;
    part.blocks = 1 + random_() % (whole.end() - part.block);
    if (part.block > whole.block) {
      rest->push_back({whole.container, whole.block, part.block - whole.block});
    }
    if (part.end() < whole.end()) {
      rest->push_back({whole.container, part.end(), whole.end() - part.end()});
    }
    return part;
  }

  void allocate() {
    const uint64_t wanted = 1 + random_() % (1ull << random_() % 12);
    const bool fits = count(State::free) >= wanted;
    ASSERT_EQ(allocator_->reserve(wanted), fits);
    if (!fits) return;
    unsigned wanted_class = 99;
    auto extents = allocator_->allocate(wanted, false, &wanted_class);
    if (extents.empty()) {
      ASSERT_LT(wanted_class, slot_classes);
      ASSERT_EQ(allocator_->usage().reserved_blocks, wanted);
      extents = allocator_->allocate(wanted, true, nullptr);
    }
    uint64_t got = 0;
    for (const Extent& extent : extents) {
      got += extent.blocks;
      const uint32_t slot = slot_blocks(containers_.at(extent.container).slot_class);
      ASSERT_EQ(extent.block / slot, (extent.end() - 1) / slot);
      bool unwritten = false;
      for (const Block& block : blocks(extent)) unwritten |= block.unwritten;
      ASSERT_EQ(allocator_->is_unwritten(extent), unwritten);
      move(extent, State::free, State::held);
      held_.push_back(extent);
    }
    ASSERT_EQ(got, wanted);
  }
  void cancel() {
    if (held_.empty()) return;
    const Extent extent = take_random(held_);
    allocator_->give_back(extent);
    move(extent, State::held, State::free);
  }
  void commit() {
    if (held_.empty()) return;
    const Extent extent = take_random(held_);
    allocator_->mark_written(extent);
    for (Block& block : blocks(extent)) block.unwritten = false;
    allocator_->mark_owned(extent);
    move(extent, State::held, State::owned);
    owned_.push_back(extent);
    log(extent, true);
  }
  void free_part() {
    if (owned_.empty()) return;
    const Extent whole = take_random(owned_);
    const Extent part = random_() % 2 ? whole : split_random(whole, &owned_);
    allocator_->mark_freed(part);
    move(part, State::owned, State::freed);
    freed_.push_back(part);
    log(part, false);
  }
  void release() {
    if (freed_.empty()) return;
    const Extent extent = take_random(freed_);
    allocator_->give_back(extent);
    move(extent, State::freed, State::free);
  }
  void prepare() {
    const uint64_t most = 1 + random_() % 256;
    const auto run = random_() % 8 ? allocator_->begin_prepare(random_() % slot_classes, most)
                                   : allocator_->begin_prepare_whole(most);
    if (!run) return;
    move(*run, State::free, State::background);
    for (const Block& block : blocks(*run)) ASSERT_TRUE(block.unwritten);
    if (random_() % 2) allocate();
    if (random_() % 4) {
      allocator_->mark_written(*run);
      for (Block& block : blocks(*run)) block.unwritten = false;
    }
    allocator_->give_back(*run);
    move(*run, State::background, State::free);
  }
  void punch() {
    QuietRule rule;
    rule.spare_blocks.fill(random_() % container_blocks);
    const uint32_t least = 1 + random_() % 64;
    const auto run = allocator_->begin_punch(rule, least, least + random_() % 512);
    if (!run) return;
    ASSERT_GE(run->blocks, least);
    move(*run, State::free, State::background);
    if (random_() % 2) allocate();
    allocator_->give_back_punched(*run);
    move(*run, State::background, State::punched);
    for (Block& block : blocks(*run)) block.unwritten = true;
  }
  void restore() {
    const auto run = allocator_->begin_restore(std::nullopt, 1 + random_() % 512);
    ASSERT_EQ(run.has_value(), count(State::punched) > 0);
    if (!run) return;
    move(*run, State::punched, State::background);
    if (random_() % 4) {
      allocator_->give_back(*run);
      move(*run, State::background, State::free);
    } else {
      allocator_->give_back_punched(*run);
      move(*run, State::background, State::punched);
    }
  }
  void change_containers() {
    allocator_->advance_age();
    if (containers_.size() < 6) {
      const uint32_t id = allocator_->next_container_id();
      ASSERT_GE(id, next_id_);
      next_id_ = id + 1;
      const unsigned slot_class = random_() % slot_classes;
      BlockBitmap unwritten(container_blocks);
      unwritten.set(0, container_blocks);
      allocator_->add_container(id, slot_class, container_blocks, unwritten);
      containers_.emplace(id, Container{slot_class});
    }
    QuietRule rule;
    rule.min_age = random_() % 3;
    reclass();
    if (const auto id = allocator_->idle_container(rule)) {
      for (const Block& block : containers_.at(*id).blocks) {
        ASSERT_TRUE(block.state == State::free || block.state == State::punched);
      }
      ASSERT_TRUE(allocator_->remove_container(*id));
      containers_.erase(*id);
    }
  }

  // One goes, and its file is that of another from here on.
  void reclass() {
    const unsigned slot_class = random_() % slot_classes;
    const auto old = allocator_->begin_reclass(slot_class, Allocator::LastFree::take);
    if (!old) return;
    if (random_() % 4 == 0) return allocator_->give_back(old->all());
    Container container = containers_.at(old->container);
    containers_.erase(old->container);
    container.slot_class = slot_class;
    const uint32_t id = allocator_->next_container_id();
    allocator_->skip_container_id(id);
    next_id_ = id + 1;
    allocator_->end_reclass(*old, id, slot_class);
    containers_.emplace(id, std::move(container));
  }

  // Everything in one is given up, and it goes.
  void empty_container() {
    if (random_() % 8 || containers_.empty()) return;
    const uint32_t id = std::next(containers_.begin(), random_() % containers_.size())->first;
    const auto take_all = [id](std::vector<Extent>& extents) {
      const auto others = std::partition(extents.begin(), extents.end(),
                                         [id](const Extent& e) { return e.container != id; });
      std::vector<Extent> taken(others, extents.end());
      extents.erase(others, extents.end());
      return taken;
    };
    for (const Extent& extent : take_all(owned_)) {
      allocator_->mark_freed(extent);
      move(extent, State::owned, State::freed);
      freed_.push_back(extent);
      log(extent, false);
    }
    for (const Extent& extent : take_all(freed_)) allocator_->give_back(extent);
    for (const Extent& extent : take_all(held_)) allocator_->give_back(extent);
    ASSERT_TRUE(allocator_->remove_container(id));
    containers_.erase(id);
  }
  // A step of one: others go on between two of them.
  void checkpoint() {
    if (!capture_) {
      if (random_() % 8) return;
      capture_ = next_lsn_;
      allocator_->begin_capture();
    }
    const auto chunks = allocator_->take_changed(1 + random_() % 3);
    for (const auto& chunk : chunks)
      table_.rows.insert_or_assign({chunk.container, chunk.chunk},
                                   AllocationRow{chunk.owned, next_lsn_});
    if (!chunks.empty()) {
      if (random_() % 64 == 0) capture_.reset();  // it is given up
      return;
    }
    table_.log_start = *std::exchange(capture_, std::nullopt);
    if (random_() % 4 == 0) flush();
    for (const auto& gone : allocator_->take_gone(1 + random_() % 3)) {  // the rest another time
      table_.whole_rows.erase(gone.container);
      for (uint32_t chunk = 0; chunk < gone.chunks; ++chunk)
        table_.rows.erase({gone.container, chunk});
    }
  }
  // RocksDB does it when it likes, also between two pieces of a checkpoint.
  void flush() {
    flushed_ = table_;
    std::erase_if(log_, [this](const Logged& e) { return e.lsn < flushed_.log_start; });
  }
  // As an earlier version has left it, after a checkpoint. All rows that it had are of that age.
  void convert_to_old_format() {
    while (capture_ || table_.log_start < next_lsn_) checkpoint();
    table_.rows.clear();
    table_.whole_rows.clear();
    for (const auto& [id, container] : containers_)
      table_.whole_rows.insert_or_assign(id, *allocator_->owned_bitmap(id));
    flush();
  }

  // What no row owns is free again; what is found unwritten, or a hole, is what was left so.
  void crash() {
    if (random_() % 4 == 0) convert_to_old_format();
    allocator_ = std::make_unique<Allocator>();
    for (auto& [id, container] : containers_) {
      BlockBitmap unwritten(container_blocks), punched(container_blocks);
      for (uint32_t b = 0; b < container_blocks; ++b) {
        Block& block = container.blocks[b];
        if (block.state == State::held || block.state == State::freed) block.state = State::free;
        if (block.unwritten) unwritten.set(b, 1);
        if (block.state == State::punched) punched.set(b, 1);
      }
      allocator_->add_container(id, container.slot_class, container_blocks, unwritten, punched);
    }
    held_.clear();
    freed_.clear();
    capture_.reset();
    table_ = flushed_;
    for (const auto& [id, bitmap] : table_.whole_rows) allocator_->load_whole(id, bitmap);
    for (const auto& [name, row] : table_.rows)
      allocator_->load(name.first, name.second, row.owned,
                       row.as_of > table_.log_start ? row.as_of : 0);
    for (const Logged& entry : log_)
      entry.owned ? allocator_->replay_owned(entry.extent, entry.lsn)
                  : allocator_->replay_freed(entry.extent, entry.lsn);
    const Status status = allocator_->finish_recovery();
    ASSERT_TRUE(status.ok()) << status.what();
    next_id_ = 0;
  }

  void check() {
    AllocatorUsage expected;
    uint64_t owned = 0;
    for (const auto& [id, container] : containers_) {
      auto& sums = expected.classes[container.slot_class];
      ++sums.containers;
      sums.blocks += container.blocks.size();
      uint64_t free = 0, unwritten = 0;
      for (const Block& block : container.blocks) {
        sums.free_blocks += block.state == State::free;
        sums.unwritten_free_blocks += block.state == State::free && block.unwritten;
        sums.punched_blocks += block.state == State::punched;
        owned += block.state == State::owned;
        free += block.state == State::free;
        unwritten += block.state == State::free && block.unwritten;
      }
      if (free == container.blocks.size()) {
        sums.whole_blocks += free;
        sums.whole_unwritten_blocks += unwritten;
      }
      if (random_() % 256) continue;
      const auto bitmap = allocator_->owned_bitmap(id);
      for (uint32_t b = 0; b < container_blocks; ++b) {
        ASSERT_EQ(bitmap->test(b), container.blocks[b].state == State::owned);
      }
    }
    const AllocatorUsage usage = allocator_->usage();
    for (unsigned c = 0; c < slot_classes; ++c) {
      ASSERT_EQ(usage.classes[c].containers, expected.classes[c].containers);
      ASSERT_EQ(usage.classes[c].blocks, expected.classes[c].blocks);
      ASSERT_EQ(usage.classes[c].free_blocks, expected.classes[c].free_blocks);
      ASSERT_EQ(usage.classes[c].unwritten_free_blocks, expected.classes[c].unwritten_free_blocks);
      ASSERT_EQ(usage.classes[c].punched_blocks, expected.classes[c].punched_blocks);
      ASSERT_EQ(usage.classes[c].whole_blocks, expected.classes[c].whole_blocks);
      ASSERT_EQ(usage.classes[c].whole_unwritten_blocks,
                expected.classes[c].whole_unwritten_blocks);
    }
    ASSERT_EQ(usage.free_blocks, count(State::free));
    ASSERT_EQ(usage.punched_blocks, count(State::punched));
    ASSERT_EQ(usage.owned_blocks, owned);
    ASSERT_EQ(usage.reserved_blocks, 0u);
  }

  std::mt19937 random_;
  std::unique_ptr<Allocator> allocator_;
  std::map<uint32_t, Container> containers_;
  std::vector<Extent> held_, owned_, freed_;
  struct Table {
    std::map<std::pair<uint32_t, uint32_t>, AllocationRow> rows;  // the checkpoint
    std::map<uint32_t, BlockBitmap> whole_rows;                   // of the old format
    uint64_t log_start = 1;
  };
  Table table_;
  Table flushed_;                         // what a crash leaves of it
  std::vector<Logged> log_;               // since that
  uint64_t next_lsn_ = 1;
  std::optional<uint64_t> capture_;       // where the one that is under way began
  uint32_t next_id_ = 0;
};

class AllocatorModel : public testing::TestWithParam<uint32_t> {};

TEST_P(AllocatorModel, AgreesWithOneStatePerBlock) {
  Model model(GetParam());
  for (int i = 0; i < 2500 && !testing::Test::HasFatalFailure(); ++i) model.step();
}

INSTANTIATE_TEST_SUITE_P(Seeds, AllocatorModel, testing::Range(1u, 9u));

// With splitting refused, an empty answer must mean that some class has no free aligned slot.
TEST(AllocatorSearch, AFreeSlotIsAlwaysFound) {
  std::mt19937 random(7);
  Allocator allocator;
  for (uint32_t id = 0; id < 3; ++id) {
    allocator.add_container(id, 4, container_blocks, BlockBitmap(container_blocks));
  }
  ASSERT_TRUE(allocator.finish_recovery().ok());
  std::vector<std::vector<bool>> busy(3, std::vector<bool>(container_blocks));
  auto mark = [&](const Extent& extent, bool taken) {
    for (uint32_t b = extent.block; b < extent.end(); ++b) busy[extent.container][b] = taken;
  };
  std::vector<Extent> held;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 5 < 3) {
      if (!allocator.reserve(16)) continue;
      auto extents = allocator.allocate(16, false, nullptr);
      if (extents.empty()) {
        for (const auto& bits : busy) {
          for (uint32_t slot = 0; slot < container_blocks; slot += 16) {
            ASSERT_TRUE(std::find(bits.begin() + slot, bits.begin() + slot + 16, true) !=
                        bits.begin() + slot + 16);
          }
        }
        allocator.unreserve(16);
      }
      for (const Extent& extent : extents) mark(extent, true), held.push_back(extent);
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      Extent& extent = held.back();
      const uint32_t part = 1 + random() % extent.blocks;
      allocator.give_back({extent.container, extent.block, part});
      mark({extent.container, extent.block, part}, false);
      extent.block += part;
      extent.blocks -= part;
      if (!extent.blocks) held.pop_back();
    }
  }
}

// Writers, a commit lane and a preparer at once: I7 is asserted inside, the sums here.
TEST(AllocatorThreads, NothingIsHandedOutTwice) {
  Allocator allocator;
  for (uint32_t id = 0; id < 8; ++id) {
    BlockBitmap unwritten(container_blocks);
    unwritten.set(0, container_blocks);
    allocator.add_container(id, id % 2 ? 4 : 0, container_blocks, unwritten);
  }
  ASSERT_TRUE(allocator.finish_recovery().ok());
  std::vector<std::vector<std::atomic<int>>> owners(8);
  for (auto& container : owners) container = std::vector<std::atomic<int>>(container_blocks);

  auto write = [&](uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Extent> mine;
    for (int i = 0; i < 3000; ++i) {
      const uint64_t blocks = 1 + random() % 40;
      if (random() % 2 && allocator.reserve(blocks)) {
        for (const Extent& extent : allocator.allocate(blocks, true, nullptr)) {
          for (uint32_t b = extent.block; b < extent.end(); ++b) {
            ASSERT_EQ(owners[extent.container][b].exchange(1), 0);
          }
          if (allocator.is_unwritten(extent)) allocator.mark_written(extent);
          allocator.mark_owned(extent);
          mine.push_back(extent);
        }
      } else if (!mine.empty()) {
        std::swap(mine[random() % mine.size()], mine.back());
        const Extent extent = mine.back();
        mine.pop_back();
        allocator.mark_freed(extent);
        for (uint32_t b = extent.block; b < extent.end(); ++b) owners[extent.container][b] = 0;
        allocator.give_back(extent);
      }
    }
    for (const Extent& extent : mine) {
      allocator.mark_freed(extent);
      for (uint32_t b = extent.block; b < extent.end(); ++b) owners[extent.container][b] = 0;
      allocator.give_back(extent);
    }
  };
  std::atomic<bool> stop{false};
  std::thread background([&] {
    std::mt19937 random(99);
    while (!stop) {
      if (auto run = allocator.begin_prepare(random() % 2 ? 4 : 0, 64)) {
        for (uint32_t b = run->block; b < run->end(); ++b) {
          ASSERT_EQ(owners[run->container][b].exchange(2), 0);
        }
        allocator.mark_written(*run);
        for (uint32_t b = run->block; b < run->end(); ++b) owners[run->container][b] = 0;
        allocator.give_back(*run);
      }
      if (auto run = allocator.begin_punch({}, 32, 64)) allocator.give_back_punched(*run);
      if (auto run = allocator.begin_restore(std::nullopt, 128)) allocator.give_back(*run);
      allocator.begin_capture();
      while (!allocator.take_changed(3).empty()) {
      }
    }
  });
  std::vector<std::thread> writers;
  for (uint32_t seed = 0; seed < 4; ++seed) writers.emplace_back(write, seed);
  for (std::thread& writer : writers) writer.join();
  stop = true;
  background.join();
  const AllocatorUsage usage = allocator.usage();
  EXPECT_EQ(usage.free_blocks + usage.punched_blocks, 8 * container_blocks);
  EXPECT_EQ(usage.owned_blocks, 0u);
  EXPECT_EQ(usage.reserved_blocks, 0u);
}

}  // namespace
}  // namespace tablestore
