// What this store asks of RocksDB's recovery from an error of the disk (patches/20.2/0035 to 0037,
// 0041, 0049).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/listener.h"
#include "test_directory.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

// Flushes that RocksDB has scheduled do not begin before they may.
class HeldFlushes : public rocksdb::EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;
  const char* Name() const override { return "HeldFlushes"; }
  void Schedule(void (*job)(void*), void* of, Priority priority, void* tag,
                void (*unschedule)(void*)) override {
    std::lock_guard lock(mutex_);
    if (held_ && priority == Priority::HIGH)
      waiting_.push_back([=, this] { target()->Schedule(job, of, priority, tag, unschedule); });
    else
      target()->Schedule(job, of, priority, tag, unschedule);
  }
  void hold() {
    std::lock_guard lock(mutex_);
    held_ = true;
  }
  // How many were held up.
  size_t let_go() {
    std::lock_guard lock(mutex_);
    held_ = false;
    for (auto& schedule : waiting_) schedule();
    return std::exchange(waiting_, {}).size();
  }

 private:
  std::mutex mutex_;
  bool held_ = false;
  std::vector<std::function<void()>> waiting_;
};

// No room for what is named so.
class FullFor : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "FullFor"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* dbg) override {
    const char* none_of = refused;
    if (none_of && path.find(none_of) != std::string::npos)
      return rocksdb::IOStatus::NoSpace(path, "none");
    return FileSystemWrapper::NewWritableFile(path, options, result, dbg);
  }
  std::atomic<const char*> refused = nullptr;
};

class NoRecoveryOfItsOwn : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* recovers) override {
    *recovers = false;
  }
};

class RocksdbResumeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rocksdb::Options o;
    o.env = env.get();
    o.create_if_missing = true;
    o.atomic_flush = true;
    o.max_manifest_file_size = 1;
    o.disable_auto_compactions = true;
    o.listeners.push_back(std::make_shared<NoRecoveryOfItsOwn>());
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(o, directory.path() + "/table", &raw).ok());
    db.reset(raw);
  }
  void put(const std::string& key) {
    rocksdb::WriteOptions o;
    o.disableWAL = true;
    const auto s = db->Put(o, key, "value of " + key);
    ASSERT_TRUE(s.ok()) << s.ToString();
  }
  rocksdb::Status flush(bool wait) {
    rocksdb::FlushOptions o;
    o.wait = wait;
    o.allow_write_stall = true;
    return db->Flush(o);
  }
  // Of the same keys.
  void make_two_files() {
    for (int file = 0; file < 2; ++file) {
      put("a");
      put("b");
      ASSERT_TRUE(flush(true).ok());
    }
  }
  rocksdb::Status compact() {
    const rocksdb::Slice first("a"), last("b");
    return db->CompactRange(rocksdb::CompactRangeOptions(), &first, &last);
  }
  size_t table_files() {
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path() + "/table"))
      files += entry.path().extension() == ".sst";
    return files;
  }
  template <typename Call>
  rocksdb::Status in_time(Call call) {
    auto outcome = std::async(std::launch::async, call);
    if (outcome.wait_for(10min) != std::future_status::ready) {
      std::fputs("it waits for ever\n", stderr);
      std::abort();  // nothing ends it
    }
    return outcome.get();
  }

  TestDirectory directory;
  std::shared_ptr<FullFor> files =
      std::make_shared<FullFor>(rocksdb::FileSystem::Default());
  std::unique_ptr<rocksdb::Env> full_env = rocksdb::NewCompositeEnv(files);
  std::unique_ptr<HeldFlushes> env = std::make_unique<HeldFlushes>(full_env.get());
  std::unique_ptr<rocksdb::DB> db;
};

// A flush that begins while nothing may be done is done by the recovery, with all that came later.
TEST_F(RocksdbResumeTest, WaitsForNoFlushThatWasDropped) {
  make_two_files();
  env->hold();
  put("y");
  ASSERT_TRUE(flush(false).ok());
  files->refused = "/MANIFEST-";
  EXPECT_FALSE(compact().ok());
  EXPECT_EQ(env->let_go(), 1u);
  std::this_thread::sleep_for(100ms);  // it begins
  files->refused = nullptr;
  // What waits for the recovery may fail once more, before the recovery itself has begun.
  const auto resumed = in_time([&] {
    const auto first_time = db->Resume();
    return first_time.ok() ? first_time : db->Resume();
  });
  EXPECT_TRUE(resumed.ok()) << resumed.ToString();
  put("z");
  const auto flushed = in_time([&] { return flush(true); });
  EXPECT_TRUE(flushed.ok()) << flushed.ToString();
  uint64_t left = 1;
  EXPECT_TRUE(db->GetIntProperty(rocksdb::DB::Properties::kNumImmutableMemTable, &left));
  EXPECT_EQ(left, 0u);
}

// A compaction that had no space stops nothing, and a flush with it neither.
TEST_F(RocksdbResumeTest, IsNotWhatAFlushAfterACompactionNeeds) {
  make_two_files();
  files->refused = ".sst";
  EXPECT_FALSE(compact().ok());
  files->refused = nullptr;
  put("z");
  const auto flushed = in_time([&] { return flush(true); });
  EXPECT_TRUE(flushed.ok()) << flushed.ToString();
}

// What has passed is not given to who has to wait.
TEST_F(RocksdbResumeTest, ForgetsThatACompactionHadNoSpace) {
  make_two_files();
  files->refused = ".sst";
  EXPECT_FALSE(compact().ok());
  files->refused = nullptr;
  ASSERT_TRUE(db->Resume().ok());
  env->hold();
  for (int memtable = 0; memtable < 2; ++memtable) {  // as many as there may be
    put("y");
    ASSERT_TRUE(flush(false).ok());
  }
  rocksdb::WriteOptions at_once;
  at_once.disableWAL = true;
  at_once.no_slowdown = true;
  const std::string why = db->Put(at_once, "z", "").ToString();
  EXPECT_NE(why.find("Write stall"), std::string::npos) << why;
  env->let_go();
  const auto flushed = in_time([&] { return flush(true); });
  EXPECT_TRUE(flushed.ok()) << flushed.ToString();
}

// What a failed compaction has written goes before the flush of all looks for space, and need not
// wait until there is enough for that.
TEST_F(RocksdbResumeTest, GivesSpaceBackBeforeItNeedsSome) {
  make_two_files();
  put("y");
  files->refused = ".dbtmp";  // CURRENT cannot be replaced: nobody knows whether it was
  EXPECT_FALSE(compact().ok());
  EXPECT_EQ(table_files(), 3u);
  files->refused = ".sst";
  const auto without_space = in_time([&] { return db->Resume(); });
  EXPECT_FALSE(without_space.ok());
  EXPECT_EQ(table_files(), 2u);
  files->refused = nullptr;
  const auto resumed = in_time([&] { return db->Resume(); });
  EXPECT_TRUE(resumed.ok()) << resumed.ToString();
  std::string value;
  EXPECT_TRUE(db->Get(rocksdb::ReadOptions(), "a", &value).ok());
  EXPECT_TRUE(db->Get(rocksdb::ReadOptions(), "y", &value).ok());
}

}  // namespace
}  // namespace tablestore
