// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include <atomic>
#include <barrier>
#include <vector>

#include <gtest/gtest.h>

#include "os/tablestore/object/read_helpers.h"

using tablestore::ReadHelpers;

TEST(TableStoreReadHelpers, DoEachPieceOnce)
{
  ReadHelpers helpers(4);
  for (size_t count : {0, 1, 2, 3, 100, 5000}) {
    std::vector<std::atomic<int>> done(count);
    helpers.run(count, [&](size_t i) { ++done[i]; });
    for (const auto& times : done) {
      ASSERT_EQ(1, times);
    }
  }
}

TEST(TableStoreReadHelpers, WorkAtTheSameTime)
{
  ReadHelpers helpers(3);
  // ends only if four are in it together
  std::barrier together(4);
  helpers.run(4, [&](size_t) { together.arrive_and_wait(); });
}

TEST(TableStoreReadHelpers, ServeManyCallersAtOnce)
{
  ReadHelpers helpers(2);
  std::vector<std::thread> callers;
  std::atomic<size_t> total{0};
  for (size_t c = 1; c <= 8; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<size_t> sum{0};
        helpers.run(c * 3, [&](size_t i) { sum += i; });
        ASSERT_EQ(c * 3 * (c * 3 - 1) / 2, sum);
        ++total;
      }
    });
  }
  for (auto& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(1600u, total);
}
