// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/txn/txn_builder.h"

#include <utility>

#include "common/debug.h"
#include "common/perf_counters.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/object/damaged_objects.h"
#include "os/tablestore/object/error_injection.h"
#include "os/tablestore/object/nid_allocator.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/onode_contents.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.txn "

namespace tablestore {

namespace {

bool too_big(uint64_t offset, uint64_t length)
{
  return offset >= object_bytes_max || length >= object_bytes_max - offset;
}

}  // namespace

int TxnBuilder::create(const OnodeRef& o)
{
  if (o->exists)
    return 0;
  txc.dirty(o);
  o->exists = true;
  o->nid = parts.nids.allocate();
  o->omap_pool = statistics_pool(o->oid);
  ++txc.pool(o->omap_pool)[PoolStats::objects];
  return 0;
}

int TxnBuilder::write(const OnodeRef& o, uint64_t offset, uint64_t length, bufferlist& bl)
{
  if (bl.length() != length)
    return -EINVAL;
  if (too_big(offset, length))
    return -E2BIG;
  create(o);
  return length ? parts.data.write(txc, o, offset, bl) : 0;
}

int TxnBuilder::zero(const OnodeRef& o, uint64_t offset, uint64_t length)
{
  if (too_big(offset, length))
    return -E2BIG;
  create(o);
  return length ? parts.data.zero(txc, o, offset, length) : 0;
}

int TxnBuilder::truncate(const OnodeRef& o, uint64_t size)
{
  if (too_big(size, 0))
    return -E2BIG;
  return size == o->size ? 0 : parts.data.truncate(txc, o, size);
}

int TxnBuilder::remove(const OnodeRef& o)
{
  const auto started_at = ceph::mono_clock::now();
  if (int r = drop(o); r < 0)
    return r;
  parts.injected.forget(o->oid);
  parts.logger.tinc(l_tablestore_remove_lat, ceph::mono_clock::now() - started_at);
  return 0;
}

// What a damaged row referred to is not known, and not freed: repair finds that nothing owns it.
int TxnBuilder::drop(const OnodeRef& o)
{
  txc.dirty(o);
  if (int r = parts.data.remove(txc, o); r < 0)
    return r;
  omap_writer.clear(o);
  if (!o->unknown)
    --txc.pool(o->omap_pool)[PoolStats::objects];
  if (o->lost)
    parts.damaged.forget(o->oid);
  reset_contents(*o);
  return 0;
}

int TxnBuilder::set_attr(const OnodeRef& o, std::string name, ceph::buffer::ptr value)
{
  o->attrs.insert_or_assign(std::move(name), std::move(value));
  txc.dirty(o);
  return 0;
}

int TxnBuilder::remove_attr(const OnodeRef& o, const std::string& name)
{
  if (o->attrs.erase(name))
    txc.dirty(o);
  return 0;
}

int TxnBuilder::clone(const OnodeRef& from, const OnodeRef& to)
{
  if (from == to)
    return 0;
  if (from->oid.hobj.get_hash() != to->oid.hobj.get_hash()) {
    derr << "clone of " << from->oid << " to " << to->oid << ", which has another hash" << dendl;
    return -EINVAL;
  }
  if (to->lost) {
    drop(to);
  } else if (to->exists) {
    if (int r = parts.data.remove(txc, to); r < 0)
      return r;
    omap_writer.clear(to);
  }
  create(to);
  txc.dirty(to);
  to->attrs = from->attrs;
  if (from->size > 0) {
    if (int r = parts.data.clone_range(txc, from, to, 0, from->size, 0); r < 0)
      return r;
  }
  if (Status s = omap_writer.clone(from, to); !s.ok()) {
    derr << "clone of the omap of " << from->oid << ": " << s.what() << dendl;
    return -s.code();
  }
  return 0;
}

int TxnBuilder::clone_range(const OnodeRef& from, const OnodeRef& to, uint64_t from_offset,
                            uint64_t length, uint64_t to_offset)
{
  if (too_big(from_offset, length) || too_big(to_offset, length))
    return -E2BIG;
  if (from_offset + length > from->size) {
    derr << "clone of 0x" << std::hex << from_offset << "~" << length << " of " << from->oid
         << ", whose size is 0x" << from->size << std::dec << dendl;
    return -EINVAL;
  }
  create(to);
  if (length == 0)
    return 0;
  if (from != to)
    return parts.data.clone_range(txc, from, to, from_offset, length, to_offset);
  return parts.data.copy_within(txc, to, from_offset, length, to_offset);
}

int TxnBuilder::rename(const OnodeRef& from, const OnodeRef& to)
{
  if (to->lost && from != to)
    drop(to);
  if (from == to || to->exists) {
    derr << "rename of " << from->oid << " to " << to->oid << ", which exists" << dendl;
    return -EEXIST;
  }
  txc.dirty(from);
  txc.dirty(to);
  // It gets a row here.
  if (std::exchange(from->unknown, false))
    ++txc.pool(from->omap_pool)[PoolStats::objects];
  move_contents(*from, *to);
  omap_writer.moved(to);
  if (to->lost) {
    parts.damaged.forget(from->oid);
    parts.damaged.add(to->oid);
  }
  return 0;
}

int TxnBuilder::set_alloc_hint(const OnodeRef& o, const Transaction::Op& op)
{
  o->alloc_hint_flags = op.hint;
  o->expected_object_size = std::min<uint64_t>(op.expected_object_size, UINT32_MAX);
  o->expected_write_size = std::min<uint64_t>(op.expected_write_size, UINT32_MAX);
  txc.dirty(o);
  return 0;
}

}  // namespace tablestore
