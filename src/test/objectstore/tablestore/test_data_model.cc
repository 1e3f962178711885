// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Random operations on the data of objects against byte vectors, with remounts. A failure prints
// its seed; TABLESTORE_TEST_SEED repeats it.
#include <cstdlib>
#include <iostream>
#include <random>

#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

namespace {

constexpr int object_count = 6;

uint64_t seed_of_this_run()
{
  const char* seed = ::getenv("TABLESTORE_TEST_SEED");
  return seed ? std::strtoull(seed, nullptr, 10) : std::random_device()();
}

struct ModelObject {
  bool exists = false;
  std::string data;

  void grow(uint64_t size)
  {
    if (data.size() < size)
      data.resize(size, '\0');
  }
  void write(uint64_t offset, const std::string& bytes)
  {
    exists = true;
    if (bytes.empty())
      return;
    grow(offset + bytes.size());
    data.replace(offset, bytes.size(), bytes);
  }
};

}  // namespace

/// Parameter: the largest object, in bytes.
class StoreDataModel : public StoreFixture, public ::testing::WithParamInterface<uint64_t> {
 protected:
  void SetUp() override
  {
    if (store_type() == "bluestore")
      GTEST_SKIP() << "reads stale data through clones whose source is on its way to the disk";
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
    seed = seed_of_this_run();
    random.seed(seed);
    RecordProperty("seed", std::to_string(seed));
  }
  void TearDown() override
  {
    if (HasFailure())
      std::cerr << "TABLESTORE_TEST_SEED=" << seed << " repeats this" << std::endl;
    ch.reset();
    StoreFixture::TearDown();
  }

  static ghobject_t oid(int i) { return object("model" + std::to_string(i), 1, 0x99); }
  uint64_t below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random); }

  /// Lengths of all magnitudes, offsets with a liking for the borders of blocks.
  uint64_t random_length(uint64_t max)
  {
    const uint64_t length =
        below(2) ? below(max) : below(std::min<uint64_t>(max, 1ull << below(21)) + 1);
    return std::min(max, below(3) == 0 ? length / 4096 * 4096 : length);
  }
  uint64_t random_offset(uint64_t end)
  {
    const uint64_t offset = below(end + 1);
    return below(3) == 0 ? offset / 4096 * 4096 : offset;
  }

  /// Adds one random operation to the transaction and to the model.
  void add_operation(Transaction& t);
  void add_clone_range(Transaction& t, int from, int to);
  void check(int i);

  Handle ch;
  uint64_t seed = 0;
  uint64_t next_content = 1;
  std::mt19937_64 random;
  ModelObject model[object_count];
};

void StoreDataModel::add_operation(Transaction& t)
{
  const uint64_t max = GetParam();
  const int i = below(object_count);
  ModelObject& m = model[i];
  const uint64_t offset = random_offset(std::min(max - 1, m.data.size() + max / 8));
  const uint64_t length = random_length(max - offset);
  switch (below(10)) {
  case 0:
    if (below(3) == 0) {
      t.remove(ch->cid, oid(i));
      m = ModelObject();
    }
    break;
  case 1:
    if (m.exists) {
      t.truncate(ch->cid, oid(i), offset);
      m.data.resize(offset, '\0');
    }
    break;
  case 2:
    t.zero(ch->cid, oid(i), offset, length);
    m.write(offset, std::string(length, '\0'));
    break;
  case 3: {
    const int to = below(object_count);
    if (m.exists && to != i) {
      t.clone(ch->cid, oid(i), oid(to));
      model[to] = m;
    }
    break;
  }
  case 4:
  case 5:
    add_clone_range(t, i, below(object_count));
    break;
  default: {
    bufferlist bl = content(seed + next_content++, length);
    t.write(ch->cid, oid(i), offset, length, bl);
    m.write(offset, bl.to_str());
  }
  }
}

void StoreDataModel::add_clone_range(Transaction& t, int from, int to)
{
  const ModelObject& source = model[from];
  if (!source.exists || source.data.empty() || from == to)
    return;
  const uint64_t src = random_offset(source.data.size() - 1);
  const uint64_t length = 1 + random_length(source.data.size() - src - 1);
  if (length >= GetParam())
    return;
  // As often as not with the same offset in a block, where extents can be shared.
  uint64_t dst = random_offset(GetParam() - length);
  if (below(2))
    dst = std::min(dst / 4096 * 4096 + src % 4096, GetParam() - length);
  t.clone_range(ch->cid, oid(from), oid(to), src, length, dst);
  model[to].write(dst, source.data.substr(src, length));
}

void StoreDataModel::check(int i)
{
  const ModelObject& m = model[i];
  ASSERT_EQ(m.exists, store->exists(ch, oid(i))) << oid(i);
  if (!m.exists)
    return;
  ASSERT_EQ(m.data.size(), size_of(ch, oid(i))) << oid(i);
  ASSERT_TRUE(same(to_bl(m.data), read(ch, oid(i)))) << oid(i);
  const uint64_t offset = random_offset(m.data.size());
  const uint64_t length = random_length(GetParam()) + 1;
  const std::string piece =
      offset < m.data.size() ? m.data.substr(offset, length) : std::string();
  ASSERT_TRUE(same(to_bl(piece), read(ch, oid(i), offset, length)))
      << oid(i) << " " << offset << "+" << length;
  // All that fiemap leaves out is zeros.
  std::map<uint64_t, uint64_t> extents;
  ASSERT_EQ(0, store->fiemap(ch, oid(i), 0, m.data.size(), extents));
  extents.emplace(m.data.size(), 0);
  uint64_t end = 0;
  for (auto [start, len] : extents) {
    ASSERT_LE(end, start);
    ASSERT_TRUE(std::all_of(m.data.begin() + end, m.data.begin() + start,
                            [](char c) { return c == 0; }))
        << oid(i) << " " << end << " to " << start;
    end = start + len;
  }
}

TEST_P(StoreDataModel, RandomOperationsEqualTheModel)
{
  const int steps = GetParam() > MiB ? 120 : 400;
  for (int step = 0; step < steps; ++step) {
    Transaction t;
    for (uint64_t ops = 1 + below(4); ops > 0; --ops)
      add_operation(t);
    queue(ch, std::move(t));
    const int looked_at = below(object_count);
    ASSERT_NO_FATAL_FAILURE(check(looked_at)) << "step " << step;
    if (step % 60 == 59) {
      remount({&ch});
      for (int i = 0; i < object_count; ++i)
        ASSERT_NO_FATAL_FAILURE(check(i)) << "after the remount at step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ObjectsUpTo, StoreDataModel,
                         ::testing::Values(6 * KiB, 48 * KiB, 700 * KiB, 5 * MiB));
