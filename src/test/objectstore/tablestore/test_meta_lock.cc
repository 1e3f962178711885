// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Transactions of all placement groups name the meta collection, when snapshots are made or
// trimmed: one that waits for the disk does not hold up the others.
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>

#include "common/perf_counters.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/home/perf.h"
#include "test/objectstore/tablestore/store_fixture.h"
#include "test/objectstore/tablestore/wrapped_surroundings.h"
#include "test/tablestore/engine/disk_wrapper.h"

using namespace tablestore_test;
using namespace std::chrono_literals;
using tablestore::Disk;
using tablestore::DiskWrapper;
using tablestore::File;
using tablestore::FileWrapper;
using tablestore::Status;

namespace {

/// Where reads of containers wait while it is closed.
class Gate {
 public:
  void close()
  {
    std::lock_guard l{mutex};
    closed = true;
  }
  void open()
  {
    std::lock_guard l{mutex};
    closed = false;
    changed.notify_all();
  }
  void pass()
  {
    std::unique_lock l{mutex};
    if (!closed)
      return;
    ++waiting;
    changed.notify_all();
    changed.wait(l, [this] { return !closed; });
    --waiting;
  }
  bool somebody_waits()
  {
    std::unique_lock l{mutex};
    return changed.wait_for(l, 5min, [this] { return waiting > 0; });
  }

 private:
  std::mutex mutex;
  std::condition_variable changed;
  bool closed = false;
  unsigned waiting = 0;
};

class GatedDisk : public DiskWrapper {
 public:
  GatedDisk(std::unique_ptr<Disk> below, Gate* gate) : DiskWrapper(std::move(below)), gate(gate) {}

 protected:
  std::unique_ptr<File> wrap(const std::string& path, std::unique_ptr<File> file) override
  {
    if (!path.starts_with("containers/"))
      return file;
    return std::make_unique<GatedFile>(std::move(file), gate);
  }

 private:
  class GatedFile : public FileWrapper {
   public:
    GatedFile(std::unique_ptr<File> below, Gate* gate)
      : FileWrapper(std::move(below)), gate(gate) {}
    Status read(uint64_t offset, std::span<std::byte> out) override
    {
      gate->pass();
      return FileWrapper::read(offset, out);
    }

   private:
    Gate* const gate;
  };

  Gate* const gate;
};

}  // namespace

class StoreMetaLock : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "of TableStore alone";
    StoreFixture::SetUp();
    meta = make_collection(coll_t::meta());
    touch(meta, index);
    for (int n = 0; n < 2; ++n) {
      pgs.push_back(make_collection(pg(n + 1)));
      write(pgs[n], data(n), 0, content(n, 64 * KiB));
      wait_durable(pgs[n]);
    }
  }
  void TearDown() override
  {
    gate.open();
    meta.reset();
    pgs.clear();
    StoreFixture::TearDown();
  }
  std::unique_ptr<ObjectStore> new_store() override
  {
    return std::make_unique<TableStore>(
        g_ceph_context, dir, std::make_shared<WrappedSurroundings<GatedDisk>>(dir, &gate));
  }

  static ghobject_t of_meta(const std::string& name)
  {
    return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, 0, -1, ""));
  }
  ghobject_t data(int n) const { return object("data", n + 1); }
  /// What a snapshot's trimming does: it changes an object, and the index that all share. The index
  /// comes first, as SnapMapper's does.
  void add_change(Transaction& t, int n)
  {
    std::map<std::string, bufferlist> keys{{"pg" + std::to_string(n), to_bl("mapped")}};
    t.omap_setkeys(meta->cid, index, keys);
    bufferlist bl = to_bl("changed");
    t.write(pgs[n]->cid, data(n), 100, bl.length(), bl);   // of a block that has to be read
  }
  uint64_t barriers()
  {
    store->refresh_perf_counters();
    return store->get_perf_counters()->get(tablestore::l_tablestore_txc_barriers);
  }

  Gate gate;
  Handle meta;
  std::vector<Handle> pgs;
  /// As the OSD's index of snapshots.
  const ghobject_t index = of_meta("snapmapper");
};

TEST_F(StoreMetaLock, OneThatReadsHoldsUpNoOther)
{
  store->flush_cache(nullptr);
  gate.close();
  auto held_up = std::async(std::launch::async, [&] {
    Transaction t;
    add_change(t, 0);
    queue(pgs[0], std::move(t));
  });
  ASSERT_TRUE(gate.somebody_waits());
  auto other = std::async(std::launch::async, [&] {
    Transaction t;
    std::map<std::string, bufferlist> keys{{"pg1", to_bl("mapped")}};
    t.omap_setkeys(meta->cid, index, keys);
    t.touch(pgs[1]->cid, object("new", 2));
    commit(pgs[1], std::move(t));
  });
  EXPECT_EQ(std::future_status::ready, other.wait_for(5min));
  EXPECT_EQ(std::future_status::timeout, held_up.wait_for(0s));
  gate.open();
  held_up.get();
  other.get();
  for (int i = 0; i < 2; ++i) {
    const auto keys = omap(meta, index);
    EXPECT_EQ(2u, keys.size());
    EXPECT_TRUE(same(to_bl("changed"), read(pgs[0], data(0), 100, 7)));
    EXPECT_TRUE(store->exists(pgs[1], object("new", 2)));
    if (i == 0)
      remount({&meta, &pgs[0], &pgs[1]});
  }
}

TEST_F(StoreMetaLock, TransactionsThatMeetThereAreNoBarriers)
{
  const uint64_t before = barriers();
  for (int i = 0; i < 50; ++i) {
    for (int n = 0; n < 2; ++n) {
      Transaction t;
      add_change(t, n);
      queue(pgs[n], std::move(t));
    }
  }
  EXPECT_EQ(before, barriers());
  Transaction make;
  make.create_collection(pg(9), 0);
  Handle ch = store->create_new_collection(pg(9));
  queue(ch, std::move(make));
  EXPECT_EQ(before + 1, barriers());
}

/// Both ways of naming the objects, in transactions of several parts.
TEST_F(StoreMetaLock, AllOperationsOfATransactionAreExecuted)
{
  std::vector<Transaction> tls(2);
  for (int n = 0; n < 2; ++n) {
    add_change(tls[n], n);
    std::map<std::string, bufferlist> keys{{"k" + std::to_string(n), to_bl("v")}};
    bufferlist header = to_bl("header" + std::to_string(n));
    tls[n].setattr(meta->cid, index, "a" + std::to_string(n), header);
    tls[n].omap_setkeys(pgs[n]->cid, data(n), keys);
    tls[n].omap_setheader(meta->cid, index, header);
    tls[n].setattr(pgs[n]->cid, data(n), "a", header);
    bufferlist whole = content(7 + n, 5000);
    tls[n].write(meta->cid, of_meta("map" + std::to_string(n)), 0, whole.length(), whole);
    tls[n].omap_rmkeyrange(meta->cid, index, "a", "b");
  }
  EXPECT_EQ(0, store->queue_transactions(pgs[0], tls));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(2u, omap(meta, index).size());
    EXPECT_EQ("header1", omap_header(meta, index));
    for (int n = 0; n < 2; ++n) {
      const std::string header = "header" + std::to_string(n);
      EXPECT_EQ(header, attr(meta, index, "a" + std::to_string(n)));
      EXPECT_EQ(header, attr(pgs[n], data(n), "a"));
      EXPECT_EQ("v", omap(pgs[n], data(n))["k" + std::to_string(n)]);
      EXPECT_TRUE(same(to_bl("changed"), read(pgs[n], data(n), 100, 7)));
      EXPECT_TRUE(same(content(7 + n, 5000),
                       read(meta, of_meta("map" + std::to_string(n)))));
    }
    if (i == 0)
      remount({&meta, &pgs[0], &pgs[1]});
  }
}
