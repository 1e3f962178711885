// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What a deep fsck reads: many pieces at a time, told in their order.
#include <atomic>
#include <barrier>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "os/tablestore/check/deep_reads.h"

using namespace tablestore;
using Piece = DeepReads::Piece;

namespace {

constexpr uint64_t MiB = 1 << 20;

OnodeRef object_of(uint64_t nid, uint64_t size)
{
  auto o = std::make_shared<Onode>();
  o->nid = nid;
  o->size = size;
  return o;
}

class DeepReadsTest : public ::testing::Test {
 protected:
  Status note(const Piece& piece)
  {
    told.emplace_back(piece.o->nid, piece.offset);
    if (!piece.good)
      bad.emplace_back(piece.o->nid, piece.offset);
    return {};
  }
  DeepReads::Told noting() { return [this](const Piece& piece) { return note(piece); }; }

  using Places = std::vector<std::pair<uint64_t, uint64_t>>;   ///< number and offset
  Places told, bad;
};

class DeepReadsBy : public DeepReadsTest, public ::testing::WithParamInterface<unsigned> {};

}  // namespace

TEST_P(DeepReadsBy, AllPiecesAreReadOnceAndToldInTheirOrder)
{
  Places added;
  std::atomic<uint64_t> bytes{0};
  std::mutex mutex;
  std::set<std::pair<uint64_t, uint64_t>> seen;
  const auto read = [&](const Piece& piece) {
    bytes += piece.length;
    std::lock_guard l{mutex};
    EXPECT_TRUE(seen.emplace(piece.o->nid, piece.offset).second) << "twice";
    return piece.o->nid % 100 != 7;
  };
  DeepReads reads(GetParam(), read, noting());
  uint64_t all = 0;
  for (uint64_t nid = 0; nid < 5000; ++nid) {
    const uint64_t size = nid % 50 == 0 ? 9 * MiB + nid : nid % 3 * 4096;
    all += size;
    for (uint64_t offset = 0; offset < size; offset += 4 * MiB)
      added.emplace_back(nid, offset);
    ASSERT_TRUE(reads.add(object_of(nid, size)).ok());
  }
  ASSERT_TRUE(reads.finish().ok());
  EXPECT_EQ(all, bytes);
  EXPECT_EQ(added, told);
  Places expected;
  for (const auto& place : added) {
    if (place.first % 100 == 7)
      expected.push_back(place);
  }
  EXPECT_EQ(expected, bad);
}

TEST_P(DeepReadsBy, WhatIsToldCanEndIt)
{
  unsigned left = 10;
  const auto end = [&](const Piece&) { return --left ? Status() : Status(ECANCELED, "enough"); };
  DeepReads reads(GetParam(), [](const Piece&) { return true; }, end);
  Status s;
  for (uint64_t nid = 0; s.ok() && nid < 100; ++nid)
    s = reads.add(object_of(nid, 4096));
  if (s.ok())
    s = reads.finish();
  EXPECT_EQ(ECANCELED, s.code());
  EXPECT_EQ(0u, left);
}

INSTANTIATE_TEST_SUITE_P(Threads, DeepReadsBy, ::testing::Values(0, 1, 8));

TEST_F(DeepReadsTest, PiecesAreReadAtTheSameTime)
{
  std::barrier together(8);   // ends only if so many are in it together
  DeepReads reads(
    8, [&](const Piece&) { together.arrive_and_wait(); return true; }, noting());
  ASSERT_TRUE(reads.add(object_of(1, 16 * MiB)).ok());
  for (uint64_t nid = 2; nid <= 5; ++nid)
    ASSERT_TRUE(reads.add(object_of(nid, 4096)).ok());
  ASSERT_TRUE(reads.finish().ok());
  EXPECT_EQ(8u, told.size());
}

TEST_F(DeepReadsTest, NoMoreThanAFewOfThemAreInMemory)
{
  std::atomic<uint64_t> begun{0};
  uint64_t added = 0, ahead = 0;
  DeepReads reads(
    2, [&](const Piece& piece) { begun += piece.length; return true; }, noting());
  for (uint64_t nid = 1; nid <= 200; ++nid) {
    ASSERT_TRUE(reads.add(object_of(nid, 4 * MiB)).ok());
    added += 4 * MiB;
    ahead = std::max<uint64_t>(ahead, added - std::min<uint64_t>(added, begun));
  }
  ASSERT_TRUE(reads.finish().ok());
  EXPECT_LE(ahead, 64 * MiB);
}
