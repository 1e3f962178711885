// The rows of the table from which a recovery begins cannot be read: their copies take their place.
#include <fstream>

#include "rocksdb/options.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table_properties.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

class RowCopiesTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    options.table_options = "disable_auto_compactions=true;compression=kNoCompression";
    options.reporter.log = [this](Reporter::Level level, const std::string& line) {
      if (level <= Reporter::Level::warning) said += line + "\n";
    };
    ASSERT_NO_FATAL_FAILURE(format());
    ASSERT_NO_FATAL_FAILURE(open());
    for (int i = 0; i < 3; ++i) {
      commit_one();
      ASSERT_TRUE(engine->checkpoint().ok());
    }
    commit_one();  // in the log alone
    engine.reset();
  }
  void commit_one() {
    auto txn = std::make_shared<Txn>();
    const int64_t one = 1;
    written.push_back(write(*txn, 3, written.size()));
    txn->put(Family::object, "k" + std::to_string(written.size()), "v");
    txn->add("Pcount", {&one, 1});
    commit(txn);
  }
  // A byte of the block with the row, in each file of that family.
  void let_rot(const std::string& family) {
    int hit = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/table")) {
      if (entry.path().extension() != ".sst") continue;
      rocksdb::SstFileReader reader({});
      ASSERT_TRUE(reader.Open(entry.path()).ok());
      if (reader.GetTableProperties()->column_family_name != family) continue;
      std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      const size_t at = bytes.find("log_start");
      if (at == std::string::npos) continue;
      file.clear();
      file.seekp(std::streamoff(at));
      file.put('x');
      ASSERT_TRUE(file.good());
      ++hit;
    }
    ASSERT_GE(hit, 3);
  }
  void expect_whole() {
    for (size_t i = 0; i < written.size(); ++i) {
      EXPECT_EQ(get(Family::object, "k" + std::to_string(i + 1)), "v") << i;
      expect_data(written[i].extents, i);
    }
    const auto count = get(Family::super, "Pcount");
    ASSERT_TRUE(count);
    int64_t value = 0;
    std::memcpy(&value, count->data(), sizeof(value));
    EXPECT_EQ(value, int64_t(written.size())) << "rows are applied once";
  }

  std::vector<Written> written;
  std::string said;
};

TEST_F(RowCopiesTest, TakeThePlaceOfRowsThatCannotBeRead) {
  ASSERT_NO_FATAL_FAILURE(let_rot("default"));
  // "Pcount" is in the same block.
  auto opened = Engine::open(*disk, options);
  ASSERT_TRUE(opened.ok()) << opened.status().what();
  engine = opened.take();
  EXPECT_NE(said.find("the row log_start of the table cannot be read"), std::string::npos) << said;
  EXPECT_NE(said.find("the row applied of the table cannot be read"), std::string::npos) << said;
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ(get(Family::object, "k" + std::to_string(i + 1)), "v") << i;
    expect_data(written[i].extents, i);
  }
  // The next checkpoint has both again, above the damage.
  commit_one();
  ASSERT_TRUE(engine->checkpoint().ok());
  engine.reset();
  said.clear();
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(said.find("its copy takes its place"), std::string::npos) << said;
  EXPECT_EQ(get(Family::object, "k5"), "v");
}

TEST_F(RowCopiesTest, AreNotMissedWhereTheRowsAreThere) {
  ASSERT_NO_FATAL_FAILURE(let_rot("object"));
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(said.find("copy"), std::string::npos) << said;
  for (size_t i = 0; i < written.size(); ++i) expect_data(written[i].extents, i);
}

TEST_F(RowCopiesTest, ThatCannotBeReadEitherAreARefusal) {
  ASSERT_NO_FATAL_FAILURE(let_rot("default"));
  ASSERT_NO_FATAL_FAILURE(let_rot("object"));
  const auto opened = Engine::open(*disk, options);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), EIO);
  EXPECT_NE(opened.status().what().find("nor can its copy"), std::string::npos)
      << opened.status().what();
}

// Also after a compaction, and for rows that only replay has brought.
TEST_F(RowCopiesTest, AreOfTheSameAgeAsTheRows) {
  ASSERT_NO_FATAL_FAILURE(open());
  expect_whole();
  ASSERT_TRUE(engine->checkpoint().ok());
  ASSERT_TRUE(engine->compact().ok());
  commit_one();
  for (const char* name : {"\0applied", "\0log_start"}) {
    const std::string key = name[1] == 'a' ? std::string(name, 8) : std::string(name, 10);
    EXPECT_EQ(get(Family::super, key), get(Family::object, key)) << key.substr(1);
  }
  crash_and_open();
  expect_whole();
}

}  // namespace
}  // namespace tablestore
