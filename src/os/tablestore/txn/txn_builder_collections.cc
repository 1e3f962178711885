// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/txn/txn_builder.h"

#include <chrono>
#include <thread>

#include "common/debug.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/collection/lost_names.h"
#include "os/tablestore/home/copied_row.h"
#include "os/tablestore/object/onode_cache.h"
#include "os/tablestore/rows/keys.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.txn "

namespace tablestore {

namespace {

constexpr auto reread_interval = std::chrono::milliseconds(200);

}  // namespace

// Rows of objects do not name their collection, whose share of all objects follows from its id and
// bits. So split and merge are changes of one or two rows. They are barriers: what was queued
// through one handle before precedes what is queued through the other after.

int TxnBuilder::execute_on_collection(Operands& at, const Transaction::Op& op)
{
  CollectionRef& c = at.collections[op.cid];
  const coll_t& cid = at.i.colls[op.cid];
  if (op.op == Transaction::OP_COLL_HINT) {
    bufferlist hint;
    at.i.decode_bl(hint);
    return 0;
  }
  txc.barrier = true;
  dout(10) << "op " << op.op << " on " << cid << " bits " << op.split_bits << dendl;
  if (op.op == Transaction::OP_MKCOLL)
    return make_collection(cid, op.split_bits, &c);
  if (!c) {
    derr << "no collection " << cid << dendl;
    return op.op == Transaction::OP_RMCOLL ? -ENOENT : -ENXIO;
  }
  switch (op.op) {
  case Transaction::OP_RMCOLL:
    return remove_collection(&c);
  case Transaction::OP_COLL_SET_BITS:
    return set_bits(*c, op.split_bits);
  }
  CollectionRef& other = at.collections[op.dest_cid];
  if (!other) {
    derr << "no collection " << at.i.colls[op.dest_cid] << dendl;
    return -ENXIO;
  }
  if (op.op == Transaction::OP_SPLIT_COLLECTION2)
    return split_collection(*c, *other, op.split_bits);
  return merge_collection(&c, *other, op.split_bits);
}

void TxnBuilder::put_collection_row(const Collection& c)
{
  put_row(txc, c.cid, c.node);
}

int TxnBuilder::make_collection(const coll_t& cid, unsigned bits, CollectionRef* c)
{
  if (*c)
    return -EEXIST;
  *c = parts.collections.adopt(cid);
  if (!*c) {
    derr << cid << " is made without a create_new_collection() before" << dendl;
    return -EINVAL;
  }
  (*c)->node.bits = bits;
  put_collection_row(**c);
  made.insert(cid);
  return 0;
}

int TxnBuilder::remove_collection(CollectionRef* c)
{
  if (int r = check_empty(**c); r < 0)
    return r;
  drop_collection(c);
  return 0;
}

void TxnBuilder::drop_collection(CollectionRef* c)
{
  parts.collections.drop(**c);
  CopiedRow::erase(txc, collection_key((*c)->cid));
  c->reset();
}

int TxnBuilder::check_empty(const Collection& c)
{
  std::string temp_low, temp_end, low, end;
  collection_key_range(c.cid, c.node.bits, &temp_low, &temp_end, &low, &end);
  const auto within = [&](const std::string& key) {
    return (key >= temp_low && key < temp_end) || (key >= low && key < end);
  };
  for (const auto& o : txc.touched_onodes) {
    if (o->exists && within(o->key)) {
      derr << c.cid << " is not empty: " << o->oid << dendl;
      return -ENOTEMPTY;
    }
  }
  // From here on the table shows all but this transaction's own changes, which are in memory.
  c.last_change.wait_applied();
  for (const auto& [first, last] : {std::pair(temp_low, temp_end), std::pair(low, end)}) {
    if (first >= last)
      continue;
    int r = check_no_rows(c, first, last, AtDamage::fail);
    for (unsigned n = 0; r == -EIO && n < parts.rereads_before_loss; ++n) {
      // It is for good: whatever has failed gets some time to pass.
      std::this_thread::sleep_for(reread_interval);
      r = check_no_rows(c, first, last, AtDamage::fail);
    }
    if (r == -EIO) {
      // What cannot be read was in no listing either: nobody could remove it. It must not come back
      // with a collection of this name, where the disk can give it again.
      if (r = check_no_rows(c, first, last, AtDamage::step_over); r < 0)
        return r;
      derr << c.cid << ": rows that cannot be read go with it; what their objects had is given "
           << "back by ceph-objectstore-tool --op repair" << dendl;
      txc.erase_range(Family::object, first, last);
      txc.erased_unread.emplace_back(first, last);
      if (spg_t pgid; c.cid.is_pg(&pgid))
        txc.erase(Family::super, own_onode_key(onode_key(pgid.make_pgmeta_oid())));
    } else if (r < 0) {
      return r;
    }
  }
  emptied.insert(emptied.end(), {{temp_low, temp_end}, {low, end}});
  return 0;
}

/// Rows of objects in the table, but for those that this transaction removes.
int TxnBuilder::check_no_rows(const Collection& c, const std::string& first,
                              const std::string& last, AtDamage at_damage)
{
  auto it = parts.engine.iterate(Family::object, first, last, at_damage);
  for (it->seek(first); it->valid(); it->next()) {
    ghobject_t oid;
    // A row with such a key is of no object; repair erases it.
    if (!decode_onode_key(it->key(), &oid))
      continue;
    const OnodeRef o = parts.onodes.get(oid);
    if (o && !o->exists)
      continue;
    derr << c.cid << " is not empty: " << oid << dendl;
    return -ENOTEMPTY;
  }
  const Status s = it->status();
  if (!s.ok())
    derr << c.cid << ": " << s.what() << dendl;
  return -s.code();
}

int TxnBuilder::set_bits(Collection& c, unsigned bits)
{
  c.node.bits = bits;
  put_collection_row(c);
  return 0;
}

int TxnBuilder::split_collection(Collection& parent, Collection& child, unsigned bits)
{
  spg_t pgid;
  if (!parent.cid.is_pg(&pgid) || !child.cid.is_pg(&pgid) || child.node.bits != bits) {
    derr << "cannot split " << parent.cid << " into " << child.cid << " of " << child.node.bits
         << " bits by " << bits << " bits" << dendl;
    return -EINVAL;
  }
  return set_bits(parent, bits);
}

int TxnBuilder::merge_collection(CollectionRef* source, Collection& target, unsigned bits)
{
  spg_t pgid;
  if (!(*source)->cid.is_pg(&pgid) || !target.cid.is_pg(&pgid)) {
    derr << "cannot merge " << (*source)->cid << " into " << target.cid << dendl;
    return -EINVAL;
  }
  if (int r = set_bits(target, bits); r < 0)
    return r;
  drop_collection(source);
  return 0;
}

}  // namespace tablestore
