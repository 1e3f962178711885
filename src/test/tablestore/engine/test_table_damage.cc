// What a damaged table answers: an error, never other rows.
#include <fstream>
#include <iterator>

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
  // Flips a bit in the first block of the largest table file.
  void damage_largest_file() {
    engine.reset();
    std::filesystem::path largest;
    uintmax_t most = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/table"))
      if (entry.path().extension() == ".sst" && entry.file_size() > most)
        largest = entry.path(), most = entry.file_size();
    ASSERT_GT(most, 100000u);
    std::fstream file(largest, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(5000);
    const char byte = char(file.get());
    file.seekp(5000);
    file.put(char(byte ^ 1));
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
  ASSERT_NO_FATAL_FAILURE(damage_largest_file());
  ASSERT_NO_FATAL_FAILURE(open());
  auto it = engine->iterate(Family::omap, "", "");
  for (it->seek_to_first(); it->valid(); it->next()) EXPECT_NE(it->key(), "k9");
  EXPECT_EQ(it->status().code(), EIO);
}

}  // namespace
}  // namespace tablestore
