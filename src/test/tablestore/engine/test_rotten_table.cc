// A table file rots: what it costs while the store runs, and what is left of it after a salvage.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "os/tablestore/engine/troubles.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/options.h"
#include "test/tablestore/engine/engine_fixture.h"
#include "test/tablestore/engine/small_disk.h"

namespace tablestore {
namespace {

enum class Rot {
  data, index_partition, filter_partition, top_level_filter, top_level_index, properties, footer,
  truncated, missing,
};

constexpr std::pair<Rot, const char*> rot_names[] = {
    {Rot::data, "Data"}, {Rot::index_partition, "IndexPartition"},
    {Rot::filter_partition, "FilterPartition"}, {Rot::top_level_filter, "TopLevelFilter"},
    {Rot::top_level_index, "TopLevelIndex"}, {Rot::properties, "Properties"},
    {Rot::footer, "Footer"}, {Rot::truncated, "Truncated"}, {Rot::missing, "Missing"},
};

// Automatic compaction is on, and nothing may be fatal.
class RottenTableTest : public EngineFixture {
 protected:
  static constexpr unsigned rows = 20000;

  void SetUp() override {
    EngineFixture::SetUp();
    options.memtable_bytes = 8 << 20;
    options.log_bytes = 64 << 20;
    options.table_options = "compression=kNoCompression;level0_slowdown_writes_trigger=8;"
                            "level0_stop_writes_trigger=10";
    options.troubles = troubles;
    options.reporter.log = [](Reporter::Level, const std::string&) {};
    ASSERT_NO_FATAL_FAILURE(format());
    ASSERT_NO_FATAL_FAILURE(open());
  }
  static std::string key(unsigned i) {
    char text[16];
    std::snprintf(text, sizeof(text), "k%08u", i);
    return text;
  }
  static std::string value(unsigned i, const std::string& version) {
    return version + std::string(100, char('a' + i % 26));
  }
  static bool is_erased(unsigned i) { return i % 10 == 3; }

  void put_all(Family family, const std::string& version) {
    for (unsigned i = 0; i < rows;) {
      auto txn = std::make_shared<Txn>();
      for (const unsigned end = i + 1000; i < end; ++i) txn->put(family, key(i), value(i, version));
      commit(txn);
    }
  }
  // Rows in two families: "old" at the bottom, over them "new" and erased ones in one file of
  // level 0, or, compacted, "new" alone in one file of the last level.
  void make_table(bool at_bottom) {
    for (const Family f : {Family::object, Family::omap}) put_all(f, "old");
    ASSERT_TRUE(engine->checkpoint().ok());
    ASSERT_TRUE(engine->compact().ok());
    const auto before = files();
    for (const Family f : {Family::object, Family::omap}) put_all(f, "new");
    auto txn = std::make_shared<Txn>();
    for (unsigned i = 0; i < rows; ++i)
      if (is_erased(i)) txn->erase(Family::object, key(i));
    commit(txn);
    ASSERT_TRUE(engine->checkpoint().ok());
    if (at_bottom) {
      ASSERT_TRUE(engine->compact().ok());
    }
    ASSERT_TRUE(engine->close().ok());
    engine.reset();
    // Families are flushed and compacted in order: object, then omap.
    for (const auto& path : files())
      if (std::ranges::count(before, path) == 0 && std::filesystem::file_size(path) > 1000000) {
        rotten = path;
        break;
      }
    ASSERT_FALSE(rotten.empty());
  }
  std::vector<std::filesystem::path> files() {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/table"))
      if (entry.path().extension() == ".sst") found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
  }
  void flip(uint64_t at) {
    std::fstream file(rotten, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(std::streamoff(at));
    const char byte = char(file.get());
    file.seekp(std::streamoff(at));
    file.put(char(byte ^ 0x10));
    ASSERT_TRUE(file.good());
  }
  // The parts of a file follow each other: data, filter, index, properties, footer; the partitions
  // of an index or a filter come before its top level.
  void let_rot(Rot rot) {
    rocksdb::Options o;
    rocksdb::SstFileReader reader(o);
    ASSERT_TRUE(reader.Open(rotten).ok());
    const auto p = reader.GetTableProperties();
    ASSERT_GT(p->index_partitions, 2u);
    const uint64_t size = std::filesystem::file_size(rotten);
    const std::string bytes = read_file();
    const uint64_t properties = bytes.rfind("rocksdb.block.based.table.index.type");
    ASSERT_NE(properties, std::string::npos);
    switch (rot) {
      case Rot::data: return flip(p->data_size / 2);
      case Rot::filter_partition: return flip(p->data_size + 1000);
      case Rot::top_level_filter: return flip(p->data_size + p->filter_size - 20);
      case Rot::index_partition: return flip(p->data_size + p->filter_size + 3000);
      case Rot::top_level_index: return flip(properties - 30);
      case Rot::properties: return flip(properties + 10);
      case Rot::footer: return flip(size - 2);
      case Rot::truncated: std::filesystem::resize_file(rotten, size / 2); return;
      case Rot::missing: std::filesystem::remove(rotten); return;
    }
  }
  std::string read_file() {
    std::ifstream in(rotten, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool alert() { return troubles->all().contains("TABLE_DAMAGED"); }

  // A row is as it should be or EIO; these are.
  std::set<unsigned> lost_rows() {
    std::set<unsigned> lost;
    for (unsigned i = 0; i < rows; ++i) {
      std::string found;
      const auto there = engine->get(Family::object, key(i), &found);
      if (!there.ok()) {
        EXPECT_EQ(there.status().code(), EIO) << there.status().what();
        lost.insert(i);
      } else if (is_erased(i)) {
        EXPECT_FALSE(*there) << key(i) << " is back: " << found.substr(0, 3);
      } else {
        EXPECT_EQ(found, value(i, "new")) << key(i);
      }
    }
    for (unsigned i = 0; i < rows; i += 97) EXPECT_EQ(get(Family::omap, key(i)), value(i, "new"));
    return lost;
  }
  // Writes into the same ranges of keys until some memtables have been flushed.
  void write_on(unsigned times) {
    for (unsigned n = 0; n < times; ++n) {
      auto txn = std::make_shared<Txn>();
      for (unsigned i = 0; i < rows; i += 100)
        txn->put(Family::object, key(i) + "+", std::to_string(written));
      txn->put(Family::omap, key(n), value(n, "new"));
      ++written;
      commit(txn);
      ASSERT_TRUE(engine->checkpoint().ok());
    }
  }
  void check_written() {
    if (!written) return;
    for (unsigned i = 0; i < rows; i += 100)
      EXPECT_EQ(get(Family::object, key(i) + "+"), std::to_string(written - 1));
  }
  static bool is_in_a_gap(const std::vector<DamagedTableFile>& files, const std::string& key) {
    return std::ranges::any_of(files, [&key](const DamagedTableFile& file) {
      return std::ranges::any_of(file.gaps, [&key](const DamagedTableFile::Gap& gap) {
        return gap.after < key && (gap.before.empty() || key < gap.before);
      });
    });
  }
  std::set<std::string> listed() {
    std::set<std::string> keys;
    auto it = engine->iterate(Family::object, "", "", AtDamage::step_over);
    for (it->seek_to_first(); it->valid(); it->next()) keys.emplace(it->key());
    EXPECT_TRUE(it->status().ok()) << it->status().what();
    return keys;
  }
  void check_listing(const std::set<unsigned>& lost) {
    const auto keys = listed();
    for (unsigned i = 0; i < rows; ++i) {
      if (lost.contains(i)) continue;  // there as an older version, or not
      EXPECT_EQ(keys.contains(key(i)), !is_erased(i)) << key(i);
    }
  }
  void check_salvage(const std::set<unsigned>& lost) {
    std::set<std::string> told;
    const auto damaged = engine->salvage_table([&](Family family, std::string_view key) {
      EXPECT_EQ(family, Family::object);
      told.emplace(key);
    });
    ASSERT_TRUE(damaged.ok()) << damaged.status().what();
    EXPECT_FALSE(alert());
    EXPECT_TRUE(engine->find_table_damage()->empty());
    for (int life = 0; life < 2; ++life) {
      const auto keys = listed();
      for (unsigned i = 0; i < rows; ++i) {
        const auto found = get(Family::object, key(i));
        EXPECT_EQ(keys.contains(key(i)), found.has_value()) << key(i);
        if (is_erased(i)) {
          EXPECT_FALSE(found) << key(i) << " is back";
        } else if (found) {
          EXPECT_EQ(*found, value(i, "new"));
        } else {
          EXPECT_TRUE(lost.contains(i)) << key(i);
        }
        if (told.contains(key(i))) {
          EXPECT_TRUE(lost.contains(i) && !found) << key(i);
        }
      }
      check_written();
      const Status s = engine->compact();
      EXPECT_TRUE(s.ok()) << s.what();
      ASSERT_NO_FATAL_FAILURE(close_and_open());
      EXPECT_FALSE(alert());
    }
  }

  const std::shared_ptr<Troubles> troubles = std::make_shared<Troubles>();
  std::filesystem::path rotten;
  unsigned written = 0;
};

class RottenPartTest : public RottenTableTest,
                       public testing::WithParamInterface<std::tuple<size_t, bool>> {
 protected:
  Rot rot() const { return rot_names[std::get<0>(GetParam())].first; }
  bool at_bottom() const { return std::get<1>(GetParam()); }
  bool costs_nothing() const {
    return rot() == Rot::filter_partition || rot() == Rot::top_level_filter;
  }
};

TEST_P(RottenPartTest, CostsWhatItHasHitUntilItIsSalvaged) {
  ASSERT_NO_FATAL_FAILURE(make_table(at_bottom()));
  ASSERT_NO_FATAL_FAILURE(let_rot(rot()));
  ASSERT_NO_FATAL_FAILURE(open());
  ASSERT_NO_FATAL_FAILURE(write_on(6));
  const std::set<unsigned> lost = lost_rows();
  EXPECT_EQ(lost.empty(), costs_nothing());
  if (rot() == Rot::data) {
    EXPECT_LT(lost.size(), 100u);
  } else if (rot() == Rot::index_partition) {
    EXPECT_LT(lost.size(), rows * 3 / 4);
  }
  for (int life = 0; life < 3; ++life) {
    EXPECT_EQ(alert(), !costs_nothing());
    ASSERT_NO_FATAL_FAILURE(check_listing(lost));
    ASSERT_NO_FATAL_FAILURE(write_on(4));
    EXPECT_EQ(lost_rows(), lost);
    ASSERT_NO_FATAL_FAILURE(check_written());
    troubles->clear("TABLE_DAMAGED");
    ASSERT_NO_FATAL_FAILURE(close_and_open());
  }
  EXPECT_EQ(engine->compact().code(), costs_nothing() ? 0 : EIO);
  ASSERT_NO_FATAL_FAILURE(check_salvage(lost));
}

INSTANTIATE_TEST_SUITE_P(, RottenPartTest,
                         testing::Combine(testing::Range(size_t(0), std::size(rot_names)),
                                          testing::Bool()),
                         [](const auto& info) {
                           return std::string(rot_names[std::get<0>(info.param)].second) +
                                  (std::get<1>(info.param) ? "AtTheBottom" : "AtLevel0");
                         });

// Nobody reads the rotten block but compactions.
TEST_F(RottenTableTest, ACompactionThatMeetsDamageStopsNoWrites) {
  ASSERT_NO_FATAL_FAILURE(make_table(true));
  ASSERT_NO_FATAL_FAILURE(let_rot(Rot::data));
  ASSERT_NO_FATAL_FAILURE(open());
  for (int n = 0; n < 200 && !alert(); ++n) ASSERT_NO_FATAL_FAILURE(write_on(1));
  ASSERT_TRUE(alert());
  EXPECT_NE(troubles->all().at("TABLE_DAMAGED").find(rotten.filename()), std::string::npos);
  // More files of level 0 than would stop writes.
  ASSERT_NO_FATAL_FAILURE(write_on(40));
  ASSERT_NO_FATAL_FAILURE(check_written());
  const std::set<unsigned> lost = lost_rows();
  EXPECT_GT(lost.size(), 0u);
  EXPECT_LT(lost.size(), 100u);
  ASSERT_NO_FATAL_FAILURE(check_salvage(lost));
}

// A compaction that only moves such a file fails where the table takes over what has changed.
class RottenMoveTest : public RottenTableTest {
 protected:
  // Two files of one row, of which nobody can open the second.
  void SetUp() override {
    RottenTableTest::SetUp();
    for (const Family f : {Family::object, Family::omap}) {
      auto txn = std::make_shared<Txn>();
      txn->put(f, "k", only_row(f));
      commit(txn);
    }
    ASSERT_NO_FATAL_FAILURE(close_and_open());
    engine.reset();
    for (const auto& path : files()) {
      rotten = path;
      if (read_file().find(only_row(Family::omap)) != std::string::npos) break;
    }
    flip(std::filesystem::file_size(rotten) - 2);
    ASSERT_NO_FATAL_FAILURE(open());
  }
  static std::string only_row(Family f) { return value(unsigned(f), "the only row "); }
};

// What looks for obsolete files after that leaves the MANIFEST that CURRENT names.
TEST_F(RottenMoveTest, TakesNothingWithIt) {
  EXPECT_FALSE(engine->compact().ok());
  std::ifstream current(directory + "/table/CURRENT");
  std::string name;
  ASSERT_TRUE(std::getline(current, name));
  EXPECT_TRUE(std::filesystem::exists(directory + "/table/" + name)) << name << " is gone";
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  EXPECT_EQ(get(Family::object, "k"), only_row(Family::object));
}

// Other files could be moved, too, and there come more than would stop writes.
TEST_F(RottenMoveTest, StopsNoWrites) {
  for (int life = 0; life < 2; ++life) {
    for (unsigned i = 0; i < 40; ++i) {
      auto txn = std::make_shared<Txn>();
      txn->put(Family::omap, key(i), value(i, "new"));
      commit(txn);
      ASSERT_TRUE(engine->checkpoint().ok());
    }
    for (unsigned i = 0; i < 40; ++i) EXPECT_EQ(get(Family::omap, key(i)), value(i, "new"));
    EXPECT_TRUE(alert());
    ASSERT_NO_FATAL_FAILURE(crash_and_open());
  }
  std::string found;
  EXPECT_EQ(engine->get(Family::omap, "k", &found).status().code(), EIO);
  EXPECT_EQ(get(Family::object, "k"), only_row(Family::object));
}

// A file in which masses are erased asks for a compaction, which would take along what is older in
// level 0.
TEST_F(RottenTableTest, MassesOfErasedRowsAboveARottenFileWait) {
  ASSERT_NO_FATAL_FAILURE(make_table(false));
  let_rot(Rot::data);
  options.compact_on_deletion_window = 1000;
  options.compact_on_deletion_trigger = 500;
  open();
  lost_rows();
  ASSERT_TRUE(alert());
  auto txn = std::make_shared<Txn>();
  for (unsigned i = 0; i < rows; ++i) txn->erase(Family::object, key(i));
  commit(txn);
  ASSERT_TRUE(engine->checkpoint().ok());
  // RocksDB tries what has failed once a second.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  std::ifstream log(directory + "/table/LOG");
  const std::string lines{std::istreambuf_iterator<char>(log), {}};
  ASSERT_NE(lines.find("Level-0 flush table"), std::string::npos);
  EXPECT_EQ(lines.find("Compaction error"), std::string::npos);
}

TEST_F(RottenTableTest, TwoCompactionsAtOnceMeetDamage) {
  ASSERT_NO_FATAL_FAILURE(make_table(true));
  ASSERT_NO_FATAL_FAILURE(let_rot(Rot::data));
  ASSERT_NO_FATAL_FAILURE(open());
  ASSERT_NO_FATAL_FAILURE(write_on(1));
  std::atomic<int> ended = 0;
  std::vector<std::jthread> compactions;
  for (int n = 0; n < 2; ++n)
    compactions.emplace_back([&] {
      EXPECT_EQ(engine->compact().code(), EIO);
      ++ended;
    });
  for (int n = 0; n < 300 && ended < 2; ++n)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (ended < 2) {
    std::fputs("a compaction waits for ever\n", stderr);
    std::abort();  // nothing ends it
  }
  EXPECT_TRUE(alert());
}

// The block that holds a range of erased omap keys is no block of rows: all of its file is lost
// rather than that they come back.
TEST_F(RottenTableTest, WhatARangeHasErasedDoesNotComeBack) {
  engine.reset();
  options.delete_range_threshold = 1;
  ASSERT_NO_FATAL_FAILURE(open());
  put_all(Family::object, "new");
  ASSERT_TRUE(engine->checkpoint().ok());
  ASSERT_TRUE(engine->compact().ok());
  const auto before = files();
  auto txn = std::make_shared<Txn>();
  txn->erase_range(Family::object, key(100), key(200));
  commit(txn);
  ASSERT_TRUE(engine->close().ok());
  engine.reset();
  for (const auto& path : files()) {
    if (std::ranges::count(before, path)) continue;
    rotten = path;
    const size_t at = read_file().find(key(200));
    if (at == std::string::npos) continue;
    ASSERT_NO_FATAL_FAILURE(flip(at));
    break;
  }
  ASSERT_NO_FATAL_FAILURE(open());
  std::string found;
  EXPECT_EQ(engine->get(Family::object, key(150), &found).status().code(), EIO);
  // The file's first row is one of the engine's own.
  EXPECT_EQ(engine->get(Family::object, key(99), &found).status().code(), EIO);
  EXPECT_EQ(get(Family::object, key(201)), value(201, "new"));
  const auto damaged = engine->salvage_table([](Family, std::string_view) {});
  ASSERT_TRUE(damaged.ok()) << damaged.status().what();
  for (unsigned i = 100; i < 200; ++i) EXPECT_FALSE(get(Family::object, key(i)));
  EXPECT_EQ(get(Family::object, key(201)), value(201, "new"));
}

// A block that is read well because it is in memory has rotten on the disk: it is gone from memory
// when the file is written anew.
TEST_F(RottenTableTest, ASalvageDoesNotCountOnWhatCachesHold) {
  options.table_cache_bytes = 1 << 20;  // less than it reads
  ASSERT_NO_FATAL_FAILURE(make_table(false));
  ASSERT_NO_FATAL_FAILURE(open());
  for (unsigned i = 0; i < 100; ++i)
    if (!is_erased(i)) {
      EXPECT_EQ(get(Family::object, key(i)), value(i, "new"));
    }
  ASSERT_NO_FATAL_FAILURE(flip(2000));
  const auto damaged = engine->salvage_table([](Family, std::string_view) {});
  ASSERT_TRUE(damaged.ok()) << damaged.status().what();
  ASSERT_EQ(damaged->size(), 1u);
  for (unsigned i = 0; i < 100; ++i) {
    const auto found = get(Family::object, key(i));
    EXPECT_TRUE(!found || (*found == value(i, "new") && !is_erased(i))) << key(i) << *found;
  }
}

// What follows it has not been looked at, what precedes it has been for nothing.
TEST_F(RottenTableTest, WhatRotsDuringASalvageIsNamedByTheNext) {
  options.table_cache_bytes = 1 << 20;
  ASSERT_NO_FATAL_FAILURE(make_table(true));
  ASSERT_NO_FATAL_FAILURE(let_rot(Rot::data));
  const uint64_t last_part = std::filesystem::file_size(rotten) / 4 * 3;
  ASSERT_NO_FATAL_FAILURE(open());
  std::set<std::string> told;
  std::vector<DamagedTableFile> found;
  for (const uint64_t at : {last_part, uint64_t(2000)}) {
    bool more = true;
    const auto look = [&](const std::vector<DamagedTableFile>& files) {
      found.insert(found.end(), files.begin(), files.end());
      if (std::exchange(more, false)) flip(at);
      return Status();
    };
    const auto damaged =
        engine->salvage_table([&](Family, std::string_view key) { told.emplace(key); }, look);
    ASSERT_FALSE(more);
    EXPECT_EQ(damaged.status().code(), EIO);
    EXPECT_TRUE(alert());
  }
  const auto damaged = engine->salvage_table(
      [&](Family, std::string_view key) { told.emplace(key); },
      [&](const std::vector<DamagedTableFile>& files) {
        found.insert(found.end(), files.begin(), files.end());
        return Status();
      });
  ASSERT_TRUE(damaged.ok()) << damaged.status().what();
  EXPECT_FALSE(alert());
  unsigned missing = 0;
  for (unsigned i = 0; i < rows; ++i) {
    const auto row = get(Family::object, key(i));
    if (is_erased(i)) {
      EXPECT_FALSE(row) << key(i);
    } else if (row) {
      EXPECT_EQ(*row, value(i, "new"));
    } else {
      ++missing;
      EXPECT_TRUE(told.contains(key(i)) || is_in_a_gap(found, key(i))) << key(i);
    }
  }
  EXPECT_GT(missing, 0u);
  EXPECT_LT(missing, 200u);
}

// As a file is written anew without what could be read before, older rows are there.
TEST_F(RottenTableTest, WhatRotsWhileItIsWrittenAnewIsNotPassedOver) {
  options.table_cache_bytes = 64 << 10;
  options.table_options += ";compaction_readahead_size=0";
  ASSERT_NO_FATAL_FAILURE(make_table(false));
  ASSERT_NO_FATAL_FAILURE(let_rot(Rot::data));
  const uint64_t last_part = std::filesystem::file_size(rotten) / 4 * 3;
  SmallDisk holding(*disk, directory, uint64_t(1) << 40);
  auto opened = Engine::open(holding, options);
  ASSERT_TRUE(opened.ok()) << opened.status().what();
  engine = opened.take();
  holding.hold_compactions(true);
  auto salvage = std::async(std::launch::async, [this] {
    return engine->salvage_table([](Family, std::string_view) {});
  });
  while (!holding.is_compaction_held() &&
         salvage.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
  }
  EXPECT_TRUE(holding.is_compaction_held());
  flip(last_part);
  holding.hold_compactions(false);
  const auto damaged = salvage.get();
  engine.reset();
  ASSERT_EQ(damaged.status().code(), EIO);
  EXPECT_NE(damaged.status().what().find("scrub"), std::string::npos) << damaged.status().what();
}

TEST_F(RottenTableTest, AFilterThatCannotBeReadLosesNoRow) {
  ASSERT_NO_FATAL_FAILURE(make_table(false));
  ASSERT_NO_FATAL_FAILURE(let_rot(Rot::top_level_filter));
  ASSERT_NO_FATAL_FAILURE(open());
  const auto damaged = engine->find_table_damage();
  ASSERT_TRUE(damaged.ok()) << damaged.status().what();
  ASSERT_EQ(damaged->size(), 1u);
  EXPECT_TRUE(damaged->front().no_row_lost);
  EXPECT_TRUE(damaged->front().gaps.empty());
  ASSERT_NO_FATAL_FAILURE(check_salvage({}));
}

// Not only with the next row of the file: what was written later may lie between.
TEST_F(RottenTableTest, WhatIsLostWithABlockEndsWithItsLastRow) {
  ASSERT_NO_FATAL_FAILURE(make_table(true));
  ASSERT_NO_FATAL_FAILURE(let_rot(Rot::data));
  ASSERT_NO_FATAL_FAILURE(open());
  const std::set<unsigned> lost = lost_rows();
  ASSERT_FALSE(lost.empty());
  const auto damaged = engine->find_table_damage();
  ASSERT_TRUE(damaged.ok()) << damaged.status().what();
  ASSERT_EQ(damaged->size(), 1u);
  ASSERT_EQ(damaged->front().gaps.size(), 1u);
  const DamagedTableFile::Gap& gap = damaged->front().gaps.front();
  std::string last;
  for (unsigned i : lost)
    if (!is_erased(i)) last = key(i);
  EXPECT_EQ(gap.last(), last);
  EXPECT_EQ(gap.before, last + '\0');
  EXPECT_LT(gap.after, key(*lost.begin()));
}

TEST_F(RottenTableTest, BlocksOfOmapEndWithTheirPool) {
  const std::string one = "pool 001", other = "pool 002";
  ASSERT_EQ(one.size(), omap_pool_bytes);
  auto txn = std::make_shared<Txn>();
  for (const std::string& pool : {one, other})
    for (unsigned i = 0; i < 3; ++i) txn->put(Family::omap, pool + key(i), pool + value(i, "new"));
  commit(txn);
  ASSERT_TRUE(engine->checkpoint().ok());
  ASSERT_TRUE(engine->close().ok());
  engine.reset();
  for (const auto& path : files()) {
    rotten = path;
    if (const size_t at = read_file().find(one + "new"); at != std::string::npos) {
      ASSERT_NO_FATAL_FAILURE(flip(at));
      break;
    }
  }
  ASSERT_NO_FATAL_FAILURE(open());
  std::string found;
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(engine->get(Family::omap, one + key(i), &found).status().code(), EIO) << i;
    EXPECT_EQ(get(Family::omap, other + key(i)), other + value(i, "new"));
  }
}

// A sound file of the same keys does not lose rows with the damaged one, unnamed: neither where
// nobody notices that it is not sound any more, nor where somebody does.
class RottenElsewhereTest : public RottenTableTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(IsNoticed, RottenElsewhereTest, testing::Bool());

TEST_P(RottenElsewhereTest, DuringASalvageItIsNamedByTheNext) {
  options.table_cache_bytes = 1 << 20;
  auto txn = std::make_shared<Txn>();
  for (unsigned i = 0; i < rows; i += 5) txn->put(Family::object, key(i) + "x", "only here");
  commit(txn);
  ASSERT_NO_FATAL_FAILURE(make_table(false));
  ASSERT_NO_FATAL_FAILURE(let_rot(Rot::data));
  ASSERT_NO_FATAL_FAILURE(open());
  const auto above = rotten;
  for (const auto& path : files()) {
    rotten = path;
    if (path != above && read_file().find("only here") != std::string::npos) break;
  }
  ASSERT_NE(rotten, above);
  std::set<std::string> told;
  bool more = true;
  const auto lost = [&](Family, std::string_view key) {
    told.emplace(key);
    if (!std::exchange(more, false)) return;
    flip(2000);
    std::string row;
    if (GetParam()) {
      EXPECT_EQ(engine->get(Family::object, RottenTableTest::key(0) + "x", &row).status().code(),
                EIO);
    }
  };
  EXPECT_EQ(engine->salvage_table(lost).status().code(), EIO);
  ASSERT_FALSE(more);
  const auto damaged = engine->salvage_table(lost);
  ASSERT_TRUE(damaged.ok()) << damaged.status().what();
  unsigned missing = 0;
  for (unsigned i = 0; i < rows; i += 5) {
    const std::string k = key(i) + "x";
    if (get(Family::object, k) == "only here") continue;
    ++missing;
    EXPECT_TRUE(told.contains(k) || is_in_a_gap(*damaged, k)) << k;
  }
  EXPECT_GT(missing, 0u);
  EXPECT_LT(missing, 200u);
}

// What is owned, and where the log begins, is known while the store runs, whatever its rows say.
TEST_F(RottenTableTest, ASalvageWritesTheEnginesOwnRowsAnew) {
  auto first = std::make_shared<Txn>();
  const Written data = write(*first, 10, 1);
  first->put(Family::object, "a", "1");
  commit(first);
  ASSERT_TRUE(engine->checkpoint().ok());
  ASSERT_TRUE(engine->compact().ok());
  const auto owned = engine->owned_blocks();
  for (const auto& path : files()) {
    rotten = path;
    if (const size_t at = read_file().find("log_start"); at != std::string::npos) {
      ASSERT_NO_FATAL_FAILURE(flip(at));
      break;
    }
  }
  ASSERT_TRUE(engine->drop_caches().ok());
  const auto damaged = engine->salvage_table([](Family, std::string_view) { ADD_FAILURE(); });
  ASSERT_TRUE(damaged.ok()) << damaged.status().what();
  ASSERT_EQ(damaged->size(), 1u);
  EXPECT_EQ(damaged->front().family, Family::super);
  auto last = std::make_shared<Txn>();
  last->put(Family::object, "b", "2");
  commit(last);
  ASSERT_NO_FATAL_FAILURE(crash_and_open());
  EXPECT_EQ(engine->owned_blocks(), owned);
  expect_data(data.extents, 1);
  EXPECT_EQ(get(Family::object, "a"), "1");
  EXPECT_EQ(get(Family::object, "b"), "2");
}

}  // namespace
}  // namespace tablestore
