// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// For a look at what fsck needs of a large store: makes one with as many clones as wanted, each of
// a head of its own, of which one block was overwritten since.
//
//   TABLESTORE_TEST_CLONES=1000000 ceph_test_tablestore --tablestore-test-child make-clones DIR
//   ceph-objectstore-tool --data-path DIR --type tablestore --op fsck
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "test/objectstore/tablestore/child_program.h"
#include "test/objectstore/tablestore/store_fixture.h"

namespace tablestore_test {

namespace {

constexpr unsigned collections = 8, heads_of_one_txn = 100;

int make_clones(const std::string& dir, int)
{
  const char* wanted = ::getenv("TABLESTORE_TEST_CLONES");
  if (!wanted) {
    std::cerr << "TABLESTORE_TEST_CLONES says not how many" << std::endl;
    return 1;
  }
  std::filesystem::create_directories(dir);
  const auto store = make_store(store_type(), dir);
  if (store->mkfs() < 0 || store->mount() < 0)
    return 1;
  std::vector<Handle> handles;
  for (uint32_t ps = 0; ps < collections; ++ps) {
    const coll_t cid = pg(1, ps);
    handles.push_back(store->create_new_collection(cid));
    Transaction t;
    t.create_collection(cid, 3);
    commit(*store, handles.back(), std::move(t));
  }
  const uint64_t count = std::strtoull(wanted, nullptr, 10);
  const bufferlist data = content(1, 8 * KiB), block = content(2, 4 * KiB);
  for (uint64_t n = 0; n < count;) {
    Handle& ch = handles[n / heads_of_one_txn % collections];
    Transaction t;
    for (unsigned i = 0; i < heads_of_one_txn && n < count; ++i, ++n) {
      // The placement group's number is in the lowest bits of the hash.
      const uint32_t hash = uint32_t(n * 0x9e3779b1u) << 3 | uint32_t(&ch - handles.data());
      const ghobject_t head = object("head " + std::to_string(n), 1, hash);
      ghobject_t clone = head;
      clone.hobj.snap = 1;
      bufferlist whole = data, part = block;
      t.write(ch->cid, head, 0, whole.length(), whole);
      t.clone(ch->cid, head, clone);
      t.write(ch->cid, head, 4 * KiB, part.length(), part);
    }
    queue(*store, ch, std::move(t));
  }
  for (Handle& ch : handles)
    wait_durable(ch);
  handles.clear();
  return store->umount() < 0;
}

const ChildProgram program{"make-clones", &make_clones};

}  // namespace

}  // namespace tablestore_test
