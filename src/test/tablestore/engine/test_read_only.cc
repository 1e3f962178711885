// A store that is opened for reading: all is there, what the log alone has as well, and nothing on
// the disk changes.
#include <sys/mount.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "os/tablestore/engine/format/label.h"
#include "os/tablestore/engine/io/frozen_disk.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

namespace fs = std::filesystem;

// Everything below a directory: names, bytes, sizes, and the times of the last change, also of
// directories.
std::map<std::string, std::string> everything_in(const std::string& directory) {
  std::map<std::string, std::string> all;
  auto add = [&](const fs::path& path) {
    struct stat st;
    EXPECT_EQ(::lstat(path.c_str(), &st), 0);
    std::string text = std::to_string(st.st_ino) + " " + std::to_string(st.st_blocks) + " " +
                       std::to_string(st.st_mtim.tv_sec) + "." +
                       std::to_string(st.st_mtim.tv_nsec) + " " +
                       std::to_string(st.st_ctim.tv_sec) + "." +
                       std::to_string(st.st_ctim.tv_nsec) + " ";
    if (S_ISREG(st.st_mode)) {
      std::ifstream in(path, std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)), {});
      text += std::to_string(std::hash<std::string>()(bytes));
    }
    all[path.string()] = text;
  };
  add(directory);
  for (const auto& entry : fs::recursive_directory_iterator(directory)) add(entry.path());
  return all;
}

class ReadOnlyTest : public EngineFixture {
 protected:
  // Some of it in the table's files, some in the log alone: as after a kill -9.
  void fill_and_kill() {
    format();
    open();
    for (int i = 0; i < 20; ++i) put(i);
    ASSERT_TRUE(engine->checkpoint().ok());
    for (int i = 20; i < 40; ++i) put(i);
    auto txn = std::make_shared<Txn>();
    txn->erase(Family::object, "key0");
    txn->free(written[0].extents[0]);
    commit(txn);
    engine.reset();
    disk.reset();
  }
  void put(int i) {
    auto txn = std::make_shared<Txn>();
    written[i] = write(*txn, 3, uint64_t(i));
    txn->put(Family::object, "key" + std::to_string(i), "value" + std::to_string(i));
    commit(txn);
  }
  std::shared_ptr<Disk> frozen_disk() {
    FileDiskOptions o;
    o.read_only = true;
    o.lock_wait_ms = 100;
    auto opened = open_file_disk(directory, o);
    EXPECT_TRUE(opened.ok()) << opened.status().what();
    return freeze(std::shared_ptr<Disk>(opened.take()));
  }
  EngineOptions for_reading() const {
    EngineOptions o = options;
    o.read_only = true;
    return o;
  }
  void expect_filled() {
    EXPECT_EQ(get(Family::object, "key0"), std::nullopt);
    for (int i = 1; i < 40; ++i) {
      EXPECT_EQ(get(Family::object, "key" + std::to_string(i)), "value" + std::to_string(i));
      expect_data(written[i].extents, uint64_t(i));
    }
  }
  void read_all() {
    auto frozen = frozen_disk();
    auto opened = Engine::open(*frozen, for_reading());
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    engine = opened.take();
    expect_filled();
    EXPECT_TRUE(engine->find_table_damage().ok());
    EXPECT_TRUE(engine->close().ok());
    engine.reset();
  }

  std::map<int, Written> written;
};

TEST_F(ReadOnlyTest, AKilledStoreIsReadAndStaysAsItIs) {
  fill_and_kill();
  const auto before = everything_in(directory);
  read_all();
  EXPECT_EQ(everything_in(directory), before);
  read_all();
  EXPECT_EQ(everything_in(directory), before);
  disk = open_disk();
  open();
  expect_filled();
}

TEST_F(ReadOnlyTest, ADamagedCopyOfTheLabelStaysAsItIs) {
  fill_and_kill();
  std::fstream(directory + "/label").seekp(100).put('x');
  const auto before = everything_in(directory);
  read_all();
  EXPECT_EQ(everything_in(directory), before);
}

TEST_F(ReadOnlyTest, WhatIsWrittenIsSeenUntilTheEnd) {
  fill_and_kill();
  const auto before = everything_in(directory);
  auto frozen = frozen_disk();
  {
    auto opened = Engine::open(*frozen, for_reading());
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    engine = opened.take();
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, "more", "of it");
    commit(txn);
    ASSERT_TRUE(engine->checkpoint().ok());
    EXPECT_EQ(get(Family::object, "more"), "of it");
    engine.reset();
  }
  EXPECT_EQ(everything_in(directory), before);
}

TEST_F(ReadOnlyTest, AFileSystemThatIsMountedReadOnlyWillDo) {
  fill_and_kill();
  if (::mount(directory.c_str(), directory.c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "may not mount";
  EXPECT_EQ(::mount(nullptr, directory.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr),
            0);
  EXPECT_FALSE(std::ofstream(directory + "/new").good());
  read_all();
  EXPECT_EQ(::umount2(directory.c_str(), MNT_DETACH), 0);
}

TEST_F(ReadOnlyTest, SeveralMayReadAndNobodyMayWriteMeanwhile) {
  fill_and_kill();
  auto first = frozen_disk();
  auto opened = Engine::open(*first, for_reading());
  ASSERT_TRUE(opened.ok()) << opened.status().what();
  {
    auto second = frozen_disk();
    EXPECT_TRUE(Engine::open(*second, for_reading()).ok());
  }
  disk = open_disk();
  EXPECT_EQ(Engine::open(*disk, options).status().code(), EBUSY);
}

TEST_F(ReadOnlyTest, AStoreThatIsOpenIsRefused) {
  format();
  open();
  auto frozen = frozen_disk();
  EXPECT_EQ(Engine::open(*frozen, for_reading()).status().code(), EBUSY);
}

TEST_F(ReadOnlyTest, AStoreThatMayOnlyBeReadIsRead) {
  fill_and_kill();
  disk = open_disk();
  auto label = read_label(*disk);
  ASSERT_TRUE(label.ok());
  label->ro_compat = uint64_t(1) << 40;
  ASSERT_TRUE(write_label(*disk, *label).ok());
  EXPECT_EQ(Engine::open(*disk, options).status().code(), ENOTSUP);
  disk.reset();
  read_all();
}

TEST_F(ReadOnlyTest, ContainersMayBeMoreThanDescriptors) {
  options.container_bytes = 4 << 20;
  format();
  open();
  for (int i = 0; i < 30; ++i) {
    auto txn = std::make_shared<Txn>();
    written[i] = write(*txn, 512, uint64_t(i));
    commit(txn);
  }
  engine.reset();
  disk.reset();
  FileDiskOptions few;
  few.read_only = true;
  few.parkable_open_max = 4;
  auto opened = open_file_disk(directory, few);
  ASSERT_TRUE(opened.ok());
  auto frozen = freeze(std::shared_ptr<Disk>(opened.take()));
  const auto before = everything_in(directory);
  auto reader = Engine::open(*frozen, for_reading());
  ASSERT_TRUE(reader.ok()) << reader.status().what();
  engine = reader.take();
  for (int i = 0; i < 30; ++i) expect_data(written[i].extents, uint64_t(i));
  engine.reset();
  EXPECT_EQ(everything_in(directory), before);
}

TEST(FrozenDiskTest, NamesAreAddedAndRemovedInMemory) {
  const std::string directory = make_test_directory("frozen");
  std::ofstream(directory + "/old") << std::string(block_bytes, 'o');
  fs::create_directory(directory + "/d");
  FileDiskOptions o;
  o.read_only = true;
  auto opened = open_file_disk(directory, o);
  ASSERT_TRUE(opened.ok());
  auto frozen = freeze(std::shared_ptr<Disk>(opened.take()));
  EXPECT_EQ(frozen->open("old", OpenMode::create_new).status().code(), EEXIST);
  auto made = frozen->open("d/new", OpenMode::create_new);
  ASSERT_TRUE(made.ok());
  BlockMemory memory(2 * block_bytes);
  memory.zero();
  memory.data()[block_bytes] = std::byte(7);
  ASSERT_TRUE((*made)->write(block_bytes, memory.span()).ok());
  EXPECT_EQ((*made)->size_bytes(), 3 * block_bytes);
  BlockMemory found(3 * block_bytes);
  ASSERT_TRUE((*made)->read(0, found.span()).ok());
  EXPECT_EQ(found.data()[0], std::byte(0));
  EXPECT_EQ(found.data()[2 * block_bytes], std::byte(7));
  EXPECT_EQ((*made)->read(block_bytes, found.span()).code(), EIO);
  EXPECT_EQ(*frozen->list("d"), std::vector<std::string>{"new"});

  auto old = frozen->open("old", OpenMode::read_write);
  ASSERT_TRUE(old.ok());
  ASSERT_TRUE((*old)->write(block_bytes, memory.span().first(block_bytes)).ok());
  ASSERT_TRUE((*old)->read(0, found.span().first(2 * block_bytes)).ok());
  EXPECT_EQ(found.data()[0], std::byte('o'));
  EXPECT_EQ(found.data()[block_bytes], std::byte(0));
  ASSERT_TRUE(frozen->remove("old").ok());
  EXPECT_FALSE(*frozen->exists("old"));
  EXPECT_EQ(frozen->open("old", OpenMode::read_write).status().code(), ENOENT);
  EXPECT_EQ(frozen->rename("d/new", "d/newer").code(), EROFS);

  EXPECT_TRUE(fs::is_empty(directory + "/d"));
  EXPECT_EQ(fs::file_size(directory + "/old"), block_bytes);
  fs::remove_all(directory);
}

}  // namespace
}  // namespace tablestore
