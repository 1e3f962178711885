// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/txn/txn_scan.h"

#include <algorithm>
#include <utility>

#include "os/tablestore/object/object_data.h"

namespace tablestore {

namespace {

using Transaction = ceph::os::Transaction;

void scan_op(const Transaction::Op& op, const std::vector<ghobject_t>& objects,
             uint64_t inline_bound, TxnScan* scan)
{
  switch (op.op) {
  case Transaction::OP_WRITE:
    scan->written_bytes += op.len;
    if (op.len <= inline_bound)
      scan->row_bytes += op.len;
    scan->reservation += ObjectData::reservation_for_write(op.off, op.len, inline_bound);
    break;
  case Transaction::OP_REMOVE:
  case Transaction::OP_OMAP_CLEAR:
    scan->removes = true;
    break;
  case Transaction::OP_OMAP_RMKEYS:
  case Transaction::OP_OMAP_RMKEYRANGE:
  case Transaction::OP_RMATTR:
  case Transaction::OP_RMATTRS:
    scan->removes_rows = true;
    break;
  case Transaction::OP_TRUNCATE:
    scan->removes = true;
    [[fallthrough]];
  case Transaction::OP_ZERO:
    scan->reservation += ObjectData::reservation_for_edges(inline_bound);
    break;
  case Transaction::OP_CLONERANGE2:
    scan->reservation += ObjectData::reservation_for_clone_range(op.off, op.len, op.dest_off,
                                                                 inline_bound);
    // Extents are shared only among objects that a split keeps together; others are copied.
    if (objects[op.oid].hobj.get_hash() != objects[op.dest_oid].hobj.get_hash() ||
        op.oid == op.dest_oid)
      scan->reservation += ObjectData::reservation_for_write(op.dest_off, op.len, inline_bound);
    break;
  case Transaction::OP_CLONE:
    scan->reservation += ObjectData::reservation_for_clone_range(0, 0, 0, inline_bound);
    break;
  case Transaction::OP_RMCOLL:
    scan->removes = true;
    [[fallthrough]];
  case Transaction::OP_MKCOLL:
  case Transaction::OP_SPLIT_COLLECTION2:
  case Transaction::OP_MERGE_COLLECTION:
  case Transaction::OP_COLL_SET_BITS:
    scan->changes_collections = true;
    break;
  default:
    break;
  }
}

/// Of which kind an operation's collection is.
struct Kinds {
  bool meta = false;
  bool others = false;
  bool mixed = false;   ///< an object of the one kind in a collection of the other
};

void add_kind(const Transaction::Op& op, const Transaction::iterator& names, Kinds* kinds)
{
  if (op.op == Transaction::OP_NOP)
    return;
  const bool is_meta = names.colls[op.cid].is_meta();
  (is_meta ? kinds->meta : kinds->others) = true;
  const auto is_of_its_kind = [&](uint32_t index) {
    return names.objects[index].hobj.is_meta() == is_meta;
  };
  switch (op.op) {
  case Transaction::OP_CLONE:
  case Transaction::OP_CLONERANGE2:
  case Transaction::OP_COLL_MOVE_RENAME:
  case Transaction::OP_TRY_RENAME:
    kinds->mixed |= !is_of_its_kind(op.dest_oid);
    [[fallthrough]];
  default:
    kinds->mixed |= names.objects.empty() || !is_of_its_kind(op.oid);
  }
}

}  // namespace

Transaction::iterator without_names(Transaction::iterator& i)
{
  auto colls = std::exchange(i.colls, {});
  auto objects = std::exchange(i.objects, {});
  Transaction::iterator copy(i);
  i.colls = std::move(colls);
  i.objects = std::move(objects);
  return copy;
}

TxnScan scan_transactions(std::vector<Transaction>& tls, uint64_t inline_bound_bytes)
{
  TxnScan scan;
  Kinds kinds;
  scan.begins.reserve(tls.size());
  for (Transaction& t : tls) {
    Transaction::iterator& begin = scan.begins.emplace_back(t.begin());
    Transaction::iterator i = without_names(begin);
    scan.ops += t.get_num_ops();
    scan.bytes += t.get_num_bytes();
    scan.cids.insert(scan.cids.end(), begin.colls.begin(), begin.colls.end());
    while (i.have_op()) {
      const Transaction::Op& op = *i.decode_op();
      scan_op(op, begin.objects, inline_bound_bytes, &scan);
      add_kind(op, begin, &kinds);
    }
  }
  scan.meta_can_wait = kinds.meta && kinds.others && !kinds.mixed && !scan.changes_collections;
  scan.row_bytes += scan.bytes - std::min(scan.bytes, scan.written_bytes);
  // get_num_bytes() leaves out the page-aligned part of data, or counts all of it.
  scan.bytes = std::max(scan.bytes, scan.written_bytes);
  std::sort(scan.cids.begin(), scan.cids.end());
  scan.cids.erase(std::unique(scan.cids.begin(), scan.cids.end()), scan.cids.end());
  return scan;
}

}  // namespace tablestore
