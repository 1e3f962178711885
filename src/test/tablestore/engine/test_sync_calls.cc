// Which system calls make names and extents durable: what only a power cut would show otherwise.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "os/tablestore/engine/io/file_disk.h"
#include "test/tablestore/engine/test_directory.h"

namespace {

std::atomic<unsigned> synced_directories = 0;
std::atomic<unsigned> synced_file_systems = 0;

}  // namespace

// In the place of the C library's.
extern "C" int fsync(int fd) {
  struct stat status;
  if (::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) ++synced_directories;
  return int(::syscall(SYS_fsync, fd));
}

extern "C" int syncfs(int fd) noexcept {
  ++synced_file_systems;
  return int(::syscall(SYS_syncfs, fd));
}

namespace tablestore {
namespace {

TEST(SyncsOfDirectories, EachIsASystemCall) {
  TestDirectory directory;
  auto disk = open_file_disk(directory.path(), {}).take();
  ASSERT_TRUE(disk->make_dir("d").ok());
  for (const char* dir : {"", "d"}) {
    const unsigned before = synced_directories;
    ASSERT_TRUE(disk->sync_dir(dir).ok());
    EXPECT_EQ(synced_directories, before + 1) << dir;
  }
}

// Where the file system is not one whose journal it commits, it says so, and does nothing.
TEST(SyncsOfAllFiles, AreOneSystemCallOrNone) {
  TestDirectory directory;
  auto disk = open_file_disk(directory.path(), {}).take();
  const unsigned before = synced_file_systems;
  const auto flushed = disk->flush_all();
  ASSERT_TRUE(flushed.ok()) << flushed.status().what();
  EXPECT_EQ(synced_file_systems, before + *flushed);
}

}  // namespace
}  // namespace tablestore
