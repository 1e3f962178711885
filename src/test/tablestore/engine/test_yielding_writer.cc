// Who writes a file of the table yields after each of its blocks.
#include <gtest/gtest.h>

#include <filesystem>

#include "os/tablestore/engine/table/yielding_writer.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table_properties.h"
#include "test/tablestore/engine/engine_fixture.h"
#include "test/tablestore/engine/test_directory.h"

namespace tablestore {
namespace {

std::shared_ptr<const rocksdb::TableProperties> properties_of(const std::string& path) {
  rocksdb::SstFileReader reader({});
  EXPECT_TRUE(reader.Open(path).ok());
  return reader.GetTableProperties();
}

TEST(YieldingWriter, YieldsAfterEachBlock) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/rows.sst";
  unsigned yields = 0;
  rocksdb::Options o;
  o.table_properties_collector_factories.push_back(make_yielding_writer([&] { ++yields; }));
  rocksdb::SstFileWriter writer({}, o);
  ASSERT_TRUE(writer.Open(path).ok());
  for (int i = 0; i < 10'000; ++i)
    ASSERT_TRUE(writer.Put(std::to_string(100'000 + i), std::string(100, 'v')).ok());
  ASSERT_TRUE(writer.Finish().ok());

  const auto properties = properties_of(path);
  EXPECT_GT(properties->num_data_blocks, 200u);
  EXPECT_EQ(yields, properties->num_data_blocks + 1);  // and one of the index
  EXPECT_EQ(properties->num_entries, 10'000u);
}

class YieldingEngineTest : public EngineFixture {};

TEST_F(YieldingEngineTest, EachFileOfTheTableWasWrittenSo) {
  ASSERT_NO_FATAL_FAILURE(format());
  ASSERT_NO_FATAL_FAILURE(open());
  const auto put_in_all_families = [&] {
    auto txn = std::make_shared<Txn>();
    for (const Family family : {Family::object, Family::omap}) txn->put(family, "k", "v");
    commit(txn);
    ASSERT_TRUE(engine->checkpoint().ok());
  };
  ASSERT_NO_FATAL_FAILURE(put_in_all_families());  // flushed,
  ASSERT_TRUE(engine->compact().ok());             // compacted,
  ASSERT_NO_FATAL_FAILURE(put_in_all_families());  // and flushed
  engine.reset();
  unsigned files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/table")) {
    if (entry.path().extension() != ".sst") continue;
    ++files;
    EXPECT_NE(properties_of(entry.path())->property_collectors_names.find("YieldingWriter"),
              std::string::npos)
        << entry.path();
  }
  EXPECT_GE(files, 4u);
}

}  // namespace
}  // namespace tablestore
