// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// A store whose rows a test can change behind its back, through an engine of its own.
#pragma once

#include <functional>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/home/copied_row.h"
#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/store_fixture.h"

namespace tablestore_test {

/// With a collection, a large object in container blocks, and a small inline one with omap.
class StoreRowsFixture : public StoreFixture {
 protected:
  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "the damage is done to rows of tablestore";
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
    write(ch, large, 0, content(1, MiB));
    write(ch, small, 0, content(2, 300));
    Transaction t;
    std::map<std::string, bufferlist> keys{{"key", to_bl("value")}};
    t.omap_setkeys(ch->cid, small, keys);
    commit(ch, std::move(t));
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }

  void close()
  {
    ch.reset();
    umount();
  }
  /// Runs `f` on the engine of the store, which is not mounted after it.
  void damage(const std::function<void(tablestore::Engine&)>& f)
  {
    if (mounted)
      close();
    auto disk = tablestore::open_file_disk(dir, {});
    ASSERT_TRUE(disk.ok()) << disk.status().what();
    auto engine = tablestore::Engine::open(**disk, {});
    ASSERT_TRUE(engine.ok()) << engine.status().what();
    f(**engine);
    const tablestore::Status closed = (*engine)->close();
    ASSERT_TRUE(closed.ok()) << closed.what();
  }
  void damage_rows(const std::function<void(tablestore::Txn&)>& f)
  {
    damage([&](tablestore::Engine& engine) {
      auto txn = std::make_shared<tablestore::Txn>();
      f(*txn);
      engine.submit(txn);
      engine.drain();
    });
  }
  void damage_row(tablestore::Family family, const std::string& key)
  {
    damage_rows([&](tablestore::Txn& txn) { txn.put(family, key, "garbage, as of a bad bit"); });
  }
  /// Of a row that is kept twice, both.
  void damage_both(const std::string& key)
  {
    damage_rows([&](tablestore::Txn& txn) {
      tablestore::CopiedRow::put(txn, key, "garbage, as of a bad bit");
    });
  }
  void damage_onode(const ghobject_t& oid)
  {
    damage_row(tablestore::Family::object, tablestore::onode_key(oid));
  }
  static std::string row(tablestore::Engine& engine, tablestore::Family family,
                         const std::string& key)
  {
    std::string value;
    const auto found = engine.get(family, key, &value);
    EXPECT_TRUE(found.ok() && *found);
    return value;
  }
  std::string row(tablestore::Family family, const std::string& key)
  {
    std::string value;
    damage([&](tablestore::Engine& engine) { value = row(engine, family, key); });
    return value;
  }
  std::string first_key(tablestore::Family family,
                        const std::pair<std::string, std::string>& range)
  {
    std::string key;
    damage([&](tablestore::Engine& engine) {
      auto it = engine.iterate(family, range.first, range.second);
      it->seek(range.first);
      ASSERT_TRUE(it->valid());
      key = it->key();
    });
    return key;
  }
  bool has_row(tablestore::Family family, const std::string& key)
  {
    bool found = false;
    damage([&](tablestore::Engine& engine) {
      std::string value;
      found = *engine.get(family, key, &value);
    });
    return found;
  }

  void mount_again()
  {
    ASSERT_EQ(0, store->mount());
    mounted = true;
    ch = store->open_collection(pg(1));
    ASSERT_TRUE(ch);
  }
  void expect_objects_whole()
  {
    mount_again();
    EXPECT_TRUE(same(content(1, MiB), read(ch, large)));
    EXPECT_TRUE(same(content(2, 300), read(ch, small)));
    EXPECT_EQ("value", omap(ch, small)["key"]);
  }
  /// Eight placement groups of a pool, one with an object in it: the bits of the others leave one
  /// value for its.
  void make_eight()
  {
    for (uint32_t ps = 0; ps < 8; ++ps) {
      Handle group = make_collection(pg(2, ps), 3);
      if (group->cid == of_eight) {
        write(group, in_it, 0, content(5, 5000));
        touch(group, ghobject_t::make_pgmeta(2, ps, shard_id_t::NO_SHARD));
      }
      wait_durable(group);
    }
  }
  void expect_of_eight_whole()
  {
    Handle group = store->open_collection(of_eight);
    ASSERT_TRUE(group);
    EXPECT_EQ(3, store->collection_bits(group));
    EXPECT_TRUE(same(content(5, 5000), read(group, in_it)));
  }

  /// What `ceph health` says of the mounted store under this name; nothing where it is silent.
  std::string alert(const std::string& name)
  {
    store_statfs_t space;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, store->statfs(&space, &alerts));
    const auto p = alerts.find(name);
    return p == alerts.end() ? std::string() : p->second;
  }

  Handle ch;
  const ghobject_t large = object("large", 1, 0x10);
  const ghobject_t small = object("small", 1, 0x20);
  const coll_t of_eight = pg(2, 5);
  const ghobject_t in_it = object("object", 2, 0xd);
};

}  // namespace tablestore_test
