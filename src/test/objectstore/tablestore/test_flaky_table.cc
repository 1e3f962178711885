// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// A store whose table finds no space for its files, or cannot read them for a while: who may wait
// for that, and what is given up for it.
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <future>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "common/admin_socket.h"
#include "global/global_context.h"
#include "include/stringify.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"
#include "test/objectstore/tablestore/damage_fixture.h"
#include "test/objectstore/tablestore/wrapped_surroundings.h"
#include "test/tablestore/engine/flaky_table.h"

using namespace tablestore;
using namespace tablestore_test;
using namespace std::chrono_literals;

namespace {

class FlakyTableSurroundings : public WrappedSurroundings<FlakyTable> {
 public:
  FlakyTableSurroundings(const std::string& dir, std::chrono::milliseconds end_patience)
    : WrappedSurroundings(dir), end_patience(end_patience) {}
  void adjust(EngineOptions& options) override
  {
    OsdSurroundings::adjust(options);
    options.memtable_bytes = MiB;
    options.end_patience_ms = end_patience.count();
  }

 private:
  const std::chrono::milliseconds end_patience;
};

}  // namespace

class StoreFlakyTable : public DamageFixture {
 protected:
  static constexpr unsigned count = 300;
  static constexpr int fillers = 200;

  void SetUp() override
  {
    set("tablestore_table_options", "compression=kNoCompression");
    DamageFixture::SetUp();
  }
  std::unique_ptr<ObjectStore> new_store() override
  {
    around = std::make_shared<FlakyTableSurroundings>(dir, end_patience);
    return std::make_unique<TableStore>(g_ceph_context, dir, around);
  }
  FlakyTable& table() { return around->disk(); }
  static ghobject_t oid(unsigned i) { return object("object" + std::to_string(i)); }
  static std::string text(unsigned i)
  {
    return "<" + std::to_string(i) + ">" + std::string(200, 'a');
  }
  /// Durable.
  void make_objects()
  {
    for (unsigned i = 0; i < count; ++i) {
      Transaction t;
      auto attr = to_bl(text(i));
      t.touch(ch->cid, oid(i));
      t.setattr(ch->cid, oid(i), "a", attr);
      queue(ch, std::move(t));
    }
    wait_durable(ch);
  }
  void queue_fillers(Handle& to, int first, int end)
  {
    for (int i = first; i < end; ++i) {
      Transaction t;
      auto attr = to_bl(std::string(64 * KiB, 'b'));
      const auto filler = object("filler" + std::to_string(i), 2);
      t.touch(to->cid, filler);
      t.setattr(to->cid, filler, "a", attr);
      queue(to, std::move(t));
    }
  }
  /// More rows than the table takes without another file, durable.
  void fill_table(Handle& to)
  {
    queue_fillers(to, 0, fillers);
    wait_durable(to);
  }
  template <typename Call>
  void in_time(Call call)
  {
    auto outcome = std::async(std::launch::async, call);
    if (outcome.wait_for(10min) != std::future_status::ready) {
      std::cerr << "it waits for ever" << std::endl;
      std::abort();   // nothing ends it
    }
    outcome.get();
  }
  /// As the OSD does, by what it finds in the listing.
  void remove_listed()
  {
    while (true) {
      std::vector<ghobject_t> some;
      ghobject_t next;
      store->collection_list(ch, ghobject_t(), ghobject_t::get_max(), 100, &some, &next);
      if (some.empty())
        return;
      Transaction t;
      for (const ghobject_t& listed : some)
        t.remove(ch->cid, listed);
      queue(ch, std::move(t));
    }
  }

  std::chrono::milliseconds end_patience = 5min;   ///< from the next mount on
  std::shared_ptr<FlakyTableSurroundings> around;
};

TEST_F(StoreFlakyTable, ThatIsFullKeepsNoUmountWaiting)
{
  end_patience = 10s;
  remount({&ch});
  end_patience = 5min;
  make_objects();
  Handle other = make_collection(pg(2));
  table().set_full(true);
  fill_table(other);
  other.reset();
  in_time([this] { close(); });
  ASSERT_NO_FATAL_FAILURE(open());
  for (unsigned i = 0; i < count; ++i)
    EXPECT_EQ(text(i), attr(ch, oid(i), "a"));
  other = store->open_collection(pg(2));
  EXPECT_EQ(200u, list(other).size());
}

// Who queues and then relies on the umount, as tools do, is told.
TEST_F(StoreFlakyTable, ThatIsFullMakesAnUmountFailThatGivesSomethingUp)
{
  end_patience = 1s;
  remount({&ch});
  end_patience = 5min;
  Handle other = make_collection(pg(2));
  table().set_full(true);
  fill_table(other);
  constexpr int more_than_waits_for_the_table = 8 * fillers;   // which is 64 MiB without space
  queue_fillers(other, fillers, more_than_waits_for_the_table);
  other.reset();
  ch.reset();
  mounted = false;
  in_time([this] { EXPECT_EQ(-ETIMEDOUT, store->umount()); });
  ASSERT_NO_FATAL_FAILURE(open());
  other = store->open_collection(pg(2));
  const size_t found = list(other).size();
  EXPECT_GE(found, size_t(fillers));
  EXPECT_LT(found, size_t(more_than_waits_for_the_table));
}

/// Nor, with that, whoever says anything else to the admin socket.
TEST_F(StoreFlakyTable, ThatIsFullKeepsNoOperatorWaitingWhoWantsAList)
{
  end_patience = 1s;
  remount({&ch});
  end_patience = 5min;
  Handle other = make_collection(pg(2));
  const std::string list_other =
      "{\"prefix\": \"tablestore list\", \"collection\": \"" + stringify(pg(2)) + "\"}";
  const auto result_of_list = [&] {
    bufferlist out;
    std::ostringstream errors;
    return g_ceph_context->get_admin_socket()->execute_command({list_other}, {}, errors, &out);
  };
  table().set_full(true);
  fill_table(other);
  in_time([&] { EXPECT_EQ(-ETIMEDOUT, result_of_list()); });
  table().set_full(false);
  EXPECT_TRUE(eventually([&] { return result_of_list() == 0; }));
  other.reset();
}

TEST_F(StoreFlakyTable, ThatIsFullKeepsNobodyWaitingWhoRemovesWhatCannotBeRead)
{
  make_objects();
  Handle other = make_collection(pg(2));
  other.reset();
  damage_offline([this] { flip_bit(find(text(count / 2), "/table")); });
  other = store->open_collection(pg(2));
  remove_listed();
  ch->flush();
  table().set_full(true);
  fill_table(other);
  in_time([this] {
    Transaction t;
    t.remove_collection(ch->cid);
    queue(ch, std::move(t));
  });
  // There is nothing of the old one in the new one, also while the table has it.
  ch = store->create_new_collection(pg(1));
  Transaction t;
  t.create_collection(pg(1), 0);
  queue(ch, std::move(t));
  const auto expect_empty = [this] {
    struct stat st;
    for (unsigned i = 0; i < count; ++i)
      EXPECT_EQ(-ENOENT, store->stat(ch, oid(i), &st)) << i;
  };
  expect_empty();
  write(ch, oid(count / 2), 0, content(1, 100));
  EXPECT_TRUE(same(content(1, 100), read(ch, oid(count / 2))));
  remove(ch, oid(count / 2));
  table().set_full(false);
  in_time([this] { ch->flush(); });
  expect_empty();
  EXPECT_EQ(0u, list(ch).size());
  other.reset();
}

TEST_F(StoreFlakyTable, ThatCannotBeReadForAWhileCostsNoCollection)
{
  set("objectstore_debug_throw_on_failed_txc", "true");
  make_objects();
  remount({&ch});
  static_cast<TableStore&>(*store).parts().engine.drop_caches();
  table().fail_reads(INT_MAX);
  std::atomic<bool> ended = false;
  auto passes = std::async(std::launch::async, [&] {
    while (table().left() == INT_MAX && !ended)   // until a read fails
      std::this_thread::yield();
    std::this_thread::sleep_for(700ms);
    table().fail_reads(0);
  });
  Transaction t;
  t.remove_collection(ch->cid);
  EXPECT_THROW(store->queue_transaction(ch, std::move(t)), int);
  ended = true;
  passes.get();
  EXPECT_TRUE(store->collection_exists(pg(1)));
  remount({&ch});
  EXPECT_EQ(count, list(ch).size());
  for (unsigned i = 0; i < count; ++i)
    EXPECT_EQ(text(i), attr(ch, oid(i), "a"));
}
