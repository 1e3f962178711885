// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Changes of objects whose rows are damaged.
//
// An OSD must be able to remove such an object and to make it anew: that is how scrub and recovery
// mend it. All other changes assume what the object held before, and replicas get them from a
// primary whose copy is good. They are dropped, and the object is lost from then on, by a row that
// says so: it gives -EIO until it is removed or made anew, also where the row that could not be
// read, and which is older than the change, can be read again. That goes for a touch too: it may be
// what makes the object.

#include "os/tablestore/txn/txn_builder.h"

#include "common/debug.h"
#include "os/tablestore/object/damaged_objects.h"
#include "os/tablestore/object/onode_contents.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.txn "

namespace tablestore {

namespace {

using Transaction = ceph::os::Transaction;

/// Objects that scrub compares with other OSDs'. Of an OSD's own (its maps, a placement group's
/// log) there is no other copy, and to drop a change would be to forget what was acknowledged.
bool has_replicas(const Collection& c, const ghobject_t& oid)
{
  return !c.cid.is_meta() && !is_osds_own(oid);
}

}  // namespace

void TxnBuilder::skip_operands(Transaction::iterator& i, const Transaction::Op& op)
{
  bufferlist skipped;
  switch (op.op) {
  case Transaction::OP_WRITE:
  case Transaction::OP_OMAP_SETHEADER:
  case Transaction::OP_COLL_HINT:
    i.decode_bl(skipped);
    return;
  case Transaction::OP_SETATTR:
    i.decode_string();
    i.decode_bl(skipped);
    return;
  case Transaction::OP_SETATTRS:
  case Transaction::OP_OMAP_SETKEYS:
    i.decode_attrset_bl(&skipped);
    return;
  case Transaction::OP_OMAP_RMKEYS:
    i.decode_keyset_bl(&skipped);
    return;
  case Transaction::OP_OMAP_RMKEYRANGE:
    i.decode_string();
    i.decode_string();
    return;
  case Transaction::OP_RMATTR:
    i.decode_string();
    return;
  }
}

int TxnBuilder::execute_on_lost(Operands& at, const Transaction::Op& op, Collection& c,
                                const OnodeRef& o)
{
  switch (op.op) {
  case Transaction::OP_REMOVE:
    return remove(o);
  case Transaction::OP_CREATE:
    drop(o);
    return create(o);
  case Transaction::OP_COLL_MOVE_RENAME:
  case Transaction::OP_TRY_RENAME:
    return execute_on_two_objects(at, op, c, o);
  case Transaction::OP_CLONE:
  case Transaction::OP_CLONERANGE2:
    {
      OnodeRef to;
      if (int r = object_at(at, op.dest_oid, c, &to); r < 0)
        return r;
      return lose(c, to);
    }
  case Transaction::OP_WRITE:
    if (c.cid.is_meta() && op.off == 0) {
      // OSD maps and the superblock, which are always written whole.
      drop(o);
      return execute_on_object(at, op, c, o);
    }
    break;
  case Transaction::OP_TRIMCACHE:
    return 0;
  }
  skip_operands(at.i, op);
  return lose(c, o);
}

int TxnBuilder::lose(const Collection& c, const OnodeRef& o)
{
  if (!has_replicas(c, o->oid)) {
    derr << c.cid << " " << o->oid << " cannot be changed, because its rows are damaged, and no "
         << "other OSD has it: take the OSD out and rebuild it; where it has the last copy of "
         << "anything, export that with ceph-objectstore-tool first" << dendl;
    return -EIO;
  }
  derr << c.cid << " " << o->oid << ": a change is dropped, because its rows are damaged; it gives "
       << "EIO until 'ceph pg deep-scrub' and 'ceph pg repair' bring it back from another OSD"
       << dendl;
  if (o->exists)
    drop(o);
  txc.dirty(o);
  lose_contents(*o);
  ++txc.pool(o->omap_pool)[PoolStats::objects];
  parts.damaged.add(o->oid);
  return 0;
}

}  // namespace tablestore
