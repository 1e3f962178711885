// What a damaged table answers: an error, never other rows.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

class TableDamageTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    options.memtable_bytes = 64 << 20;
    options.table_options = "disable_auto_compactions=true;compression=kNoCompression";
    ASSERT_NO_FATAL_FAILURE(format());
    ASSERT_NO_FATAL_FAILURE(open());
  }
  // The files of the table in the order in which they were made.
  std::vector<std::filesystem::path> files() {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/table"))
      if (entry.path().extension() == ".sst") found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
  }
  static void flip_a_bit(const std::filesystem::path& path, uint64_t at) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(std::streamoff(at));
    const char byte = char(file.get());
    file.seekp(std::streamoff(at));
    file.put(char(byte ^ 1));
  }
  void damage_first_block_of_largest_file() {
    engine.reset();
    const auto all = files();
    const auto largest = std::ranges::max_element(
        all, {}, [](const auto& path) { return std::filesystem::file_size(path); });
    ASSERT_GT(std::filesystem::file_size(*largest), 100000u);
    flip_a_bit(*largest, 5000);
  }
};

TEST_F(TableDamageTest, AnIteratorThatMeetsARangeDeletionKeepsTheErrorOfAFile) {
  auto old = std::make_shared<Txn>();
  old->put(Family::omap, "k3", "deleted later");
  old->put(Family::omap, "k9", "stays");
  commit(old);
  ASSERT_TRUE(engine->checkpoint().ok());
  auto txn = std::make_shared<Txn>();
  txn->put(Family::omap, "big", std::string(200000, 'b'));
  txn->erase_range(Family::omap, "k2", "k7");
  commit(txn);
  ASSERT_TRUE(engine->close().ok());
  ASSERT_NO_FATAL_FAILURE(damage_first_block_of_largest_file());
  ASSERT_NO_FATAL_FAILURE(open());
  auto it = engine->iterate(Family::omap, "", "");
  for (it->seek_to_first(); it->valid(); it->next()) EXPECT_NE(it->key(), "k9");
  EXPECT_EQ(it->status().code(), EIO);
}

// Of three files or fewer, RocksDB by itself looks into all.
TEST_F(TableDamageTest, AFileThatCannotBeOpenedFailsNoLookupOfWhatItCannotHave) {
  for (const char* key : {"k1", "k5"}) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::omap, key, std::string(200000, 'v'));
    commit(txn);
    ASSERT_TRUE(engine->checkpoint().ok());
  }
  ASSERT_TRUE(engine->close().ok());
  engine.reset();
  std::vector<std::filesystem::path> large;
  for (const auto& path : files())
    if (std::filesystem::file_size(path) > 100000) large.push_back(path);
  ASSERT_EQ(large.size(), 2u);
  flip_a_bit(large[1], std::filesystem::file_size(large[1]) - 1);
  ASSERT_NO_FATAL_FAILURE(open());
  std::string value;
  EXPECT_EQ(engine->get(Family::omap, "k5", &value).status().code(), EIO);
  for (const char* key : {"a", "k1", "k9"}) {
    const auto found = engine->get(Family::omap, key, &value);
    EXPECT_TRUE(found.ok()) << key << ": " << found.status().what();
    if (found.ok()) {
      EXPECT_EQ(*found, std::string(key) == "k1");
    }
  }
}

// RocksDB opens sixteen files with the table, the others when they are read.
TEST_F(TableDamageTest, AnIteratorSurvivesAFileThatCannotBeOpened) {
  for (int i = 0; i < 20; ++i) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::omap, "a" + std::to_string(i), "");
    txn->erase_range(Family::omap, "k2", "k7");
    commit(txn);
    ASSERT_TRUE(engine->checkpoint().ok());
  }
  ASSERT_NO_FATAL_FAILURE(close_and_open());
  auto all = files();
  ASSERT_GT(all.size(), 30u);
  all.resize(all.size() / 2);  // the older ones
  for (const auto& path : all) flip_a_bit(path, std::filesystem::file_size(path) - 1);
  auto it = engine->iterate(Family::omap, "", "");
  it->seek_to_first();
  EXPECT_FALSE(it->valid());
  EXPECT_EQ(it->status().code(), EIO);
}

}  // namespace
}  // namespace tablestore
