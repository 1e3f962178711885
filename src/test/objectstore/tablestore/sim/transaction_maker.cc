// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Objects and their data; the rest is in transaction_maker_metadata.cc.
#include "test/objectstore/tablestore/sim/transaction_maker.h"

#include <algorithm>

namespace tablestore_sim {

using ceph::bufferlist;

namespace {

constexpr uint64_t block = 4096;
constexpr uint64_t size_max = 900 << 10;
constexpr unsigned names = 8;
constexpr unsigned variants = 3;   ///< head, snapshot, temp

/// Some with bytes that keys have to escape, one that is long.
std::string name_of(unsigned i)
{
  switch (i) {
  case 3: return "o!3#~\x7f\xc3";
  case 5: return std::string(300, 'o') + "5";
  }
  return "object" + std::to_string(i);
}

/// The low bits decide where it goes when its collection is split.
uint32_t hash_of(unsigned i) { return (0x9e3779b0u * (i + 1) & ~7u) | i; }

ghobject_t object_of(int64_t pool, unsigned i, unsigned variant)
{
  hobject_t oid(object_t(name_of(i)), i == 4 ? "locator" : "", CEPH_NOSNAP, hash_of(i), pool,
                i == 2 ? "ns" : "");
  if (variant == 1)
    oid.snap = 3;
  if (variant == 2)
    oid.pool = hobject_t::get_temp_pool(pool);
  return ghobject_t(oid);
}

bufferlist to_bl(const std::string& bytes)
{
  bufferlist bl;
  bl.append(bytes);
  return bl;
}

void overlay(std::string* data, uint64_t offset, const std::string& bytes)
{
  if (bytes.empty())
    return;
  if (data->size() < offset + bytes.size())
    data->resize(offset + bytes.size(), '\0');
  data->replace(offset, bytes.size(), bytes);
}

}  // namespace

const char* op_name(Op op)
{
  static constexpr const char* op_names[op_kinds] = {
    "touch", "write_inline", "write_blocks", "write_large", "overwrite", "append", "write_far",
    "zero", "truncate", "remove", "rename", "set_attrs", "remove_attr", "remove_attrs", "omap_set",
    "omap_remove", "omap_remove_range", "omap_clear", "omap_header", "clone", "clone_range",
    "alloc_hint", "make_collection", "remove_collection", "split", "merge", "fill_log"};
  return op_names[unsigned(op)];
}

std::vector<ghobject_t> possible_objects(const coll_t& cid, unsigned bits)
{
  std::vector<ghobject_t> all;
  spg_t pgid;
  if (!cid.is_pg(&pgid)) {
    for (unsigned i = 0; i < names; ++i)
      all.push_back(object_of(-1, i, 0));
    return all;
  }
  for (unsigned i = 0; i < names; ++i) {
    for (unsigned variant = 0; variant < variants; ++variant)
      all.push_back(object_of(pgid.pool(), i, variant));
  }
  std::erase_if(all, [&](const ghobject_t& oid) { return !belongs(oid, cid, bits); });
  all.push_back(pgid.make_pgmeta_oid());
  return all;
}

coll_t TransactionMaker::collection_of(const OpOnObject& o) const
{
  return std::next(now.collections.begin(), o.collection % now.collections.size())->first;
}

const Object* TransactionMaker::find(const ghobject_t& oid) const
{
  const auto p = now.objects.find(oid);
  return p == now.objects.end() ? nullptr : p->second.get();
}

Object TransactionMaker::copy(const ghobject_t& oid) const
{
  const Object* o = find(oid);
  return o ? *o : Object();
}

void TransactionMaker::put(const Target& t, const ghobject_t& oid, Object object)
{
  touched.insert(t.cid);
  now.objects[oid] = change.objects[oid] = std::make_shared<const Object>(std::move(object));
}

void TransactionMaker::drop(const Target& t, const ghobject_t& oid)
{
  touched.insert(t.cid);
  now.objects.erase(oid);
  change.objects[oid] = nullptr;
}

void TransactionMaker::touch(const Target& t, const ghobject_t& oid)
{
  if (find(oid))
    return;
  txn.touch(t.cid, oid);
  put(t, oid, {});
}

void TransactionMaker::run(const OpOnObject& o)
{
  const coll_t cid = collection_of(o);
  const std::vector<ghobject_t> objects = possible_objects(cid, now.collections.at(cid));
  Target t{cid, objects[o.object % objects.size()], Random(o.n)};
  switch (o.op) {
  case Op::touch:
    txn.touch(cid, t.oid);
    return put(t, t.oid, copy(t.oid));
  case Op::set_attrs:
  case Op::remove_attr:
  case Op::remove_attrs:
  case Op::alloc_hint:
    return run_on_attrs(o.op, t);
  case Op::omap_set:
  case Op::omap_remove:
  case Op::omap_remove_range:
  case Op::omap_clear:
  case Op::omap_header:
  case Op::fill_log:
    return run_on_omap(o.op, t);
  case Op::rename:
  case Op::clone:
  case Op::clone_range:
    return run_on_two(o.op, t);
  case Op::make_collection:
  case Op::remove_collection:
  case Op::split:
  case Op::merge:
    return run_on_collections(o, cid);
  default:
    return run_on_data(o.op, t);
  }
}

void TransactionMaker::replace(const coll_t& cid, const ghobject_t& oid, bool anew)
{
  Target t{cid, oid, Random(seed)};
  run_on_data(Op::remove, t);
  if (anew)
    run_on_data(Op::write_blocks, t);
}

void TransactionMaker::change_in_block(const coll_t& cid, const ghobject_t& oid, uint64_t offset)
{
  Target t{cid, oid, Random(seed)};
  const uint64_t size = find(oid)->data.size();
  const uint64_t from = std::min(offset + t.below(block), size - 1);
  const uint64_t length = 1 + t.below(block);
  switch (t.below(6)) {
  case 0:
    return zero(t, from, length);
  case 1:
    return truncate(t, from);
  case 2:
    return run_on_two(Op::clone, t);
  case 3:
    if (const ghobject_t to = other_object(t); !oid.is_pgmeta() && !to.is_pgmeta())
      return clone_range(t, to, from, std::min(length, size - from), t.below(2 * block));
    [[fallthrough]];
  default:
    return write(t, from, length);
  }
}

// ---- data

void TransactionMaker::make_room_in_meta(const Target& t, uint64_t length)
{
  const Object* o = find(t.oid);
  if (!o || (o->data.size() <= length && o->attrs.empty() && o->omap.empty() && o->header.empty()))
    return;
  txn.remove(t.cid, t.oid);
  drop(t, t.oid);
}

void TransactionMaker::write(Target& t, uint64_t offset, uint64_t length)
{
  offset = std::min(offset, size_max - 1);
  length = std::min(length, size_max - offset);
  const std::string bytes = content(seed * 64 + writes++, length);
  if (t.cid.is_meta() && offset == 0)
    make_room_in_meta(t, length);
  Object object = copy(t.oid);
  overlay(&object.data, offset, bytes);
  txn.write(t.cid, t.oid, offset, length, to_bl(bytes));
  put(t, t.oid, std::move(object));
}

void TransactionMaker::zero(Target& t, uint64_t offset, uint64_t length)
{
  Object object = copy(t.oid);
  overlay(&object.data, offset, std::string(length, '\0'));
  txn.zero(t.cid, t.oid, offset, length);
  put(t, t.oid, std::move(object));
}

void TransactionMaker::truncate(Target& t, uint64_t to)
{
  txn.truncate(t.cid, t.oid, to);
  if (!find(t.oid)) {
    absent.insert(t.oid);
    return;
  }
  Object object = copy(t.oid);
  object.data.resize(to, '\0');
  put(t, t.oid, std::move(object));
}

void TransactionMaker::run_on_data(Op op, Target& t)
{
  const uint64_t size = find(t.oid) ? find(t.oid)->data.size() : 0;
  switch (op) {
  case Op::write_inline:
    return write(t, t.below(size ? std::min<uint64_t>(size, 1500) : 1), 1 + t.below(500));
  case Op::write_blocks:
    return write(t, 0, block * (1 + t.below(10)) + (t.below(3) ? 0 : t.below(block)));
  case Op::write_large:
    return write(t, t.below(4) ? 0 : t.below(size + 1), (280 << 10) + t.below(300 << 10));
  case Op::overwrite:
    return write(t, t.below(std::max<uint64_t>(size, 1)), 1 + t.below(3 * block));
  case Op::append:
    return write(t, size, 1 + t.below(2 * block));
  case Op::write_far:
    return write(t, size + t.below(40 * block), 1 + t.below(block));
  case Op::zero: {
    const uint64_t offset = t.below(size + 1);
    return zero(t, offset, 1 + t.below(t.below(3) ? 4 * block : 40 * block));
  }
  case Op::truncate:
    return truncate(t, t.below(4) ? t.below(size + 1) : std::min(size + t.below(block), size_max));
  default:
    txn.remove(t.cid, t.oid);
    if (find(t.oid))
      drop(t, t.oid);
  }
}

// ---- two objects

ghobject_t TransactionMaker::other_object(Target& t) const
{
  const auto all = possible_objects(t.cid, now.collections.at(t.cid));
  return all[t.below(all.size())];
}

void TransactionMaker::run_on_two(Op op, Target& t)
{
  if (!find(t.oid) || t.oid.is_pgmeta())
    return;
  if (op == Op::clone) {
    // The head's snapshot, or the other way round, as a rollback does.
    ghobject_t to = t.oid;
    to.hobj.snap = t.oid.hobj.snap == CEPH_NOSNAP ? snapid_t(3) : snapid_t(CEPH_NOSNAP);
    txn.clone(t.cid, t.oid, to);
    return put(t, to, copy(t.oid));
  }
  const ghobject_t to = other_object(t);
  if (op == Op::clone_range)
    return clone_range(t, to);
  if (to == t.oid || to.is_pgmeta())
    return;
  if (find(to)) {
    txn.remove(t.cid, to);
    drop(t, to);
  }
  if (t.below(2))
    txn.collection_move_rename(t.cid, t.oid, t.cid, to);
  else
    txn.try_rename(t.cid, t.oid, to);
  put(t, to, copy(t.oid));
  drop(t, t.oid);
}

void TransactionMaker::clone_range(Target& t, const ghobject_t& to)
{
  const std::string& from = find(t.oid)->data;
  if (from.empty() || to.is_pgmeta())
    return;
  uint64_t offset = t.below(from.size());
  uint64_t length = 1 + t.below(from.size() - offset);
  if (t.below(2)) {   // whole blocks can be shared
    offset = offset / block * block;
    length = std::min((length + block - 1) / block * block, from.size() - offset);
  }
  uint64_t to_offset = t.below(3) ? offset : t.below(size_max - length);
  if (to == t.oid && t.below(2))
    to_offset = std::min(offset + length, size_max - length);
  clone_range(t, to, offset, length, to_offset);
}

void TransactionMaker::clone_range(Target& t, const ghobject_t& to, uint64_t offset,
                                   uint64_t length, uint64_t to_offset)
{
  const std::string bytes = find(t.oid)->data.substr(offset, length);
  txn.clone_range(t.cid, t.oid, to, offset, length, to_offset);
  Object object = copy(to);
  overlay(&object.data, to_offset, bytes);
  put(t, to, std::move(object));
}

}  // namespace tablestore_sim
