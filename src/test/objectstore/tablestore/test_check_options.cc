// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What a check tells while it goes on, that it can be ended, and that it changes nothing.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "os/tablestore/TableStore.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

namespace {

class StoreCheckOptions : public StoreFixture {
 protected:
  static constexpr int objects = 50;

  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "of TableStore alone";
    StoreFixture::SetUp();
    Handle ch = make_collection(pg(1));
    for (int i = 0; i < objects; ++i)
      write(ch, object("o" + std::to_string(i)), 0, content(i, 6 * MiB / objects));
    wait_durable(ch);
    ch.reset();
    umount();
    reopen(false);
  }
  int check(const tablestore::CheckOptions& options, tablestore::CheckResult* result = nullptr)
  {
    return dynamic_cast<TableStore&>(*store).check(options, result);
  }
};

TEST_F(StoreCheckOptions, ItTellsHowFarItIs)
{
  for (const bool deep : {false, true}) {
    uint64_t calls = 0, before = 0, last_total = 0;
    tablestore::CheckResult result;
    EXPECT_EQ(0, check({.deep = deep,
                        .goes_on =
                            [&](uint64_t done, uint64_t total) {
                              ++calls;
                              EXPECT_GE(done, before);
                              EXPECT_LE(done, total);
                              before = done;
                              last_total = total;
                              return true;
                            }},
                       &result));
    EXPECT_EQ(before, last_total) << "at the end all is done";
    EXPECT_GE(calls, uint64_t(objects));
    EXPECT_EQ(result.objects, uint64_t(objects));
    EXPECT_EQ(result.errors, 0u);
    EXPECT_EQ(last_total > 6 * MiB, deep);
  }
}

TEST_F(StoreCheckOptions, ItCanBeEndedAndMadeAgain)
{
  for (const bool repair : {false, true}) {
    for (const int after : {0, 1, objects / 2}) {
      int left = after;
      EXPECT_EQ(-ECANCELED, check({.deep = true, .repair = repair,
                                   .goes_on = [&left](uint64_t, uint64_t) { return left-- > 0; }}));
      EXPECT_EQ(-1, left) << "it ends at once";
    }
    EXPECT_EQ(0, check({.deep = true, .repair = repair}));
  }
}

/// An object may be in what counts as free.
TEST_F(StoreCheckOptions, ARepairGivesNothingBackBeforeItKnowsWhatIsFree)
{
  const auto runs = [](const std::string& name) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string comm;
      std::getline(std::ifstream(task.path() / "comm"), comm);
      if (comm.ends_with(name))
        return true;
    }
    return false;
  };
  ASSERT_EQ(0, store->mount());
  for (const char* work : {"shrink", "relieve"}) {
    for (int tries = 0; tries < 3000 && !runs(work); ++tries)   // it has its name when it runs
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(runs(work)) << work;
  }
  ASSERT_EQ(0, store->umount());
  EXPECT_EQ(0, check({.repair = true, .goes_on = [&](uint64_t, uint64_t) {
    EXPECT_FALSE(runs("shrink"));
    EXPECT_FALSE(runs("relieve"));
    return true;
  }}));
}

TEST_F(StoreCheckOptions, WithoutRepairNothingOnTheDiskChanges)
{
  const auto before = snapshot_of(dir);
  EXPECT_EQ(0, check({.deep = true}));
  EXPECT_EQ(before, snapshot_of(dir));
  ASSERT_EQ(0, store->mount_readonly());
  Handle ch = store->open_collection(pg(1));
  EXPECT_EQ(size_t(objects), list(ch).size());
  ch.reset();
  EXPECT_EQ(0, store->umount_readonly());
  EXPECT_EQ(before, snapshot_of(dir));
}

}  // namespace
