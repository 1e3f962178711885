// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Many threads: writers of their own objects, readers of all, each read verified.
#include <atomic>
#include <climits>
#include <random>
#include <thread>

#include "test/objectstore/tablestore/store_fixture.h"

using namespace tablestore_test;

namespace {

constexpr int writers = 4;
constexpr int readers = 4;
constexpr int objects_of_writer = 6;
constexpr int writes_of_round = 150;

uint64_t size_of_object(int o)
{
  constexpr uint64_t sizes[] = {500, 2000, 4096, 20000, 70001, 400000};
  return sizes[o];
}

uint64_t seed_of(int writer, int o, uint64_t version)
{
  return (uint64_t(writer) << 40) + (uint64_t(o) << 32) + version;
}

/// The data of a version begins with its number, so that a read says what it is to be.
bufferlist data_of(int writer, int o, uint64_t version)
{
  bufferlist bl;
  encode(version, bl);
  bl.append(content(seed_of(writer, o, version), size_of_object(o) - bl.length()));
  return bl;
}

}  // namespace

class StoreConcurrency : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "its readers may see half of a transaction";
    StoreFixture::SetUp();
  }
  void TearDown() override
  {
    handles.clear();
    StoreFixture::TearDown();
  }

  /// Collection of a writer: one each, or one for all.
  int64_t pool_of(int writer) const { return one_collection ? 1 : writer + 1; }
  Handle& handle_of(int writer) { return handles[pool_of(writer)]; }
  ghobject_t oid(int writer, int o) const
  {
    return object("w" + std::to_string(writer) + "o" + std::to_string(o), pool_of(writer), o);
  }

  void open_all()
  {
    for (int w = 0; w < writers; ++w) {
      Handle ch = store->open_collection(pg(pool_of(w)));
      handles[pool_of(w)] = ch ? ch : make_collection(pg(pool_of(w)));
    }
  }
  void write_round(int writer, uint64_t seed);
  void read_until(const std::atomic<bool>& stop, uint64_t seed);
  void read_and_verify(int writer, int o);
  void run_rounds(int rounds);

  bool one_collection = false;
  std::map<int64_t, Handle> handles;
  /// What was queued last, by writer and object: no read that begins later may find an older
  /// version.
  std::atomic<uint64_t> queued[writers][objects_of_writer] = {};
};

void StoreConcurrency::write_round(int writer, uint64_t seed)
{
  std::mt19937_64 random(seed);
  Handle& ch = handle_of(writer);
  for (int i = 0; i < writes_of_round; ++i) {
    const int o = random() % objects_of_writer;
    const uint64_t version = queued[writer][o] + 1;
    Transaction t;
    bufferlist data = data_of(writer, o, version);
    switch (random() % 4) {
    case 0:
      // By way of another object, which then goes.
      t.touch(ch->cid, object("temp" + std::to_string(writer), pool_of(writer), o));
      t.write(ch->cid, object("temp" + std::to_string(writer), pool_of(writer), o), 0,
              data.length(), data);
      t.clone(ch->cid, object("temp" + std::to_string(writer), pool_of(writer), o),
              oid(writer, o));
      t.remove(ch->cid, object("temp" + std::to_string(writer), pool_of(writer), o));
      break;
    case 1:
      t.remove(ch->cid, oid(writer, o));
      [[fallthrough]];
    default:
      t.write(ch->cid, oid(writer, o), 0, data.length(), data);
    }
    bufferlist number = to_bl(std::to_string(version));
    t.setattr(ch->cid, oid(writer, o), "version", number);
    std::map<std::string, bufferlist> keys{{"version", number}};
    t.omap_setkeys(ch->cid, oid(writer, o), keys);
    tablestore_test::queue(*store, ch, std::move(t));
    queued[writer][o] = version;
  }
}

void StoreConcurrency::read_and_verify(int writer, int o)
{
  Handle& ch = handle_of(writer);
  const uint64_t at_least = queued[writer][o];
  bufferlist found;
  const int r = store->read(ch, oid(writer, o), 0, 0, found);
  if (r == -ENOENT) {
    EXPECT_EQ(0u, at_least);
    return;
  }
  ASSERT_EQ(int(size_of_object(o)), r) << oid(writer, o);
  uint64_t version = 0;
  auto p = found.cbegin();
  decode(version, p);
  EXPECT_GE(version, at_least) << oid(writer, o) << " went back in time";
  EXPECT_TRUE(same(data_of(writer, o, version), found)) << oid(writer, o) << " " << version;
  EXPECT_GE(std::stoull(attr(ch, oid(writer, o), "version")), version);
  if (o % 3 == 0) {
    EXPECT_GE(std::stoull(omap(ch, oid(writer, o))["version"]), version);
  }
}

void StoreConcurrency::read_until(const std::atomic<bool>& stop, uint64_t seed)
{
  std::mt19937_64 random(seed);
  while (!stop && !HasFailure()) {
    const int writer = random() % writers;
    if (random() % 16 == 0) {
      std::vector<ghobject_t> ls;
      EXPECT_EQ(0, store->collection_list(handle_of(writer), ghobject_t(), ghobject_t::get_max(),
                                          INT_MAX, &ls, nullptr));
      EXPECT_TRUE(std::is_sorted(ls.begin(), ls.end()));
    } else {
      read_and_verify(writer, random() % objects_of_writer);
    }
  }
}

void StoreConcurrency::run_rounds(int rounds)
{
  open_all();
  for (int round = 0; round < rounds; ++round) {
    std::atomic<bool> stop = false;
    std::vector<std::thread> reading, writing;
    for (int n = 0; n < readers; ++n)
      reading.emplace_back([&, n] { read_until(stop, round * 100 + n); });
    for (int n = 0; n < writers; ++n)
      writing.emplace_back([&, n] { write_round(n, round * 100 + n); });
    for (auto& t : writing)
      t.join();
    stop = true;
    for (auto& t : reading)
      t.join();
    handles.clear();
    remount();
    open_all();
    for (int w = 0; w < writers; ++w) {
      for (int o = 0; o < objects_of_writer; ++o)
        read_and_verify(w, o);
    }
    ASSERT_FALSE(HasFailure()) << "in round " << round;
  }
}

TEST_F(StoreConcurrency, WritersAndReadersOfSeveralCollections)
{
  run_rounds(3);
}

TEST_F(StoreConcurrency, WritersAndReadersOfOneCollection)
{
  one_collection = true;
  run_rounds(3);
}

TEST_F(StoreConcurrency, WritersAndReadersWithoutCaches)
{
  if (is_tablestore())
    set("tablestore_cache_size", "1M");
  run_rounds(2);
}

TEST_F(StoreConcurrency, ClonesAreMadeAndRemovedWhileTheirSourceIsWrittenAndRead)
{
  Handle ch = make_collection(pg(1));
  const ghobject_t source = object("source", 1, 5);
  write(ch, source, 0, data_of(0, 5, 1));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (uint64_t version = 2; !stop; ++version) {
      Transaction t;
      bufferlist bl = data_of(0, 5, version);
      t.write(ch->cid, source, 0, bl.length(), bl);
      tablestore_test::queue(*store, ch, std::move(t));
    }
  });
  auto verify = [&](const ghobject_t& oid) {
    bufferlist found;
    ASSERT_EQ(int(size_of_object(5)), store->read(ch, oid, 0, 0, found));
    uint64_t version = 0;
    auto p = found.cbegin();
    decode(version, p);
    EXPECT_TRUE(same(data_of(0, 5, version), found)) << oid;
  };
  for (int i = 0; i < 100; ++i) {
    const ghobject_t clone = object("clone" + std::to_string(i % 5), 1, 5);
    Transaction t;
    t.remove(ch->cid, clone);
    t.clone(ch->cid, source, clone);
    queue(ch, std::move(t));
    verify(clone);
    verify(source);
    verify(object("clone" + std::to_string(i % 3), 1, 5));
    if (HasFatalFailure())
      break;
  }
  stop = true;
  writer.join();
  remount({&ch});
  for (int i = 0; i < 5; ++i)
    verify(object("clone" + std::to_string(i), 1, 5));
  verify(source);
  ch.reset();
}

TEST_F(StoreConcurrency, CollectionsAreMadeAndRemovedWhileOthersAreWritten)
{
  std::atomic<bool> stop = false;
  Handle busy = make_collection(pg(100));
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      Transaction t;
      bufferlist bl = content(i, 9000);
      t.write(busy->cid, object("busy", 100), 0, bl.length(), bl);
      tablestore_test::queue(*store, busy, std::move(t));
    }
  });
  std::vector<std::thread> makers;
  for (int n = 0; n < 3; ++n) {
    makers.emplace_back([&, n] {
      for (int i = 0; i < 30; ++i) {
        const int64_t pool = 200 + n;
        Handle ch = store->create_new_collection(pg(pool));
        Transaction make;
        bufferlist bl = content(i, 7000);
        make.create_collection(ch->cid, 0);
        make.write(ch->cid, object("o", pool), 0, bl.length(), bl);
        tablestore_test::queue(*store, ch, std::move(make));
        EXPECT_TRUE(same(content(i, 7000), read(ch, object("o", pool))));
        std::vector<coll_t> cids;
        EXPECT_EQ(0, store->list_collections(cids));
        EXPECT_NE(cids.end(), std::find(cids.begin(), cids.end(), pg(pool)));
        Transaction unmake;
        unmake.remove(ch->cid, object("o", pool));
        unmake.remove_collection(ch->cid);
        tablestore_test::queue(*store, ch, std::move(unmake));
        EXPECT_FALSE(store->collection_exists(pg(pool)));
      }
    });
  }
  for (auto& t : makers)
    t.join();
  stop = true;
  writer.join();
  remount({&busy});
  std::vector<coll_t> cids;
  EXPECT_EQ(0, store->list_collections(cids));
  EXPECT_EQ(std::vector<coll_t>{pg(100)}, cids);
  busy.reset();
}
