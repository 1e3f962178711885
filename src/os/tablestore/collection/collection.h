// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "common/ceph_mutex.h"
#include "os/ObjectStore.h"
#include "os/tablestore/collection/op_sequencer.h"

namespace tablestore {

/// What the row of a collection holds.
struct CollectionNode {
  static constexpr uint8_t version = 1;   ///< of the row

  uint32_t bits = 0;   ///< how many bits of an object's hash decide that it belongs here

  void encode(ceph::buffer::list& bl) const;
  /// Throws ceph::buffer::error where damaged.
  void decode(ceph::buffer::list::const_iterator& p);
};

/// A collection in memory, and the handle that the OSD holds.
///
/// `lock` guards the objects of the collection (their onodes and their data), the node and
/// `last_change`: shared for reads, unique for a transaction that names the collection, from its
/// first change until it is submitted. A transaction takes the locks of its collections ordered by
/// collection id, but that of the meta collection last: nearly all transactions of some kinds name
/// that, and while they read for their other objects nobody waits for it. The commit lane never
/// takes a lock, so that waiting for the lane under it is allowed.
class Collection : public ObjectStore::CollectionImpl {
 public:
  Collection(CephContext* cct, const coll_t& cid, Threads& threads);
  void flush() override;
  bool flush_commit(Context* c) override;

  /// Whether the object's hash belongs here (always true for meta).
  bool contains(const ghobject_t& oid) const;

  mutable ceph::shared_mutex lock =
      ceph::make_shared_mutex("TableStore::Collection::lock", true, false);
  CollectionNode node;
  /// False once removed; reads through the handle find nothing then.
  std::atomic<bool> exists{true};
  const std::shared_ptr<OpSequencer> osr;
  /// The last transaction that named this collection, through whichever handle.
  TxnMark last_change;
};
using CollectionRef = ceph::ref_t<Collection>;

/// Unique locks on several collections, taken in one order everywhere: see Collection.
class CollectionLocks {
 public:
  /// Sorts and dedupes.
  explicit CollectionLocks(std::vector<CollectionRef> collections);
  const std::vector<CollectionRef>& collections() const { return locked; }

 private:
  std::vector<CollectionRef> locked;
  std::vector<std::unique_lock<ceph::shared_mutex>> locks;
};

}  // namespace tablestore
