// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/collection/collections.h"

#include "os/tablestore/rows/keys.h"

namespace tablestore {

namespace {

Result<CollectionNode> decode_node(std::string_view row)
{
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

}  // namespace

Collections::Collections(CephContext* cct, Engine& engine, Threads& threads)
  : cct(cct), engine(engine), threads(threads)
{
}

Status Collections::load()
{
  std::unique_lock l{lock};
  const auto [first, last] = collections_range();
  auto it = engine.iterate(Family::super, first, last);
  for (it->seek(first); it->valid(); it->next()) {
    coll_t cid;
    if (!decode_collection_key(it->key(), &cid))
      return Status(EIO, "a row of a collection is damaged: not the name of a collection");
    const auto node = decode_node(it->value());
    if (!node.ok())
      return node.status();
    auto c = ceph::make_ref<Collection>(cct, cid, threads);
    c->node = *node;
    existing[cid] = std::move(c);
  }
  return it->status();
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
    std::string row;
    const auto there = engine.get(Family::super, collection_key(c->cid), &row);
    if (!there.ok())
      return there.status();
    c->exists = true;
    if (!*there || !existing.try_emplace(c->cid, c).second) {
      fresh.try_emplace(c->cid, c);
      continue;
    }
    const auto node = decode_node(row);
    if (!node.ok())
      return node.status();
    c->node = *node;
  }
  return {};
}

}  // namespace tablestore
