// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Attributes, omap and collections.
#include "test/objectstore/tablestore/sim/transaction_maker.h"

#include <algorithm>

namespace tablestore_sim {

using ceph::bufferlist;
using ceph::bufferptr;

namespace {

constexpr unsigned keys = 30;
constexpr int64_t split_pool = 1;     ///< whose collections are split and merged
constexpr int64_t removed_pool = 3;   ///< whose one collection comes and goes
constexpr unsigned bits_max = 3;

coll_t pg(int64_t pool, uint32_t ps)
{
  return coll_t(spg_t(pg_t(ps, pool), shard_id_t::NO_SHARD));
}

bufferlist to_bl(const std::string& bytes)
{
  bufferlist bl;
  bl.append(bytes);
  return bl;
}

std::string key(uint64_t i) { return "key" + std::to_string(100 + i % keys); }

}  // namespace

std::vector<std::pair<coll_t, unsigned>> first_collections()
{
  return {{coll_t::meta(), 0}, {pg(1, 0), 1}, {pg(1, 1), 1}, {pg(2, 0), 0}};
}

void TransactionMaker::run_on_attrs(Op op, Target& t)
{
  touch(t, t.oid);
  Object object = copy(t.oid);
  const std::string name = "attr" + std::to_string(t.below(5));
  switch (op) {
  case Op::set_attrs:
    if (t.below(2)) {
      object.attrs[name] = content(seed * 64 + writes++, t.below(300));
      bufferlist value = to_bl(object.attrs[name]);
      txn.setattr(t.cid, t.oid, name, value);
    } else {
      std::map<std::string, bufferptr, std::less<>> some;
      for (uint64_t n = 1 + t.below(3); n > 0; --n) {
        const std::string each = "attr" + std::to_string(t.below(5));
        const std::string& value = object.attrs[each] = content(seed * 64 + writes++, t.below(80));
        some[each] = ceph::buffer::copy(value.data(), value.size());
      }
      txn.setattrs(t.cid, t.oid, some);
    }
    break;
  case Op::remove_attr:
    object.attrs.erase(name);
    txn.rmattr(t.cid, t.oid, name);
    break;
  case Op::remove_attrs:
    object.attrs.clear();
    txn.rmattrs(t.cid, t.oid);
    break;
  default:
    txn.set_alloc_hint(t.cid, t.oid, 4 << 20, 1 << t.below(20), t.below(256));
  }
  put(t, t.oid, std::move(object));
}

void TransactionMaker::run_on_omap(Op op, Target& t)
{
  touch(t, t.oid);
  Object object = copy(t.oid);
  switch (op) {
  case Op::omap_set:
  case Op::fill_log: {
    std::map<std::string, bufferlist> some;
    const bool many = op == Op::fill_log;
    for (uint64_t n = many ? 3 : 1 + t.below(6); n > 0; --n) {
      const uint64_t length = many ? 30000 + t.below(60000) : t.below(200);
      // Few large ones: a transaction with clones of several such objects has to fit the log.
      std::string name = key(t.below(many ? 3 : keys));
      object.omap[name] = content(seed * 64 + writes++, length);
      some[name] = to_bl(object.omap[name]);
    }
    txn.omap_setkeys(t.cid, t.oid, some);
    break;
  }
  case Op::omap_remove: {
    std::set<std::string> some;
    for (uint64_t n = 1 + t.below(8); n > 0; --n)
      some.insert(key(t.below(keys)));
    for (const auto& name : some)
      object.omap.erase(name);
    txn.omap_rmkeys(t.cid, t.oid, some);
    break;
  }
  case Op::omap_remove_range: {
    const std::string first = key(t.below(keys)), last = key(t.below(keys));
    txn.omap_rmkeyrange(t.cid, t.oid, first, last);
    if (first < last)
      object.omap.erase(object.omap.lower_bound(first), object.omap.lower_bound(last));
    break;
  }
  case Op::omap_clear:
    object.omap.clear();
    object.header.clear();
    txn.omap_clear(t.cid, t.oid);
    break;
  default: {
    object.header = content(seed * 64 + writes++, t.below(100));
    bufferlist header = to_bl(object.header);
    txn.omap_setheader(t.cid, t.oid, header);
  }
  }
  put(t, t.oid, std::move(object));
}

// ---- collections

void TransactionMaker::set_bits(const coll_t& cid, std::optional<unsigned> bits)
{
  touched.insert(cid);
  change.collections[cid] = bits;
  if (bits)
    now.collections[cid] = *bits;
  else
    now.collections.erase(cid);
}

void TransactionMaker::make_collection(const coll_t& cid, unsigned bits)
{
  txn.create_collection(cid, bits);
  made.push_back(cid);
  set_bits(cid, bits);
}

void TransactionMaker::run_on_collections(const OpOnObject& o, const coll_t& cid)
{
  // One change of one collection in a transaction: what an OSD does, and all that a handle allows.
  if (change.collections.size() > 0)
    return;
  switch (o.op) {
  case Op::make_collection:
    if (!now.collections.count(pg(removed_pool, 0)))
      make_collection(pg(removed_pool, 0), 0);
    return;
  case Op::remove_collection:
    if (now.collections.count(pg(removed_pool, 0)))
      remove_collection(pg(removed_pool, 0));
    return;
  case Op::split:
    return split(cid);
  default:
    return merge(cid);
  }
}

void TransactionMaker::remove_collection(const coll_t& cid)
{
  const Target t{cid, {}, Random()};
  for (const ghobject_t& oid : now.objects_of(cid)) {
    txn.remove(cid, oid);
    drop(t, oid);
  }
  txn.remove_collection(cid);
  set_bits(cid, std::nullopt);
}

void TransactionMaker::split(const coll_t& cid)
{
  spg_t pgid;
  if (!cid.is_pg(&pgid) || pgid.pool() != split_pool)
    return;
  const unsigned bits = now.collections.at(cid) + 1;
  const uint32_t ps = pgid.ps() | 1u << (bits - 1);
  const coll_t child = pg(split_pool, ps);
  if (bits > bits_max || now.collections.count(child))
    return;
  make_collection(child, bits);
  txn.split_collection(cid, bits, ps, child);
  set_bits(cid, bits);
}

void TransactionMaker::merge(const coll_t& cid)
{
  spg_t pgid;
  if (!cid.is_pg(&pgid) || pgid.pool() != split_pool)
    return;
  const unsigned bits = now.collections.at(cid);
  if (bits == 0)
    return;
  const uint32_t top = 1u << (bits - 1);
  const coll_t target = pg(split_pool, pgid.ps() & ~top);
  const coll_t source = pg(split_pool, pgid.ps() | top);
  const auto t = now.collections.find(target), s = now.collections.find(source);
  if (t == now.collections.end() || s == now.collections.end() || t->second != bits ||
      s->second != bits)
    return;
  txn.merge_collection(source, target, bits - 1);
  set_bits(target, bits - 1);
  set_bits(source, std::nullopt);
}

}  // namespace tablestore_sim
