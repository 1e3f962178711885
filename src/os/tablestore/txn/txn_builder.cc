// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/txn/txn_builder.h"

#include "common/debug.h"
#include "common/errno.h"
#include "common/Formatter.h"
#include "os/tablestore/collection/collections.h"
#include "os/tablestore/collection/lost_names.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/objects.h"
#include "os/tablestore/object/onode_cache.h"
#include "os/tablestore/object/onode_rows.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/space/pool_totals.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.txn "

namespace tablestore {

namespace {

using Transaction = ceph::os::Transaction;

bool creates_object(uint32_t op)
{
  return op == Transaction::OP_TOUCH || op == Transaction::OP_CREATE ||
      op == Transaction::OP_WRITE || op == Transaction::OP_ZERO;
}

/// Failures that are part of normal life: the OSD removes, truncates and renames what may not be
/// there.
bool tolerated(uint32_t op, int r)
{
  if (r != -ENOENT)
    return false;
  switch (op) {
  case Transaction::OP_REMOVE:
  case Transaction::OP_TRUNCATE:
  case Transaction::OP_RMATTRS:
  case Transaction::OP_OMAP_CLEAR:
  case Transaction::OP_SETALLOCHINT:
  case Transaction::OP_TRY_RENAME:
  case Transaction::OP_COLL_MOVE_RENAME:
  case Transaction::OP_TRIMCACHE:
    return true;
  }
  return false;
}

/// Memory of its own: a small attribute must not keep a large message in memory.
ceph::buffer::ptr decode_copy(bufferlist::const_iterator& p)
{
  uint32_t length;
  decode(length, p);
  if (length > p.get_remaining())
    throw ceph::buffer::end_of_buffer();
  ceph::buffer::ptr value = ceph::buffer::create(length);   // of nothing, too, it has a c_str()
  p.copy(length, value.c_str());
  return value;
}

}  // namespace

TxnBuilder::TxnBuilder(const TxnParts& parts, TxnContext& txc)
  : parts(parts), cct(parts.cct), txc(txc), omap_writer(parts.engine, txc, parts.logger)
{
}

bool TxnBuilder::is_of(Part part, const Operands& at, const Transaction::Op& op)
{
  return part == Part::all || op.op == Transaction::OP_NOP ||
      at.i.colls[op.cid].is_meta() == (part == Part::meta);
}

int TxnBuilder::add(Transaction& t, Transaction::iterator& i, Part part)
{
  Operands at{i, {}, {}};
  at.collections.resize(i.colls.size());
  for (size_t j = 0; j < i.colls.size(); ++j)
    at.collections[j] = parts.collections.find(i.colls[j]);
  at.objects.resize(i.objects.size());

  for (int position = 0; i.have_op(); ++position) {
    const Transaction::Op& op = *i.decode_op();
    int r = 0;
    try {
      if (is_of(part, at, op))
        r = execute(at, op);
      else
        skip_operands(i, op);
    } catch (const ceph::buffer::error& e) {
      derr << "an operation cannot be decoded: " << e.what() << dendl;
      r = -EINVAL;
    }
    if (r < 0 && !tolerated(op.op, r)) {
      report_failure(t, op, position, r);
      return r;
    }
  }
  return 0;
}

int TxnBuilder::object_at(Operands& at, uint32_t index, Collection& c, OnodeRef* out)
{
  OnodeRef& o = at.objects[index];
  if (!o) {
    const ghobject_t& oid = at.i.objects[index];
    if (!c.contains(oid)) {
      derr << oid << " is not part of " << c.cid << " with " << c.node.bits << " bits" << dendl;
      return -EINVAL;
    }
    if (int r = parts.objects.load(c, oid, &o); r < 0)
      return r;
    // A placement group that is made here has had no object of its own.
    if (o->unknown && oid.is_pgmeta() && made.contains(c.cid))
      reset_contents(*o);
  }
  *out = o;
  return 0;
}

OnodeRef TxnBuilder::changed_by(Operands& at, const Transaction::Op& op, const OnodeRef& o) const
{
  const bool clones = op.op == Transaction::OP_CLONE || op.op == Transaction::OP_CLONERANGE2;
  return clones ? at.objects[op.dest_oid] : o;
}

int TxnBuilder::execute(Operands& at, const Transaction::Op& op)
{
  switch (op.op) {
  case Transaction::OP_NOP:
    return 0;
  case Transaction::OP_RMCOLL:
  case Transaction::OP_MKCOLL:
  case Transaction::OP_SPLIT_COLLECTION2:
  case Transaction::OP_MERGE_COLLECTION:
  case Transaction::OP_COLL_SET_BITS:
  case Transaction::OP_COLL_HINT:
    return execute_on_collection(at, op);
  case Transaction::OP_COLL_SETATTR:
  case Transaction::OP_COLL_RMATTR:
  case Transaction::OP_COLL_SETATTRS:
  case Transaction::OP_COLL_RENAME:
  case Transaction::OP_COLL_ADD:
  case Transaction::OP_COLL_REMOVE:
  case Transaction::OP_COLL_MOVE:
  case Transaction::OP_SPLIT_COLLECTION:
  case Transaction::OP_CLONERANGE:
    return -EOPNOTSUPP;
  }
  // By value: nothing of `at` may go away below.
  const CollectionRef c = at.collections[op.cid];
  if (!c || !c->exists) {
    derr << "no collection " << at.i.colls[op.cid] << dendl;
    return -ENXIO;
  }
  OnodeRef o;
  if (int r = object_at(at, op.oid, *c, &o); r < 0)
    return r;
  if (!o->exists && !creates_object(op.op))
    return -ENOENT;
  if (o->lost)
    return execute_on_lost(at, op, *c, o);
  const int r = execute_on_object(at, op, *c, o);
  if (r != -EIO)
    return r;
  const OnodeRef changed = changed_by(at, op, o);
  return changed ? lose(*c, changed) : r;
}

int TxnBuilder::execute_on_object(Operands& at, const Transaction::Op& op, Collection& c,
                                  const OnodeRef& o)
{
  auto& i = at.i;
  switch (op.op) {
  case Transaction::OP_TOUCH:
  case Transaction::OP_CREATE:
    return create(o);
  case Transaction::OP_WRITE:
    {
      bufferlist bl;
      i.decode_bl(bl);
      return write(o, op.off, op.len, bl);
    }
  case Transaction::OP_ZERO:
    return zero(o, op.off, op.len);
  case Transaction::OP_TRIMCACHE:
    return 0;
  case Transaction::OP_TRUNCATE:
    return truncate(o, op.off);
  case Transaction::OP_REMOVE:
    return remove(o);
  case Transaction::OP_SETATTR:
    {
      std::string name = i.decode_string();
      bufferlist bl;
      i.decode_bl(bl);
      return set_attr(o, std::move(name), ceph::buffer::copy(bl.c_str(), bl.length()));
    }
  case Transaction::OP_SETATTRS:
    {
      // Not decode_attrset(): where data follow, it may make one copy of the whole transaction,
      // to have the attributes in one piece.
      bufferlist bl;
      i.decode_attrset_bl(&bl);
      auto p = bl.cbegin();
      uint32_t count;
      decode(count, p);
      while (count--) {
        std::string name;
        decode(name, p);
        set_attr(o, std::move(name), decode_copy(p));
      }
      return 0;
    }
  case Transaction::OP_RMATTR:
    return remove_attr(o, i.decode_string());
  case Transaction::OP_RMATTRS:
    o->attrs.clear();
    txc.dirty(o);
    return 0;
  case Transaction::OP_SETALLOCHINT:
    return set_alloc_hint(o, op);
  case Transaction::OP_CLONE:
  case Transaction::OP_CLONERANGE2:
  case Transaction::OP_COLL_MOVE_RENAME:
  case Transaction::OP_TRY_RENAME:
    return execute_on_two_objects(at, op, c, o);
  }
  return execute_on_omap(at, op, o);
}

int TxnBuilder::execute_on_two_objects(Operands& at, const Transaction::Op& op, Collection& c,
                                       const OnodeRef& o)
{
  // TRY_RENAME leaves dest_cid at 0: both are in op.cid.
  if (op.op == Transaction::OP_COLL_MOVE_RENAME && op.dest_cid != op.cid) {
    derr << "rename from " << at.i.colls[op.cid] << " to another collection" << dendl;
    return -EINVAL;
  }
  OnodeRef to;
  if (int r = object_at(at, op.dest_oid, c, &to); r < 0)
    return r;
  switch (op.op) {
  case Transaction::OP_CLONE:
    return clone(o, to);
  case Transaction::OP_CLONERANGE2:
    return to->lost ? lose(c, to) : clone_range(o, to, op.off, op.len, op.dest_off);
  default:
    return rename(o, to);
  }
}

int TxnBuilder::execute_on_omap(Operands& at, const Transaction::Op& op, const OnodeRef& o)
{
  auto& i = at.i;
  switch (op.op) {
  case Transaction::OP_OMAP_CLEAR:
    omap_writer.clear(o);
    return 0;
  case Transaction::OP_OMAP_SETKEYS:
    {
      bufferlist bl;
      i.decode_attrset_bl(&bl);
      omap_writer.set_keys(o, bl);
      return 0;
    }
  case Transaction::OP_OMAP_RMKEYS:
    {
      bufferlist bl;
      i.decode_keyset_bl(&bl);
      omap_writer.remove_keys(o, bl);
      return 0;
    }
  case Transaction::OP_OMAP_RMKEYRANGE:
    {
      const std::string first = i.decode_string();
      const std::string last = i.decode_string();
      omap_writer.remove_range(o, first, last);
      return 0;
    }
  case Transaction::OP_OMAP_SETHEADER:
    {
      bufferlist bl;
      i.decode_bl(bl);
      omap_writer.set_header(o, bl);
      return 0;
    }
  }
  derr << "unknown operation " << op.op << dendl;
  return -EOPNOTSUPP;
}

void TxnBuilder::finish()
{
  for (auto& o : txc.touched_onodes) {
    if (!o->dirty)
      continue;
    if (o->exists) {
      parts.data.write_out(txc, o);
      put_onode(txc, *o);
    } else {
      erase_onode(txc, *o);
      parts.lost_names.know(txc, o->key);
    }
    o->dirty = false;
    parts.onodes.update_size(o);
  }
  for (auto& map : txc.dirty_reference_maps)
    parts.reference_maps.write_out(txc, *map);
  for (const auto& [first, end] : emptied)
    parts.lost_names.know_all(txc, first, end);
  parts.pools.queue(txc, txc.pool_deltas);
}

void TxnBuilder::report_failure(Transaction& t, const Transaction::Op& op, int position, int r)
{
  const bool clones = op.op == Transaction::OP_CLONE || op.op == Transaction::OP_CLONERANGE2;
  derr << "error " << cpp_strerror(r) << " on operation " << op.op << " (number " << position
       << " of its transaction, from 0)"
       << (r == -ENOENT && clones ? ": a clone of nothing suggests a bug of the OSD" : "")
       << (r == -ENOTEMPTY ? ": objects are left in the collection" : "") << dendl;
  ceph::JSONFormatter f(true);
  f.open_object_section("transaction");
  t.dump(&f);
  f.close_section();
  std::ostringstream text;
  f.flush(text);
  dout(0) << "transaction dump:\n" << text.str() << dendl;
}

}  // namespace tablestore
