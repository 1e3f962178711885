// Who writes a file of the table yields after each of its blocks.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "os/tablestore/engine/table/yielding_writer.h"
#include "os/tablestore/engine/thread.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table_properties.h"
#include "test/tablestore/engine/engine_fixture.h"
#include "test/tablestore/engine/slices.h"
#include "test/tablestore/engine/test_directory.h"

namespace {

std::atomic<unsigned> yields_of_flushes, yields_of_compactions;

}  // namespace

// In the place of the C library's, in all of this program.
extern "C" int sched_yield() noexcept {
  char name[16] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  if (name == std::string_view("rocksdb:high")) ++yields_of_flushes;
  if (name == std::string_view("rocksdb:low")) ++yields_of_compactions;
  return int(::syscall(SYS_sched_yield));
}

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
  EXPECT_EQ(yields, properties->num_data_blocks + 1);  // and that of the index
  EXPECT_EQ(properties->num_entries, 10'000u);
}

class YieldingEngineTest : public EngineFixture {
 protected:
  void put_and_flush() {
    auto txn = std::make_shared<Txn>();
    for (const Family family : {Family::object, Family::omap, Family::data})
      for (const char* key : {"a", "z"}) txn->put(family, key, "v");
    const int64_t one = 1;
    txn->add("Pcount", {&one, 1});
    commit(txn);
    ASSERT_TRUE(engine->checkpoint().ok());
  }
  std::set<std::string> files() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/table"))
      if (entry.path().extension() == ".sst") found.insert(entry.path());
    return found;
  }
  static std::set<std::string> families_of(const std::set<std::string>& files) {
    std::set<std::string> found;
    for (const auto& file : files) {
      const auto properties = properties_of(file);
      EXPECT_NE(properties->property_collectors_names.find("YieldingWriter"), std::string::npos);
      found.insert(properties->column_family_name);
    }
    return found;
  }
};

TEST_F(YieldingEngineTest, EachFileOfTheTableIsWrittenSo) {
  ASSERT_NO_FATAL_FAILURE(format());
  ASSERT_NO_FATAL_FAILURE(open());
  // Two of each family, of the same range: a compaction cannot just move them.
  ASSERT_NO_FATAL_FAILURE(put_and_flush());
  ASSERT_NO_FATAL_FAILURE(put_and_flush());
  const auto flushed = files();
  EXPECT_EQ(families_of(flushed).size(), families);
  ASSERT_TRUE(engine->compact().ok());
  auto compacted = files();
  for (const auto& file : flushed) compacted.erase(file);
  EXPECT_EQ(families_of(compacted).size(), families);
}

// As far as the kernel grants it.
TEST_F(YieldingEngineTest, ItsWritersTakeShortTurns) {
  ASSERT_NO_FATAL_FAILURE(format());
  ASSERT_NO_FATAL_FAILURE(open());
  ASSERT_NO_FATAL_FAILURE(put_and_flush());
  ASSERT_NO_FATAL_FAILURE(put_and_flush());
  ASSERT_TRUE(engine->compact().ok());
  uint64_t granted = 0;
  std::thread([&granted] {
    take_short_turns();
    granted = slice_ns(0);
  }).join();
  std::set<std::string> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream comm(task.path() / "comm");
    std::getline(comm, name);
    if (name != "rocksdb:high" && name != "rocksdb:low") continue;
    if (slice_ns(pid_t(std::stoi(task.path().filename()))) == granted) found.insert(name);
  }
  EXPECT_EQ(found, (std::set<std::string>{"rocksdb:high", "rocksdb:low"}));
}

// The first block of each thread is one after which it yields, however fast it was.
TEST_F(YieldingEngineTest, ItsWritersYield) {
  bool granted = false;
  std::thread([&granted] { granted = take_short_turns(); }).join();
  ASSERT_NO_FATAL_FAILURE(format());
  ASSERT_NO_FATAL_FAILURE(open());
  yields_of_flushes = yields_of_compactions = 0;
  ASSERT_NO_FATAL_FAILURE(put_and_flush());
  EXPECT_EQ(yields_of_flushes > 0, granted);
  EXPECT_EQ(yields_of_compactions, 0u);
  ASSERT_NO_FATAL_FAILURE(put_and_flush());
  ASSERT_TRUE(engine->compact().ok());
  EXPECT_EQ(yields_of_compactions > 0, granted);
}

}  // namespace
}  // namespace tablestore
