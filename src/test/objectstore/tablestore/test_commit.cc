// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// When and where callbacks of transactions run, and in which order.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "common/Cond.h"
#include "common/Finisher.h"
#include "global/global_context.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/home/osd_surroundings.h"
#include "os/tablestore/mounted_store.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

namespace {

Context* context(std::function<void(int)> f)
{
  return new LambdaContext(std::move(f));
}

/// Events in the order in which they happened, for one thread to wait for.
class EventLog {
 public:
  void add(int event)
  {
    std::lock_guard l{mutex};
    events.push_back(event);
    cond.notify_all();
  }
  std::vector<int> wait_for(size_t count)
  {
    std::unique_lock l{mutex};
    cond.wait(l, [&] { return events.size() >= count; });
    return events;
  }
  std::vector<int> now()
  {
    std::lock_guard l{mutex};
    return events;
  }

 private:
  std::mutex mutex;
  std::condition_variable cond;
  std::vector<int> events;
};

std::vector<int> counted(int n)
{
  std::vector<int> v(n);
  for (int i = 0; i < n; ++i)
    v[i] = i;
  return v;
}

/// A ContextQueue as a shard of the OSD has one; the test is the shard's thread.
struct Shard {
  ceph::mutex mutex = ceph::make_mutex("tablestore_test::Shard");
  ceph::condition_variable cond;
  ContextQueue queue{mutex, cond};

  /// Runs what is queued until `done`. Gives up where nothing comes for long.
  void run_until(const std::function<bool()>& done)
  {
    while (!done()) {
      {
        std::unique_lock l{mutex};
        ASSERT_TRUE(cond.wait_for(l, std::chrono::seconds(60), [&] { return !queue.empty(); }));
      }
      std::list<Context*> contexts;
      queue.move_to(contexts);
      for (Context* c : contexts)
        c->complete(0);
    }
  }
};

}  // namespace

class StoreCommit : public StoreFixture {
 protected:
  void SetUp() override
  {
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }
  Transaction small_write(int i)
  {
    Transaction t;
    // Sizes of both kinds of data: in the table, and beside the log.
    bufferlist bl = content(i, i % 5 == 0 ? 64 * KiB : 100 + i);
    t.write(ch->cid, object("o" + std::to_string(i % 40)), 0, bl.length(), bl);
    return t;
  }

  Handle ch;
};

TEST_F(StoreCommit, CommitsOfOneCollectionRunInTheOrderQueued)
{
  constexpr int count = 300;
  EventLog commits;
  for (int i = 0; i < count; ++i) {
    Transaction t = small_write(i);
    t.register_on_commit(context([&, i](int) { commits.add(i); }));
    queue(ch, std::move(t));
  }
  EXPECT_EQ(counted(count), commits.wait_for(count));
}

TEST_F(StoreCommit, AppliedCallbacksOfOneCollectionRunInTheOrderQueued)
{
  constexpr int count = 300;
  EventLog applied;
  for (int i = 0; i < count; ++i) {
    Transaction t = small_write(i);
    t.register_on_applied(context([&, i](int) { applied.add(i); }));
    queue(ch, std::move(t));
  }
  EXPECT_EQ(counted(count), applied.wait_for(count));
}

TEST_F(StoreCommit, AppliedSyncRunsInTheCallerBeforeQueueReturns)
{
  std::thread::id ran_in;
  bool visible = false;
  const ghobject_t oid = object("o");
  Transaction t;
  t.touch(ch->cid, oid);
  t.register_on_applied_sync(context([&](int) {
    ran_in = std::this_thread::get_id();
    visible = store->exists(ch, oid);
  }));
  queue(ch, std::move(t));
  EXPECT_EQ(std::this_thread::get_id(), ran_in);
  EXPECT_TRUE(visible);
}

TEST_F(StoreCommit, AppliedAndCommitNeverRunInsideOfTheCall)
{
  // A callback takes a lock that the caller of queue_transactions() holds.
  for (int i = 0; i < 50; ++i) {
    std::mutex lock;
    std::condition_variable cond;
    int ran = 0;
    std::unique_lock l{lock};
    auto callback = [&](int) {
      std::lock_guard inside{lock};
      ++ran;
      cond.notify_all();
    };
    Transaction t = small_write(i);
    t.register_on_applied(context(callback));
    t.register_on_commit(context(callback));
    queue(ch, std::move(t));
    EXPECT_EQ(0, ran);
    cond.wait(l, [&] { return ran == 2; });
  }
}

TEST_F(StoreCommit, AllCallbacksGoToTheCommitQueueInOrder)
{
  if (store_type() == "memstore" || store_type() == "kstore")
    GTEST_SKIP() << "takes no notice of commit queues";
  constexpr int count = 200;
  Shard shard;
  wait_durable(ch);
  store->set_collection_commit_queue(ch->cid, &shard.queue);
  EventLog applied;
  EventLog commits;
  for (int i = 0; i < count; ++i) {
    Transaction t = small_write(i);
    t.register_on_applied(context([&, i](int) { applied.add(i); }));
    t.register_on_commit(context([&, i](int) { commits.add(i); }));
    queue(ch, std::move(t));
  }
  ch->flush();
  // Nobody but the shard's thread runs them.
  EXPECT_TRUE(applied.now().empty());
  EXPECT_TRUE(commits.now().empty());
  shard.run_until([&] { return applied.now().size() == count && commits.now().size() == count; });
  EXPECT_EQ(counted(count), applied.now());
  EXPECT_EQ(counted(count), commits.now());
  store->set_collection_commit_queue(ch->cid, nullptr);
}

TEST_F(StoreCommit, CommitQueueOfANewCollectionGetsItsFirstTransaction)
{
  if (store_type() == "memstore" || store_type() == "kstore")
    GTEST_SKIP() << "takes no notice of commit queues";
  Shard shard;
  const coll_t cid = pg(2);
  Handle fresh = store->create_new_collection(cid);
  store->set_collection_commit_queue(cid, &shard.queue);
  std::thread::id ran_in;
  bool committed = false;
  Transaction t;
  t.create_collection(cid, 0);
  t.touch(cid, object("first", 2));
  t.register_on_commit(context([&](int) {
    ran_in = std::this_thread::get_id();
    committed = true;
  }));
  queue(fresh, std::move(t));
  shard.run_until([&] { return committed; });
  EXPECT_EQ(std::this_thread::get_id(), ran_in);
  EXPECT_TRUE(store->exists(fresh, object("first", 2)));
}

TEST_F(StoreCommit, FlushCommitCallbackFollowsTheCommitsBeforeIt)
{
  for (int round = 0; round < 30; ++round) {
    EventLog events;
    for (int i = 0; i < 5; ++i) {
      Transaction t = small_write(i);
      t.register_on_commit(context([&, i](int) { events.add(i); }));
      queue(ch, std::move(t));
    }
    Context* after = context([&](int r) {
      EXPECT_EQ(0, r);
      events.add(5);
    });
    if (ch->flush_commit(after)) {
      // Untouched: everything is durable, the callbacks may still be on their way.
      delete after;
      EXPECT_EQ(counted(5), events.wait_for(5));
    } else {
      EXPECT_EQ(counted(6), events.wait_for(6));
    }
  }
}

TEST_F(StoreCommit, FlushCommitIsTrueWhenIdle)
{
  commit(ch, small_write(1));
  // The commit callback itself may run a moment before the handle counts as idle.
  wait_durable(ch);
  C_SaferCond untouched;
  EXPECT_TRUE(ch->flush_commit(&untouched));
  EXPECT_NE(0, untouched.wait_for(0));
}

TEST_F(StoreCommit, FlushOfOneHandleDoesNotNeedAnother)
{
  Handle other = make_collection(pg(2));
  for (int i = 0; i < 20; ++i) {
    queue(ch, small_write(i));
    touch(other, object("x" + std::to_string(i), 2));
    other->flush();
    EXPECT_EQ(size_t(i + 1), list(other).size());
  }
}

TEST_F(StoreCommit, CallbacksMayQueueTransactions)
{
  // Few transactions may be queued at a time: a callback that waits for room must not be what
  // makes it.
  set("tablestore_throttle_ops", "4");
  constexpr int chain_length = 100;
  EventLog chain;
  std::function<void(int)> step = [&](int i) {
    chain.add(i);
    if (i + 1 == chain_length)
      return;
    Transaction t = small_write(i);
    t.register_on_commit(context([&, i](int) { step(i + 1); }));
    queue(ch, std::move(t));
  };
  std::atomic<bool> stop = false;
  Handle other = make_collection(pg(2));
  std::thread flood([&] {
    for (int i = 0; !stop; ++i) {
      Transaction t;
      bufferlist bl = content(i, 8 * KiB);
      t.write(other->cid, object("flood", 2), 0, bl.length(), bl);
      tablestore_test::queue(*store, other, std::move(t));
    }
  });
  step(0);
  EXPECT_EQ(counted(chain_length), chain.wait_for(chain_length));
  stop = true;
  flood.join();
}

TEST_F(StoreCommit, SeveralTransactionsOfOneCallAreOneUnit)
{
  EventLog commits;
  std::vector<Transaction> unit(3);
  const ghobject_t oid = object("o");
  bufferlist first = content(1, 5000), second = content(2, 3000);
  unit[0].write(ch->cid, oid, 0, first.length(), first);
  unit[1].write(ch->cid, oid, 1000, second.length(), second);
  unit[2].clone(ch->cid, oid, object("copy", 1, oid.hobj.get_hash()));
  for (int i = 0; i < 3; ++i)
    unit[i].register_on_commit(context([&, i](int) { commits.add(i); }));
  ASSERT_EQ(0, store->queue_transactions(ch, unit));

  bufferlist expected = content(1, 1000);
  expected.append(content(2, 3000));
  expected.append(content(1, 1000, 4000));
  EXPECT_TRUE(same(expected, read(ch, oid)));
  EXPECT_TRUE(same(expected, read(ch, object("copy", 1, oid.hobj.get_hash()))));
  EXPECT_EQ(counted(3), commits.wait_for(3));
}

TEST_F(StoreCommit, EmptyTransactionsAreCommittedInTheirTurn)
{
  EventLog commits;
  for (int i = 0; i < 20; ++i) {
    Transaction t = i % 2 ? Transaction() : small_write(i);
    if (i % 4 == 1)
      t.nop();
    t.register_on_commit(context([&, i](int) { commits.add(i); }));
    queue(ch, std::move(t));
  }
  EXPECT_EQ(counted(20), commits.wait_for(20));
}

TEST_F(StoreCommit, OneHandleMayChangeObjectsOfOtherCollections)
{
  // As when the OSD removes temporary objects of PGs through the handle of its own collection.
  Handle meta = make_collection(coll_t::meta());
  const ghobject_t removed = object("removed");
  const ghobject_t rewritten = object("rewritten");
  for (int round = 0; round < 20; ++round) {
    // Much data takes its time: what follows through another handle must not pass it.
    write(ch, removed, 0, content(round, round % 2 ? 4 * MiB : 20 * KiB));
    write(ch, rewritten, 0, content(round, round % 3 ? 20 * KiB : 4 * MiB));
    if (round % 4 == 0)
      ch->flush();
    Transaction t;
    t.remove(ch->cid, removed);
    t.remove(ch->cid, rewritten);
    queue(meta, std::move(t));
    EXPECT_FALSE(store->exists(ch, removed));
    EXPECT_TRUE(list(ch).empty());
    write(ch, rewritten, 0, content(round + 1000, 3 * KiB));
    EXPECT_EQ(std::vector<ghobject_t>{rewritten}, list(ch));
    EXPECT_TRUE(same(content(round + 1000, 3 * KiB), read(ch, rewritten)));
  }
  remount({&ch, &meta});
  EXPECT_EQ(std::vector<ghobject_t>{rewritten}, list(ch));
  EXPECT_TRUE(same(content(1019, 3 * KiB), read(ch, rewritten)));
}

TEST_F(StoreCommit, UmountRunsEveryCallbackThatWasQueued)
{
  std::atomic<int> ran = 0;
  for (int i = 0; i < 100; ++i) {
    Transaction t = small_write(i);
    t.register_on_applied(context([&](int) { ++ran; }));
    t.register_on_commit(context([&](int) { ++ran; }));
    queue(ch, std::move(t));
  }
  ch.reset();
  umount();
  EXPECT_EQ(200, ran);
  reopen();
}

TEST_F(StoreCommit, CommitsOfManyThreadsOnOneHandleKeepEachThreadsOrder)
{
  // BlueStore gives a transaction its place among those of the handle before it waits for the
  // throttle, which those behind it may hold: they wait for it, and it for them. An OSD has one
  // thread for a handle at a time. Here the throttle lets all of them in.
  if (store_type() == "bluestore")
    set("bluestore_throttle_cost_per_io", "1");
  constexpr int threads = 4;
  constexpr int each = 100;
  std::vector<EventLog> commits(threads);
  std::vector<std::thread> running;
  for (int n = 0; n < threads; ++n) {
    running.emplace_back([&, n] {
      for (int i = 0; i < each; ++i) {
        Transaction t;
        bufferlist bl = content(n * each + i, i % 3 ? 700 : 9000);
        t.write(ch->cid, object("t" + std::to_string(n)), 0, bl.length(), bl);
        t.register_on_commit(context([&commits, n, i](int) { commits[n].add(i); }));
        tablestore_test::queue(*store, ch, std::move(t));
      }
    });
  }
  for (auto& t : running)
    t.join();
  for (auto& log : commits)
    EXPECT_EQ(counted(each), log.wait_for(each));
}

/// Where the store vouches for nothing by itself.
class NeverIdle : public tablestore::OsdSurroundings {
 public:
  using OsdSurroundings::OsdSurroundings;
  void adjust(tablestore::EngineOptions& options) override
  {
    OsdSurroundings::adjust(options);
    options.vouch_after_ms = 0;
  }
};

class StoreFastShutdown : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "of TableStore alone";
    StoreFixture::SetUp();
  }
  std::unique_ptr<ObjectStore> new_store() override
  {
    return std::make_unique<TableStore>(g_ceph_context, dir,
                                        std::make_shared<NeverIdle>(g_ceph_context, dir));
  }
  uint64_t vouching_groups() const
  {
    return dynamic_cast<TableStore&>(*store).parts().engine.counters().vouching_groups;
  }
};

// An OSD calls it, and then ends without a word.
TEST_F(StoreFastShutdown, VouchesForTheLastGroup)
{
  Handle ch = make_collection(pg(1));
  write(ch, object("a"), 0, content(1, 100));
  wait_durable(ch);
  EXPECT_EQ(0u, vouching_groups());
  store->prepare_for_fast_shutdown();
  EXPECT_EQ(1u, vouching_groups());
}
