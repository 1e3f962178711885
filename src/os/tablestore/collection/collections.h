// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/ceph_mutex.h"
#include "include/common_fwd.h"
#include "os/tablestore/collection/collection.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

/// What was found of the rows of collections, but for the collections themselves.
struct CollectionRows {
  /// There, and nobody knows of how many bits: a mount for use is refused.
  std::vector<coll_t> lost;
  /// Damaged, and known from the other one: to be written anew, or, without a node, erased. Their
  /// keys, and the damage in words.
  struct Damaged {
    coll_t cid;
    std::optional<CollectionNode> node;
    std::string damage;
  };
  std::vector<Damaged> damaged;
  /// That name no collection: rows of Family::super, whose copies have such keys too.
  std::vector<std::string> bad_keys;
  /// False: there may be more, of which nobody knows the names.
  bool is_complete = true;
};

/// Puts the row of a collection, and its copy.
void put_row(Txn& txn, const coll_t& cid, const CollectionNode& node);

/// All collections in memory: those that exist, which have rows, and new ones, which no transaction
/// has made yet.
///
/// Thread-safe: `lock` guards the two maps. It is taken after locks of collections, and before
/// nothing but the engine's.
class Collections {
 public:
  Collections(CephContext* cct, Engine& engine, Threads& threads);

  /// From their rows, at mount. Those that are lost are not there, but for meta, whose row holds
  /// nothing that is not known. ENOTSUP: one of a newer version.
  Status load(bool has_copies, CollectionRows* rows);

  /// Null where there is none that exists.
  CollectionRef find(const coll_t& cid) const;
  /// Those of these names that exist, before those that are new.
  std::vector<CollectionRef> find(const std::vector<coll_t>& cids) const;
  /// Whose lock guards the object; null where it can be in none. Takes locks of collections, one
  /// after the other: none may be held.
  CollectionRef containing(const ghobject_t& oid) const;
  /// All that exist.
  std::vector<CollectionRef> all() const;
  void set_commit_queue(const coll_t& cid, ContextQueue* queue);

  CollectionRef create_new(const coll_t& cid);
  /// The new collection exists from now on; null where there is no such. Its row is the caller's,
  /// as that of drop().
  CollectionRef adopt(const coll_t& cid);
  void drop(Collection& c);

  /// After a transaction was given up that may have changed these, which are what find() said
  /// before it: they are again as their rows say, which no other transaction in flight changes. The
  /// caller has their unique locks.
  Status reload(const std::vector<CollectionRef>& found);

 private:
  Status load_one(const coll_t& cid, bool has_copies, CollectionRows* rows);

  CephContext* const cct;
  Engine& engine;
  Threads& threads;
  mutable ceph::shared_mutex lock = ceph::make_shared_mutex("TableStore::Collections::lock");
  std::unordered_map<coll_t, CollectionRef> existing;
  std::unordered_map<coll_t, CollectionRef> fresh;
};

}  // namespace tablestore
