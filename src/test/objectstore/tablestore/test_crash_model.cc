// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Random transactions of every kind, killed at random: what is found is exactly what some number
// of them make, and all that were acknowledged are among them. TABLESTORE_TEST_SEED repeats a run's
// transactions.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include "include/compat.h"
#include "test/objectstore/tablestore/child_program.h"
#include "test/objectstore/tablestore/collection_model.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

namespace {

constexpr int collection_count = 3;
constexpr uint64_t size_max = 500 * KiB;

struct Ack {
  uint64_t collection = 0;
  uint64_t count = 0;
};

uint64_t seed_of_this_run()
{
  static const uint64_t seed = [] {
    const char* given = ::getenv("TABLESTORE_TEST_SEED");
    const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
    // For the children.
    ::setenv("TABLESTORE_TEST_SEED", std::to_string(seed).c_str(), 1);
    return seed;
  }();
  return seed;
}

std::vector<CollectionModel> make_models()
{
  std::vector<CollectionModel> models;
  for (int c = 0; c < collection_count; ++c)
    models.emplace_back(pg(c), c, seed_of_this_run() + c, size_max);
  return models;
}

/// Goes on with the sequences from where the store is.
int run_models(const std::string& dir, int report_fd)
{
  auto store = make_store(store_type(), dir);
  if (store->mount() != 0)
    return 1;
  auto models = make_models();
  std::vector<Handle> handles;
  for (int c = 0; c < collection_count; ++c) {
    handles.push_back(store->open_collection(pg(c)));
    models[c].skip_to(CollectionModel::done_in(*store, handles[c], c));
  }
  std::mt19937 random(::getpid());
  for (;;) {
    const uint64_t c = random() % collection_count;
    Transaction t = models[c].next();
    const Ack ack{c, models[c].done()};
    auto* report = new LambdaContext([=](int) {
      ceph_assert(::write(report_fd, &ack, sizeof(ack)) == sizeof(ack));
    });
    // Two ways to learn that it is durable.
    const bool ask_afterwards = ack.count % 2;
    if (!ask_afterwards)
      t.register_on_commit(report);
    if (store->queue_transaction(handles[c], std::move(t)) != 0)
      return 3;
    if (ask_afterwards && handles[c]->flush_commit(report))
      report->complete(0);
  }
}
const ChildProgram model_program{"run models", &run_models};

}  // namespace

class StoreCrashModel : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "reads what is on its way to the disk";
    std::cout << "seed " << seed_of_this_run() << std::endl;
    StoreFixture::SetUp();
    for (int c = 0; c < collection_count; ++c) {
      Handle ch = make_collection(pg(c));
      wait_durable(ch);
    }
  }
  /// Kills a child after so many acknowledgements.
  void kill_after(int acks, const std::vector<std::string>& options);
  void verify();
  void rounds(int count, const std::vector<std::string>& options);

  std::vector<CollectionModel> models = make_models();
  uint64_t acked[collection_count] = {};
};

void StoreCrashModel::kill_after(int acks, const std::vector<std::string>& options)
{
  Child child("run models", dir, options);
  Ack ack;
  while (TEMP_FAILURE_RETRY(::read(child.fd(), &ack, sizeof(ack))) == sizeof(ack)) {
    acked[ack.collection] = std::max(acked[ack.collection], ack.count);
    if (--acks == 0)
      child.kill();
  }
  ASSERT_LE(acks, 0) << "the child ended by itself";
  ASSERT_EQ(-SIGKILL, child.wait());
}

void StoreCrashModel::verify()
{
  for (int c = 0; c < collection_count; ++c) {
    Handle ch = store->open_collection(pg(c));
    ASSERT_TRUE(ch);
    const uint64_t found = CollectionModel::done_in(*store, ch, c);
    ASSERT_GE(found, acked[c]) << "lost after an acknowledgement, in " << pg(c);
    acked[c] = found;
    models[c].skip_to(found);
    ASSERT_NO_FATAL_FAILURE(models[c].expect_equal(*store, ch)) << pg(c);
  }
}

void StoreCrashModel::rounds(int count, const std::vector<std::string>& options)
{
  std::mt19937 random(seed_of_this_run());
  for (int round = 0; round < count; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    umount();
    ASSERT_NO_FATAL_FAILURE(kill_after(1 + random() % (round % 3 == 0 ? 600 : 60), options));
    // The first to see what the crash left is fsck every other time.
    if (round % 2) {
      reopen(false);
      ASSERT_EQ(0, store->fsck(true));
    }
    reopen();
    ASSERT_NO_FATAL_FAILURE(verify());
  }
}

TEST_F(StoreCrashModel, StateIsThatOfAPrefixWithAllThatWasAcknowledged)
{
  rounds(10, {});
}

TEST_F(StoreCrashModel, StateIsThatOfAPrefixWithSmallLogAndCaches)
{
  rounds(6, {"--tablestore-table-memtable-size=1M", "--tablestore-cache-size=1M",
             "--tablestore-prepare-rate=0", "--tablestore-punch-rate=1G",
             "--tablestore-io-uring=false"});
}

TEST_F(StoreCrashModel, LongRunsEqualTheModelAfterEachRemount)
{
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (int i = 0; i < 200; ++i) {
      const int c = i % collection_count;
      Handle ch = store->open_collection(pg(c));
      queue(ch, models[c].next());
      if (i % 50 == 49) {
        ASSERT_NO_FATAL_FAILURE(models[c].expect_equal(*store, ch));
      }
    }
    remount();
    ASSERT_NO_FATAL_FAILURE(verify());
  }
}
