// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Which directories are opened, which are refused, and that a refusal changes nothing on disk.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/resource.h>

#include "common/config.h"
#include "common/perf_counters.h"
#include "global/global_context.h"
#include "os/tablestore/home/device_info.h"
#include "test/objectstore/tablestore/child_program.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;
namespace fs = std::filesystem;

namespace {

/// Status: 0 where the mount succeeded, else the errno.
int mount_only(const std::string& dir, int)
{
  auto store = make_store(store_type(), dir);
  const int r = store->mount();
  if (r == 0)
    store->umount();
  return -r;
}
const ChildProgram mount_program{"mount", &mount_only};

constexpr int many_containers = 66;

/// A tool in a shell whose limits are low: status 0 where it finds all objects, and can write.
int use_with_few_descriptors(const std::string& dir, int)
{
  const struct rlimit few = {64, 64};
  if (::setrlimit(RLIMIT_NOFILE, &few) != 0)
    return errno;
  auto store = make_store(store_type(), dir);
  if (int r = store->mount(); r < 0)
    return -r;
  int status = 0;
  {
    Handle ch = store->open_collection(pg(1));
    for (int i = 0; i < many_containers; ++i) {
      bufferlist found;
      const auto oid = object("o" + std::to_string(i));
      if (store->read(ch, oid, 0, 0, found) < 0 || !same(content(i, 4 * MiB), found))
        status = EIO;
      Transaction t;
      bufferlist bl = content(i + 1, 4096);
      t.write(ch->cid, oid, 0, bl.length(), bl);
      tablestore_test::queue(*store, ch, std::move(t));
    }
    wait_durable(ch);
  }
  store->umount();
  return status;
}
const ChildProgram few_descriptors_program{"few descriptors", &use_with_few_descriptors};

void replace_file(const std::string& path, const std::string& text)
{
  std::ofstream(path, std::ios::trunc) << text;
}

}  // namespace

class StoreOpen : public StoreFixture {
 protected:
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }
  void fill()
  {
    ch = make_collection(pg(1));
    write(ch, object("big"), 0, content(1, 200 * KiB));
    write(ch, object("small"), 0, content(2, 200));
    wait_durable(ch);
  }
  void expect_filled()
  {
    ch = store->open_collection(pg(1));
    ASSERT_TRUE(ch);
    EXPECT_TRUE(same(content(1, 200 * KiB), read(ch, object("big"))));
    EXPECT_TRUE(same(content(2, 200), read(ch, object("small"))));
  }
  void close()
  {
    ch.reset();
    umount();
  }

  Handle ch;
};

class StoreOpenOfSmallContainers : public StoreOpen {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "of TableStore alone";
    set("tablestore_container_size", "4M");
    StoreOpen::SetUp();
  }
};

TEST_F(StoreOpenOfSmallContainers, FewerFilesMayBeOpenThanThereAre)
{
  ch = make_collection(pg(1));
  for (int i = 0; i < many_containers; ++i)
    write(ch, object("o" + std::to_string(i)), 0, content(i, 4 * MiB));
  wait_durable(ch);
  ch.reset();
  umount();
  EXPECT_EQ(0, Child("few descriptors", dir).wait());
  reopen();
  ch = store->open_collection(pg(1));
  for (int i = 0; i < many_containers; ++i)
    EXPECT_TRUE(same(content(i + 1, 4096), read(ch, object("o" + std::to_string(i)), 0, 4096)));
}

TEST_F(StoreOpen, SecondInstanceInThisProcessIsRefused)
{
  if (store_type() == "memstore")
    GTEST_SKIP() << "knows no other instance";
  fill();
  auto second = make_store(store_type(), dir);
  EXPECT_LT(second->mount(), 0);
  if (is_tablestore()) {
    EXPECT_TRUE(second->test_mount_in_use());
    EXPECT_LT(second->mount_readonly(), 0);
    EXPECT_LT(second->mkfs(), 0);
    EXPECT_LT(second->fsck(false), 0);
  }
  second.reset();
  // The first is as it was.
  write(ch, object("more"), 0, content(3, 10000));
  EXPECT_TRUE(same(content(3, 10000), read(ch, object("more"))));
  remount({&ch});
  expect_filled();
}

TEST_F(StoreOpen, SecondProcessIsRefused)
{
  if (store_type() == "memstore")
    GTEST_SKIP();
  fill();
  EXPECT_NE(0, Child("mount", dir).wait());
  close();
  EXPECT_EQ(0, Child("mount", dir).wait());
  reopen();
  expect_filled();
}

TEST_F(StoreOpen, InUseEndsWithTheMount)
{
  auto second = make_store(store_type(), dir);
  close();
  EXPECT_FALSE(second->test_mount_in_use());
  second.reset();
  reopen();
}

TEST_F(StoreOpen, OneInstanceIsMountedManyTimes)
{
  fill();
  for (int i = 0; i < 10; ++i) {
    write(ch, object("round"), 0, content(100 + i, 5000));
    close();
    ASSERT_EQ(0, store->mount());
    mounted = true;
    expect_filled();
    EXPECT_TRUE(same(content(100 + i, 5000), read(ch, object("round"))));
  }
}

TEST_F(StoreOpen, AHandleMayBeKeptFromOneMountToTheNext)
{
  fill();
  const Handle kept = ch;
  for (int i = 0; i < 3; ++i) {
    close();
    ASSERT_EQ(0, store->mount());
    mounted = true;
    ch = kept;
    write(ch, object("round"), 0, content(100 + i, 5000));
    ch->flush();
    EXPECT_TRUE(same(content(100 + i, 5000), read(ch, object("round"))));
    EXPECT_EQ(3u, list(ch).size());
  }
}

TEST_F(StoreOpen, MkfsOfAMadeStoreChangesNothing)
{
  fill();
  close();
  reopen(false);
  EXPECT_EQ(0, store->mkfs());
  ASSERT_EQ(0, store->mount());
  mounted = true;
  if (store_type() != "memstore")
    expect_filled();
}

TEST_F(StoreOpen, MkfsWithAnotherFsidIsRefused)
{
  if (!is_tablestore())
    GTEST_SKIP();
  fill();
  close();
  const auto before = snapshot_of(dir);
  reopen(false);
  uuid_d other;
  other.generate_random();
  store->set_fsid(other);
  EXPECT_EQ(-EINVAL, store->mkfs());
  EXPECT_EQ(before, snapshot_of(dir));
  reopen();
  expect_filled();
}

TEST_F(StoreOpen, FsidIsKept)
{
  const uuid_d fsid = store->get_fsid();
  EXPECT_FALSE(fsid.is_zero());
  remount();
  EXPECT_EQ(fsid, store->get_fsid());
}

TEST_F(StoreOpen, MetaIsWrittenAndReadWithoutAMount)
{
  close();
  EXPECT_EQ(0, store->write_meta("whoami", "7"));
  reopen(false);
  std::string value;
  EXPECT_EQ(0, store->read_meta("whoami", &value));
  EXPECT_EQ("7", value);
  EXPECT_EQ(0, store->read_meta("type", &value));
  EXPECT_EQ(store_type(), value);
  EXPECT_LT(store->read_meta("no such key", &value), 0);
  ASSERT_EQ(0, store->mount());
  mounted = true;
}

TEST_F(StoreOpen, ReadOnlyMountReadsAndRefusesTransactions)
{
  if (!is_tablestore())
    GTEST_SKIP() << "aborts";
  set("objectstore_debug_throw_on_failed_txc", "true");
  fill();
  close();
  reopen(false);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(0, store->mount_readonly());
    expect_filled();
    EXPECT_EQ(2u, list(ch).size());
    Transaction t;
    t.remove(ch->cid, object("big"));
    EXPECT_THROW(queue(ch, std::move(t)), int);
    expect_filled();
    ch.reset();
    EXPECT_EQ(0, store->umount_readonly());
  }
  ASSERT_EQ(0, store->mount());
  mounted = true;
  expect_filled();
  remove(ch, object("big"));
  EXPECT_EQ(1u, list(ch).size());
}

TEST_F(StoreOpen, FlushCacheKeepsEverythingReadable)
{
  fill();
  if (store_type() == "memstore")
    GTEST_SKIP();
  for (int i = 0; i < 5; ++i) {
    write(ch, object("hot"), 0, content(10 + i, 50000));
    EXPECT_EQ(0, store->flush_cache());
    EXPECT_TRUE(same(content(10 + i, 50000), read(ch, object("hot"))));
  }
  expect_filled();
}

TEST_F(StoreOpen, DescribesItselfBeforeAndAfterMount)
{
  close();
  reopen(false);
  std::set<std::string> devices;
  if (is_tablestore()) {
    EXPECT_EQ(0, store->get_devices(&devices));
    EXPECT_FALSE(devices.empty());
    EXPECT_TRUE(store->has_builtin_csum());
    EXPECT_EQ(4096u, store->get_min_alloc_size());
    EXPECT_EQ(256u, store->get_max_attr_name_length());
  }
  store->is_rotational();
  ASSERT_EQ(0, store->mount());
  mounted = true;
  EXPECT_EQ(store_type(), store->get_type());
  if (is_tablestore()) {
    std::map<std::string, std::string> metadata;
    store->collect_metadata(&metadata);
    EXPECT_FALSE(metadata.empty());
    for (const auto& [key, value] : metadata)
      EXPECT_FALSE(value.empty()) << key;
  }
  if (store_type() != "memstore") {
    EXPECT_NE(nullptr, store->get_perf_counters());
  }
  store->get_cur_stats();
  store->refresh_perf_counters();
}

/// Directories that are not, or no longer, a store of ours.
class StoreRefusal : public StoreOpen {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "knows tablestore's files";
    StoreOpen::SetUp();
    expect_clean = false;
  }
  void expect_mount_refused()
  {
    const auto before = snapshot_of(dir);
    reopen(false);
    EXPECT_LT(store->mount(), 0);
    EXPECT_LT(store->mount_readonly(), 0);
    EXPECT_EQ(before, snapshot_of(dir));
  }
};

TEST_F(StoreRefusal, EmptyDirectoryIsNotMounted)
{
  close();
  store.reset();
  fs::remove_all(dir);
  fs::create_directory(dir);
  expect_mount_refused();
  EXPECT_TRUE(fs::is_empty(dir));
}

TEST_F(StoreRefusal, MissingDirectoryIsNotMounted)
{
  close();
  store.reset();
  fs::remove_all(dir);
  reopen(false);
  EXPECT_LT(store->mount(), 0);
  EXPECT_LT(store->mkfs(), 0);
  EXPECT_FALSE(fs::exists(dir));
}

TEST_F(StoreRefusal, ForeignFsidIsNotMounted)
{
  fill();
  close();
  replace_file(dir + "/fsid", "11111111-2222-3333-4444-555555555555\n");
  expect_mount_refused();
}

TEST_F(StoreRefusal, FsidOfZerosIsNotMounted)
{
  close();
  replace_file(dir + "/fsid", "00000000-0000-0000-0000-000000000000\n");
  expect_mount_refused();
}

TEST_F(StoreRefusal, FsidThatIsNoUuidIsNotMounted)
{
  close();
  replace_file(dir + "/fsid", "no uuid\n");
  expect_mount_refused();
}

TEST_F(StoreRefusal, MissingLabelIsNotMounted)
{
  close();
  fs::remove(dir + "/label");
  expect_mount_refused();
}

TEST_F(StoreRefusal, EmptyLabelIsNotMounted)
{
  close();
  fs::resize_file(dir + "/label", 0);
  expect_mount_refused();
}

TEST_F(StoreRefusal, MissingTableIsNotMounted)
{
  fill();
  close();
  fs::remove_all(dir + "/table");
  expect_mount_refused();
}

TEST_F(StoreRefusal, MissingLogIsNotMounted)
{
  fill();
  close();
  fs::remove_all(dir + "/log");
  expect_mount_refused();
}

TEST_F(StoreRefusal, MkfsLeavesAStoreOfAnotherTypeAlone)
{
  close();
  store.reset();
  fs::remove_all(dir);
  fs::create_directory(dir);
  replace_file(dir + "/type", "bluestore\n");
  replace_file(dir + "/block", "precious\n");
  const auto before = snapshot_of(dir);
  reopen(false);
  EXPECT_LT(store->mkfs(), 0);
  EXPECT_LT(store->mount(), 0);
  EXPECT_EQ(before, snapshot_of(dir));
}

TEST(DeviceInfo, TheKernelTellsOfFastCommits)
{
  std::istringstream used("fc stats:\n17 commits\n2 ineligible\n40 numblks\n"),
      off("fc stats:\n0 commits\n0 ineligible\n0 numblks\n"), none;
  EXPECT_EQ(17u, tablestore::DeviceInfo::fast_commits_of(used));
  EXPECT_EQ(0u, tablestore::DeviceInfo::fast_commits_of(off));
  EXPECT_EQ(0u, tablestore::DeviceInfo::fast_commits_of(none));
}

TEST_F(StoreRefusal, InterruptedMkfsIsContinued)
{
  // `fsid` is written last: without it there is no store yet.
  close();
  fs::resize_file(dir + "/fsid", 0);
  reopen(false);
  ASSERT_EQ(0, store->mkfs());
  ASSERT_EQ(0, store->mount());
  mounted = true;
  fill();
  expect_filled();
}
