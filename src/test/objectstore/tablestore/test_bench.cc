// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The arithmetic of ceph_tablestore_bench.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "osd/osd_types.h"
#include "test/objectstore/tablestore/bench/object_names.h"
#include "test/objectstore/tablestore/bench/program_text.h"
#include "test/objectstore/tablestore/bench/recorder.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace store_bench;
using namespace std::chrono_literals;

TEST(BenchHistogram, QuantilesAreKnownToTwoPerCent)
{
  Histogram h;
  for (uint64_t us = 1; us <= 10000; ++us)
    h.add(us * 1000);
  EXPECT_EQ(10000u, h.count());
  EXPECT_NEAR(5000.5e3, h.mean_ns(), 1);
  for (double share : {0.01, 0.5, 0.9, 0.99, 0.999})
    EXPECT_NEAR(1, h.quantile_ns(share) / (share * 1e7), 0.02) << share;
  EXPECT_EQ(10000000u, h.max_ns());
  EXPECT_LE(h.quantile_ns(1), 1e7);
}

TEST(BenchHistogram, ShortLatenciesAreExact)
{
  Histogram h;
  for (uint64_t ns : {3, 3, 3, 40})
    h.add(ns);
  EXPECT_NEAR(3, h.quantile_ns(0.5), 0.5);
  EXPECT_NEAR(40, h.quantile_ns(0.99), 0.5);
}

TEST(BenchHistogram, MergingIsAddingAll)
{
  Histogram all, even, odd;
  for (uint64_t i = 0; i < 5000; ++i) {
    const uint64_t ns = mix(i) % 100000000;
    all.add(ns);
    (i % 2 ? odd : even).add(ns);
  }
  even.merge(odd);
  EXPECT_EQ(all.count(), even.count());
  EXPECT_EQ(all.max_ns(), even.max_ns());
  EXPECT_EQ(all.mean_ns(), even.mean_ns());
  EXPECT_EQ(all.quantile_ns(0.99), even.quantile_ns(0.99));
}

TEST(BenchRecorder, CountsFromTheBeginningOfTheMeasurementOn)
{
  const Time from = Clock::now();
  Recorder r;
  r.start(from);
  r.add(from - 2ms, from - 1ms, 10);      // the load before
  r.add(from - 1ms, from + 1ms, 10);
  r.add(from + 240ms, from + 250ms, 10);
  EXPECT_EQ((std::vector<uint64_t>{1, 0, 1}), r.ops);
  EXPECT_EQ((std::vector<uint64_t>{10, 0, 10}), r.bytes);
  EXPECT_EQ(2u, r.latencies.count());
  EXPECT_EQ(from + 250ms, r.last);
}

TEST(BenchRecorder, MergesRecordersOfDifferentLength)
{
  const Time from = Clock::now();
  Recorder early, late;
  early.start(from);
  late.start(from);
  early.add(from, from + 1ms, 1);
  late.add(from, from + 301ms, 2);
  early.merge(late);
  EXPECT_EQ((std::vector<uint64_t>{1, 0, 0, 1}), early.ops);
  EXPECT_EQ((std::vector<uint64_t>{1, 0, 0, 2}), early.bytes);
  EXPECT_EQ(from + 301ms, early.last);
}

/// A file like a library: mapped, and its pages thrown out of memory.
class BenchMappedFile : public ::testing::Test {
 protected:
  static constexpr size_t bytes = 1 << 20;

  void SetUp() override
  {
    const std::string path = dir + "/library";
    std::ofstream(path) << std::string(bytes, 'x');
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(0, ::fsync(fd));
    ASSERT_EQ(0, ::posix_fadvise(fd, 0, bytes, POSIX_FADV_DONTNEED));
    mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    ASSERT_NE(MAP_FAILED, mapping);
  }

  void TearDown() override
  {
    ::munmap(mapping, bytes);
    std::filesystem::remove_all(dir);
  }

  long pages_in_memory() const
  {
    std::vector<unsigned char> in_memory(bytes / page_bytes);
    EXPECT_EQ(0, ::mincore(mapping, bytes, in_memory.data()));
    return std::ranges::count_if(in_memory, [](unsigned char c) { return c & 1; });
  }

  const std::string dir = tablestore_test::make_test_dir();
  const size_t page_bytes = ::sysconf(_SC_PAGESIZE);
  void* mapping = MAP_FAILED;
};

TEST_F(BenchMappedFile, ComesBackIntoMemory)
{
  ASSERT_EQ(0, pages_in_memory()) << "a file system that has no disk?";
  load_mapped_files();
  EXPECT_EQ(long(bytes / page_bytes), pages_in_memory());
}

TEST(BenchNames, AnObjectIsInItsGroup)
{
  constexpr uint32_t pgs = 32;
  for (uint64_t number = 0; number < 1000; ++number) {
    const uint32_t pg = number % pgs;
    const ghobject_t oid = object_name(number, pg, pgs);
    EXPECT_EQ(pg, oid.hobj.get_hash() % pgs);
    EXPECT_TRUE(pg_t(pg, pool).contains(5, oid));
  }
}
