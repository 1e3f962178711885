// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// For tests of real OSDs: changes one bit in each row of an object of a store that is not mounted:
// of its onodes (all, or those of the head or of its snapshots alone), or of the head's shards.
//
//   TABLESTORE_TEST_OBJECT=name TABLESTORE_TEST_ROWS=onodes|head|snapshots|shards
//     ceph_test_tablestore --tablestore-test-child damage-rows DIR
#include <cstdlib>
#include <iostream>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/object/onode.h"
#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/child_program.h"

namespace tablestore_test {

namespace {

using namespace tablestore;

int failed(const std::string& what)
{
  std::cerr << "damage-rows: " << what << std::endl;
  return 1;
}

/// What there is of an object, and how much of it is damaged by `txn`.
class Damage {
 public:
  Damage(Engine& engine, std::string name, std::string rows)
    : engine(engine), name(std::move(name)), rows(std::move(rows))
  {
  }
  Status gather(Txn& txn)
  {
    const auto [first, last] = all_onodes_range();
    auto it = engine.iterate(Family::object, first, last);
    for (it->seek(first); it->valid(); it->next()) {
      ghobject_t oid;
      if (!decode_onode_key(it->key(), &oid) || oid.hobj.oid.name != name)
        continue;
      if (rows != "onodes" && oid.hobj.is_head() == (rows == "snapshots"))
        continue;
      if (rows == "shards")
        damage_shards(txn, it->value());
      else
        damage(txn, it->key(), it->value());
    }
    return it->status();
  }
  unsigned damaged = 0;

 private:
  void damage(Txn& txn, std::string_view key, std::string_view value)
  {
    std::string row(value);
    row[row.size() / 2] ^= 0x10;
    txn.put(Family::object, key, row);
    ++damaged;
  }
  void damage_shards(Txn& txn, std::string_view onode)
  {
    ObjectContents contents;
    contents.decode(onode);
    const std::string first = shard_key(contents.nid, 0);
    const std::string last = shard_key(contents.nid + 1, 0);
    auto it = engine.iterate(Family::object, first, last);
    for (it->seek(first); it->valid(); it->next())
      damage(txn, it->key(), it->value());
  }

  Engine& engine;
  const std::string name;
  const std::string rows;
};

int damage_rows(const std::string& dir, int)
{
  const char* name = ::getenv("TABLESTORE_TEST_OBJECT");
  const char* rows = ::getenv("TABLESTORE_TEST_ROWS");
  if (!name || !rows)
    return failed("TABLESTORE_TEST_OBJECT or TABLESTORE_TEST_ROWS is not set");
  auto disk = open_file_disk(dir, {});
  if (!disk.ok())
    return failed(disk.status().what());
  auto engine = Engine::open(**disk, {});
  if (!engine.ok())
    return failed(engine.status().what());
  Damage damage(**engine, name, rows);
  auto txn = std::make_shared<Txn>();
  if (const Status status = damage.gather(*txn); !status.ok())
    return failed(status.what());
  (*engine)->submit(std::move(txn));
  (*engine)->drain();
  if (const Status closed = (*engine)->close(); !closed.ok())
    return failed(closed.what());
  return damage.damaged > 0 ? 0 : failed(std::string("no such row is there of ") + name);
}

const ChildProgram program{"damage-rows", &damage_rows};

}  // namespace

}  // namespace tablestore_test
