// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/collection/collections.h"

#include <set>

#include "include/stringify.h"
#include "os/tablestore/home/copied_row.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"
#include "os/tablestore/space/pool_stats.h"

namespace tablestore {

namespace {

Result<CollectionNode> decode_node(const coll_t& cid, std::string_view row)
{
  if (is_of_newer_version(CollectionNode::version, row))
    return Status(ENOTSUP, "the row of the collection " + stringify(cid) + ": " +
                               NewerVersion().what());
  ceph::buffer::list bl;
  bl.append(row);
  CollectionNode node;
  try {
    auto p = bl.cbegin();
    node.decode(p);
  } catch (const ceph::buffer::error& e) {
    return Status(EIO, std::string("a row of a collection is damaged: ") + e.what());
  }
  return node;
}

/// One of a newer version is no damage.
bool is_sound_node(std::string_view row)
{
  const auto node = decode_node(coll_t(), row);
  return node.ok() || node.status().code() == ENOTSUP;
}

}  // namespace

void put_row(Txn& txn, const coll_t& cid, const CollectionNode& node)
{
  ceph::buffer::list bl;
  node.encode(bl);
  CopiedRow::put(txn, collection_key(cid), bl.to_str());
}

Collections::Collections(CephContext* cct, Engine& engine, Threads& threads)
  : cct(cct), engine(engine), threads(threads)
{
}

Status Collections::load(bool has_copies, CollectionRows* rows)
{
  std::unique_lock l{lock};
  std::set<std::string> keys;
  const auto is_complete = CopiedRow::list(engine, collections_range(), has_copies, &keys);
  if (!is_complete.ok())
    return is_complete.status();
  rows->is_complete = *is_complete;
  for (const std::string& key : keys) {
    coll_t cid;
    if (!decode_collection_key(key, &cid))
      rows->bad_keys.push_back(key);
    else if (Status s = load_one(cid, has_copies, rows); !s.ok())
      return s;
  }
  return {};
}

Status Collections::load_one(const coll_t& cid, bool has_copies, CollectionRows* rows)
{
  const auto row = CopiedRow::load(engine, collection_key(cid), has_copies, is_sound_node);
  if (!row.ok())
    return row.status();
  std::optional<CollectionNode> node;
  if (row->value) {
    const auto decoded = decode_node(cid, *row->value);
    if (!decoded.ok())
      return decoded.status();
    node = *decoded;
  }
  if (row->is_lost)
    rows->lost.push_back(cid);
  else if (!row->damage.empty())
    rows->damaged.push_back({cid, node, row->damage});
  if (!node && !(row->is_lost && cid.is_meta()))
    return {};
  auto c = ceph::make_ref<Collection>(cct, cid, threads);
  if (node)
    c->node = *node;
  existing[cid] = std::move(c);
  return {};
}

CollectionRef Collections::find(const coll_t& cid) const
{
  std::shared_lock l{lock};
  const auto p = existing.find(cid);
  return p == existing.end() ? nullptr : p->second;
}

std::vector<CollectionRef> Collections::find(const std::vector<coll_t>& cids) const
{
  std::vector<CollectionRef> found;
  std::shared_lock l{lock};
  for (const auto* map : {&existing, &fresh}) {
    for (const coll_t& cid : cids) {
      if (const auto p = map->find(cid); p != map->end())
        found.push_back(p->second);
    }
  }
  return found;
}

CollectionRef Collections::containing(const ghobject_t& oid) const
{
  for (;;) {
    const std::vector<CollectionRef> before = all();
    // The meta collection contains all that no placement group does: its lock is not theirs.
    CollectionRef meta;
    for (const CollectionRef& c : before) {
      spg_t pgid;
      if (c->cid.is_meta())
        meta = c;
      if (!c->cid.is_pg(&pgid) || pgid.pool() != uint64_t(normalised_pool(oid.hobj.pool)) ||
          pgid.shard != oid.shard_id)
        continue;
      std::shared_lock l{c->lock};
      if (c->contains(oid))
        return c;
    }
    // Where a group was split meanwhile the object's is the new one: it exists before the other's
    // bits change.
    if (all() == before)
      return meta;
  }
}

std::vector<CollectionRef> Collections::all() const
{
  std::vector<CollectionRef> all;
  std::shared_lock l{lock};
  all.reserve(existing.size());
  for (const auto& [cid, c] : existing)
    all.push_back(c);
  return all;
}

void Collections::set_commit_queue(const coll_t& cid, ContextQueue* queue)
{
  std::shared_lock l{lock};
  for (const auto* map : {&existing, &fresh}) {
    if (const auto p = map->find(cid); p != map->end()) {
      p->second->osr->commit_queue = queue;
      return;
    }
  }
}

CollectionRef Collections::create_new(const coll_t& cid)
{
  auto c = ceph::make_ref<Collection>(cct, cid, threads);
  std::unique_lock l{lock};
  fresh[cid] = c;
  return c;
}

CollectionRef Collections::adopt(const coll_t& cid)
{
  std::unique_lock l{lock};
  const auto p = fresh.find(cid);
  if (p == fresh.end())
    return nullptr;
  CollectionRef c = p->second;
  fresh.erase(p);
  existing[cid] = c;
  return c;
}

void Collections::drop(Collection& c)
{
  std::unique_lock l{lock};
  existing.erase(c.cid);
  c.exists = false;
}

Status Collections::reload(const std::vector<CollectionRef>& found)
{
  std::unique_lock l{lock};
  for (const auto& c : found) {
    if (const auto p = existing.find(c->cid); p != existing.end() && p->second == c)
      existing.erase(p);
  }
  // Of two with one name, the first is the one that existed.
  for (const auto& c : found) {
    const auto row = CopiedRow::load(engine, collection_key(c->cid), true, is_sound_node);
    if (!row.ok())
      return row.status();
    if (row->is_lost)
      return Status(EIO, row->damage);
    c->exists = true;
    if (!row->value || !existing.try_emplace(c->cid, c).second) {
      fresh.try_emplace(c->cid, c);
      continue;
    }
    const auto node = decode_node(c->cid, *row->value);
    if (!node.ok())
      return node.status();
    c->node = *node;
  }
  return {};
}

}  // namespace tablestore
