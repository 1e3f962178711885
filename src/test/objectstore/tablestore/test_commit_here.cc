// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Transactions that are committed by the thread that queues them.
#include <chrono>
#include <future>
#include <mutex>

#include <pthread.h>

#include "common/Cond.h"
#include "common/Finisher.h"
#include "common/HeartbeatMap.h"
#include "common/WorkQueue.h"
#include "global/global_context.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/home/osd_surroundings.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace std::chrono_literals;
using namespace tablestore_test;

namespace {

/// Where flushes are quick, whatever this disk is.
class QuickFlushes : public tablestore::OsdSurroundings {
 public:
  using OsdSurroundings::OsdSurroundings;
  void adjust(tablestore::EngineOptions& options) override
  {
    OsdSurroundings::adjust(options);
    options.quick_flush_us = 1'000'000'000;
  }
};

}  // namespace

class StoreCommitHere : public StoreFixture {
 protected:
  std::unique_ptr<ObjectStore> new_store() override
  {
    return std::make_unique<TableStore>(g_ceph_context, dir,
                                        std::make_shared<QuickFlushes>(g_ceph_context, dir));
  }
  void SetUp() override
  {
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
    worker = g_ceph_context->get_heartbeat_map()->add_worker("tablestore_test", pthread_self());
  }
  void TearDown() override
  {
    g_ceph_context->get_heartbeat_map()->remove_worker(worker);
    ch.reset();
    StoreFixture::TearDown();
  }
  bool is_watched() const
  {
    return worker->timeout.load() != ceph::heartbeat_handle_d::clock::zero() ||
           worker->suicide_timeout.load() != ceph::heartbeat_handle_d::clock::zero();
  }

  ceph::mutex mutex = ceph::make_mutex("StoreCommitHere");
  ceph::condition_variable cond;
  ContextQueue shard{mutex, cond};
  Handle ch;
  ceph::heartbeat_handle_d* worker = nullptr;
};

TEST_F(StoreCommitHere, TheThreadsTimeoutIsSuspendedWhileItWaits)
{
  ThreadPool::TPHandle handle(g_ceph_context, worker, 1h, 1h);
  // Whoever tells the shard of commits waits for its mutex: the lane's thread, or ours.
  store->set_collection_commit_queue(ch->cid, &shard);
  const auto end = std::chrono::steady_clock::now() + 1min;
  for (bool waited = false; !waited;) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "the lane never lent itself";
    C_SaferCond durable;
    std::future<int> queued;
    {
      std::lock_guard l{mutex};
      handle.reset_tp_timeout();
      queued = std::async(std::launch::async, [&] {
        Transaction t;
        t.touch(ch->cid, object("o"));
        t.register_on_commit(&durable);
        return store->queue_transaction(ch, std::move(t), TrackedOpRef(), &handle);
      });
      // Who does not commit does not wait.
      EXPECT_TRUE(eventually([&] {
        waited = queued.wait_for(100ms) == std::future_status::timeout;
        return !waited || !is_watched();
      }));
    }
    EXPECT_EQ(0, queued.get());
    EXPECT_TRUE(is_watched());
    ASSERT_TRUE(eventually([&] {
      std::lock_guard l{mutex};
      return !shard.empty();
    }));
    std::list<Context*> contexts;
    shard.move_to(contexts);
    for (Context* c : contexts)
      c->complete(0);
    EXPECT_EQ(0, durable.wait());
  }
}
