// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The reference: what a store has to hold after each transaction, in plain maps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/hobject.h"
#include "os/ObjectStore.h"
#include "osd/osd_types.h"
#include "test/objectstore/tablestore/sim/damage.h"

class TableStore;

namespace tablestore_sim {

struct Object {
  std::string data;
  std::map<std::string, std::string> attrs;
  std::map<std::string, std::string> omap;
  std::string header;
};
/// Never changed once it is in a state: states share objects.
using ObjectPtr = std::shared_ptr<const Object>;

/// What a transaction leaves of all that it touches.
struct Change {
  std::map<coll_t, std::optional<unsigned>> collections;   ///< bits; none: removed
  std::map<ghobject_t, ObjectPtr> objects;                 ///< null: removed
};

struct State {
  std::map<coll_t, unsigned> collections;   ///< bits
  std::map<ghobject_t, ObjectPtr> objects;

  void apply(const Change& change);
  std::vector<ghobject_t> objects_of(const coll_t& cid) const;
};

/// Whether an object belongs to a collection of so many bits.
bool belongs(const ghobject_t& oid, const coll_t& cid, unsigned bits);

/// `length` bytes of a stream that `seed` names.
std::string content(uint64_t seed, uint64_t length);

/// Compares a store with a state. Where it is damaged, reads of what is hit may say -EIO instead of
/// what is right; nothing else that is wrong may be said, and nothing of anything else.
class Comparison {
 public:
  /// `may_fail`: any read can.
  Comparison(TableStore& store, Damage damage, bool may_fail)
    : store(store), damage(std::move(damage)), may_fail(may_fail)
  {
  }
  /// Data is read as a scrub does: piece by piece, from the disk.
  void scrub() { is_scrub = true; }

  /// Collections, listings and all objects. Where they differ; empty where they do not.
  std::string all(const State& expected);
  /// One object; null: it must not be there.
  std::string object(const coll_t& cid, const ghobject_t& oid, const Object* expected);
  /// pool_statfs and statfs against what fiemap says of each object and the engine of its blocks.
  /// While nothing is queued.
  std::string space(const State& expected);

  /// How much was answered with -EIO, and of which objects something was.
  uint64_t errors() const { return eios; }
  const std::set<std::pair<coll_t, ghobject_t>>& not_whole() const { return hit; }

 private:
  std::string collection(const State& expected, const coll_t& cid, unsigned bits);
  std::string attributes(ObjectStore::CollectionHandle& ch, const ghobject_t& oid,
                         const Object& expected);
  std::string omap(ObjectStore::CollectionHandle& ch, const ghobject_t& oid,
                   const Object& expected);
  /// What follows a key, which is among the expected or lies between two of them.
  std::string omap_from(ObjectStore::CollectionHandle& ch, const ghobject_t& oid,
                        const Object& expected, const std::string& key, bool with_it);
  std::string data(ObjectStore::CollectionHandle& ch, const ghobject_t& oid,
                   const std::string& expected);
  /// Of an object that cannot be read as one: what is not damaged can.
  std::string pieces(ObjectStore::CollectionHandle& ch, const ghobject_t& oid,
                     const std::string& expected);
  /// True where `r` is an -EIO that is allowed, because any read may fail, or because `is_hit`.
  bool excused(int r, bool is_hit = false);
  bool note_hit();

  TableStore& store;
  const Damage damage;
  const bool may_fail;
  bool is_scrub = false;
  uint64_t eios = 0;
  std::pair<coll_t, ghobject_t> current;   ///< which is being compared
  std::set<std::pair<coll_t, ghobject_t>> hit;
};

}  // namespace tablestore_sim
