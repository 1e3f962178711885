// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Transactions as an OSD makes them, and what they leave.
#pragma once

#include <random>
#include <set>
#include <string>
#include <vector>

#include "os/Transaction.h"
#include "test/objectstore/tablestore/sim/model.h"

namespace tablestore_sim {

using Random = std::mt19937_64;

/// What a transaction can do; the set of which all short histories are made.
enum class Op : uint8_t {
  touch,
  write_inline,     ///< so small that it is a row
  write_blocks,     ///< some blocks from the beginning on
  write_large,      ///< more than one shard of the extent map
  overwrite,        ///< unaligned, somewhere within: of a clone's source, of a shared slot
  append,
  write_far,        ///< beyond the end, with a hole between
  zero,
  truncate,         ///< shorter or longer
  remove,
  rename,
  set_attrs,
  remove_attr,
  remove_attrs,
  omap_set,
  omap_remove,
  omap_remove_range,
  omap_clear,
  omap_header,
  clone,            ///< of a head to its snapshot
  clone_range,      ///< to whatever object
  alloc_hint,
  make_collection,
  remove_collection,  ///< with all objects in it
  split,
  merge,
  fill_log,         ///< many bytes of omap
};
inline constexpr unsigned op_kinds = 27;
const char* op_name(Op op);

/// One op, on one object or on what is near to it.
struct OpOnObject {
  Op op;
  uint32_t collection;   ///< which of those that exist
  uint32_t object;       ///< which of those that it can have
  uint32_t n;            ///< how much, where, which keys
};

/// The collections that a new store gets.
std::vector<std::pair<coll_t, unsigned>> first_collections();

/// Makes one transaction, on top of a state.
class TransactionMaker {
 public:
  /// `seed`: of the bytes written; no two transactions should have the same.
  TransactionMaker(const State& before, uint64_t seed) : now(before), seed(seed) {}

  void make_collection(const coll_t& cid, unsigned bits);
  void run(const OpOnObject& o);
  /// Takes an object away; puts another one of this name there where `anew`.
  void replace(const coll_t& cid, const ghobject_t& oid, bool anew);
  /// Changes, cuts off or copies a part of the block at `offset`, or copies all of the object.
  void change_in_block(const coll_t& cid, const ghobject_t& oid, uint64_t offset);
  bool empty() const { return txn.empty(); }
  /// Whose sequencer a transaction with such an op would be queued through.
  coll_t collection_of(const OpOnObject& o) const;

  ceph::os::Transaction txn;
  Change change;
  std::vector<coll_t> made;     ///< collections that need a handle before this is queued
  std::set<coll_t> touched;
  /// Objects that are not there, and that a change was asked of.
  std::set<ghobject_t> absent;

 private:
  struct Target {
    coll_t cid;
    ghobject_t oid;
    Random random;
    uint64_t below(uint64_t n) { return n == 0 ? 0 : random() % n; }
  };
  const Object* find(const ghobject_t& oid) const;
  /// A copy to be changed and put back; an empty one where there is none.
  Object copy(const ghobject_t& oid) const;
  void put(const Target& t, const ghobject_t& oid, Object object);
  void drop(const Target& t, const ghobject_t& oid);
  void touch(const Target& t, const ghobject_t& oid);

  // ---- transaction_maker.cc
  /// In the meta collection an OSD writes what begins at the start whole (its maps, its
  /// superblock), and the store relies on it where it cannot read what was there.
  void make_room_in_meta(const Target& t, uint64_t length);
  void write(Target& t, uint64_t offset, uint64_t length);
  void zero(Target& t, uint64_t offset, uint64_t length);
  void truncate(Target& t, uint64_t to);
  void run_on_data(Op op, Target& t);
  void run_on_two(Op op, Target& t);
  void clone_range(Target& t, const ghobject_t& to);
  void clone_range(Target& t, const ghobject_t& to, uint64_t offset, uint64_t length,
                   uint64_t to_offset);
  /// An object of the same collection.
  ghobject_t other_object(Target& t) const;

  // ---- transaction_maker_metadata.cc
  void run_on_attrs(Op op, Target& t);
  void run_on_omap(Op op, Target& t);
  void run_on_collections(const OpOnObject& o, const coll_t& cid);
  void remove_collection(const coll_t& cid);
  void split(const coll_t& cid);
  void merge(const coll_t& cid);
  void set_bits(const coll_t& cid, std::optional<unsigned> bits);

  State now;
  const uint64_t seed;
  uint64_t writes = 0;
};

/// All objects that a collection of so many bits can have in a history.
std::vector<ghobject_t> possible_objects(const coll_t& cid, unsigned bits);

}  // namespace tablestore_sim
