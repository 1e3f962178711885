// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The reference: what a store has to hold after each transaction, in plain maps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/hobject.h"
#include "osd/osd_types.h"

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

/// Compares a store with a state. A store that may be damaged may answer -EIO, and nothing else
/// that is wrong: these answers are counted.
class Comparison {
 public:
  Comparison(TableStore& store, bool may_be_damaged) : store(store), damaged(may_be_damaged) {}

  /// Collections, listings and all objects. Where they differ; empty where they do not.
  std::string all(const State& expected);
  /// One object; null: it must not be there.
  std::string object(const coll_t& cid, const ghobject_t& oid, const Object* expected);
  /// pool_statfs and statfs against what fiemap says of each object and the engine of its blocks.
  /// While nothing is queued.
  std::string space(const State& expected);

  uint64_t errors() const { return eios; }

 private:
  std::string collection(const State& expected, const coll_t& cid, unsigned bits);
  /// True where `r` is an -EIO that is allowed.
  bool excused(int r);

  TableStore& store;
  const bool damaged;
  uint64_t eios = 0;
};

}  // namespace tablestore_sim
