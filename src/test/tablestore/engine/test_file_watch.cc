// Somebody else opens files of a store in use, and copies them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "engine_fixture.h"
#include "forbidden_call.h"
#include "os/tablestore/engine/io/file_watch.h"
#include "os/tablestore/engine/own_threads.h"
#include "os/tablestore/engine/troubles.h"
#include "test_directory.h"

namespace tablestore {
namespace {

// Waits for what another thread does.
bool comes_true(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class OpenElsewhere {
 public:
  explicit OpenElsewhere(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    EXPECT_GE(fd_, 0) << path;
  }
  ~OpenElsewhere() { ::close(fd_); }
  OpenElsewhere(const OpenElsewhere&) = delete;
  OpenElsewhere& operator=(const OpenElsewhere&) = delete;

 private:
  const int fd_;
};

class WatchedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    disk = open_file_disk(directory.path(), {}).take();
    file = disk->open("f", OpenMode::create_new).take();
    ASSERT_TRUE(file->write_zeroes(0, 1 << 20).ok());
    ASSERT_TRUE(file->flush().ok());
    if (file->unwritten()->size()) GTEST_SKIP() << "a flush takes all files along here";
  }
  std::string path() const { return directory.path() + "/f"; }

  TestDirectory directory;
  std::unique_ptr<Disk> disk;
  std::unique_ptr<File> file;
};

TEST_F(WatchedFileTest, AloneItNeedsNoFlushOfItsOwn) {
  for (bool look : {false, true, false}) {
    EXPECT_EQ(*file->watch(look), Sharing::none);
    EXPECT_FALSE(file->needs_own_flush());
  }
}

TEST_F(WatchedFileTest, NobodyGetsItOpenBeforeItIsNoticed) {
  ASSERT_EQ(*file->watch(false), Sharing::none);
  std::atomic<bool> noticed{false}, close_it{false};
  std::thread other([&] {
    const OpenElsewhere open(path());
    noticed = file->needs_own_flush();
    EXPECT_TRUE(comes_true([&] { return close_it.load(); }));
  });
  EXPECT_TRUE(comes_true([&] { return *file->watch(false) == Sharing::opened && noticed; }));
  EXPECT_TRUE(file->needs_own_flush());
  close_it = true;
  other.join();
  EXPECT_EQ(*file->watch(false), Sharing::none);
  EXPECT_FALSE(file->needs_own_flush());
}

TEST_F(WatchedFileTest, WhoHadItOpenBeforeIsNoticed) {
  {
    const OpenElsewhere open(path());
    EXPECT_EQ(*file->watch(false), Sharing::opened);
    EXPECT_TRUE(file->needs_own_flush());
    EXPECT_EQ(*file->watch(true), Sharing::opened);
  }
  EXPECT_EQ(*file->watch(false), Sharing::none);
  EXPECT_FALSE(file->needs_own_flush());
}

TEST_F(WatchedFileTest, WithoutLeasesOnlyItsExtentsTell) {
  std::thread([&] {
    forbid(__NR_fcntl, EACCES, F_SETLEASE);
    const OpenElsewhere open(path());
    for (bool look : {false, true}) EXPECT_EQ(*file->watch(look), Sharing::unguarded);
    EXPECT_FALSE(file->needs_own_flush());
  }).join();
}

// --- all files of a store

// Says what the test says.
class ToldFile : public File {
 public:
  explicit ToldFile(std::string path) : path_(std::move(path)) {}
  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override { return 0; }
  Status read(uint64_t, std::span<std::byte>) override { return {}; }
  Status write(uint64_t, std::span<const std::byte>) override { return {}; }
  Status flush() override { return {}; }
  Status allocate(uint64_t, uint64_t) override { return {}; }
  Status write_zeroes(uint64_t, uint64_t) override { return {}; }
  Status punch(uint64_t, uint64_t) override { return {}; }
  Result<std::vector<ByteRange>> unwritten(std::vector<ByteRange>*) override {
    return std::vector<ByteRange>{};
  }
  Result<Sharing> watch(bool look) override {
    ++watched;
    looked += look;
    if (broken) return Status(EIO, path_);
    return sharing;
  }

  Sharing sharing = Sharing::none;
  bool broken = false;
  std::atomic<unsigned> watched = 0, looked = 0;

 private:
  const std::string path_;
};

class FileWatchTest : public testing::Test {
 protected:
  FileWatchTest() {
    for (int i = 0; i < 20; ++i)
      files.push_back(std::make_unique<ToldFile>("containers/00/" + std::to_string(i)));
  }
  FileWatch::Parts parts() {
    return {[this](const std::function<Status(File&)>& visitor) -> Status {
              for (auto& file : files)
                if (Status s = visitor(*file); !s.ok()) return s;
              return {};
            },
            threads, troubles, [this](const std::string& line) { warnings.push_back(line); },
            [this](const Status& s) { error = s; }};
  }

  OwnThreads threads;
  Troubles troubles;
  std::vector<std::unique_ptr<ToldFile>> files;
  std::vector<std::string> warnings;
  Status error;
};

TEST_F(FileWatchTest, ASharedFileIsATroubleForAsLongAsItIsShared) {
  FileWatch watch(parts());
  ASSERT_TRUE(watch.look().ok());
  EXPECT_TRUE(troubles.all().empty());
  files[7]->sharing = Sharing::shared;
  files[3]->sharing = Sharing::opened;
  ASSERT_TRUE(watch.look().ok());
  ASSERT_TRUE(watch.look().ok());
  ASSERT_EQ(troubles.all().count("FS_SHARED"), 1u);
  const std::string line = troubles.all()["FS_SHARED"];
  EXPECT_TRUE(line.starts_with("containers/00/7: ")) << line;
  EXPECT_EQ(warnings, std::vector<std::string>{line});
  files[12]->sharing = Sharing::shared;
  ASSERT_TRUE(watch.look().ok());
  EXPECT_TRUE(troubles.all()["FS_SHARED"].starts_with("containers/00/12 and 1 more file"));
  files[7]->sharing = files[12]->sharing = Sharing::none;
  ASSERT_TRUE(watch.look().ok());
  EXPECT_TRUE(troubles.all().empty());
}

TEST_F(FileWatchTest, FilesThatNobodyGuardsAreToldOfOnce) {
  FileWatch watch(parts());
  files[2]->sharing = files[4]->sharing = Sharing::unguarded;
  ASSERT_TRUE(watch.look().ok());
  ASSERT_TRUE(watch.look().ok());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("no leases on 2 of 20 files"), std::string::npos) << warnings[0];
  EXPECT_TRUE(troubles.all().empty());
}

TEST_F(FileWatchTest, LooksAtTheExtentsOfAllFilesInTurn) {
  FileWatch watch(parts());
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(watch.look().ok());
  for (const auto& file : files) {
    EXPECT_EQ(file->watched, 6u);
    EXPECT_EQ(file->looked, 2u) << file->path();
  }
}

TEST_F(FileWatchTest, ADiskThatFailsIsReported) {
  files[5]->broken = true;
  {
    FileWatch watch(parts());
    watch.start();
    EXPECT_TRUE(comes_true([&] { return files[5]->watched > 0; }));
  }
  EXPECT_EQ(error.code(), EIO);
}

// --- a whole engine

class SharedStoreTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    options.segment_bytes = 1 << 20;     // a group may be larger
    options.provision_bytes = 64 << 20;  // what is written is no first touch
    options.prepare_bytes_per_second = 0;  // its flushes are counted as well
    options.vouch_after_ms = 0;            // these too
    options.log_bytes = options.memtable_bytes = 64 << 20;  // no checkpoint by itself
    options.troubles = std::make_shared<Troubles>();
    format();
    open();
    if (first_of("containers").empty()) GTEST_SKIP();
  }
  std::string first_of(const std::string& below) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory + "/" + below))
      if (entry.is_regular_file()) return entry.path();
    return {};
  }
  // The flushes of containers that a commit with data needs.
  uint64_t container_flushes() {
    const uint64_t before = engine->counters().container_flushes;
    auto txn = std::make_shared<Txn>();
    for (const Extent& old : written.extents) txn->free(old);
    written = write(*txn, 1024, ++seed);
    commit(txn);
    expect_data(written.extents, seed);
    return engine->counters().container_flushes - before;
  }
  uint64_t segments() const { return options.log_bytes / options.segment_bytes; }
  // Those of a commit of rows that is larger than a segment of the log.
  uint64_t flushes_of_a_long_group() {
    const uint64_t before = engine->counters().flushes;
    auto txn = std::make_shared<Txn>();
    for (int i = 0; i < 4; ++i)
      txn->put(Family::object, std::to_string(i), std::string(400 << 10, 'x'));
    commit(txn);
    return engine->counters().flushes - before;
  }
  // Where nobody else has any of them open, one is enough. The watch may take who looks for a name
  // for somebody who has it open.
  bool one_flush_is_enough() {
    return comes_true([this] { return flushes_of_a_long_group() == 1; });
  }

  Written written;
  uint64_t seed = 0;
};

TEST_F(SharedStoreTest, ACommitFlushesTheContainersThatSomebodyElseHasOpen) {
  if (container_flushes()) GTEST_SKIP() << "nothing is written ahead here";
  std::vector<std::unique_ptr<OpenElsewhere>> opened;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory + "/containers"))
    if (entry.is_regular_file())
      opened.push_back(std::make_unique<OpenElsewhere>(entry.path()));
  EXPECT_GE(container_flushes(), 1u);
  EXPECT_GE(container_flushes(), 1u);
  opened.clear();
  EXPECT_TRUE(comes_true([&] { return container_flushes() == 0; }));
}

// A group that crosses from one segment into the next: the flush of one covers the other only where
// nobody else has that open.
TEST_F(SharedStoreTest, ACommitFlushesAllSegmentsThatSomebodyElseHasOpen) {
  if (container_flushes()) GTEST_SKIP() << "nothing is written ahead here";
  ASSERT_TRUE(one_flush_is_enough());
  std::vector<std::unique_ptr<OpenElsewhere>> opened;
  for (uint64_t n = 0; n < segments(); ++n)
    opened.push_back(std::make_unique<OpenElsewhere>(directory + "/log/" + std::to_string(n)));
  EXPECT_GT(flushes_of_a_long_group(), 1u);
}

// Who opens a store that runs waits for a look of the watch, not until the kernel takes the leases.
TEST_F(SharedStoreTest, AStoreThatRunsElsewhereIsRefusedSoon) {
  unsigned break_seconds = 0;
  ASSERT_TRUE(bool(std::ifstream("/proc/sys/fs/lease-break-time") >> break_seconds));
  ASSERT_GT(break_seconds, 0u);
  const auto other_disk = open_disk();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Engine::open(*other_disk, options).status().code(), EBUSY);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(break_seconds));
}

// The flush of a segment that somebody else has open covers no other one.
TEST_F(SharedStoreTest, ACommitFlushesTheSegmentBesideOneThatSomebodyElseHasOpen) {
  if (container_flushes()) GTEST_SKIP() << "nothing is written ahead here";
  ASSERT_TRUE(one_flush_is_enough());
  uint64_t position = 8 * block_bytes;  // not the last blocks of a segment, before it begins
  for (const auto& [name, value] : engine->statistics())
    if (name == "log_bytes") position += value;
  const uint64_t segment = position / options.segment_bytes % segments();
  const OpenElsewhere opened(directory + "/log/" + std::to_string(segment));
  EXPECT_GT(flushes_of_a_long_group(), 1u);
}

// What `cp --sparse=always`, rsync -S and tar -S make of a stopped store.
TEST_F(SharedStoreTest, AFullCopyThatWasRestoredSparselyWorks) {
  auto txn = std::make_shared<Txn>();
  txn->put(Family::object, "a", "1");
  const Written before = write(*txn, 700, 5);
  commit(txn);
  ASSERT_TRUE(engine->close().ok());
  engine.reset();
  disk.reset();
  const std::string original = directory;
  directory += ".copy";
  ASSERT_EQ(std::system(("cp -a --sparse=always " + original + " " + directory).c_str()), 0);
  std::filesystem::remove_all(original);
  disk = open_disk();
  std::vector<std::string> warnings;
  options.reporter.log = [&](Reporter::Level level, const std::string& line) {
    if (level == Reporter::Level::warning && line.find("log/") != std::string::npos)
      warnings.push_back(line);
  };
  open();
  EXPECT_EQ(get(Family::object, "a"), "1");
  expect_data(before.extents, 5);
  for (int lap = 0; lap < 3; ++lap) container_flushes();
  engine.reset();
  auto segment = disk->open("log/1", OpenMode::read_only);
  ASSERT_TRUE(segment.ok());
  if ((*segment)->unwritten()->size()) {
    EXPECT_EQ((*segment)->unwritten()->front().length, options.segment_bytes);  // cannot tell
  } else {
    EXPECT_FALSE(warnings.empty());
  }
  open();
  expect_data(before.extents, 5);
  expect_data(written.extents, seed);
}

}  // namespace
}  // namespace tablestore
