// More files than a process may have open: those that nobody uses are parked.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "test/tablestore/engine/engine_fixture.h"
#include "test/tablestore/engine/forbidden_call.h"
#include "test/tablestore/engine/test_directory.h"

namespace tablestore {
namespace {

namespace fs = std::filesystem;

// Descriptors of this process for what lies below a directory.
unsigned open_below(const std::string& directory) {
  const std::string prefix = fs::canonical(directory).string() + "/";
  unsigned open = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    open += fs::read_symlink(entry.path(), gone).string().starts_with(prefix);
  }
  return open;
}

// No more descriptors than the process has, and `more`, while it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(unsigned more) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = ::open("/", O_RDONLY | O_CLOEXEC);
    ::close(next);
    const struct rlimit limit = {rlim_t(next) + more, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  struct rlimit before_;
};

// For the calling thread: see forbid().
void forbid_flushes(unsigned error) {
  for (const unsigned system_call : {__NR_fdatasync, __NR_fsync}) forbid(system_call, error);
}

class OpenFilesTest : public testing::Test {
 protected:
  static constexpr size_t open_max = 2;

  void open_disk(size_t max) {
    FileDiskOptions options;
    options.parkable_open_max = max;
    options.lock_wait_ms = 50;
    disk = open_file_disk(directory.path(), options).take();
  }
  // Files of one block, each with its number in it.
  void make(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      auto made = disk->open(std::to_string(i), OpenMode::create_new);
      ASSERT_TRUE(made.ok()) << made.status().what();
      files.push_back(made.take());
      files[i]->let_park();
      const Status s = files[i]->write(0, filled(uint8_t(i)).span());
      ASSERT_TRUE(s.ok()) << s.what();
    }
  }
  static BlockMemory filled(uint8_t value) {
    BlockMemory memory(block_bytes);
    std::memset(memory.data(), value, memory.size());
    return memory;
  }
  static void expect(File& file, uint8_t value) {
    BlockMemory found(block_bytes);
    const Status s = file.read(0, found.span());
    ASSERT_TRUE(s.ok()) << s.what();
    EXPECT_EQ(uint8_t(found.data()[0]), value) << file.path();
  }
  std::string path(unsigned i) const { return directory.path() + "/" + std::to_string(i); }
  unsigned open() const { return open_below(directory.path()); }

  TestDirectory directory;
  std::unique_ptr<Disk> disk;
  std::vector<std::unique_ptr<File>> files;
};

TEST_F(OpenFilesTest, NoMoreAreOpenThanTheyMayBe) {
  open_disk(open_max);
  ASSERT_NO_FATAL_FAILURE(make(7));
  EXPECT_EQ(open(), open_max);
  for (unsigned round = 0; round < 3; ++round)
    for (unsigned i = 0; i < files.size(); ++i) {
      expect(*files[i], uint8_t(i));
      EXPECT_EQ(files[i]->size_bytes(), block_bytes);
      EXPECT_EQ(open(), open_max);
    }
}

TEST_F(OpenFilesTest, WithoutALimitAllStayOpen) {
  open_disk(0);
  ASSERT_NO_FATAL_FAILURE(make(7));
  EXPECT_EQ(open(), 7u);
}

TEST_F(OpenFilesTest, OneThatMayNotBeParkedStaysOpen) {
  open_disk(open_max);
  auto log = disk->open("log", OpenMode::create_new).take();
  ASSERT_NO_FATAL_FAILURE(make(7));
  EXPECT_EQ(open(), open_max + 1);
}

TEST_F(OpenFilesTest, OneThatIsHeldStaysOpen) {
  open_disk(open_max);
  ASSERT_NO_FATAL_FAILURE(make(7));
  std::vector<HeldFile> held;
  for (unsigned i = 0; i < 5; ++i) {
    ASSERT_TRUE(files[i]->hold().ok());
    held.emplace_back(*files[i]);
  }
  EXPECT_EQ(open(), 5u);
  expect(*files[6], 6);
  EXPECT_LE(open(), 6u);
  held.clear();
  expect(*files[5], 5);
  EXPECT_EQ(open(), open_max);
}

TEST_F(OpenFilesTest, OneThatWasWrittenIsFlushedBefore) {
  open_disk(open_max);
  ASSERT_NO_FATAL_FAILURE(make(2));
  if (!files[0]->unwritten()->empty()) GTEST_SKIP() << "a flush takes all files along here";
  std::thread([&] {
    forbid_flushes(EIO);
    auto third = disk->open("third", OpenMode::create_new).take();
    third->let_park();
  }).join();
  EXPECT_EQ(open(), 2u);  // what could not be flushed is not parked
  EXPECT_FALSE(files[0]->flush().ok());
  EXPECT_FALSE(files[1]->flush().ok());
}

// One that cannot be flushed any more, in place of the descriptor that this process has for a file.
void break_descriptor_of(const std::string& file) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry.path(), gone) == fs::canonical(file)) {
      EXPECT_GE(::dup2(ends[1], std::stoi(entry.path().filename())), 0);
    }
  }
  for (const int end : ends) ::close(end);
}

// What the disk has dropped then, the flush that comes next does not bring back.
TEST_F(OpenFilesTest, AFlushForWhichAnotherIsParkedInVainFails) {
  open_disk(1);
  ASSERT_NO_FATAL_FAILURE(make(2));
  if (!files[1]->unwritten()->empty()) GTEST_SKIP() << "a flush takes all files along here";
  ASSERT_NO_FATAL_FAILURE(break_descriptor_of(path(1)));
  const Status flushed = files[0]->flush();
  EXPECT_EQ(flushed.code(), EINVAL) << flushed.what();
  EXPECT_FALSE(disk->flush_all().ok());
  EXPECT_FALSE(disk->sync_dir("").ok());
}

TEST_F(OpenFilesTest, AFlushThatFailsForWantOfSpaceAtOpeningIsNotRepeated) {
  open_disk(1);
  ASSERT_NO_FATAL_FAILURE(make(2));
  if (!files[1]->unwritten()->empty()) GTEST_SKIP() << "a flush takes all files along here";
  const int elsewhere = ::open(path(0).c_str(), O_RDONLY | O_CLOEXEC);
  expect(*files[0], 0);
  ::close(elsewhere);
  expect(*files[1], 1);
  std::thread([&] {
    forbid_flushes(ENOSPC);
    EXPECT_EQ(files[0]->flush().code(), ENOSPC);
  }).join();
  EXPECT_FALSE(files[0]->flush().ok());
}

// That is no rot: a reader who takes it for such gives up what lies there.
TEST_F(OpenFilesTest, OneThatCannotBeReachedForAWhileSaysSo) {
  open_disk(1);
  ASSERT_NO_FATAL_FAILURE(make(2));
  std::thread([&] {
    forbid(__NR_openat, ETIMEDOUT);
    BlockMemory found(block_bytes);
    EXPECT_EQ(files[0]->read(0, found.span()).code(), ETIMEDOUT);
  }).join();
  expect(*files[0], 0);
}

// A flush of any file covers the others, the log among them.
TEST_F(OpenFilesTest, AFlushOfAParkedOneReachesTheDisk) {
  open_disk(1);
  ASSERT_NO_FATAL_FAILURE(make(2));
  std::thread([&] {
    EXPECT_TRUE(files[0]->flush().ok());
    expect(*files[1], 1);
    forbid_flushes(EIO);
    EXPECT_FALSE(files[0]->flush().ok());
  }).join();
}

TEST_F(OpenFilesTest, WhoHasItOpenMeanwhileIsNoticed) {
  open_disk(1);
  ASSERT_NO_FATAL_FAILURE(make(2));
  if (!files[1]->unwritten()->empty()) GTEST_SKIP() << "a flush takes all files along here";
  ASSERT_EQ(open(), 1u);
  const int elsewhere = ::open(path(0).c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(elsewhere, 0);
  EXPECT_FALSE(files[0]->needs_own_flush());
  expect(*files[0], 0);
  EXPECT_TRUE(files[0]->needs_own_flush());
  ::close(elsewhere);
  EXPECT_EQ(*files[0]->watch(false), Sharing::none);
  EXPECT_FALSE(files[0]->needs_own_flush());
}

// Whoever moved its blocks meanwhile and has closed it again is not seen: what is written now goes
// to a place that the file system may not know of after a power cut.
TEST_F(OpenFilesTest, OneThatIsOpenedAgainNeedsAFlushOfItsOwn) {
  open_disk(1);
  ASSERT_NO_FATAL_FAILURE(make(2));
  if (!files[1]->unwritten()->empty()) GTEST_SKIP() << "a flush takes all files along here";
  EXPECT_FALSE(files[0]->needs_own_flush());
  ASSERT_TRUE(files[1]->flush().ok());  // it is parked without one
  std::thread([&] {
    forbid_flushes(EIO);
    expect(*files[0], 0);  // who reads does not wait for it
    EXPECT_EQ(*files[0]->watch(false), Sharing::none);
    EXPECT_TRUE(files[0]->needs_own_flush());
  }).join();
}

TEST_F(OpenFilesTest, OneThatIsOpenedAgainNeedsAFlushUntilItHasOne) {
  open_disk(1);
  ASSERT_NO_FATAL_FAILURE(make(2));
  if (!files[1]->unwritten()->empty()) GTEST_SKIP() << "a flush takes all files along here";
  expect(*files[0], 0);
  EXPECT_TRUE(files[0]->needs_own_flush());
  EXPECT_TRUE(files[0]->flush().ok());
  EXPECT_FALSE(files[0]->needs_own_flush());
  expect(*files[1], 1);
  EXPECT_EQ(*files[0]->watch(false), Sharing::none);  // it is parked, and nobody's trouble
}

TEST_F(OpenFilesTest, ALookDoesNotOpenIt) {
  open_disk(open_max);
  ASSERT_NO_FATAL_FAILURE(make(7));
  for (auto& file : files) EXPECT_EQ(*file->watch(true), Sharing::none);
  EXPECT_EQ(open(), open_max);
}

TEST_F(OpenFilesTest, AnotherFileInItsPlaceIsAnError) {
  open_disk(1);
  ASSERT_NO_FATAL_FAILURE(make(2));
  fs::copy(path(1), path(2));
  fs::rename(path(2), path(0));
  BlockMemory found(block_bytes);
  EXPECT_EQ(files[0]->read(0, found.span()).code(), EIO);
}

TEST_F(OpenFilesTest, WhereTheProcessHasNoMoreSomeAreParked) {
  open_disk(0);
  {
    const FewDescriptors few(5);
    ASSERT_NO_FATAL_FAILURE(make(20));
    for (unsigned i = 0; i < files.size(); ++i) expect(*files[i], uint8_t(i));
  }
  EXPECT_LE(open(), 5u);
}

TEST_F(OpenFilesTest, WithoutAnyDescriptorItIsNoDamage) {
  open_disk(1);
  ASSERT_NO_FATAL_FAILURE(make(2));
  ASSERT_TRUE(files[1]->hold().ok());
  const HeldFile held(*files[1]);
  {
    const FewDescriptors none(0);
    BlockMemory found(block_bytes);
    EXPECT_EQ(files[0]->read(0, found.span()).code(), EMFILE);
    EXPECT_EQ(files[0]->hold().code(), EMFILE);
  }
  expect(*files[0], 0);
}

TEST_F(OpenFilesTest, ManyThreadsUseFilesThatComeAndGo) {
  open_disk(open_max);
  ASSERT_NO_FATAL_FAILURE(make(8));
  std::atomic<bool> stop{false};
  std::thread watch([&] {
    while (!stop)
      for (auto& file : files) EXPECT_TRUE(file->watch(false).ok());
  });
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 300; ++i) {
        const unsigned n = random() % files.size();
        switch (random() % 4) {
          case 0: EXPECT_TRUE(files[n]->flush().ok()); break;
          case 1: EXPECT_TRUE(files[n]->write(0, filled(uint8_t(n)).span()).ok()); break;
          default: expect(*files[n], uint8_t(n));
        }
      }
    });
  for (auto& thread : threads) thread.join();
  stop = true;
  watch.join();
  for (unsigned i = 0; i < files.size(); ++i) expect(*files[i], uint8_t(i));
}

// --- a store

class FewDescriptorsTest : public EngineFixture {
 protected:
  FewDescriptorsTest() { parkable_open_max = 3; }
  unsigned open_containers() const { return open_below(directory + "/containers"); }
};

TEST_F(FewDescriptorsTest, AStoreOfManyContainersIsWrittenReadAndOpened) {
  options.container_bytes = 4 << 20;
  options.prepare_bytes_per_second = 0;  // a container that is being made ahead is open beside them
  options.table_open_files = 20;
  ASSERT_NO_FATAL_FAILURE(format());
  ASSERT_NO_FATAL_FAILURE(open());
  constexpr unsigned objects = 12;
  std::vector<std::vector<Extent>> extents;
  for (unsigned i = 0; i < objects; ++i) {
    auto txn = std::make_shared<Txn>();
    extents.push_back(write(*txn, 1024, i).extents);
    commit(txn);
  }
  ASSERT_GE(engine->owned_blocks().size(), size_t(objects));
  for (bool close : {false, true}) {
    EXPECT_LE(open_containers(), 3u);
    for (unsigned i = 0; i < objects; ++i) expect_data(extents[i], i);
    EXPECT_LE(open_containers(), 3u);
    ASSERT_NO_FATAL_FAILURE(close ? close_and_open() : crash_and_open());
  }
  const FewDescriptors few(40);
  for (unsigned i = 0; i < objects; ++i) expect_data(extents[i], i);
}

}  // namespace
}  // namespace tablestore
