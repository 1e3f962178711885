// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What a transaction costs in memory that is allocated and, as a rule, copied to.
#include <gperftools/malloc_hook_c.h>

#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

namespace {

struct Allocated {
  uint64_t bytes = 0;
  uint64_t times = 0;
};

thread_local Allocated allocated;

void count(const void*, size_t bytes)
{
  allocated.bytes += bytes;
  ++allocated.times;
}

}  // namespace

class StoreAllocations : public StoreFixture {
 protected:
  void SetUp() override
  {
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
    touch(ch, object("log"));
    ASSERT_TRUE(MallocHook_AddNewHook(&count));
  }
  void TearDown() override
  {
    MallocHook_RemoveNewHook(&count);
    ch.reset();
    StoreFixture::TearDown();
  }
  std::unique_ptr<ObjectStore> new_store() override { return make_store("tablestore", dir); }

  /// As an OSD writes: the attributes, the data, the rows of the PG's log.
  Transaction osd_write(int i, const bufferlist& data)
  {
    Transaction t;
    const ghobject_t oid = object("o" + std::to_string(i));
    const std::map<std::string, bufferlist, std::less<>> attributes{{"_", content(i, 250)},
                                                                    {"snapset", content(i, 35)}};
    t.create(ch->cid, oid);
    t.setattrs(ch->cid, oid, attributes);
    t.write(ch->cid, oid, 0, data.length(), data);
    std::map<std::string, bufferlist> rows{{"0000000001." + std::to_string(i), content(i, 200)}};
    t.omap_setkeys(ch->cid, object("log"), rows);
    return t;
  }
  /// What the calling thread allocates to queue it.
  Allocated to_queue(Transaction&& t)
  {
    const Allocated before = allocated;
    queue(ch, std::move(t));
    return {allocated.bytes - before.bytes, allocated.times - before.times};
  }

  /// What the calling thread allocates to read what is in memory.
  Allocated to_read(const ghobject_t& oid)
  {
    const Allocated before = allocated;
    bufferlist bl;
    EXPECT_EQ(int(4 * KiB), store->read(ch, oid, 0, 4 * KiB, bl));
    return {allocated.bytes - before.bytes, allocated.times - before.times};
  }
  static uint64_t median(std::vector<uint64_t> values)
  {
    const auto middle = values.begin() + values.size() / 2;
    std::ranges::nth_element(values, middle);
    return *middle;
  }

  Handle ch;
};

TEST_F(StoreAllocations, DataAreNotCopied)
{
  for (int i = 0; i < 10; ++i) {
    const bufferlist data = content(i, MiB);
    EXPECT_LT(to_queue(osd_write(i, data)).bytes, 64 * KiB);
  }
}

TEST_F(StoreAllocations, OfASmallWriteAreFew)
{
  std::vector<uint64_t> times;
  for (int i = 0; i < 101; ++i)
    times.push_back(to_queue(osd_write(i, content(i, 4 * KiB))).times);
  RecordProperty("allocations", std::to_string(median(times)));
  EXPECT_LE(median(times), 56u);
}

TEST_F(StoreAllocations, OfAReadFromMemoryAreFew)
{
  commit(ch, osd_write(0, content(0, 4 * KiB)));
  std::vector<uint64_t> times;
  for (int i = 0; i < 101; ++i)
    times.push_back(to_read(object("o0")).times);
  RecordProperty("allocations", std::to_string(median(times)));
  EXPECT_LE(median(times), 5u);
}
