// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// One life of a whole store, for `tablestore_powercut --store`, which kills it or cuts its power:
// it is opened, judged by what the lives before it had acknowledged, and written to. What they
// share is a LifeReport (src/test/tablestore/powercut); each collection is one of its sequences.
#include <atomic>
#include <csignal>
#include <iostream>
#include <random>
#include <vector>

#include <sys/mman.h>

#include "common/errno.h"
#include "include/Context.h"
#include "test/objectstore/tablestore/child_program.h"
#include "test/objectstore/tablestore/collection_model.h"
#include "test/objectstore/tablestore/store_fixture.h"
#include "test/tablestore/powercut/life_report.h"

using namespace tablestore_test;
using tablestore::powercut::LifeReport;

namespace {

constexpr int collection_count = 3;
constexpr uint64_t size_max = 300 * KiB;

std::atomic<bool> orderly_end{false};

LifeReport& map_report(int fd)
{
  void* memory = ::mmap(nullptr, sizeof(LifeReport), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ceph_assert(memory != MAP_FAILED);
  return *static_cast<LifeReport*>(memory);
}

std::vector<CollectionModel> make_models(const LifeReport& report)
{
  std::vector<CollectionModel> models;
  for (int c = 0; c < collection_count; ++c)
    models.emplace_back(pg(c), c, report.shape + c, size_max);
  return models;
}

int failed(const std::string& what)
{
  std::cerr << "FAILED " << what << std::endl;
  return 1;
}

int make(const std::string& dir, int)
{
  auto store = make_store(store_type(), dir);
  if (const int r = store->mkfs(); r != 0)
    return failed("mkfs: " + cpp_strerror(r));
  if (store->mount() != 0)
    return failed("the first mount");
  for (int c = 0; c < collection_count; ++c) {
    Handle ch = store->create_new_collection(pg(c));
    Transaction t;
    t.create_collection(pg(c), 0);
    commit(*store, ch, std::move(t));
  }
  return store->umount();
}

/// Whether the store is what some number of each collection's transactions make, with all that were
/// acknowledged. The models go there.
bool judge(ObjectStore& store, const LifeReport& report, std::vector<CollectionModel>& models)
{
  for (int c = 0; c < collection_count; ++c) {
    Handle ch = store.open_collection(pg(c));
    if (!ch) {
      failed("a collection is not there");
      return false;
    }
    const uint64_t found = CollectionModel::done_in(store, ch, c);
    if (found < report.floor[c]) {
      failed("collection " + std::to_string(c) + ": " + std::to_string(report.floor[c]) +
             " transactions were acknowledged, " + std::to_string(found) + " are there");
      return false;
    }
    models[c].skip_to(found);
    models[c].expect_equal(store, ch);
  }
  return !::testing::Test::HasFailure();
}

/// Goes on with the sequences from where the store is, until the orderly end.
void write(ObjectStore& store, LifeReport& report, std::vector<CollectionModel>& models)
{
  std::vector<Handle> handles;
  for (int c = 0; c < collection_count; ++c) {
    report.acknowledged[c] = models[c].done();
    handles.push_back(store.open_collection(pg(c)));
  }
  report.begun = true;
  std::mt19937_64 random(report.seed);
  while (!orderly_end) {
    const int c = random() % collection_count;
    Transaction t = models[c].next();
    auto* acknowledge = new LambdaContext([&report, c, count = models[c].done()](int) {
      report.acknowledged[c] = count;
    });
    t.register_on_commit(acknowledge);
    queue(store, handles[c], std::move(t));
    // Sometimes one after the other, sometimes many at once.
    if (random() % 30 == 0)
      wait_durable(handles[c]);
  }
  for (Handle& ch : handles)
    wait_durable(ch);
}

int live(const std::string& dir, int report_fd)
{
  std::signal(SIGTERM, [](int) { orderly_end = true; });
  LifeReport& report = map_report(report_fd);
  auto store = make_store(store_type(), dir);
  // The first to see what a crash left is fsck every other time.
  if (report.seed % 2) {
    if (const int errors = store->fsck(true); errors != 0)
      return failed("fsck: " + std::to_string(errors));
  }
  if (const int r = store->mount(); r != 0)
    return failed("the store does not mount: " + std::to_string(r));
  auto models = make_models(report);
  if (!judge(*store, report, models))
    return failed("the store is not what it may be");
  if (report.writes)
    write(*store, report, models);
  return store->umount();
}

const ChildProgram make_program{"make", &make};
const ChildProgram live_program{"live", &live};
const ChildProgram judge_program{"judge", &live};

}  // namespace
