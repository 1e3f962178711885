// What becomes of a store whose table cannot make a file or a name durable.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "disk_wrapper.h"
#include "os/tablestore/engine/table/failed_syncs.h"
#include "rocksdb/file_system.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// Which syncs of the table fail from now on.
struct Failing {
  std::mutex mutex;
  std::string what;  // "file", "range" or "directory", or "names" elsewhere; empty: none
  std::string path;  // a part of it
  IOStatus status;
  std::chrono::milliseconds takes{0};

  IOStatus of(const std::string& this_one, const std::string& its_path) {
    std::lock_guard lock(mutex);
    if (this_one != what || its_path.find(path) == std::string::npos) return IOStatus::OK();
    std::this_thread::sleep_for(takes);
    return status;
  }
};

class FailingFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FailingFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path, Failing& failing)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(std::move(path)), failing_(failing) {}
  IOStatus Sync(const IOOptions& o, IODebugContext* d) override {
    const IOStatus s = failing_.of("file", path_);
    return s.ok() ? FSWritableFileOwnerWrapper::Sync(o, d) : s;
  }
  IOStatus Fsync(const IOOptions& o, IODebugContext* d) override {
    const IOStatus s = failing_.of("file", path_);
    return s.ok() ? FSWritableFileOwnerWrapper::Fsync(o, d) : s;
  }
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& o,
                     IODebugContext* d) override {
    const IOStatus s = failing_.of("range", path_);
    return s.ok() ? FSWritableFileOwnerWrapper::RangeSync(offset, bytes, o, d) : s;
  }

 private:
  const std::string path_;
  Failing& failing_;
};

class FailingDirectory : public rocksdb::FSDirectoryWrapper {
 public:
  FailingDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, std::string path,
                   Failing& failing)
      : FSDirectoryWrapper(std::move(directory)), path_(std::move(path)), failing_(failing) {}
  IOStatus FsyncWithDirOptions(const IOOptions& o, IODebugContext* d,
                               const rocksdb::DirFsyncOptions& reason) override {
    const IOStatus s = failing_.of("directory", path_);
    return s.ok() ? FSDirectoryWrapper::FsyncWithDirOptions(o, d, reason) : s;
  }

 private:
  const std::string path_;
  Failing& failing_;
};

class FailingFs : public rocksdb::FileSystemWrapper {
 public:
  FailingFs(const std::shared_ptr<FileSystem>& fs, Failing& failing)
      : FileSystemWrapper(fs), failing_(failing) {}
  const char* Name() const override { return "failing"; }
  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& o,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* d) override {
    const IOStatus s = target()->NewWritableFile(path, o, file, d);
    if (s.ok()) *file = std::make_unique<FailingFile>(std::move(*file), path, failing_);
    return s;
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions& o,
                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                        IODebugContext* d) override {
    const IOStatus s = target()->NewDirectory(path, o, directory, d);
    if (s.ok())
      *directory = std::make_unique<FailingDirectory>(std::move(*directory), path, failing_);
    return s;
  }

 private:
  Failing& failing_;
};

// Another Disk, which outlives it, but for the table's syncs.
class FailingSyncsDisk : public DiskWrapper {
 public:
  FailingSyncsDisk(Disk& disk, Failing& failing) : DiskWrapper(disk), failing_(failing) {}
  std::shared_ptr<rocksdb::FileSystem> table_fs() override {
    return std::make_shared<FailingFs>(DiskWrapper::table_fs(), failing_);
  }
  Status sync_dir(const std::string& dir) override {
    const IOStatus s = failing_.of("names", dir);
    return s.ok() ? DiskWrapper::sync_dir(dir) : Status(EIO, s.ToString());
  }

 private:
  Failing& failing_;
};

class FailedSyncsTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    real_disk_ = std::move(disk);
    disk = std::make_unique<FailingSyncsDisk>(*real_disk_, failing_);
    options.table_options = "disable_auto_compactions=true;compression=kNoCompression";
    options.reporter.log = [](Reporter::Level, const std::string&) {};
    options.reporter.fatal = [this](const std::string& why) {
      std::lock_guard lock(mutex_);
      fatal_.push_back(why);
    };
  }
  void TearDown() override {
    engine.reset();
    disk.reset();
    disk = std::move(real_disk_);
    EngineFixture::TearDown();
  }
  void fail(const std::string& what, const IOStatus& status, const std::string& path = "table",
            std::chrono::milliseconds takes = {}) {
    std::lock_guard lock(failing_.mutex);
    failing_.takes = takes;
    failing_.what = what;
    failing_.path = path;
    failing_.status = status;
  }
  // Each of them goes through the log: one that is too large for it would be flushed at once.
  void write_rows() {
    for (char c = 'a'; c < 'i'; ++c) {
      auto txn = std::make_shared<Txn>();
      txn->put(Family::omap, std::string(1, c), std::string(400000, c));
      commit(txn);
    }
  }
  std::vector<std::string> fatal() {
    std::lock_guard lock(mutex_);
    return fatal_;
  }
  // Of a checkpoint, which comes back with an error.
  void expect_fatal_at_once(const std::string& what,
                            const IOStatus& status = IOStatus::IOError("sync fails")) {
    format();
    open();
    write_rows();
    fail(what, status);
    EXPECT_EQ(engine->checkpoint().code(), EIO);
    ASSERT_FALSE(fatal().empty());
    EXPECT_NE(fatal()[0].find("cannot flush: table: sync of "), std::string::npos) << fatal()[0];
  }

 private:
  std::unique_ptr<Disk> real_disk_;
  Failing failing_;
  std::mutex mutex_;
  std::vector<std::string> fatal_;
};

TEST_F(FailedSyncsTest, OfAFileStopsTheStoreAtOnce) { expect_fatal_at_once("file"); }
TEST_F(FailedSyncsTest, OfAPartOfAFileStopsTheStoreAtOnce) { expect_fatal_at_once("range"); }
TEST_F(FailedSyncsTest, OfADirectoryStopsTheStoreAtOnce) { expect_fatal_at_once("directory"); }
// Names are not written anew, as files are, and no later sync says that these are durable.
TEST_F(FailedSyncsTest, OfADirectoryThatFindsNoSpaceStopsTheStoreToo) {
  expect_fatal_at_once("directory", IOStatus::NoSpace("sync fails"));
}

// It may have dropped what a group has written, and the flush of the group tells nothing of it. The
// end of a process takes its time.
TEST_F(FailedSyncsTest, NothingIsAcknowledgedBetweenAFailureAndTheEnd) {
  options.end_patience_ms = 200;
  format();
  open();
  write_rows();
  fail("file", IOStatus::IOError("sync fails"));
  EXPECT_EQ(engine->checkpoint().code(), EIO);
  ASSERT_FALSE(fatal().empty());
  fail("", IOStatus::OK());
  class Told : public Txn {
   public:
    explicit Told(std::atomic<bool>& told) : told_(told) {}
    void durable() noexcept override { told_ = true; }

   private:
    std::atomic<bool>& told_;
  };
  std::atomic<bool> told = false;
  auto txn = std::make_shared<Told>(told);
  txn->put(Family::object, "key", "value");
  engine->submit(txn);
  EXPECT_FALSE(engine->wait_durable());
  EXPECT_FALSE(told);
  // Nor does a group that comes then end the process with words of its own.
  auto next = std::make_shared<Told>(told);
  next->put(Family::object, "key", "another");
  engine->submit(next);
  EXPECT_FALSE(engine->wait_durable());
  EXPECT_FALSE(told);
}

// A flush of something else has failed. What a sync of the table seems to have made durable then
// may be gone with what the disk has dropped: the log has to stay, and the files whose rows were
// written anew.
TEST_F(FailedSyncsTest, NothingIsGivenUpBehindAFailureElsewhere) {
  options.end_patience_ms = 200;
  format();
  open();
  for (int i = 0; i < 2; ++i) {
    write_rows();
    ASSERT_TRUE(engine->checkpoint().ok());
  }
  write_rows();
  fail("names", IOStatus::IOError("sync fails"), "containers");
  EXPECT_FALSE(engine->reserve(1 << 20).ok());
  ASSERT_FALSE(fatal().empty());
  fail("", IOStatus::OK());
  const auto log_used = [&] {
    for (const auto& [name, value] : engine->statistics())
      if (name == "log_used_bytes") return value;
    return uint64_t(0);
  };
  const uint64_t used = log_used();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/table"))
    if (entry.path().extension() == ".sst") files.push_back(entry.path());
  ASSERT_GE(files.size(), 2u);
  EXPECT_FALSE(engine->checkpoint().ok());
  EXPECT_FALSE(engine->compact().ok());
  EXPECT_EQ(log_used(), used);
  for (const auto& file : files) EXPECT_TRUE(std::filesystem::exists(file)) << file;
}

TEST(FailedSyncs, BehindAFailureNoSyncSucceedsAndNobodyIsToldOfThat) {
  FailedSyncs syncs;
  std::atomic<bool> is_ending = false;
  int told = 0;
  EXPECT_TRUE(syncs.tell([&](const Status&) { ++told; }, &is_ending).ok());
  EXPECT_TRUE(syncs.noted("a file", IOStatus::OK()).ok());
  is_ending = true;
  EXPECT_TRUE(syncs.noted("a file", IOStatus::OK()).IsIOError());
  is_ending = false;
  EXPECT_TRUE(syncs.noted("a file", IOStatus::OK()).ok());
  EXPECT_EQ(told, 0);
  EXPECT_FALSE(syncs.noted("a file", IOStatus::IOError()).ok());
  EXPECT_TRUE(syncs.noted("another", IOStatus::OK()).IsIOError());
  EXPECT_EQ(told, 1);
}

// Nobody asks how a compaction has ended.
TEST_F(FailedSyncsTest, OfACompactionStopsTheStoreAtOnce) {
  format();
  open();
  for (int i = 0; i < 2; ++i) {
    write_rows();
    ASSERT_TRUE(engine->checkpoint().ok());
  }
  fail("file", IOStatus::IOError("sync fails"));
  EXPECT_FALSE(engine->compact().ok());
  EXPECT_FALSE(fatal().empty());
}

TEST_F(FailedSyncsTest, OfAFullFileSystemIsNoReasonToStop) {
  format();
  open();
  write_rows();
  fail("file", IOStatus::NoSpace("sync fails"));
  EXPECT_EQ(engine->checkpoint().code(), ENOSPC);
  EXPECT_TRUE(fatal().empty());
}

// The file system says that it has space, so that the ballast could be made again each time.
TEST_F(FailedSyncsTest, OfAFileSystemThatIsFullerThanItSaysAreToldAtLast) {
  format();
  open();
  write_rows();
  // Longer than it takes to make the ballast.
  fail("file", IOStatus::NoSpace("sync fails"), "table", std::chrono::milliseconds(300));
  EXPECT_EQ(engine->checkpoint().code(), ENOSPC);
  EXPECT_TRUE(fatal().empty());
}

// RocksDB keeps its options for people, and says nothing where it cannot.
TEST_F(FailedSyncsTest, OfWhatRocksDbCanDoWithoutIsARefusalBeforeAnythingIsAcknowledged) {
  fail("file", IOStatus::IOError("sync fails"), "OPTIONS");
  EXPECT_EQ(Engine::format(*disk, options).code(), EIO);
  fail("", IOStatus::OK());
  format();
  fail("file", IOStatus::IOError("sync fails"), "OPTIONS");
  EXPECT_EQ(Engine::open(*disk, options).status().code(), EIO);
  fail("", IOStatus::OK());
  open();
  EXPECT_TRUE(fatal().empty());
}

// Written and flushed is what has its space already, unless a thin volume below has promised it.
TEST(WhyItStops, SaysWhatToDo) {
  EXPECT_NE(why_it_stops(EIO).find("replace the disk"), std::string::npos);
  for (const int lack : {ENOSPC, EDQUOT}) {
    EXPECT_EQ(why_it_stops(lack).find("replace the disk"), std::string::npos);
    EXPECT_NE(why_it_stops(lack).find("make room there"), std::string::npos);
  }
}

}  // namespace
}  // namespace tablestore
