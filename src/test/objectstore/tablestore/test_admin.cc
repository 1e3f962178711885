// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The commands of the admin socket: `ceph daemon osd.N tablestore ...`.
#include <memory>
#include <set>
#include <sstream>

#include "common/admin_socket.h"
#include "common/ceph_context.h"
#include "common/ceph_json.h"
#include "global/global_context.h"
#include "include/stringify.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"
#include "test/objectstore/tablestore/store_rows_fixture.h"

using namespace tablestore_test;

class StoreAdmin : public StoreRowsFixture {
 protected:
  /// What it prints, as JSON; `result` is what it returns.
  std::unique_ptr<JSONParser> run(const std::string& command, int result = 0)
  {
    bufferlist out;
    std::ostringstream errors;
    EXPECT_EQ(result, g_ceph_context->get_admin_socket()->execute_command(
                          {"{" + command + ", \"format\": \"json\"}"}, {}, errors, &out))
        << errors.str();
    said = errors.str();
    auto parser = std::make_unique<JSONParser>();
    if (out.length() > 0) {
      EXPECT_TRUE(parser->parse(out.c_str(), out.length())) << out.to_str();
    }
    return parser;
  }
  static std::string prefix(const std::string& name) { return "\"prefix\": \"" + name + "\""; }
  std::string onode(const ghobject_t& oid)
  {
    return prefix("tablestore onode") + ", \"object_name\": \"" + stringify(oid) + "\"";
  }
  static std::string field(const std::unique_ptr<JSONParser>& json, const std::string& name)
  {
    JSONObj* found = json->find_obj(name);
    return found ? found->get_data() : "missing";
  }
  std::string said;
};

TEST_F(StoreAdmin, StatsHasCountersCachesAndPools)
{
  const auto json = run(prefix("tablestore stats"));
  EXPECT_TRUE(json->find_obj("tablestore_statistics"));
  EXPECT_TRUE(json->find_obj("caches"));
  JSONObj* pools = json->find_obj("pools");
  ASSERT_TRUE(pools);
  const std::string text(pools->get_data());
  EXPECT_NE(std::string::npos, text.find("\"objects\":2")) << text;
}

TEST_F(StoreAdmin, CheckpointReturnsWhenItIsDone)
{
  run(prefix("tablestore checkpoint"));
  remount({&ch});
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
}

TEST_F(StoreAdmin, ALossOfTheLogCanBeSettled)
{
  run(prefix("tablestore settle log loss"));
  remount({&ch});
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
}

TEST_F(StoreAdmin, LostObjectsCanBeSettled)
{
  auto& lost_names = static_cast<TableStore&>(*store).parts().lost_names;
  const ghobject_t lost = object("lost", 1, 0x15);
  lost_names.lose(tablestore::onode_key(lost), tablestore::onode_key(lost) + '\0');
  EXPECT_NE("", alert("TABLESTORE_OBJECTS_LOST"));
  struct stat st;
  EXPECT_EQ(-EIO, store->stat(ch, lost, &st));
  run(prefix("tablestore settle lost objects"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ("", alert("TABLESTORE_OBJECTS_LOST"));
    EXPECT_EQ(-ENOENT, store->stat(ch, lost, &st));
    remount({&ch});
  }
}

TEST_F(StoreAdmin, OnodePrintsAnObjectOfAPlacementGroupAndOfMeta)
{
  Handle meta = make_collection(coll_t::meta());
  const ghobject_t map = object("osdmap", -1, 0x10);
  write(meta, map, 0, content(5, 5000));
  const auto of_large = run(onode(large)), of_map = run(onode(map));
  EXPECT_EQ(std::to_string(MiB), field(of_large, "size"));
  EXPECT_EQ("5000", field(of_map, "size"));
  EXPECT_TRUE(of_large->find_obj("extents"));
  run(onode(object("nothing", 1, 0x10)), -ENOENT);
  EXPECT_NE(std::string::npos, said.find("no such object"));
  run(prefix("tablestore onode") + ", \"object_name\": \"no name\"", -EINVAL);
}

TEST_F(StoreAdmin, CompactContainersRunsAndSaysHowItEnded)
{
  run(prefix("tablestore compact containers") + ", \"max_live_percent\": 50");
  EXPECT_TRUE(eventually([&] {
    return field(run(prefix("tablestore compact status")), "running") == "false";
  }));
  const auto json = run(prefix("tablestore compact status"));
  EXPECT_EQ("50", field(json, "max_live_percent"));
  EXPECT_NE("", field(json, "result"));
  run(prefix("tablestore compact containers"));
  EXPECT_EQ("25", field(run(prefix("tablestore compact stop")), "max_live_percent"));
  EXPECT_EQ("false", field(run(prefix("tablestore compact status")), "running"));
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
}

TEST_F(StoreAdmin, AllocatorScoreIsThatOfItsRuns)
{
  const auto score = run(prefix("tablestore allocator score"));
  const double rating = std::stod(field(score, "fragmentation_rating"));
  EXPECT_GE(rating, 0);
  EXPECT_LE(rating, 1);
  uint64_t free_bytes = 0;
  const auto runs = run(prefix("tablestore allocator dump"));
  JSONObj* extents = runs->find_obj("extents");
  ASSERT_TRUE(extents);
  for (auto p = extents->find_first(); !p.end(); ++p)
    free_bytes += std::stoull((*p)->find_obj("length")->get_data(), nullptr, 16);
  EXPECT_GT(free_bytes, 0u);
  EXPECT_EQ(std::to_string(free_bytes), field(score, "free_bytes"));
  uint64_t in_bins = 0;
  const auto histogram = run(prefix("tablestore allocator fragmentation histogram"));
  JSONObj* classes = histogram->find_obj("classes");
  ASSERT_TRUE(classes);
  for (auto c = classes->find_first(); !c.end(); ++c) {
    JSONObj* bins = (*c)->find_obj("bins");
    for (auto bin = bins->find_first(); !bin.end(); ++bin)
      in_bins += std::stoull((*bin)->find_obj("total")->get_data());
  }
  EXPECT_EQ(free_bytes, in_bins);
}

TEST_F(StoreAdmin, ContainersSayWhatIsOwnedInThem)
{
  const auto json = run(prefix("tablestore containers"));
  uint64_t owned = 0;
  for (auto c = json->find_first(); !c.end(); ++c)
    owned += std::stoull((*c)->find_obj("used_bytes")->get_data());
  EXPECT_EQ(MiB, owned) << "of the large object; the small one is in a row";
}

TEST_F(StoreAdmin, LogStatusSaysHowFullItIs)
{
  const auto json = run(prefix("tablestore log status"));
  EXPECT_LT(std::stoull(field(json, "used_bytes")), std::stoull(field(json, "capacity_bytes")));
  EXPECT_EQ("false", field(json, "wants_checkpoint"));
}

TEST_F(StoreAdmin, CollectionsAndTheirObjectsAreListed)
{
  const auto collections = run(prefix("tablestore collections"));
  auto first = collections->find_first();
  ASSERT_FALSE(first.end());
  EXPECT_EQ(stringify(ch->cid), (*first)->find_obj("collection")->get_data());
  const std::string list =
      prefix("tablestore list") + ", \"collection\": \"" + stringify(ch->cid) + "\"";
  const auto page = run(list + ", \"max\": 1");
  const std::string next = field(page, "next");
  ASSERT_NE("", next);
  const auto rest = run(list + ", \"start\": \"" + next + "\"");
  EXPECT_EQ("", field(rest, "next"));
  std::set<std::string> names;
  for (const auto* json : {&page, &rest}) {
    JSONObj* objects = (*json)->find_obj("objects");
    for (auto p = objects->find_first(); !p.end(); ++p)
      names.insert((*p)->get_data());
  }
  EXPECT_EQ((std::set{stringify(large), stringify(small)}), names);
  run(prefix("tablestore list") + ", \"collection\": \"9.0_head\"", -ENOENT);
  run(prefix("tablestore list") + ", \"collection\": \"nonsense\"", -EINVAL);
}

TEST_F(StoreAdmin, PunchAndCompactLeaveTheDataAsItIs)
{
  for (int i = 0; i < 20; ++i)
    write(ch, object("filler" + std::to_string(i)), 0, content(i, 4 * MiB));
  wait_durable(ch);
  for (int i = 0; i < 20; ++i)
    remove(ch, object("filler" + std::to_string(i)));
  // What was freed can be handed out two groups later.
  for (int i = 0; i < 3; ++i)
    commit(ch, {});
  EXPECT_TRUE(eventually([&] {
    return std::stoull(field(run(prefix("tablestore punch")), "bytes")) > 0;
  }));
  run(prefix("tablestore compact"));
  EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
}

TEST_F(StoreAdmin, OnodeSaysThatAnObjectIsDamaged)
{
  expect_clean = false;
  damage_onode(large);
  mount_again();
  run(onode(large), -EIO);
  EXPECT_NE(std::string::npos, said.find("damaged"));
}
