// Does the engine know what it has below? On real file systems of their own, on loop devices.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/engine/io/file_extents.h"
#include "os/tablestore/engine/io/posix_file.h"
#include "test/tablestore/engine/forbidden_call.h"
#include "test/tablestore/engine/test_directory.h"
#include "test/tablestore/powercut/file_system.h"

namespace tablestore::powercut {
namespace {

using Ranges = std::vector<ByteRange>;
constexpr uint64_t mib = 1 << 20;

BlockMemory filled(uint64_t bytes, uint8_t value) {
  BlockMemory memory(bytes);
  std::memset(memory.data(), value, memory.size());
  return memory;
}

class Fd {
 public:
  Fd(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    EXPECT_GE(fd_, 0) << path << ": " << std::strerror(errno);
  }
  ~Fd() { ::close(fd_); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  operator int() const { return fd_; }

 private:
  const int fd_;
};

// Seen by this process only. Each test has one; a machine that cannot is counted as skipped.
class RealFileSystemTest : public testing::Test {
 protected:
  void TearDown() override {
    disk.reset();
    if (mounted) ::umount2(at().c_str(), MNT_DETACH);
  }
  std::string at() const { return directory.path() + "/mounted"; }

  // `prepared`: a command, for the image before it is mounted.
  void mount(const FileSystemKind& kind, const std::string& prepared = "true") {
    for (const char* device : {"/dev/loop-control", "/dev/loop0"})
      if (::access(device, R_OK | W_OK) != 0)
        GTEST_SKIP() << device << ": " << std::strerror(errno);
    const std::string image = directory.path() + "/image";
    std::ofstream(image).close();
    ASSERT_EQ(::truncate(image.c_str(), 320 * mib), 0);
    std::filesystem::create_directory(at());
    ASSERT_EQ(own_mount_namespace(), 0);
    const Status made = make_file_system(kind, image);
    ASSERT_TRUE(made.ok()) << made.what();
    ASSERT_EQ(std::system(("IMAGE=" + image + "; " + prepared).c_str()), 0);
    const Status s = mount_for_this_process(kind, image, at());
    if (!s.ok()) GTEST_SKIP() << to_string(kind) << ": " << s.what();
    mounted = true;
  }
  // Only in here is what has reached the disk by now.
  void mount_copy(const FileSystemKind& kind, const std::string& copy_at) {
    const std::string image = directory.path() + "/image", copy = directory.path() + "/copy";
    ASSERT_EQ(std::system(("cp --sparse=always " + image + " " + copy).c_str()), 0);
    std::filesystem::create_directory(copy_at);
    const Status s = mount_for_this_process(kind, copy, copy_at);
    ASSERT_TRUE(s.ok()) << s.what();
  }
  void open_disk(size_t parkable_open_max = 0) {
    FileDiskOptions options;
    options.parkable_open_max = parkable_open_max;
    auto opened = open_file_disk(at(), options);
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    disk = opened.take();
  }
  std::set<std::string> troubles() {
    std::set<std::string> names;
    for (const Concern& concern : disk->concerns()) names.insert(concern.trouble);
    return names;
  }
  std::unique_ptr<File> make(const std::string& name, uint64_t bytes) {
    auto file = disk->open(name, OpenMode::create_new);
    EXPECT_TRUE(file.ok()) << file.status().what();
    EXPECT_TRUE((*file)->write_zeroes(0, bytes).ok());
    EXPECT_TRUE((*file)->write(0, filled(bytes, 'A').span()).ok());
    EXPECT_TRUE((*file)->flush().ok());
    return file.take();
  }
  void expect_content(File& file, uint64_t offset, uint64_t bytes, uint8_t value) {
    BlockMemory found(bytes);
    ASSERT_TRUE(file.read(offset, found.span()).ok());
    EXPECT_EQ(std::memcmp(found.data(), filled(bytes, value).data(), bytes), 0) << offset;
  }
  static int fd_of(File& file) { return static_cast<PosixFile&>(file).fd(); }
  // Where a block lies on the device.
  uint64_t place_of(File& file, uint64_t offset) {
    alignas(struct fiemap) std::byte
        memory[sizeof(struct fiemap) + sizeof(struct fiemap_extent)] = {};
    auto* map = reinterpret_cast<struct fiemap*>(memory);
    map->fm_start = offset;
    map->fm_length = block_bytes;
    map->fm_extent_count = 1;
    EXPECT_EQ(::ioctl(fd_of(file), FS_IOC_FIEMAP, map), 0);
    EXPECT_EQ(map->fm_mapped_extents, 1u);
    const auto& extent = map->fm_extents[0];
    return extent.fe_physical + (offset - extent.fe_logical);
  }

  TestDirectory directory;
  bool mounted = false;
  std::unique_ptr<Disk> disk;
};

class XfsTest : public RealFileSystemTest {
 protected:
  void SetUp() override {
    mount({FileSystem::xfs, "", ""});
    if (mounted) open_disk();
  }
  // The copy has the blocks of [offset, +length) of the file in common with it.
  void share(const std::string& name, const std::string& copy, uint64_t offset, uint64_t length) {
    const Fd from(at() + "/" + name, O_RDONLY), to(at() + "/" + copy, O_WRONLY | O_CREAT);
    struct file_clone_range range = {int64_t(int(from)), offset, length, 0};
    ASSERT_EQ(::ioctl(to, FICLONERANGE, &range), 0) << std::strerror(errno);
  }
  // XFS frees the blocks of a copy that was removed a moment later.
  void wait_until_not_shared(int fd) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    bool shared = true;
    while (shared && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ASSERT_EQ(find_shared(fd, mib, &shared), 0);
    }
    ASSERT_FALSE(shared);
  }
  void expect_written_in_place(File& file) {
    std::vector<uint64_t> places;
    for (uint64_t at = 0; at < mib; at += block_bytes) places.push_back(place_of(file, at));
    ASSERT_TRUE(file.write(0, filled(mib, 'C').span()).ok());
    for (uint64_t at = 0; at < mib; at += block_bytes)
      EXPECT_EQ(place_of(file, at), places[at / block_bytes]) << at;
  }
};

TEST_F(XfsTest, IsWrittenInPlace) {
  EXPECT_TRUE(troubles().empty());
  auto file = make("f", mib);
  EXPECT_EQ(*file->unwritten(), Ranges{});
  const uint64_t place = place_of(*file, 5 * block_bytes);
  ASSERT_TRUE(file->write(5 * block_bytes, filled(block_bytes, 'B').span()).ok());
  EXPECT_EQ(place_of(*file, 5 * block_bytes), place);
}

TEST_F(XfsTest, SharedBlocksCountAsNotWritten) {
  auto file = make("f", mib);
  share("f", "copy", 16 * block_bytes, 8 * block_bytes);
  EXPECT_EQ(*file->unwritten(), (Ranges{{16 * block_bytes, 8 * block_bytes}}));
  ASSERT_TRUE(file->write(16 * block_bytes, filled(4 * block_bytes, 'B').span()).ok());
  EXPECT_EQ(*file->unwritten(), (Ranges{{20 * block_bytes, 4 * block_bytes}}));
}

TEST_F(XfsTest, AFileIsMadePlainWithItsContents) {
  auto file = make("f", 2 * mib);
  share("f", "copy", 0, mib);
  ASSERT_TRUE(file->punch(mib, mib / 2).ok());
  const auto bytes = file->make_plain();
  ASSERT_TRUE(bytes.ok()) << bytes.status().what();
  EXPECT_EQ(*bytes, mib + mib / 2);
  EXPECT_EQ(*file->unwritten(), Ranges{});
  expect_content(*file, 0, mib, 'A');
  expect_content(*file, mib, mib / 2, 0);
  expect_content(*file, mib + mib / 2, mib / 2, 'A');
  EXPECT_EQ(*file->make_plain(), 0u);
  EXPECT_FALSE(file->needs_own_flush());
  expect_written_in_place(*file);
}

TEST_F(XfsTest, AFileThatIsMadePlainIsWrittenInPlaceBesideThat) {
  auto file = make("f", mib);
  share("f", "copy", 72 * block_bytes, block_bytes);
  ASSERT_EQ(*file->make_plain(), block_bytes);
  expect_written_in_place(*file);
}

TEST_F(XfsTest, ASharedFileNeedsFlushesOfItsOwnUntilTheCopyIsGone) {
  auto file = make("f", mib);
  share("f", "copy", 0, mib);
  EXPECT_EQ(*file->watch(false), Sharing::shared);
  EXPECT_TRUE(file->needs_own_flush());
  EXPECT_EQ(*file->watch(false), Sharing::shared);
  ASSERT_TRUE(disk->remove("copy").ok());
  wait_until_not_shared(fd_of(*file));
  EXPECT_EQ(*file->watch(false), Sharing::none);
  EXPECT_FALSE(file->needs_own_flush());
}

TEST_F(XfsTest, ACopyThatIsMadeWhileTheFileIsWatchedIsNoticed) {
  auto file = make("f", mib);
  ASSERT_EQ(*file->watch(false), Sharing::none);
  std::atomic<bool> copied{false};
  std::thread other([&] {
    share("f", "copy", 0, mib);
    EXPECT_TRUE(file->needs_own_flush());
    copied = true;
  });
  while (!copied) ASSERT_TRUE(file->watch(false).ok());
  other.join();
  EXPECT_EQ(*file->watch(false), Sharing::shared);
}

// Who may have no lease sees what was shared while a file was parked when he opens it again.
TEST_F(XfsTest, OneThatWasSharedWhileItWasParkedIsNoticedAlsoWithoutLeases) {
  open_disk(1);
  auto file = make("f", mib);
  file->let_park();
  auto other = make("other", mib);
  other->let_park();
  share("f", "copy", 0, mib);
  std::thread([&] {
    forbid(__NR_fcntl, EINVAL, F_SETLEASE);
    expect_content(*file, 0, block_bytes, 'A');
    EXPECT_TRUE(file->flush().ok());
    EXPECT_TRUE(file->needs_own_flush());
  }).join();
}

// By itself XFS makes a copy of 128 KiB around what is written of a shared range, and goes on to
// write there when nothing is shared any more: also in front of it, where the extent goes on.
struct Written {
  const char* name;
  uint64_t block;           // is shared and written, in the middle of an extent
  const char* preparation;  // of the directory, in a shell, before a file is there
};
class XfsCopyTest : public XfsTest, public testing::WithParamInterface<Written> {};

TEST_P(XfsCopyTest, AfterTheCopyIsGoneItIsWrittenInPlaceAgain) {
  ASSERT_EQ(std::system(("cd " + at() + " && " + GetParam().preparation).c_str()), 0);
  const uint64_t block = GetParam().block;
  auto file = make("f", mib);
  share("f", "copy", block * block_bytes, block_bytes);
  ASSERT_EQ(*file->watch(false), Sharing::shared);
  ASSERT_TRUE(file->write(block * block_bytes, filled(block_bytes, 'B').span()).ok());
  ASSERT_TRUE(disk->remove("copy").ok());
  wait_until_not_shared(fd_of(*file));
  ASSERT_EQ(*file->watch(false), Sharing::none);
  ASSERT_FALSE(file->needs_own_flush());
  struct stat st;
  ASSERT_EQ(::fstat(fd_of(*file), &st), 0);
  EXPECT_EQ(uint64_t(st.st_blocks) * 512, mib) << "nothing is left behind the end";
  expect_written_in_place(*file);
}

INSTANTIATE_TEST_SUITE_P(Blocks, XfsCopyTest,
                         testing::Values(Written{"first_piece", 8, "true"},
                                         Written{"later_piece", 72, "true"},
                                         Written{"larger_extents", 72,
                                                 "xfs_io -c 'extsize 64k' ."}),
                         [](const auto& info) { return info.param.name; });

// A process before, say, which has ended.
TEST_F(XfsTest, AFileOfWhichWrittenBlocksWereSharedIsWrittenInPlaceWhenItIsOpened) {
  make("f", mib).reset();
  share("f", "copy", 72 * block_bytes, 2 * block_bytes);
  {
    const Fd fd(at() + "/f", O_RDWR | O_DIRECT);
    const auto data = filled(2 * block_bytes, 'B');
    ASSERT_EQ(::pwrite(fd, data.data(), data.size(), 72 * block_bytes), ssize_t(data.size()));
    ASSERT_TRUE(disk->remove("copy").ok());
    wait_until_not_shared(fd);
  }
  auto file = disk->open("f", OpenMode::read_write).take();
  ASSERT_EQ(*file->watch(false), Sharing::none);
  expect_written_in_place(*file);
}

class XfsOfLargeBlocksTest : public XfsTest {
 protected:
  void SetUp() override {
    mount({FileSystem::xfs, "-b size=16k", ""});
    if (mounted) open_disk();
  }
};

TEST_F(XfsOfLargeBlocksTest, FlushesEachFileAndOpensOneThatIsOrWasShared) {
  auto file = make("f", mib);
  EXPECT_TRUE(file->needs_own_flush());
  share("f", "copy", 256 << 10, 64 << 10);
  ASSERT_EQ(*file->watch(false), Sharing::shared);
  ASSERT_TRUE(file->write(260 << 10, filled(block_bytes, 'B').span()).ok());
  ASSERT_TRUE(file->flush().ok());
  file.reset();
  for (const bool is_shared : {true, false}) {
    if (!is_shared) {
      ASSERT_TRUE(disk->remove("copy").ok());
      wait_until_not_shared(Fd(at() + "/f", O_RDONLY));
    }
    auto opened = disk->open("f", OpenMode::read_write);
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    file = opened.take();
    ASSERT_TRUE(file->watch(false).ok());
    expect_content(*file, 256 << 10, block_bytes, 'A');
    expect_content(*file, 260 << 10, block_bytes, 'B');
    EXPECT_TRUE(file->needs_own_flush());
    file.reset();
  }
}

class Ext4Test : public RealFileSystemTest {
 protected:
  void mount_ext4(const std::string& mkfs, const std::string& options) {
    mount({FileSystem::ext4, mkfs, options});
    if (mounted) open_disk();
  }
  bool writes_in_place() {
    auto file = make("in place?", mib);
    return file->unwritten()->empty();
  }
};

// As e4defrag does it: the blocks of two files change places, with what is in them.
void exchange_blocks(const std::string& a, const std::string& b, uint64_t bytes) {
  const Fd from(a, O_RDWR), to(b, O_RDWR);
  struct {
    uint32_t reserved, donor_fd;
    uint64_t orig_start, donor_start, len, moved_len;
  } range = {0, uint32_t(int(to)), 0, 0, bytes / block_bytes, 0};
  ASSERT_EQ(::ioctl(from, _IOWR('f', 15, decltype(range)), &range), 0) << std::strerror(errno);
  ASSERT_EQ(range.moved_len, range.len);
}

// Of one extent, which is in the inode, and of many, which are not.
class Ext4DefragmenterTest : public Ext4Test, public testing::WithParamInterface<unsigned> {};

TEST_P(Ext4DefragmenterTest, WhatIsFlushedBehindItSurvivesAPowerCut) {
  mount_ext4("", "commit=300");
  if (!disk) return;
  const unsigned pieces = GetParam();
  const uint64_t piece = 64 << 10, bytes = pieces * piece;
  auto file = disk->open("f", OpenMode::create_new).take();
  auto between = disk->open("between", OpenMode::create_new).take();
  for (uint64_t at = 0; at < bytes; at += piece)
    for (File* each : {file.get(), between.get()})
      ASSERT_TRUE(each->allocate(at, piece).ok());
  ASSERT_TRUE(file->write(0, filled(bytes, 'A').span()).ok());
  auto donor = make("donor", bytes);
  donor.reset();
  ASSERT_TRUE(*disk->flush_all());
  ASSERT_EQ(*file->watch(false), Sharing::none);
  const uint64_t place = place_of(*file, 0);
  std::atomic<bool> moved{false};
  std::thread defragmenter([&] {
    exchange_blocks(at() + "/f", at() + "/donor", bytes);
    moved = true;
  });
  while (!moved) ASSERT_TRUE(file->watch(false).ok());
  defragmenter.join();
  ASSERT_NE(place_of(*file, 0), place);
  ASSERT_TRUE(file->write(0, filled(bytes, 'B').span()).ok());
  ASSERT_TRUE(file->flush().ok());
  const std::string copy = directory.path() + "/power was cut";
  ASSERT_NO_FATAL_FAILURE(mount_copy({FileSystem::ext4, "", ""}, copy));
  auto survived = open_file_disk(copy, {}).take();
  expect_content(*survived->open("f", OpenMode::read_only).take(), 0, bytes, 'B');
  ::umount2(copy.c_str(), MNT_DETACH);
}

INSTANTIATE_TEST_SUITE_P(Extents, Ext4DefragmenterTest, testing::Values(1, 16));

// What fdatasync() asks about the file must not get old; ext4 shows it by the file's time.
TEST_F(Ext4Test, AFileThatIsNeverClosedIsChangedNowAndThen) {
  mount_ext4("", "");
  if (!disk) return;
  auto file = make("f", mib);
  auto changed_at = [&] {
    struct stat st;
    EXPECT_EQ(::fstat(fd_of(*file), &st), 0);
    return std::pair(st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
  };
  const auto before = changed_at();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(*file->watch(true), Sharing::none);
  EXPECT_GT(changed_at(), before);
  expect_content(*file, 0, mib, 'A');
}

TEST_F(Ext4Test, WithItsDefaultsIsWrittenInPlace) {
  mount_ext4("", "");
  if (!disk) return;
  EXPECT_TRUE(troubles().empty());
  EXPECT_TRUE(writes_in_place());
}

TEST_F(Ext4Test, WithoutOrderOfDataIsWrittenInPlace) {
  mount_ext4("", "data=writeback");
  if (!disk) return;
  EXPECT_EQ(troubles(), std::set<std::string>{"FS_UNSAFE"});
  EXPECT_FALSE(disk->concerns().at(0).refuses_mkfs);
  EXPECT_TRUE(writes_in_place());
}

TEST_F(Ext4Test, WithDataInTheJournalIsNotDirectAlsoWhereTheKernelDoesNotTell) {
  mount_ext4("", "data=journal");
  if (!disk) return;
  EXPECT_EQ(troubles(), std::set<std::string>{"NOT_DIRECT_IO"});
  EXPECT_FALSE(writes_in_place());
  std::thread([&] {
    forbid(__NR_statx, ENOSYS);  // kernels before 6.1 do not know the question
    std::filesystem::remove(at() + "/in place?");
    open_disk();
    EXPECT_EQ(troubles(), std::set<std::string>{"NOT_DIRECT_IO"});
    EXPECT_FALSE(writes_in_place());
  }).join();
}

TEST_F(Ext4Test, WithoutAJournalIsUnsafe) {
  mount_ext4("-O ^has_journal", "");
  if (!disk) return;
  EXPECT_EQ(troubles(), std::set<std::string>{"FS_UNSAFE"});
  EXPECT_FALSE(disk->concerns().at(0).refuses_mkfs);
}

TEST_F(Ext4Test, WithoutBarriersIsRefused) {
  mount_ext4("", "nobarrier");
  if (!disk) return;
  EXPECT_EQ(troubles(), std::set<std::string>{"FS_UNSAFE"});
  EXPECT_TRUE(disk->concerns().at(0).refuses_mkfs);
}

TEST_F(Ext4Test, AFileThatIsJournalledIsRefusedAlsoWhereTheKernelDoesNotTell) {
  // As chattr +j does it, which needs a capability: the flags are those of extents and of that.
  // With delayed allocation ext4 would not heed it.
  mount({FileSystem::ext4, "", "nodelalloc"},
        "head -c 4096 /dev/zero >$IMAGE.f && "
        "printf 'write %s f\nsif f flags 0x84000\n' $IMAGE.f | "
        "debugfs -w -f - $IMAGE >/dev/null 2>&1");
  if (!mounted) return;
  open_disk();
  auto refused = [&] {
    const auto file = disk->open("f", OpenMode::read_write);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().code(), ENOTSUP);
    EXPECT_NE(file.status().what().find(at() + "/f"), std::string::npos) << file.status().what();
  };
  refused();
  std::thread([&] {
    forbid(__NR_statx, ENOSYS);
    refused();
  }).join();
}

// With a key that the kernel has; what is made in the directory is encrypted.
bool encrypt(const std::string& mounted_at, const std::string& dir) {
  constexpr size_t raw_bytes = 64;
  alignas(struct fscrypt_add_key_arg)
      std::byte memory[sizeof(struct fscrypt_add_key_arg) + raw_bytes] = {};
  auto* key = reinterpret_cast<struct fscrypt_add_key_arg*>(memory);
  key->key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER;
  key->raw_size = raw_bytes;
  const Fd root(mounted_at, O_RDONLY | O_DIRECTORY);
  if (::ioctl(root, FS_IOC_ADD_ENCRYPTION_KEY, key) != 0) return false;
  struct fscrypt_policy_v2 policy = {};
  policy.version = FSCRYPT_POLICY_V2;
  policy.contents_encryption_mode = FSCRYPT_MODE_AES_256_XTS;
  policy.filenames_encryption_mode = FSCRYPT_MODE_AES_256_CTS;
  std::memcpy(policy.master_key_identifier, key->key_spec.u.identifier,
              sizeof(policy.master_key_identifier));
  const Fd fd(dir, O_RDONLY | O_DIRECTORY);
  return ::ioctl(fd, FS_IOC_SET_ENCRYPTION_POLICY, &policy) == 0;
}

TEST_F(Ext4Test, AnEncryptedDirectoryIsNotDirectAlsoWhereTheKernelDoesNotTell) {
  mount({FileSystem::ext4, "-O encrypt", ""});
  if (!mounted) return;
  const std::string dir = at() + "/secret";
  std::filesystem::create_directory(dir);
  if (!encrypt(at(), dir)) GTEST_SKIP() << "no encryption: " << std::strerror(errno);
  auto is_direct = [&] {
    auto opened = open_file_disk(dir, {});
    EXPECT_TRUE(opened.ok());
    const auto concerns = (*opened)->concerns();
    if (concerns.empty()) return true;
    EXPECT_EQ(concerns.at(0).trouble, "NOT_DIRECT_IO");
    return false;
  };
  EXPECT_FALSE(is_direct());
  std::thread([&] {
    forbid(__NR_statx, ENOSYS);
    EXPECT_FALSE(is_direct());
  }).join();
}

}  // namespace
}  // namespace tablestore::powercut
