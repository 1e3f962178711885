// The allocation map in the table: made in pieces, read when a checkpoint was cut off between two
// of them, and read from a store that an earlier version has made.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "os/tablestore/engine/format/label.h"
#include "os/tablestore/engine/own_threads.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "os/tablestore/engine/table/table.h"
#include "test/tablestore/engine/busy_threads.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

class CheckpointTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    options.container_bytes = 20 << 20;  // two chunks
    options.prepare_bytes_per_second = 0;
    options.reporter.log = [](Reporter::Level, const std::string&) {};
    ASSERT_NO_FATAL_FAILURE(format());
    ASSERT_NO_FATAL_FAILURE(open());
  }
  // Again, and a checkpoint takes one chunk at a time.
  void open_in_pieces(std::shared_ptr<Threads> threads) {
    engine.reset();
    options.threads = std::move(threads);
    options.capture_chunks_max = 1;
    open();
  }
  Written put(uint64_t blocks, uint64_t seed) {
    auto txn = std::make_shared<Txn>();
    const Written w = write(*txn, blocks, seed);
    commit(txn);
    return w;
  }
  void free(const Written& w) {
    auto txn = std::make_shared<Txn>();
    for (const Extent& e : w.extents) txn->free(e);
    commit(txn);
  }
  // The table of a store that nobody has open; what is changed becomes durable.
  template <typename Work>
  void with_table(Work work) {
    OwnThreads threads;
    auto table = Table::open(*disk, {}, threads);
    ASSERT_TRUE(table.ok()) << table.status().what();
    work(**table);
    const Status s = (*table)->flush();
    ASSERT_TRUE(s.ok()) << s.what();
  }
  static void change(Table& table, uint32_t count, const std::string& rows) {
    RowBatch batch;
    batch.append(count, rows);
    std::string rep = batch.take();
    const Status s = table.write(&rep);
    ASSERT_TRUE(s.ok()) << s.what();
  }
  struct Rows {
    std::map<uint32_t, std::map<uint32_t, engine_rows::AllocationRow>> chunks;
    std::set<uint32_t> whole;  // containers
  };
  static Rows allocation_rows(Table& table) {
    Rows found;
    const std::string begin(engine_rows::allocation_prefix);
    const auto rows = table.iterate(Family::super, begin, begin + "\xff");
    for (rows->seek_to_first(); rows->valid(); rows->next()) {
      const auto key = engine_rows::decode_allocation_key(rows->key());
      if (!key->chunk)
        found.whole.insert(key->container);
      else
        found.chunks[key->container].emplace(*key->chunk,
                                             *engine_rows::decode_allocation(rows->value()));
    }
    EXPECT_TRUE(rows->status().ok());
    return found;
  }
  // As version 1 without incompat_allocation_chunks wrote it: class:u8, and the words of all.
  void make_old() {
    const uint32_t blocks = uint32_t(options.container_bytes / block_bytes);
    with_table([&](Table& table) {
      std::string changes;
      RowWriter writer(changes);
      uint32_t count = 0;
      for (const auto& [container, chunks] : allocation_rows(table).chunks) {
        BlockBitmap whole(blocks);
        for (const auto& [chunk, row] : chunks) {
          whole.set_chunk(chunk, row.owned);
          writer.erase(Family::super, engine_rows::allocation(container, chunk));
          ++count;
        }
        const auto words = whole.words();
        std::string value(1, char(slot_classes - 1));
        value.append(reinterpret_cast<const char*>(words.data()), words.size() * 8);
        writer.put(Family::super, engine_rows::whole_allocation(container), value);
        ++count;
      }
      change(table, count, changes);
    });
    Label label = *read_label(*disk);
    label.incompat = 0;
    ASSERT_TRUE(write_label(*disk, label).ok());
  }
  uint64_t counted(const std::string& name) {
    for (const auto& [each, value] : engine->statistics())
      if (each == name) return value;
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }
  void close() {
    const Status s = engine->close();
    ASSERT_TRUE(s.ok()) << s.what();
    engine.reset();
  }
};

TEST_F(CheckpointTest, IsMadeInPieces) {
  options.capture_chunks_max = 2;
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  std::vector<Written> all;
  for (uint64_t i = 0; i < 4; ++i) all.push_back(put(5120, i));
  ASSERT_TRUE(engine->checkpoint().ok());
  const uint64_t chunks = counted("checkpoint_chunks");
  EXPECT_GE(chunks, 8u);
  EXPECT_EQ(counted("checkpoint_take_chunks_max"), 2u);
  EXPECT_EQ(counted("checkpoint_takes"), (chunks + 1) / 2 + 1);
  const auto owned = engine->owned_blocks();
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  EXPECT_EQ(engine->owned_blocks(), owned);
  // Only what has changed.
  put(1, 9);
  ASSERT_TRUE(engine->checkpoint().ok());
  EXPECT_EQ(counted("checkpoint_chunks"), 1u);
}

// Each of them changes all chunks, also those that the checkpoint has been through.
TEST_F(CheckpointTest, TransactionsGoOnBetweenItsPieces) {
  const auto threads = std::make_shared<BusyThreads>();
  ASSERT_NO_FATAL_FAILURE(open_in_pieces(threads));
  std::vector<Extent> slots;
  for (uint64_t i = 0; i < 2; ++i)
    for (const Extent& e : put(5120, i).extents) slots.push_back(e);
  const uint64_t before = counted("transactions");
  uint32_t freed = 0;
  threads->work = [&] {
    auto txn = std::make_shared<Txn>();
    for (const Extent& slot : slots)
      if (freed < slot.blocks) txn->free({slot.container, slot.block + freed, 1});
    ++freed;
    engine->submit(txn);
    threads->step("commit");
  };
  ASSERT_TRUE(engine->checkpoint().ok());
  threads->work = nullptr;
  EXPECT_GT(counted("transactions"), before + 4);
  const auto owned = engine->owned_blocks();
  engine.reset();
  options.threads = nullptr;
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(engine->owned_blocks(), owned);
}

// Of a store that is open: log and containers through the descriptors that the engine has, because
// it holds leases on them.
void copy_store(const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  std::map<std::string, int> open_files;
  for (const auto& fd : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto path = fs::read_symlink(fd.path(), error);
    if (!error) open_files[path.string()] = std::stoi(fd.path().filename().string());
  }
  BlockMemory memory(1 << 20);
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    const fs::path copy = to / fs::relative(entry.path(), from);
    const auto file = open_files.find(fs::canonical(entry.path()).string());
    if (entry.is_directory()) {
      fs::create_directories(copy);
    } else if (file == open_files.end() || entry.path().string().starts_with(from + "/table/")) {
      fs::copy_file(entry.path(), copy);
    } else {
      std::ofstream out(copy, std::ios::binary);
      ssize_t got = 0;
      for (off_t at = 0; (got = ::pread(file->second, memory.data(), memory.size(), at)) > 0;
           at += got)
        out.write(reinterpret_cast<const char*>(memory.data()), got);
      EXPECT_EQ(got, 0) << entry.path();
    }
  }
}

// At random places in it: other transactions, containers that come and go, flushes that RocksDB
// makes, and the process is killed.
TEST_F(CheckpointTest, WhereverItIsCutOffTheStoreIsExact) {
  const auto threads = std::make_shared<BusyThreads>();
  ASSERT_NO_FATAL_FAILURE(open_in_pieces(threads));
  std::mt19937 random(2);
  std::vector<Extent> mine;
  struct Killed {
    std::string directory;
    std::map<uint32_t, BlockBitmap> owned;
  };
  std::vector<Killed> killed;
  const auto change = [&] {
    auto txn = std::make_shared<Txn>();
    if (random() % 2) {
      const uint64_t blocks = 1 + random() % (random() % 4 ? 20 : 3000);
      if (engine->reserve(blocks * block_bytes).ok()) {
        auto data = make_data(blocks, random());
        const iovec iov{data->data(), data->size()};
        std::vector<uint32_t> checksums;
        for (const Extent& e : engine->write(*txn, {&iov, 1}, data, &checksums)) mine.push_back(e);
      }
    }
    for (int i = random() % 8; i > 0 && mine.size() > 10; --i) {
      std::swap(mine[random() % (mine.size() - 5)], mine.back());
      Extent& e = mine.back();
      const uint32_t part = 1 + random() % e.blocks;
      txn->free({e.container, e.block, part});
      e.block += part;
      if (!(e.blocks -= part)) mine.pop_back();
    }
    engine->submit(txn);
    threads->step_all("commit");
  };
  const auto work = [&] {
    for (int i = random() % 3; i > 0; --i) change();
    if (random() % 4 == 0) threads->step("shrink");
    if (random() % 4 == 0) (void)threads->flush_table();
    if (random() % 3 || killed.size() >= 6) return;
    const std::string copy = make_test_directory("killed");
    copy_store(directory, copy);
    killed.push_back({copy, engine->owned_blocks()});
  };
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 20; ++j) change();
    if (random() % 2) {  // all of it goes, and its containers
      auto txn = std::make_shared<Txn>();
      for (const Extent& e : mine) txn->free(e);
      mine.clear();
      engine->submit(txn);
      threads->step_all("commit");
      for (int j = 0; j < 300; ++j) threads->step("shrink");
    }
    threads->work = work;
    ASSERT_TRUE(engine->checkpoint().ok());
    threads->work = nullptr;
  }
  engine.reset();
  options.threads = nullptr;
  EXPECT_EQ(killed.size(), 6u);
  for (const Killed& k : killed) {
    auto files = open_file_disk(k.directory, {});
    ASSERT_TRUE(files.ok());
    {
      auto opened = Engine::open(**files, options);
      ASSERT_TRUE(opened.ok()) << opened.status().what();
      auto found = (*opened)->owned_blocks(), wanted = k.owned;
      std::erase_if(found, [](const auto& c) { return c.second.count() == 0; });
      std::erase_if(wanted, [](const auto& c) { return c.second.count() == 0; });
      EXPECT_EQ(found, wanted);
    }
    std::filesystem::remove_all(k.directory);
  }
}

// Of the chunks of one transaction, one has its row already, and the other has not.
TEST_F(CheckpointTest, OneThatWasCutOffBetweenTwoPiecesIsNoDamage) {
  const Written before = put(5000, 1);
  ASSERT_TRUE(engine->checkpoint().ok());
  free(before);
  const Written after = put(5000, 2);
  const auto owned = engine->owned_blocks();
  auto last = std::make_shared<AwaitedTxn>();
  engine->submit(last);
  last->wait_applied();
  const uint64_t lsn = last->lsn();
  engine.reset();
  for (const uint32_t chunk : {1, 0}) {
    with_table([&](Table& table) {
      std::string rows;
      RowWriter writer(rows);
      uint32_t count = 0;
      for (const auto& [container, bitmap] : owned) {
        engine_rows::write_allocation(writer, {container, chunk, bitmap.chunk(chunk)}, lsn + 1);
        ++count;
      }
      engine_rows::write_with_copy(writer, engine_rows::applied(),
                                   engine_rows::encode_applied(lsn));
      change(table, count + engine_rows::rows_with_copy, rows);
    });
    ASSERT_NO_FATAL_FAILURE(open());
    EXPECT_EQ(engine->owned_blocks(), owned);
    expect_data(after.extents, 2);
    engine.reset();
  }
}

TEST_F(CheckpointTest, ARowThatIsAheadOfTheTableIsDamage) {
  put(1, 1);
  ASSERT_NO_FATAL_FAILURE(close());
  with_table([&](Table& table) {
    std::string rows;
    RowWriter writer(rows);
    engine_rows::write_allocation(writer, {0, 0, BlockBitmap(4096)}, 1000);
    change(table, 1, rows);
  });
  const auto opened = Engine::open(*disk, options);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), EIO);
  EXPECT_NE(opened.status().what().find("row alloc"), std::string::npos);
}

TEST_F(CheckpointTest, AnOldStoreIsReadAndItsRowsAreReplaced) {
  const Written first = put(5000, 1), second = put(3000, 2), third = put(100, 3);
  free(second);
  const auto owned = engine->owned_blocks();
  ASSERT_NO_FATAL_FAILURE(close());
  ASSERT_NO_FATAL_FAILURE(make_old());
  for (int life = 0; life < 2; ++life) {
    ASSERT_NO_FATAL_FAILURE(open());
    EXPECT_EQ(engine->owned_blocks(), owned);
    expect_data(first.extents, 1);
    expect_data(third.extents, 3);
    EXPECT_EQ(read_label(*disk)->incompat, incompat_allocation_chunks);
    engine.reset();
    with_table([&](Table& table) { EXPECT_FALSE(allocation_rows(table).whole.empty()); });
  }
  ASSERT_NO_FATAL_FAILURE(open());
  free(third);
  const auto less = engine->owned_blocks();
  ASSERT_TRUE(engine->checkpoint().ok());
  engine.reset();
  with_table([&](Table& table) {
    const Rows rows = allocation_rows(table);
    EXPECT_TRUE(rows.whole.empty());
    EXPECT_FALSE(rows.chunks.empty());
  });
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(engine->owned_blocks(), less);
  expect_data(first.extents, 1);
}

// The table as it is after each row that the checkpoint which replaces them has put or erased.
TEST_F(CheckpointTest, AnOldStoreIsReadWhereverTheReplacementWasCutOff) {
  const Written first = put(5000, 1), second = put(3000, 2), third = put(100, 3);
  ASSERT_NO_FATAL_FAILURE(close());
  ASSERT_NO_FATAL_FAILURE(make_old());
  std::string old_start;
  std::map<std::string, std::string> old_rows;
  with_table([&](Table& table) {
    EXPECT_TRUE(*table.get(Family::super, engine_rows::log_start(), &old_start));
    for (const uint32_t container : allocation_rows(table).whole) {
      const std::string key = engine_rows::whole_allocation(container);
      EXPECT_TRUE(*table.get(Family::super, key, &old_rows[key]));
    }
  });
  ASSERT_NO_FATAL_FAILURE(open());
  free(second);
  free(third);
  const Written fourth = put(2000, 4);
  const auto owned = engine->owned_blocks();
  ASSERT_TRUE(engine->checkpoint().ok());
  engine.reset();
  std::string start;
  std::vector<std::pair<std::string, std::string>> new_rows;
  with_table([&](Table& table) {
    EXPECT_TRUE(*table.get(Family::super, engine_rows::log_start(), &start));
    for (const auto& [container, chunks] : allocation_rows(table).chunks)
      for (const auto& [chunk, row] : chunks) {
        new_rows.emplace_back(engine_rows::allocation(container, chunk), "");
        EXPECT_TRUE(*table.get(Family::super, new_rows.back().first, &new_rows.back().second));
      }
  });
  ASSERT_GE(new_rows.size(), 3u);
  ASSERT_NE(start, old_start);
  const size_t all = new_rows.size() + 1 + old_rows.size();
  for (size_t done = 0; done <= all; ++done) {
    with_table([&](Table& table) {
      std::string changes;
      RowWriter writer(changes);
      uint32_t count = engine_rows::rows_with_copy;
      size_t at = 0;
      const auto set = [&](const std::string& key, const std::string* value) {
        value ? writer.put(Family::super, key, *value) : writer.erase(Family::super, key);
        ++count;
      };
      for (const auto& [key, value] : new_rows) set(key, ++at <= done ? &value : nullptr);
      engine_rows::write_with_copy(writer, engine_rows::log_start(),
                                   ++at <= done ? start : old_start);
      for (const auto& [key, value] : old_rows) set(key, ++at <= done ? nullptr : &value);
      change(table, count, changes);
    });
    SCOPED_TRACE(done);
    ASSERT_NO_FATAL_FAILURE(open());
    EXPECT_EQ(engine->owned_blocks(), owned);
    expect_data(first.extents, 1);
    expect_data(fourth.extents, 4);
    engine.reset();
  }
}

// Its bit is in the label before a row of a chunk can be in the table.
TEST_F(CheckpointTest, AnOldStoreThatDoesNotOpenStaysOld) {
  put(10, 1);
  ASSERT_NO_FATAL_FAILURE(close());
  ASSERT_NO_FATAL_FAILURE(make_old());
  with_table([&](Table& table) {
    std::string rows;
    RowWriter writer(rows);
    writer.put(Family::super, engine_rows::whole_allocation(0), "x");
    change(table, 1, rows);
  });
  ASSERT_FALSE(Engine::open(*disk, options).ok());
  EXPECT_EQ(read_label(*disk)->incompat, 0u);
}

}  // namespace
}  // namespace tablestore
