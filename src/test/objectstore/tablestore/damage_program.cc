// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// For tests of real OSDs: changes one bit in the row of an object of a store that is not mounted.
//
//   TABLESTORE_TEST_OBJECT=name ceph_test_tablestore --tablestore-test-child damage-onode DIR
#include <cstdlib>
#include <iostream>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/child_program.h"

namespace tablestore_test {

namespace {

using namespace tablestore;

int failed(const std::string& what)
{
  std::cerr << "damage-onode: " << what << std::endl;
  return 1;
}

int damage_onode(const std::string& dir, int)
{
  const char* name = ::getenv("TABLESTORE_TEST_OBJECT");
  if (!name)
    return failed("TABLESTORE_TEST_OBJECT names no object");
  const bool only_snapshots = ::getenv("TABLESTORE_TEST_SNAPSHOTS");
  auto disk = open_file_disk(dir, {});
  if (!disk.ok())
    return failed(disk.status().what());
  auto engine = Engine::open(**disk, {});
  if (!engine.ok())
    return failed(engine.status().what());
  auto txn = std::make_shared<Txn>();
  unsigned damaged = 0;
  const auto [first, last] = all_onodes_range();
  auto it = (*engine)->iterate(Family::object, first, last);
  for (it->seek(first); it->valid(); it->next()) {
    ghobject_t oid;
    if (!decode_onode_key(it->key(), &oid) || oid.hobj.oid.name != name ||
        (only_snapshots && oid.hobj.is_head()))
      continue;
    std::string row(it->value());
    row[row.size() / 2] ^= 0x10;
    txn->put(Family::object, it->key(), row);
    ++damaged;
  }
  if (!it->status().ok())
    return failed(it->status().what());
  it.reset();
  (*engine)->submit(std::move(txn));
  (*engine)->drain();
  if (const Status closed = (*engine)->close(); !closed.ok())
    return failed(closed.what());
  return damaged > 0 ? 0 : failed(std::string("no object is called ") + name);
}

const ChildProgram program{"damage-onode", &damage_onode};

}  // namespace

}  // namespace tablestore_test
