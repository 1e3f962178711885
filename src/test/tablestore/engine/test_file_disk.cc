#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <thread>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/io/dirty_files.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/engine/io/thread_write_queue.h"
#include "test/tablestore/engine/forbidden_call.h"
#include "test/tablestore/engine/test_directory.h"

namespace tablestore {
namespace {

constexpr uint64_t mib = 1 << 20;

BlockMemory filled(uint64_t bytes, uint8_t value) {
  BlockMemory memory(bytes);
  std::memset(memory.data(), value, memory.size());
  return memory;
}

bool all_are(const BlockMemory& memory, uint8_t value) {
  for (std::byte b : memory.span()) {
    if (b != std::byte(value)) return false;
  }
  return true;
}

// Both ways to the file: direct, and through the page cache.
class FileDiskTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { disk = open_disk(); }

  std::unique_ptr<Disk> open_disk(unsigned lock_wait_ms = 50) {
    FileDiskOptions options;
    options.direct = GetParam();
    options.lock_wait_ms = lock_wait_ms;
    options.log = [this](const std::string& line) { log += line + "\n"; };
    Result<std::unique_ptr<Disk>> opened = open_file_disk(directory.path(), options);
    EXPECT_TRUE(opened.ok()) << opened.status().what();
    return opened.take();
  }
  std::unique_ptr<File> make(const std::string& path) {
    Result<std::unique_ptr<File>> file = disk->open(path, OpenMode::create_new);
    EXPECT_TRUE(file.ok()) << file.status().what();
    return file.take();
  }
  std::string full(const std::string& path) const { return directory.path() + "/" + path; }

  TestDirectory directory;
  std::string log;
  std::unique_ptr<Disk> disk;
};

INSTANTIATE_TEST_SUITE_P(, FileDiskTest, testing::Values(true, false), [](const auto& info) {
  return info.param ? "Direct" : "Buffered";
});

TEST_P(FileDiskTest, ReadsBackWhatWasWritten) {
  auto file = make("f");
  EXPECT_EQ(file->size_bytes(), 0u);
  ASSERT_TRUE(file->write(0, filled(3 * block_bytes, 1).span()).ok());
  ASSERT_TRUE(file->write(block_bytes, filled(block_bytes, 2).span()).ok());
  ASSERT_TRUE(file->flush().ok());
  EXPECT_EQ(file->size_bytes(), 3 * block_bytes);
  file.reset();

  Result<std::unique_ptr<File>> again = disk->open("f", OpenMode::read_only);
  ASSERT_TRUE(again.ok());
  BlockMemory out(block_bytes);
  for (auto [block, value] : {std::pair{0, 1}, {1, 2}, {2, 1}}) {
    ASSERT_TRUE((*again)->read(block * block_bytes, out.span()).ok());
    EXPECT_TRUE(all_are(out, static_cast<uint8_t>(value))) << block;
  }
}

TEST_P(FileDiskTest, ReadingBeyondTheEndIsAnErrorThatSaysWhere) {
  auto file = make("f");
  ASSERT_TRUE(file->write(0, filled(block_bytes, 1).span()).ok());
  BlockMemory out(2 * block_bytes);
  for (uint64_t offset : {uint64_t(0), block_bytes, 10 * block_bytes}) {
    const Status s = file->read(offset, out.span());
    EXPECT_EQ(s.code(), EIO);
    const std::string expected =
        full("f") + ": read at " + std::to_string(offset) + "+8192: the file ends at 4096";
    EXPECT_EQ(s.what(), expected);
  }
}

TEST_P(FileDiskTest, AFileThatEndsInsideABlockIsAnErrorToRead) {
  make("f");
  std::ofstream(full("f")) << std::string(5000, 'x');
  Result<std::unique_ptr<File>> file = disk->open("f", OpenMode::read_only);
  ASSERT_TRUE(file.ok());
  BlockMemory out(2 * block_bytes);
  EXPECT_EQ((*file)->read(0, out.span()).code(), EIO);
}

TEST_P(FileDiskTest, WritingWithoutTheRightToIsAnErrorThatSaysWhere) {
  make("f");
  Result<std::unique_ptr<File>> file = disk->open("f", OpenMode::read_only);
  ASSERT_TRUE(file.ok());
  const Status s = (*file)->write(8192, filled(block_bytes, 1).span());
  EXPECT_EQ(s.code(), EBADF);
  EXPECT_NE(s.what().find(full("f") + ": write at 8192+4096"), std::string::npos) << s.what();
}

TEST_P(FileDiskTest, OpenKnowsWhatIsThere) {
  const Result<std::unique_ptr<File>> missing = disk->open("f", OpenMode::read_write);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ENOENT);
  EXPECT_NE(missing.status().what().find(full("f")), std::string::npos);
  make("f");
  EXPECT_EQ(disk->open("f", OpenMode::create_new).status().code(), EEXIST);
  ASSERT_TRUE(disk->make_dir("d").ok());
  EXPECT_EQ(disk->open("d", OpenMode::read_only).status().code(), EINVAL);
}

TEST_P(FileDiskTest, OneWriterAtATime) {
  auto writer = make("f");
  auto other_disk = open_disk();
  const Result<std::unique_ptr<File>> second = other_disk->open("f", OpenMode::read_write);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), EBUSY);
  EXPECT_NE(second.status().what().find(full("f") + ": locked by another process"),
            std::string::npos)
      << second.status().what();
  EXPECT_TRUE(other_disk->open("f", OpenMode::read_only).ok());
  writer.reset();
  EXPECT_TRUE(other_disk->open("f", OpenMode::read_write).ok());
}

TEST_P(FileDiskTest, OpeningWaitsForTheLockToBeFreed) {
  auto writer = make("f");
  auto patient = open_disk(10000);
  std::thread opener([&] { EXPECT_TRUE(patient->open("f", OpenMode::read_write).ok()); });
  writer.reset();
  opener.join();
}

TEST_P(FileDiskTest, TheLockOfAKilledProcessIsFreed) {
  make("f");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Result<std::unique_ptr<File>> file = disk->open("f", OpenMode::read_write);
    const char ok = file.ok();
    if (::write(ready[1], &ok, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char ok = 0;
  ASSERT_EQ(::read(ready[0], &ok, 1), 1);
  EXPECT_TRUE(ok);
  EXPECT_EQ(disk->open("f", OpenMode::read_write).status().code(), EBUSY);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(disk->open("f", OpenMode::read_write).ok());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_P(FileDiskTest, AllocatedSpaceReadsAsZeros) {
  auto file = make("f");
  ASSERT_TRUE(file->allocate(mib, mib).ok());
  EXPECT_EQ(file->size_bytes(), 2 * mib);
  struct stat st;
  ASSERT_EQ(::stat(full("f").c_str(), &st), 0);
  EXPECT_GE(uint64_t(st.st_blocks) * 512, mib);
  EXPECT_LT(uint64_t(st.st_blocks) * 512, 2 * mib);
  BlockMemory out(2 * mib);
  ASSERT_TRUE(file->read(0, out.span()).ok());
  EXPECT_TRUE(all_are(out, 0));
}

TEST_P(FileDiskTest, WriteZeroesErasesAndGrows) {
  auto file = make("f");
  ASSERT_TRUE(file->write(0, filled(2 * mib, 7).span()).ok());
  ASSERT_TRUE(file->write_zeroes(mib, 3 * mib + block_bytes).ok());
  EXPECT_EQ(file->size_bytes(), 4 * mib + block_bytes);
  BlockMemory kept(mib), erased(3 * mib + block_bytes);
  ASSERT_TRUE(file->read(0, kept.span()).ok());
  ASSERT_TRUE(file->read(mib, erased.span()).ok());
  EXPECT_TRUE(all_are(kept, 7));
  EXPECT_TRUE(all_are(erased, 0));
}

TEST_P(FileDiskTest, PunchingGivesSpaceBackAndKeepsTheSize) {
  auto file = make("f");
  ASSERT_TRUE(file->write(0, filled(4 * mib, 7).span()).ok());
  ASSERT_TRUE(file->flush().ok());
  struct stat before, after;
  ASSERT_EQ(::stat(full("f").c_str(), &before), 0);
  ASSERT_TRUE(file->punch(mib, 2 * mib).ok());
  ASSERT_EQ(::stat(full("f").c_str(), &after), 0);
  EXPECT_EQ(after.st_size, before.st_size);
  EXPECT_EQ((before.st_blocks - after.st_blocks) * 512, static_cast<blkcnt_t>(2 * mib));
  BlockMemory out(mib);
  for (auto [at, value] : {std::pair{0, 7}, {1, 0}, {2, 0}, {3, 7}}) {
    ASSERT_TRUE(file->read(at * mib, out.span()).ok());
    EXPECT_TRUE(all_are(out, static_cast<uint8_t>(value))) << at;
  }
}

TEST_P(FileDiskTest, KnowsWhatIsUnwritten) {
  using Ranges = std::vector<ByteRange>;
  auto file = make("f");
  EXPECT_EQ(*file->unwritten(), Ranges{});
  ASSERT_TRUE(file->allocate(0, 4 * mib).ok());
  EXPECT_EQ(*file->unwritten(), (Ranges{{0, 4 * mib}}));
  ASSERT_TRUE(file->write_zeroes(0, 2 * mib).ok());
  ASSERT_TRUE(file->flush().ok());
  const Result<Ranges> ranges = file->unwritten();
  ASSERT_TRUE(ranges.ok()) << ranges.status().what();
  if (*ranges == Ranges{{0, 4 * mib}}) {
    // Through the page cache, or on a file system that is not known to overwrite in place.
    EXPECT_NE(log.find("a flush has to be passed on"), std::string::npos);
    return;
  }
  EXPECT_EQ(*ranges, (Ranges{{2 * mib, 2 * mib}}));
  ASSERT_TRUE(file->write(3 * mib, filled(block_bytes, 1).span()).ok());
  EXPECT_EQ(*file->unwritten(),
            (Ranges{{2 * mib, mib}, {3 * mib + block_bytes, mib - block_bytes}}));
  ASSERT_TRUE(file->punch(mib, block_bytes).ok());
  ASSERT_TRUE(file->punch(2 * mib, 2 * mib).ok());
  EXPECT_EQ(*file->unwritten(), (Ranges{{mib, block_bytes}, {2 * mib, 2 * mib}}));
}

TEST_P(FileDiskTest, ListsManySmallUnwrittenRanges) {
  auto file = make("f");
  constexpr uint64_t blocks = 300;
  ASSERT_TRUE(file->allocate(0, blocks * block_bytes).ok());
  const BlockMemory one = filled(block_bytes, 1);
  for (uint64_t block = 0; block < blocks; block += 2) {
    ASSERT_TRUE(file->write(block * block_bytes, one.span()).ok());
  }
  const Result<std::vector<ByteRange>> ranges = file->unwritten();
  ASSERT_TRUE(ranges.ok());
  if (ranges->size() == 1) {
    EXPECT_EQ(ranges->front(), (ByteRange{0, blocks * block_bytes}));
    return;
  }
  ASSERT_EQ(ranges->size(), blocks / 2);
  for (uint64_t i = 0; i < ranges->size(); ++i) {
    ASSERT_EQ((*ranges)[i], (ByteRange{(2 * i + 1) * block_bytes, block_bytes}));
  }
}

TEST_P(FileDiskTest, DirectoriesAreMadeListedAndRemoved) {
  ASSERT_TRUE(disk->make_dir("d").ok());
  ASSERT_TRUE(disk->make_dir("d").ok());
  ASSERT_TRUE(disk->make_dir("d/e").ok());
  make("d/b");
  make("d/a");
  make("d/e/c");
  ASSERT_TRUE(disk->sync_dir("d").ok());
  ASSERT_TRUE(disk->sync_dir("").ok());
  EXPECT_EQ(*disk->list("d"), (std::vector<std::string>{"a", "b", "e"}));
  EXPECT_EQ(*disk->list(""), (std::vector<std::string>{"d"}));
  EXPECT_TRUE(*disk->exists("d/a"));
  EXPECT_FALSE(*disk->exists("d/z"));
  EXPECT_EQ(disk->make_dir("d/a").code(), EEXIST);
  EXPECT_EQ(disk->list("nowhere").status().code(), ENOENT);
  EXPECT_EQ(disk->sync_dir("nowhere").code(), ENOENT);

  ASSERT_TRUE(disk->remove("d/a").ok());
  ASSERT_TRUE(disk->remove("d/a").ok());
  EXPECT_FALSE(*disk->exists("d/a"));
  ASSERT_TRUE(disk->remove_tree("d").ok());
  ASSERT_TRUE(disk->remove_tree("d").ok());
  EXPECT_TRUE(disk->list("")->empty());
}

TEST_P(FileDiskTest, ARenamedFileHasOneNameAndItsContents) {
  ASSERT_TRUE(disk->make_dir("d").ok());
  ASSERT_TRUE(disk->make_dir("e").ok());
  ASSERT_TRUE(make("d/a")->write(0, filled(4096, 7).span()).ok());
  make("e/there");
  EXPECT_EQ(disk->rename("d/a", "e/there").code(), EEXIST);
  EXPECT_EQ(disk->rename("d/z", "e/b").code(), ENOENT);
  const Status s = disk->rename("d/a", "e/b");
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_TRUE(disk->list("d")->empty());
  EXPECT_EQ(*disk->list("e"), (std::vector<std::string>{"b", "there"}));
  BlockMemory found(4096);
  auto file = disk->open("e/b", OpenMode::read_only);
  ASSERT_TRUE(file.ok() && (*file)->read(0, found.span()).ok());
  EXPECT_TRUE(all_are(found, 7));
}

TEST_P(FileDiskTest, RemovingATreeFollowsNoLink) {
  TestDirectory elsewhere;
  std::ofstream(elsewhere.path() + "/precious") << "x";
  ASSERT_TRUE(disk->make_dir("d").ok());
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), full("d/link").c_str()), 0);
  ASSERT_TRUE(disk->remove_tree("d").ok());
  EXPECT_FALSE(*disk->exists("d"));
  EXPECT_TRUE(std::filesystem::exists(elsewhere.path() + "/precious"));
}

TEST_P(FileDiskTest, AFileOfAnotherFileSystemIsRefused) {
  struct stat here, there;
  if (::stat("/dev/shm", &there) != 0 || ::access("/dev/shm", W_OK) != 0) GTEST_SKIP();
  ASSERT_EQ(::stat(directory.path().c_str(), &here), 0);
  if (here.st_dev == there.st_dev) GTEST_SKIP();
  TestDirectory elsewhere("/dev/shm");
  std::ofstream(elsewhere.path() + "/f") << "x";
  ASSERT_EQ(::symlink((elsewhere.path() + "/f").c_str(), full("f").c_str()), 0);
  Result<std::unique_ptr<File>> file = disk->open("f", OpenMode::read_write);
  ASSERT_FALSE(file.ok());
  // A kernel that knows no direct I/O on tmpfs refuses earlier.
  EXPECT_TRUE(file.status().code() == EXDEV || file.status().code() == EINVAL)
      << file.status().what();
}

TEST_P(FileDiskTest, SpaceIsThatOfTheFileSystem) {
  const Result<DiskSpace> space = disk->space();
  ASSERT_TRUE(space.ok());
  const auto expected = std::filesystem::space(directory.path());
  EXPECT_EQ(space->total_bytes, expected.capacity);
  EXPECT_GT(space->available_bytes, 0u);
  EXPECT_LE(space->available_bytes, space->total_bytes);
}

TEST_P(FileDiskTest, TablePathsAreAbsolute) {
  EXPECT_EQ(disk->table_path("table"),
            std::filesystem::canonical(directory.path()).string() + "/table");
}

TEST_P(FileDiskTest, AFlushTakesAlongFilesThatWereClosed) {
  auto kept = make("kept");
  auto closed = make("closed");
  ASSERT_TRUE(closed->write(0, filled(block_bytes, 1).span()).ok());
  closed.reset();
  ASSERT_TRUE(kept->write(0, filled(block_bytes, 1).span()).ok());
  EXPECT_TRUE(kept->flush().ok());
}

TEST(FileDisk, OpeningWhatIsNoDirectoryFails) {
  TestDirectory directory;
  EXPECT_EQ(open_file_disk(directory.path() + "/none", {}).status().code(), ENOENT);
  std::ofstream(directory.path() + "/file") << "x";
  const Status s = open_file_disk(directory.path() + "/file", {}).status();
  EXPECT_EQ(s.code(), ENOTDIR);
  EXPECT_NE(s.what().find(directory.path() + "/file"), std::string::npos);
}

TEST(FileDisk, TakesRelativeDirectories) {
  TestDirectory directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  Result<std::unique_ptr<Disk>> disk = open_file_disk(".", {});
  std::filesystem::current_path(before);
  ASSERT_TRUE(disk.ok());
  ASSERT_TRUE((*disk)->make_dir("d").ok());
  EXPECT_TRUE(std::filesystem::exists(directory.path() + "/d"));
  EXPECT_EQ((*disk)->table_path("d"),
            std::filesystem::canonical(directory.path()).string() + "/d");
}

TEST(FileDisk, WorksOnTmpfsAndSaysWhatItCannotDo) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP();
  TestDirectory directory("/dev/shm");
  std::string log;
  FileDiskOptions options;
  options.log = [&](const std::string& line) { log += line; };
  Result<std::unique_ptr<Disk>> disk = open_file_disk(directory.path(), options);
  ASSERT_TRUE(disk.ok());
  EXPECT_NE(log.find("a flush has to be passed on"), std::string::npos) << log;
  Result<std::unique_ptr<File>> file = (*disk)->open("f", OpenMode::create_new);
  ASSERT_TRUE(file.ok()) << file.status().what();
  ASSERT_TRUE((*file)->write_zeroes(0, 2 * mib).ok());
  ASSERT_TRUE((*file)->flush().ok());
  EXPECT_EQ(*(*file)->unwritten(), (std::vector<ByteRange>{{0, 2 * mib}}));
  EXPECT_TRUE(dynamic_cast<ThreadWriteQueue*>((*disk)->make_write_queue().get()));
}

TEST(FileDisk, WritesWithThreadsWhereIoUringIsForbiddenAndSaysWhy) {
  TestDirectory directory;
  std::string log;
  FileDiskOptions options;
  options.log = [&](const std::string& line) { log += line; };
  Result<std::unique_ptr<Disk>> disk = open_file_disk(directory.path(), options);
  ASSERT_TRUE(disk.ok());
  if (!log.empty()) GTEST_SKIP() << log;
  std::thread([&] {
    forbid(__NR_io_uring_setup, EPERM);
    const std::unique_ptr<WriteQueue> queue = (*disk)->make_write_queue();
    EXPECT_TRUE(dynamic_cast<ThreadWriteQueue*>(queue.get()));
  }).join();
  const std::string expected = ": cannot use io_uring (io_uring_setup: Operation not permitted), "
                               "writing with 16 threads";
  EXPECT_EQ(log, directory.path() + expected);
}

// The kernel reports a failed write-back once, and a disk may have dropped what was in its cache.
TEST_P(FileDiskTest, AfterAFailedFlushNoFlushOfThisDiskSucceeds) {
  auto first = make("first"), second = make("second");
  ASSERT_TRUE(first->write(0, filled(block_bytes, 1).span()).ok());
  std::thread([&] {
    forbid(__NR_fdatasync, EIO);
    const Status s = first->flush();
    EXPECT_EQ(s.code(), EIO);
    EXPECT_NE(s.what().find(full("first") + ": flush"), std::string::npos) << s.what();
  }).join();
  EXPECT_EQ(first->flush().code(), EIO);
  EXPECT_EQ(second->flush().code(), EIO);
  EXPECT_EQ(make("third")->flush().code(), EIO);
}

// Direct I/O says ENODATA of a sector that the disk cannot read. What the process lacks, and a path
// to the disk that is gone, say nothing of what lies there.
TEST_P(FileDiskTest, AReadThatFailsIsEioWhereThatIsOfTheDisk) {
  auto file = make("file");
  ASSERT_TRUE(file->write(0, filled(block_bytes, 1).span()).ok());
  const auto expect = [&](int error, int code) {
    std::thread([&] {
      forbid(__NR_preadv, error);
      BlockMemory memory(block_bytes);
      const Status s = file->read(0, memory.span());
      EXPECT_EQ(s.code(), code);
      EXPECT_NE(s.what().find(std::strerror(error)), std::string::npos) << s.what();
    }).join();
  };
  for (const int error : {ENODATA, EREMOTEIO, EILSEQ, EUCLEAN, EIO}) expect(error, EIO);
  for (const int error : {ENOMEM, ETIMEDOUT, ENOLINK, ENODEV, EBADE, ESTALE, ENOTCONN})
    expect(error, error);
}

// A descriptor that cannot be flushed.
class BrokenDescriptor {
 public:
  BrokenDescriptor() {
    EXPECT_EQ(::pipe(ends_), 0);
  }
  ~BrokenDescriptor() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int fd() const { return ends_[1]; }

 private:
  int ends_[2];
};

TEST(DirtyFiles, AFlushCoversEveryFileAddedSinceTheLast) {
  TestDirectory directory;
  const int good = ::open((directory.path() + "/f").c_str(), O_CREAT | O_RDWR, 0600);
  BrokenDescriptor broken;
  DirtyFiles dirty;
  EXPECT_EQ(dirty.flush(good), 0);
  dirty.add(broken.fd());
  EXPECT_EQ(dirty.flush(good), EINVAL);
  ::close(good);
}

TEST(DirtyFiles, AfterAFailedFlushNothingIsPromisedAnyMore) {
  TestDirectory directory;
  const int good = ::open((directory.path() + "/f").c_str(), O_CREAT | O_RDWR, 0600);
  BrokenDescriptor broken;
  DirtyFiles dirty;
  dirty.add(broken.fd());
  dirty.forget(broken.fd());
  EXPECT_EQ(dirty.flush(good), EINVAL);
  EXPECT_EQ(dirty.flush(good), EINVAL);
  ::close(good);
}

}  // namespace
}  // namespace tablestore
