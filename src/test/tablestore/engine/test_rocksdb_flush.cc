// What this store asks of RocksDB's flushes of all families (patches/20.2/0048).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "test_directory.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

thread_local bool is_held = false;

// Holds a thread up in the middle of its batch until another one looks into the same memtable, and
// a little longer.
class HeldInserts : public rocksdb::Comparator {
 public:
  const char* Name() const override { return "HeldInserts"; }
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    if (is_held) {
      is_inserting = true;
      for (auto end = std::chrono::steady_clock::now() + 10s;
           !somebody_looked && std::chrono::steady_clock::now() < end;)
        std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(500ms);
      is_held = false;
    } else if (is_inserting) {
      somebody_looked = true;
    }
    return a.compare(b);
  }
  void FindShortestSeparator(std::string*, const rocksdb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

  mutable std::atomic<bool> is_inserting = false, somebody_looked = false;
};

class RocksdbFlushTest : public ::testing::Test {
 protected:
  void SetUp() override { open(); }
  void TearDown() override { close(); }
  void open() {
    rocksdb::Options o;
    o.create_if_missing = o.create_missing_column_families = true;
    o.atomic_flush = o.avoid_flush_during_shutdown = true;
    rocksdb::ColumnFamilyOptions held;
    held.comparator = &inserts;
    const std::vector<rocksdb::ColumnFamilyDescriptor> families = {
        {"default", {}}, {"held", held}, {"last", {}}};
    rocksdb::DB* raw = nullptr;
    const auto s = rocksdb::DB::Open(o, directory.path() + "/table", families, &handles, &raw);
    ASSERT_TRUE(s.ok()) << s.ToString();
    db.reset(raw);
  }
  void close() {
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    handles.clear();
    db.reset();
  }
  // Two rows of one family, the second of which is held up, and then one of the next family.
  void write_held_up() {
    is_held = true;
    rocksdb::WriteBatch batch;
    batch.Put(handles[1], "a", "");
    batch.Put(handles[1], "b", "");
    batch.Put(handles[2], "c", "");
    rocksdb::WriteOptions o;
    o.disableWAL = true;
    const auto s = db->Write(o, &batch);
    EXPECT_TRUE(s.ok()) << s.ToString();
  }
  bool has(size_t family, const std::string& key) {
    std::string value;
    return db->Get(rocksdb::ReadOptions(), handles[family], key, &value).ok();
  }

  TestDirectory directory;
  HeldInserts inserts;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  std::unique_ptr<rocksdb::DB> db;
};

// That of a compaction chooses the families while nobody writes: it has a batch as a whole or not
// at all.
TEST_F(RocksdbFlushTest, OfACompactionHasAllOfABatch) {
  auto writing = std::async(std::launch::async, [this] { write_held_up(); });
  while (!inserts.is_inserting && writing.wait_for(1ms) != std::future_status::ready) {
  }
  const rocksdb::Slice first("a"), last("b");
  const auto s = db->CompactRange(rocksdb::CompactRangeOptions(), handles[1], &first, &last);
  EXPECT_TRUE(s.ok()) << s.ToString();
  writing.get();
  EXPECT_TRUE(inserts.somebody_looked);
  close();
  open();
  EXPECT_TRUE(has(1, "a") && has(1, "b"));
  EXPECT_TRUE(has(2, "c"));
}

}  // namespace
}  // namespace tablestore
