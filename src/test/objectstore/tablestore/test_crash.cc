// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Another process writes and is killed: whatever it was told to be durable is there, whole.
#include <random>

#include <unistd.h>

#include "common/Cond.h"
#include "include/compat.h"
#include "test/objectstore/tablestore/child_program.h"
#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

namespace {

constexpr int collection_count = 3;
constexpr int object_count = 8;  // in each collection
/// Entries of an object's log in omap; older ones are trimmed, as a PG's log is.
constexpr uint32_t log_length = 5;

struct Ack {
  uint32_t collection = 0;
  uint32_t object = 0;
  uint32_t version = 0;
};

ghobject_t oid_of(int collection, int n, const std::string& which)
{
  // One hash for an object and its twin: clones need it.
  return object("object" + std::to_string(n) + which, collection, n);
}

/// The data of a version: of any kind, from a few bytes in the table to many extents.
bufferlist data_of(uint32_t collection, uint32_t n, uint32_t version)
{
  const uint64_t seed = (uint64_t(collection) << 48) + (uint64_t(n) << 32) + version;
  constexpr uint64_t sizes[] = {10, 1500, 4096, 5000, 30000, 65536, 300001};
  return content(seed, version % 40 == 39 ? 2 * MiB : sizes[seed % 7]);
}

std::string log_key(uint32_t version)
{
  char key[16];
  ::snprintf(key, sizeof(key), "%010u", version);
  return key;
}

uint32_t version_of(ObjectStore& store, Handle& ch, const ghobject_t& oid)
{
  bufferptr value;
  if (store.getattr(ch, oid, "version", value) < 0)
    return 0;
  return std::stoul(std::string(value.c_str(), value.length()));
}

/// One version of an object and of its twin: a call of two transactions, which must never come
/// apart.
std::vector<Transaction> version_update(const coll_t& cid, uint32_t collection, uint32_t n,
                                        uint32_t version)
{
  std::vector<Transaction> unit(2);
  const ghobject_t oid = oid_of(collection, n, "");
  const ghobject_t twin = oid_of(collection, n, "twin");
  bufferlist data = data_of(collection, n, version);
  bufferlist number = to_bl(std::to_string(version));
  if (version % 9 == 8) {
    unit[0].remove(cid, oid);
    unit[0].touch(cid, oid);
    std::map<std::string, bufferlist> keys;
    for (uint32_t v = version - log_length + 1; v < version; ++v)
      keys[log_key(v)] = number;
    unit[0].omap_setkeys(cid, oid, keys);
  }
  unit[0].truncate(cid, oid, 0);
  // In two pieces, the second of them first.
  const uint64_t half = data.length() / 2;
  bufferlist head, tail;
  head.substr_of(data, 0, half);
  tail.substr_of(data, half, data.length() - half);
  unit[0].write(cid, oid, half, tail.length(), tail);
  unit[0].write(cid, oid, 0, head.length(), head);
  unit[0].setattr(cid, oid, "version", number);
  std::map<std::string, bufferlist> keys{{log_key(version), number}};
  unit[0].omap_setkeys(cid, oid, keys);
  if (version > log_length)
    unit[0].omap_rmkeyrange(cid, oid, "", log_key(version - log_length + 1));
  if (version % 3 == 0) {
    unit[1].clone(cid, oid, twin);
  } else {
    unit[1].touch(cid, twin);
    unit[1].setattr(cid, twin, "version", number);
  }
  return unit;
}

/// Writes until it is killed. Every version goes to the parent as an Ack, once it is durable.
int write_until_killed(const std::string& dir, int report_fd)
{
  auto store = make_store(store_type(), dir);
  if (store->mount() != 0)
    return 1;
  Handle handles[collection_count];
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> versions;
  for (int c = 0; c < collection_count; ++c) {
    handles[c] = store->open_collection(pg(c));
    if (!handles[c])
      return 2;
    for (int n = 0; n < object_count; ++n)
      versions[{c, n}] = version_of(*store, handles[c], oid_of(c, n, ""));
  }
  std::mt19937 random(::getpid());
  for (;;) {
    const uint32_t c = random() % collection_count;
    const uint32_t n = random() % object_count;
    const uint32_t version = ++versions[{c, n}];
    auto unit = version_update(handles[c]->cid, c, n, version);
    unit.back().register_on_commit(new LambdaContext([=](int) {
      const Ack ack{c, n, version};
      ceph_assert(::write(report_fd, &ack, sizeof(ack)) == sizeof(ack));
    }));
    if (store->queue_transactions(handles[c], unit) != 0)
      return 3;
  }
}
const ChildProgram writer_program{"write until killed", &write_until_killed};

}  // namespace

class StoreCrash : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (store_type() == "memstore")
      GTEST_SKIP() << "keeps nothing";
    StoreFixture::SetUp();
    for (int c = 0; c < collection_count; ++c) {
      Handle ch = make_collection(pg(c));
      wait_durable(ch);
    }
    umount();
  }
  void rounds(int count, const std::vector<std::string>& options);
  void verify();

  /// By object, the last version that was acknowledged.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> acked;
};

void StoreCrash::rounds(int count, const std::vector<std::string>& options)
{
  std::mt19937 random(42);
  for (int round = 0; round < count; ++round) {
    Child child("write until killed", dir, options);
    // Killed after some number of acks: at once, or when log and table have gone a long way.
    int left = random() % (round % 3 == 2 ? 1500 : 150) + 1;
    Ack ack;
    bool killed = false;
    while (TEMP_FAILURE_RETRY(::read(child.fd(), &ack, sizeof(ack))) == sizeof(ack)) {
      uint32_t& last = acked[{ack.collection, ack.object}];
      // In the order in which they were queued.
      ASSERT_EQ(last + 1 > ack.version ? last + 1 : ack.version, ack.version);
      last = ack.version;
      if (--left == 0 && !killed) {
        child.kill();
        killed = true;
      }
    }
    ASSERT_TRUE(killed) << "the child ended by itself";
    ASSERT_EQ(-SIGKILL, child.wait());
    reopen();
    verify();
    umount();
    ASSERT_FALSE(HasFailure()) << "in round " << round;
  }
}

void StoreCrash::verify()
{
  for (int c = 0; c < collection_count; ++c) {
    Handle ch = store->open_collection(pg(c));
    ASSERT_TRUE(ch);
    for (uint32_t n = 0; n < object_count; ++n) {
      const ghobject_t oid = oid_of(c, n, "");
      const uint32_t version = version_of(*store, ch, oid);
      uint32_t& last = acked[{c, n}];
      EXPECT_GE(version, last) << oid << ": an acknowledged version is lost";
      last = version;
      if (version == 0)
        continue;
      EXPECT_TRUE(same(data_of(c, n, version), read(ch, oid))) << oid << " version " << version;
      EXPECT_EQ(version, version_of(*store, ch, oid_of(c, n, "twin")))
          << oid << ": half of a unit";
      if (const uint32_t cloned = version / 3 * 3; cloned > 0) {
        EXPECT_TRUE(same(data_of(c, n, cloned), read(ch, oid_of(c, n, "twin"))))
            << oid << ": its twin of version " << cloned;
      }
      const auto keys = omap(ch, oid);
      EXPECT_EQ(std::min(version, log_length), keys.size()) << oid << " version " << version;
      EXPECT_EQ(1u, keys.count(log_key(version)));
    }
    // Recovered is as good as new.
    write(ch, oid_of(c, 0, "after"), 0, content(c, 100000));
    EXPECT_TRUE(same(content(c, 100000), read(ch, oid_of(c, 0, "after"))));
  }
}

TEST_F(StoreCrash, AcknowledgedWritesSurviveKills)
{
  rounds(10, {});
}

TEST_F(StoreCrash, AcknowledgedWritesToUnpreparedSlotsSurviveKills)
{
  if (!is_tablestore())
    GTEST_SKIP() << "has none of the options that this is about";
  rounds(4, {"--tablestore-prepare-rate=0", "--tablestore-punch-rate=1G"});
}

TEST_F(StoreCrash, AcknowledgedWritesSurviveKillsWithATinyLog)
{
  if (!is_tablestore())
    GTEST_SKIP() << "has none of the options that this is about";
  // A small memtable: checkpoints and recycled shards all the time.
  rounds(4, {"--tablestore-table-memtable-size=1M", "--tablestore-throttle-ops=8"});
}
