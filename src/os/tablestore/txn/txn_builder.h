// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "os/Transaction.h"
#include "os/tablestore/collection/collection.h"
#include "os/tablestore/omap/omap_writer.h"
#include "os/tablestore/txn/txn_context.h"
#include "os/tablestore/txn/txn_parts.h"

namespace tablestore {

/// Turns the operations of ObjectStore transactions into one engine transaction: changes the
/// objects in memory at once, so that the next read sees it, and at the end makes one row of each
/// that changed.
///
/// Lives on the stack of TxnQueue, under the unique locks of all collections named; that of the
/// meta collection may be taken only before its part.
class TxnBuilder {
 public:
  TxnBuilder(const TxnParts& parts, TxnContext& txc);

  /// Which operations: those on the meta collection may come after all others (see TxnScan).
  enum class Part { all, all_but_meta, meta };
  /// Executes operations of `t`, which `i` is at the beginning of. 0, or the error of one that must
  /// not fail, which is in the log with a dump.
  int add(ceph::os::Transaction& t, ceph::os::Transaction::iterator& i, Part part = Part::all);
  /// The rows. After it the transaction can be submitted.
  void finish();
  /// For marks on what was changed, once the transaction has its number.
  OmapWriter& omap() { return omap_writer; }

 private:
  using Transaction = ceph::os::Transaction;
  /// One Transaction's view: collections and objects by the index that its operations use.
  struct Operands {
    Transaction::iterator& i;
    std::vector<CollectionRef> collections;
    std::vector<OnodeRef> objects;
  };

  // ---- dispatch (txn_builder.cc)
  static bool is_of(Part part, const Operands& at, const Transaction::Op& op);
  int execute(Operands& at, const Transaction::Op& op);
  int execute_on_object(Operands& at, const Transaction::Op& op, Collection& c,
                        const OnodeRef& o);
  int execute_on_omap(Operands& at, const Transaction::Op& op, const OnodeRef& o);
  int execute_on_two_objects(Operands& at, const Transaction::Op& op, Collection& c,
                             const OnodeRef& o);
  int object_at(Operands& at, uint32_t index, Collection& c, OnodeRef* out);
  /// What the operation on `o` changes: another object, where it is a clone.
  OnodeRef changed_by(Operands& at, const Transaction::Op& op, const OnodeRef& o) const;
  void report_failure(Transaction& t, const Transaction::Op& op, int position, int r);

  // ---- collections (txn_builder_collections.cc)
  int execute_on_collection(Operands& at, const Transaction::Op& op);
  int make_collection(const coll_t& cid, unsigned bits, CollectionRef* c);
  int remove_collection(CollectionRef* c);
  int split_collection(Collection& parent, Collection& child, unsigned bits);
  int merge_collection(CollectionRef* source, Collection& target, unsigned bits);
  int set_bits(Collection& c, unsigned bits);
  void drop_collection(CollectionRef* c);
  int check_empty(const Collection& c);
  int check_no_rows(const Collection& c, const std::string& first, const std::string& last,
                    AtDamage at_damage);
  void put_collection_row(const Collection& c);

  // ---- damaged objects (txn_builder_lost.cc)
  /// What follows the operation in its transaction.
  static void skip_operands(Transaction::iterator& i, const Transaction::Op& op);
  int execute_on_lost(Operands& at, const Transaction::Op& op, Collection& c, const OnodeRef& o);
  /// What a change did not find out or could not do: the object becomes a lost one. -EIO where no
  /// other OSD has it.
  int lose(const Collection& c, const OnodeRef& o);

  // ---- objects (txn_builder_objects.cc)
  int create(const OnodeRef& o);
  int write(const OnodeRef& o, uint64_t offset, uint64_t length, ceph::buffer::list& bl);
  int zero(const OnodeRef& o, uint64_t offset, uint64_t length);
  int truncate(const OnodeRef& o, uint64_t size);
  int remove(const OnodeRef& o);
  /// Frees all that it has; it is as one that never existed.
  int drop(const OnodeRef& o);
  int set_attr(const OnodeRef& o, std::string name, ceph::buffer::ptr value);
  int remove_attr(const OnodeRef& o, const std::string& name);
  int clone(const OnodeRef& from, const OnodeRef& to);
  int clone_range(const OnodeRef& from, const OnodeRef& to, uint64_t from_offset,
                  uint64_t length, uint64_t to_offset);
  int rename(const OnodeRef& from, const OnodeRef& to);
  int set_alloc_hint(const OnodeRef& o, const Transaction::Op& op);

  const TxnParts& parts;
  CephContext* const cct;
  TxnContext& txc;
  OmapWriter omap_writer;
  /// Names of which all that is known is known at the end: those of collections that are removed.
  std::vector<std::pair<std::string, std::string>> emptied;
  std::set<coll_t> made;
};

}  // namespace tablestore
