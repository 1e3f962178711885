// What the engine makes of what the kernel says of a file system.
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

#include "memory_disk.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/file_system_facts.h"
#include "test_directory.h"

namespace tablestore {
namespace {

// A machine of its own, with the file system on a partition, device 8:1.
class FileSystemFactsTest : public testing::Test {
 protected:
  void SetUp() override {
    put("sys/devices/sda/queue/write_cache", "write back\n");
    put("sys/devices/sda/sda1/partition", "1\n");
    std::filesystem::create_directories(root() + "/sys/dev/block");
    std::filesystem::create_symlink("../../devices/sda/sda1", root() + "/sys/dev/block/8:1");
  }
  std::string root() const { return directory.path(); }
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void mounted(const std::string& type, const std::string& options) {
    put("proc/self/mountinfo",
        "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
        "30 27 8:1 /store /var/lib/ceph rw,noatime shared:7 master:1 - " + type + " /dev/sda1 " +
            options + "\n31 27 8:17 / /mnt rw - xfs /dev/sdb1 rw,nobarrier\n");
  }
  void ext4_lists(const std::string& options) { put("proc/fs/ext4/sda1/options", options); }
  FileSystemFacts facts() const { return facts_of(makedev(8, 1), root()); }
  std::vector<Concern> concerns() const { return concerns_about(facts(), "/store"); }

  TestDirectory directory;
};

TEST_F(FileSystemFactsTest, PlainExt4AndXfsAreNoConcern) {
  mounted("ext4", "rw,discard");
  ext4_lists("rw\nbarrier\ndata=ordered\ncommit=5\n");
  EXPECT_EQ(facts().type, "ext4");
  EXPECT_TRUE(facts().options.contains("data=ordered"));
  EXPECT_TRUE(facts().options.contains("discard"));
  EXPECT_TRUE(facts().has_volatile_cache);
  EXPECT_TRUE(concerns().empty());
  mounted("xfs", "rw,attr2,inode64,noquota");
  EXPECT_EQ(facts().type, "xfs");
  EXPECT_TRUE(concerns().empty());
}

TEST_F(FileSystemFactsTest, NothingIsSaidWhereNothingIsKnown) {
  EXPECT_TRUE(concerns().empty());
  mounted("ext4", "rw");  // without the list of all options, a journal is not missing
  EXPECT_TRUE(concerns().empty());
  EXPECT_TRUE(concerns_about(facts_of(makedev(9, 9), root()), "/store").empty());
}

TEST_F(FileSystemFactsTest, Ext4WithoutAJournalIsUnsafe) {
  mounted("ext4", "rw");
  ext4_lists("rw\nbarrier\ncommit=5\n");
  ASSERT_EQ(concerns().size(), 1u);
  EXPECT_EQ(concerns()[0].trouble, "FS_UNSAFE");
  EXPECT_FALSE(concerns()[0].refuses_mkfs);
  EXPECT_NE(concerns()[0].line.find("/store is on ext4 without a journal"), std::string::npos);
  EXPECT_NE(concerns()[0].line.find("tune2fs -O has_journal"), std::string::npos);
}

TEST_F(FileSystemFactsTest, Ext4ThatReusesWhatIsNotYetFreeIsUnsafe) {
  mounted("ext4", "rw");
  ext4_lists("rw\nbarrier\ndata=writeback\n");
  ASSERT_EQ(concerns().size(), 1u);
  EXPECT_EQ(concerns()[0].trouble, "FS_UNSAFE");
  EXPECT_FALSE(concerns()[0].refuses_mkfs);
  EXPECT_NE(concerns()[0].line.find("data=ordered"), std::string::npos);
}

TEST_F(FileSystemFactsTest, AJournalOnAnotherDeviceIsUnsafeBeforeLinux615) {
  mounted("ext4", "rw");
  ext4_lists("rw\nbarrier\ndata=ordered\n");
  put("proc/sys/kernel/osrelease", "5.14.0-427.el9.x86_64\n");
  EXPECT_TRUE(concerns().empty()) << "nothing is known of journals";
  put("proc/fs/jbd2/sda1-8/info", "");
  EXPECT_TRUE(concerns().empty());
  std::filesystem::remove_all(root() + "/proc/fs/jbd2");
  put("proc/fs/jbd2/sdb1/info", "");
  put("proc/fs/jbd2/sda12-8/info", "");
  ASSERT_EQ(concerns().size(), 1u);
  EXPECT_EQ(concerns()[0].trouble, "FS_UNSAFE");
  EXPECT_FALSE(concerns()[0].refuses_mkfs);
  for (const char* release : {"6.15.0\n", "6.18.44-fc\n", "7.0\n"}) {
    put("proc/sys/kernel/osrelease", release);
    EXPECT_TRUE(concerns().empty()) << release;
  }
}

TEST_F(FileSystemFactsTest, AnOverlayThatFlushesNothingIsRefused) {
  mounted("overlay", "rw,lowerdir=/l,upperdir=/u,workdir=/w");
  EXPECT_TRUE(concerns().empty());
  mounted("overlay", "rw,lowerdir=/l,upperdir=/u,workdir=/w,volatile");
  ASSERT_EQ(concerns().size(), 1u);
  EXPECT_TRUE(concerns()[0].refuses_mkfs);
}

TEST_F(FileSystemFactsTest, NoBarriersAreRefusedUnlessTheDiskHasNoCacheToEmpty) {
  for (const char* options : {"rw,nobarrier,data=ordered", "rw,barrier=0"}) {
    mounted("ext4", options);
    ASSERT_EQ(concerns().size(), 1u) << options;
    EXPECT_EQ(concerns()[0].trouble, "FS_UNSAFE");
    EXPECT_TRUE(concerns()[0].refuses_mkfs);
    EXPECT_NE(concerns()[0].line.find("nobarrier"), std::string::npos);
  }
  mounted("xfs", "rw,nobarrier");
  EXPECT_EQ(concerns().size(), 1u);
  put("sys/devices/sda/queue/write_cache", "write through\n");
  EXPECT_TRUE(concerns().empty());
}

TEST_F(FileSystemFactsTest, Ext2AndExt3AreRefused) {
  for (const char* type : {"ext2", "ext3"}) {
    mounted(type, "rw");
    ASSERT_EQ(concerns().size(), 1u) << type;
    EXPECT_TRUE(concerns()[0].refuses_mkfs);
  }
}

TEST_F(FileSystemFactsTest, WhyThereIsNoDirectIoIsSaid) {
  mounted("ext4", "rw,data=journal");
  EXPECT_EQ(not_direct(facts(), "/store").trouble, "NOT_DIRECT_IO");
  EXPECT_NE(not_direct(facts(), "/store").line.find("mount it with data=ordered"),
            std::string::npos);
  mounted("ext4", "rw,data=ordered");
  EXPECT_NE(not_direct(facts(), "/store").line.find("encryption"), std::string::npos);
  mounted("btrfs", "rw");
  EXPECT_NE(not_direct(facts(), "/store").line.find("ext4 or XFS"), std::string::npos);
}

class UnsafeDisk : public MemoryDisk {
 public:
  UnsafeDisk() : MemoryDisk(1 << 30) {}
  std::vector<Concern> concerns() override { return {{"FS_UNSAFE", "no barriers", true}}; }
};

TEST(EngineOnAnUnsafeFileSystem, IsNotMade) {
  UnsafeDisk disk;
  EngineOptions options;
  options.store_uuid = "0123456789abcdef";
  const Status s = Engine::format(disk, options);
  EXPECT_EQ(s.code(), ENOTSUP);
  EXPECT_EQ(s.what(), "no barriers");
  EXPECT_TRUE(disk.list("")->empty());
}

}  // namespace
}  // namespace tablestore
