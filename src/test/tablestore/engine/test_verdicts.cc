// Which files of the table count as damaged, and for how long.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/engine/table/table_damage.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/experimental.h"
#include "test_directory.h"

namespace tablestore {
namespace {

// Whoever looks at a file asks for its size first.
class HeldEnv : public rocksdb::EnvWrapper {
 public:
  HeldEnv() : EnvWrapper(rocksdb::Env::Default()) {}
  const char* Name() const override { return "tablestore.held"; }
  rocksdb::Status GetFileSize(const std::string& path, uint64_t* bytes) override {
    if (const auto f = std::exchange(before, nullptr)) f();
    return EnvWrapper::GetFileSize(path, bytes);
  }
  std::function<void()> before;  // once
};

class VerdictTest : public testing::Test {
 protected:
  void SetUp() override {
    rocksdb::Options o;
    o.create_if_missing = true;
    o.disable_auto_compactions = true;
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(o, directory.path(), &opened).ok());
    db.reset(opened);
    ASSERT_TRUE(db->Put({}, "key", "value").ok());
    ASSERT_TRUE(db->Flush({}).ok());
    std::vector<rocksdb::LiveFileMetaData> files;
    db->GetLiveFilesMetaData(&files);
    ASSERT_EQ(files.size(), 1u);
    number = files[0].file_number;
    path = files[0].directory + "/" + files[0].relative_filename;
    error = rocksdb::Status::Corruption("a block of " + path);
  }

  TestDirectory directory;
  std::unique_ptr<rocksdb::DB> db;
  uint64_t number = 0;
  std::string path;
  rocksdb::Status error;
  HeldEnv env;
  TableDamage damage{env, directory.path(), std::make_shared<Troubles>(),
                     Reporter{[](Reporter::Level, const std::string&) {}, {}}};
};

// A controller that fails for a moment fails many readers. Each of them has met one error.
TEST_F(VerdictTest, ReadersWhoMeetOneErrorTogetherCondemnNothing) {
  constexpr unsigned readers = 12;
  std::atomic<unsigned> met{0};
  // The first looks at the file until all have met theirs, and some more, so that they wait for it.
  env.before = [&met] {
    while (met < readers) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  std::vector<std::thread> threads;
  std::atomic<unsigned> sound{0};
  for (unsigned i = 0; i < readers; ++i)
    threads.emplace_back([&] {
      ++met;
      sound += damage.met(*db, error);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sound, readers);
  EXPECT_EQ(damage.files(), 0u);
}

TEST_F(VerdictTest, AReaderWhoMeetsItAgainAndAgainCondemnsTheFile) {
  unsigned sound = 0;
  while (sound < 100 && damage.met(*db, error)) ++sound;
  EXPECT_EQ(sound, read_tries - 1);
  EXPECT_EQ(damage.files(), 1u);
}

TEST_F(VerdictTest, WhatIsCondemnedKeepsCompactionsOutUntilItIsGone) {
  while (damage.met(*db, error)) {
  }
  ASSERT_EQ(damage.files(), 1u);
  EXPECT_EQ(damage.begin_compaction(*db).code(), EIO);
  // RocksDB removes none that is kept out.
  using namespace rocksdb::experimental;
  ASSERT_TRUE(SetFileDamage(db.get(), number, FileDamage::kNone).ok());
  ASSERT_TRUE(db->DeleteFile(std::filesystem::path(path).filename()).ok());
  EXPECT_EQ(damage.begin_compaction(*db).code(), 0);
  EXPECT_EQ(damage.files(), 0u);
  damage.end_compaction(*db);
}

}  // namespace
}  // namespace tablestore
