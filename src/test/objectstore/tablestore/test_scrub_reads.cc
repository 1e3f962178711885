// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What deep scrub reads is what the disk holds, whatever is in a cache.
#include <atomic>

#include "global/global_context.h"
#include "include/rados.h"
#include "os/tablestore/TableStore.h"
#include "rocksdb/file_system.h"
#include "test/objectstore/tablestore/damage_fixture.h"
#include "test/objectstore/tablestore/flaky_disk.h"
#include "test/objectstore/tablestore/wrapped_surroundings.h"

using namespace tablestore_test;

class StoreScrubReads : public DamageFixture {
 protected:
  /// As deep scrub's.
  static constexpr uint32_t flags = CEPH_OSD_OP_FLAG_FADVISE_SEQUENTIAL |
                                    CEPH_OSD_OP_FLAG_FADVISE_DONTNEED |
                                    CEPH_OSD_OP_FLAG_BYPASS_CLEAN_CACHE;
  static constexpr uint64_t small = 1000;   ///< inline

  void SetUp() override
  {
    // Rows are found in the files by their bytes.
    set("tablestore_table_options", "compression=kNoCompression;disable_auto_compactions=true");
    DamageFixture::SetUp();
  }
  void write_applied(const ghobject_t& oid, const bufferlist& bl)
  {
    write(ch, oid, 0, bl);
    wait_durable(ch);
    omap(ch, oid);   // waits for rows
    ch->flush();
  }
  bufferlist scrub(const ghobject_t& oid)
  {
    bufferlist bl;
    EXPECT_LE(0, store->read(ch, oid, 0, 0, bl, flags));
    return bl;
  }
  int scrub_error(const ghobject_t& oid) { return read_error(oid, 0, 0, flags); }
  /// All rows go to files.
  void flush_table() { ASSERT_EQ(0, store->compact()); }
};

TEST_F(StoreScrubReads, DataIsReadFromTheDiskThoughItIsInTheCache)
{
  write_applied(victim, content(1, size));
  write_applied(other, content(2, size));
  for (const ghobject_t& oid : {victim, other})
    read(ch, oid);   // into the cache
  EXPECT_TRUE(same(content(1, size), scrub(victim)));
  expect_clean = false;
  flip_bit(find_content(1, 20000));
  EXPECT_TRUE(same(content(1, size), read(ch, victim))) << "from the cache";
  EXPECT_EQ(-EIO, scrub_error(victim));
  interval_set<uint64_t> pieces;
  pieces.insert(0, 100);
  pieces.insert(20000, 100);
  bufferlist bl;
  EXPECT_EQ(-EIO, store->readv(ch, victim, pieces, bl, flags));
  EXPECT_TRUE(same(content(2, size), scrub(other)));
  EXPECT_TRUE(same(content(1, size), read(ch, victim))) << "still there";
}

TEST_F(StoreScrubReads, AScrubLeavesNothingInTheCache)
{
  write_applied(victim, content(1, size));
  store->flush_cache(nullptr);
  scrub(victim);
  EXPECT_EQ(0u, counter("data_cache_bytes"));
}

TEST_F(StoreScrubReads, WhatIsStillOnItsWayIsRead)
{
  for (unsigned i = 0; i < 50; ++i) {
    write(ch, victim, 0, content(i, size));
    write(ch, other, 0, content(100 + i, small));
    EXPECT_TRUE(same(content(i, size), scrub(victim)));
    EXPECT_TRUE(same(content(100 + i, small), scrub(other)));
  }
}

TEST_F(StoreScrubReads, InlineDataIsReadFromTheDiskThoughItIsInTheCache)
{
  write_applied(victim, content(1, small));
  write_applied(other, content(2, small));
  EXPECT_TRUE(same(content(1, small), scrub(victim))) << "in no file of the table yet";
  flush_table();
  EXPECT_TRUE(same(content(1, small), scrub(victim)));
  read(ch, victim);
  expect_clean = false;
  const Place place = find(content(1, 512).to_str(), "/table");
  flip_bit(place);
  EXPECT_TRUE(same(content(1, small), read(ch, victim))) << "from the cache";
  EXPECT_EQ(-EIO, scrub_error(victim));
  flip_bit(place);
  EXPECT_TRUE(same(content(1, small), scrub(victim)));
  EXPECT_TRUE(same(content(2, small), scrub(other)));
}

TEST_F(StoreScrubReads, RotOfAnInlineRowThatIsReplacedDoesNotMatter)
{
  write_applied(victim, content(1, small));
  flush_table();
  expect_clean = false;
  flip_bit(find(content(1, 512).to_str(), "/table"));
  write_applied(victim, content(2, small));
  EXPECT_TRUE(same(content(2, small), scrub(victim))) << "not in a file yet";
}

namespace {

/// Counts how often files of the table are opened.
class CountingFs : public rocksdb::FileSystemWrapper {
 public:
  CountingFs(const std::shared_ptr<rocksdb::FileSystem>& below, std::atomic<unsigned>& opened)
    : FileSystemWrapper(below), opened(opened) {}
  const char* Name() const override { return "CountingFs"; }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* out,
                                        rocksdb::IODebugContext* dbg) override
  {
    opened += path.ends_with(".sst");
    return FileSystemWrapper::NewRandomAccessFile(path, options, out, dbg);
  }

 private:
  std::atomic<unsigned>& opened;
};

class CountingDisk : public FlakyDisk {
 public:
  CountingDisk(std::unique_ptr<tablestore::Disk> below, std::atomic<unsigned>& opened)
    : FlakyDisk(std::move(below)), opened(opened) {}
  std::shared_ptr<rocksdb::FileSystem> table_fs() override
  {
    return std::make_shared<CountingFs>(FlakyDisk::table_fs(), opened);
  }

 private:
  std::atomic<unsigned>& opened;
};

}  // namespace

class StoreScrubOpens : public StoreScrubReads {
 protected:
  std::unique_ptr<ObjectStore> new_store() override
  {
    return std::make_unique<TableStore>(
      g_ceph_context, dir,
      std::make_shared<WrappedSurroundings<CountingDisk>>(dir, std::ref(opened)));
  }
  std::atomic<unsigned> opened{0};
};

// Rows of one object's neighbours lie in many files: newer ones in small files above, which every
// look goes through, older ones in one of many below.
TEST_F(StoreScrubOpens, AFileThatEveryReadNeedsStaysOpen)
{
  constexpr unsigned files = 50;
  const auto oid = [](unsigned n) { return object("object" + std::to_string(n)); };
  for (unsigned n = 0; n < files; ++n) {
    write_applied(oid(n), content(n, small));
    remount({&ch});   // a file of its own
  }
  for (unsigned n = 0; n < files; ++n)
    scrub(oid(n));
  scrub(oid(0));
  opened = 0;
  for (unsigned n = 1; n < files; ++n) {
    scrub(oid(n));
    EXPECT_TRUE(same(content(0, small), scrub(oid(0))));
  }
  EXPECT_LE(opened, files - 1);
}
