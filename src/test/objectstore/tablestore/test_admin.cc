// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The commands of the admin socket: `ceph daemon osd.N tablestore ...`.
#include <memory>
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

TEST_F(StoreAdmin, OnodeSaysThatAnObjectIsDamaged)
{
  expect_clean = false;
  damage_onode(large);
  mount_again();
  run(onode(large), -EIO);
  EXPECT_NE(std::string::npos, said.find("damaged"));
}
