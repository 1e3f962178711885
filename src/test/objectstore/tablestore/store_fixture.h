// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// A store in a directory of its own, for tests that go through the ObjectStore interface.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "os/ObjectStore.h"

namespace tablestore_test {

using ceph::bufferlist;
using ceph::bufferptr;
using Transaction = ObjectStore::Transaction;
using Handle = ObjectStore::CollectionHandle;

constexpr uint64_t KiB = 1024;
constexpr uint64_t MiB = 1024 * KiB;

/// The store under test: "tablestore", or what TABLESTORE_TEST_STORE names. Tests of the contract
/// also run on the other stores, which shows whether it is the test or the store that is wrong.
std::string store_type();
bool is_tablestore();

/// Settings for all stores of this program: small and quick ones.
std::map<std::string, std::string> test_settings();

/// `length` bytes of a stream that `seed` names, from `offset` of it: bytes that were meant for
/// another object or another place never compare equal.
bufferlist content(uint64_t seed, uint64_t length, uint64_t offset = 0);
bufferlist to_bl(const std::string& s);
bufferlist zeros(uint64_t length);

/// Says where two bufferlists begin to differ.
::testing::AssertionResult same(const bufferlist& expected, const bufferlist& actual);

coll_t pg(int64_t pool, uint32_t ps = 0);
/// An object of a pool; without `hash`, one that follows from the name.
ghobject_t object(const std::string& name, int64_t pool = 1);
ghobject_t object(const std::string& name, int64_t pool, uint32_t hash);
ghobject_t temp_object(const std::string& name, int64_t pool, uint32_t hash);

std::unique_ptr<ObjectStore> make_store(const std::string& type, const std::string& dir);
/// A new empty directory below the working directory.
std::string make_test_dir();

/// Everything below a directory, by path, with a digest of the content: what must not change when
/// something is refused. Not the files in table/: RocksDB begins new books when it is opened.
std::map<std::string, std::string> snapshot_of(const std::string& dir);

/// Whether a condition comes true within five minutes. For what nothing can be waited on:
/// numbers that a store brings up to date now and then, work in the background.
bool eventually(const std::function<bool()>& condition);

// What tests do all the time, on any store. The store's own errors fail the test.
void queue(ObjectStore& store, Handle& ch, Transaction&& t);
/// Queues and returns when it is durable.
void commit(ObjectStore& store, Handle& ch, Transaction&& t);
/// Returns when all that was queued through the handle is durable.
void wait_durable(Handle& ch);

/// One store in a directory of its own, made and mounted by SetUp, umounted and checked by
/// TearDown.
class StoreFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// mkfs and mount; a derived fixture that overrides SetUp() calls it when its settings are in
  /// place.
  void make_and_mount();
  /// Sets an option until the end of the test.
  void set(const std::string& option, const std::string& value);

  /// An instance on the directory; a derived fixture may make another one.
  virtual std::unique_ptr<ObjectStore> new_store() { return make_store(store_type(), dir); }

  void umount();
  /// A new instance on the directory; `mount_it` = false leaves it unmounted.
  void reopen(bool mount_it = true);
  /// umount, new instance, mount. The handles are dropped before and opened again after.
  void remount(std::initializer_list<Handle*> handles = {});

  Handle make_collection(const coll_t& cid, int bits = 0);
  void queue(Handle& ch, Transaction&& t) { tablestore_test::queue(*store, ch, std::move(t)); }
  void commit(Handle& ch, Transaction&& t) { tablestore_test::commit(*store, ch, std::move(t)); }

  // One-operation transactions, queued and not waited for.
  void write(Handle& ch, const ghobject_t& oid, uint64_t offset, const bufferlist& bl);
  void touch(Handle& ch, const ghobject_t& oid);
  void remove(Handle& ch, const ghobject_t& oid);

  bufferlist read(Handle& ch, const ghobject_t& oid, uint64_t offset = 0, uint64_t length = 0);
  uint64_t size_of(Handle& ch, const ghobject_t& oid);
  std::string attr(Handle& ch, const ghobject_t& oid, const std::string& name);
  std::map<std::string, std::string> omap(Handle& ch, const ghobject_t& oid);
  std::string omap_header(Handle& ch, const ghobject_t& oid);
  std::vector<ghobject_t> list(Handle& ch);

  std::unique_ptr<ObjectStore> store;
  std::string dir;
  bool mounted = false;
  /// TearDown runs fsck, deep, and wants no errors. Tests that damage the store clear it.
  bool expect_clean = true;

 private:
  std::vector<std::pair<std::string, std::string>> saved_settings;
};

}  // namespace tablestore_test
