// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Reads of the table that fail now and then, as behind a bad cable, while fsck and repair run: the
// store is sound, and must be so after them.
#include <filesystem>
#include <random>
#include <set>

#include "global/global_context.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "rocksdb/file_system.h"
#include "test/objectstore/tablestore/flaky_disk.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"
#include "test/objectstore/tablestore/wrapped_surroundings.h"

using namespace tablestore;
using namespace tablestore_test;

namespace {

/// Which reads fail, of table files that are there when it begins: one that the table writes itself
/// and cannot read back is a failed write. Thread-safe.
class MomentaryErrors {
 public:
  void begin(uint64_t seed, double probability_of_one, const std::string& table)
  {
    std::lock_guard l{mutex};
    random.seed(seed);
    probability = probability_of_one;
    files.clear();
    for (const auto& entry : std::filesystem::directory_iterator(table))
      files.insert(entry.path().filename().string());
  }
  /// How many there were.
  uint64_t end()
  {
    std::lock_guard l{mutex};
    probability = 0;
    return std::exchange(count, 0);
  }
  bool fails(const std::string& file)
  {
    std::lock_guard l{mutex};
    if (!files.contains(file))
      return false;
    const bool now = std::bernoulli_distribution(probability)(random);
    count += now;
    return now;
  }

 private:
  std::mutex mutex;
  std::mt19937_64 random;
  double probability = 0;
  uint64_t count = 0;
  std::set<std::string> files;
};

class File : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  File(std::string name, std::unique_ptr<rocksdb::FSRandomAccessFile>&& below,
       MomentaryErrors& errors)
    : FSRandomAccessFileOwnerWrapper(std::move(below)), name(std::move(name)), errors(errors) {}
  rocksdb::IOStatus Read(uint64_t offset, size_t n, const rocksdb::IOOptions& options,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* dbg) const override
  {
    if (errors.fails(name))
      return rocksdb::IOStatus::IOError("an error on purpose");
    return FSRandomAccessFileOwnerWrapper::Read(offset, n, options, result, scratch, dbg);
  }
  rocksdb::IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count,
                              const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* dbg) override
  {
    return FSRandomAccessFile::MultiRead(requests, count, options, dbg);
  }
  rocksdb::IOStatus Prefetch(uint64_t, size_t, const rocksdb::IOOptions&,
                             rocksdb::IODebugContext*) override
  {
    return rocksdb::IOStatus::NotSupported();
  }

 private:
  const std::string name;
  MomentaryErrors& errors;
};

class TableFs : public rocksdb::FileSystemWrapper {
 public:
  TableFs(const std::shared_ptr<rocksdb::FileSystem>& below,
          std::shared_ptr<MomentaryErrors> errors)
    : FileSystemWrapper(below), errors(std::move(errors)) {}
  const char* Name() const override { return "TableFs with momentary errors"; }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* out,
                                        rocksdb::IODebugContext* dbg) override
  {
    auto s = FileSystemWrapper::NewRandomAccessFile(path, options, out, dbg);
    const std::filesystem::path file(path);
    if (s.ok() && file.extension() == ".sst")
      *out = std::make_unique<File>(file.filename().string(), std::move(*out), *errors);
    return s;
  }

 private:
  const std::shared_ptr<MomentaryErrors> errors;
};

class DiskWithErrors : public FlakyDisk {
 public:
  DiskWithErrors(std::unique_ptr<Disk> below, std::shared_ptr<MomentaryErrors> errors)
    : FlakyDisk(std::move(below)), errors(std::move(errors)) {}
  std::shared_ptr<rocksdb::FileSystem> table_fs() override
  {
    return std::make_shared<TableFs>(FlakyDisk::table_fs(), errors);
  }

 private:
  const std::shared_ptr<MomentaryErrors> errors;
};

}  // namespace

class StoreMomentaryErrors : public StoreRowsFixture {
 protected:
  static constexpr unsigned count = 1500;

  void SetUp() override
  {
    // Many blocks, each of which is read by itself.
    set("tablestore_table_options", "compression=kNoCompression");
    StoreRowsFixture::SetUp();
    for (unsigned i = 0; i < count; ++i) {
      Transaction t;
      auto attr = to_bl("attribute of " + std::to_string(i) + std::string(200, 'a'));
      std::map<std::string, bufferlist> keys;
      for (unsigned k = 0; k < 4; ++k)
        keys["key" + std::to_string(k)] = to_bl(std::string(300, char('a' + i % 26)));
      t.touch(ch->cid, oid(i));
      t.setattr(ch->cid, oid(i), "a", attr);
      t.omap_setkeys(ch->cid, oid(i), keys);
      if (i % 5 == 0) {
        bufferlist data = content(i, 1500);
        t.write(ch->cid, oid(i), 0, data.length(), data);
      }
      queue(ch, std::move(t));
    }
    Transaction t;
    t.clone(ch->cid, large, object("copy", 1, 0x10));
    commit(ch, std::move(t));
    close();
    reopen(false);
  }
  std::unique_ptr<ObjectStore> new_store() override
  {
    return std::make_unique<TableStore>(
      g_ceph_context, dir, std::make_shared<WrappedSurroundings<DiskWithErrors>>(dir, errors));
  }
  static ghobject_t oid(unsigned i) { return object("object" + std::to_string(i)); }
  void expect_whole()
  {
    expect_objects_whole();
    EXPECT_TRUE(same(content(1, MiB), read(ch, object("copy", 1, 0x10))));
    unsigned bad = 0;
    for (unsigned i = 0; i < count; ++i) {
      bufferptr attr;
      const bool is_good =
          store->getattr(ch, oid(i), "a", attr) == 0 && attr.length() > 200 &&
          omap(ch, oid(i)).size() == 4 &&
          (i % 5 != 0 || same(content(i, 1500), read(ch, oid(i))));
      bad += !is_good;
    }
    EXPECT_EQ(0u, bad) << "objects are not what they were";
    close();
  }

  const std::shared_ptr<MomentaryErrors> errors = std::make_shared<MomentaryErrors>();
};

TEST_F(StoreMomentaryErrors, DoNotMakeARepairHurtASoundStore)
{
  uint64_t all = 0;
  for (uint64_t seed = 1; seed <= 24 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    errors->begin(seed, seed % 2 ? 0.01 : 0.05, dir + "/table");
    if (seed % 3 == 0)
      store->fsck(true);
    store->repair(seed % 4 == 0);
    all += errors->end();
    // A file that was taken for damaged is looked at once more.
    EXPECT_LE(0, store->repair(false));
    EXPECT_EQ(0, store->fsck(true));
    expect_whole();
  }
  EXPECT_GT(all, 50u);
}

// Of what a repair cannot read just then, the blocks must not be given to others.
TEST_F(StoreMomentaryErrors, DoNotMakeARepairGiveBlocksAwayAfterALossOfTheLog)
{
  unsigned done = 0;
  for (uint64_t seed = 1; seed <= 24 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    // Nothing that objects have is owned, as far as the log knows.
    damage([&](Engine& engine) {
      auto txn = std::make_shared<Txn>();
      for (const auto& [container, owned] : engine.owned_blocks()) {
        for (uint32_t b = owned.next_set(0); b < owned.blocks(); b = owned.next_set(b + 1))
          txn->free(Extent{container, b, 1});
      }
      txn->put(Family::super, engine_rows::ownership_unknown(), "");
      engine.submit(txn);
      engine.drain();
    });
    set("tablestore_accept_log_loss", "true");
    errors->begin(seed, seed % 2 ? 0.01 : 0.05, dir + "/table");
    const int r = store->repair(false);
    errors->end();
    done += r >= 0;
    if (r < 0) {
      EXPECT_LE(0, store->repair(false));
    }
    set("tablestore_accept_log_loss", "false");
    mount_again();
    for (unsigned n = 0; n < 4; ++n)
      write(ch, object("new " + std::to_string(n), 1, 0x30), 0, content(100 + n, MiB));
    close();
    expect_whole();
    mount_again();
    for (unsigned n = 0; n < 4; ++n)
      remove(ch, object("new " + std::to_string(n), 1, 0x30));
    close();
    EXPECT_LE(0, store->repair(false));
  }
  EXPECT_GT(done, 0u);
}
