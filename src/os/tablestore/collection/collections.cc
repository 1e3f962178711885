// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "common/debug.h"
#include "common/errno.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/home/perf.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

using namespace tablestore;

CollectionRef TableStore::get_collection(const coll_t& cid)
{
  std::shared_lock l{coll_lock};
  auto p = coll_map.find(cid);
  return p == coll_map.end() ? nullptr : p->second;
}

ObjectStore::CollectionHandle TableStore::open_collection(const coll_t& cid)
{
  return get_collection(cid);
}

ObjectStore::CollectionHandle TableStore::create_new_collection(const coll_t& cid)
{
  auto c = ceph::make_ref<Collection>(cct, cid, hasten());
  std::unique_lock l{coll_lock};
  new_coll_map[cid] = c;
  return c;
}

void TableStore::set_collection_commit_queue(const coll_t& cid, ContextQueue* commit_queue)
{
  std::shared_lock l{coll_lock};
  if (auto p = coll_map.find(cid); p != coll_map.end())
    p->second->osr->commit_queue = commit_queue;
  else if (auto q = new_coll_map.find(cid); q != new_coll_map.end())
    q->second->osr->commit_queue = commit_queue;
}

int TableStore::set_collection_opts(CollectionHandle&, const pool_opts_t&)
{
  // They are about compression and the kind of checksum: nothing that this store has a choice of.
  return -EOPNOTSUPP;
}

int TableStore::list_collections(std::vector<coll_t>& ls)
{
  std::shared_lock l{coll_lock};
  ls.reserve(ls.size() + coll_map.size());
  for (const auto& [cid, c] : coll_map)
    ls.push_back(cid);
  return 0;
}

bool TableStore::collection_exists(const coll_t& cid)
{
  std::shared_lock l{coll_lock};
  return coll_map.count(cid) > 0;
}

int TableStore::collection_empty(CollectionHandle& ch, bool* empty)
{
  std::vector<ghobject_t> ls;
  int r = collection_list(ch, ghobject_t(), ghobject_t::get_max(), 1, &ls, nullptr);
  if (r < 0)
    return r;
  *empty = ls.empty();
  return 0;
}

int TableStore::collection_bits(CollectionHandle& ch)
{
  Collection* c = collection_of(ch);
  std::shared_lock l{c->lock};
  return c->node.bits;
}

// ---- listing

/// Lists [low, high) of the rows of objects up to `range_end`, until `ls` has `max`. Sets `next` to
/// the first object of the range that was not taken; `*done`: there was one, nothing more is to be
/// listed.
int TableStore::list_range(Collection& c, const std::string& low, const std::string& high,
                           const std::string& range_end, size_t max,
                           std::vector<ghobject_t>* ls, ghobject_t* next, bool* done)
{
  if (low >= range_end)
    return 0;
  auto it = engine->iterate(Family::object, low, range_end);
  for (it->seek(low); it->valid(); it->next()) {
    ghobject_t oid;
    if (!decode_onode_key(it->key(), &oid)) {
      derr << __func__ << " " << c.cid << ": a row has a key that is no object; run fsck" << dendl;
      return -EIO;
    }
    if (ls->size() >= max || it->key() >= high) {
      *next = oid;
      *done = true;
      return 0;
    }
    ls->push_back(std::move(oid));
  }
  if (!it->status().ok()) {
    derr << __func__ << " " << c.cid << ": " << it->status().what() << dendl;
    return -EIO;
  }
  return 0;
}

int TableStore::collection_list(CollectionHandle& ch, const ghobject_t& start,
                                const ghobject_t& end, int max, std::vector<ghobject_t>* ls,
                                ghobject_t* pnext)
{
  Collection* c = collection_of(ch);
  ghobject_t unused;
  ghobject_t& next = pnext ? *pnext : unused;
  if (!c->exists)
    return -ENOENT;
  if (start.is_max() || start.hobj.is_max()) {
    next = ghobject_t::get_max();
    return 0;
  }
  const auto started_at = ceph::mono_clock::now();
  // The table shows what was applied.
  c->flush();
  std::string temp_low, temp_end, low, range_end;
  {
    std::shared_lock l{c->lock};
    if (!c->exists)
      return -ENOENT;
    collection_key_range(c->cid, c->node.bits, &temp_low, &temp_end, &low, &range_end);
  }
  const std::string start_key = onode_key(start);
  const bool end_is_max = end.is_max() || end.hobj.is_max();
  const std::string end_key = end_is_max ? std::string() : onode_key(end);
  const bool from_temp = start == ghobject_t() || start.hobj == hobject_t() ||
      start == c->cid.get_min_hobj() || start.hobj.is_temp();

  int r = 0;
  bool done = false;
  if (from_temp && temp_low < temp_end) {
    r = list_range(*c, std::max(temp_low, start_key), end_is_max ? temp_end : end_key, temp_end,
                   max, ls, &next, &done);
  }
  if (r == 0 && !done && !end.hobj.is_temp()) {
    r = list_range(*c, std::max(low, start_key), end_is_max ? range_end : end_key, range_end,
                   max, ls, &next, &done);
  }
  if (r == 0 && !done)
    next = ghobject_t::get_max();
  logger->tinc(l_tablestore_clist_lat, ceph::mono_clock::now() - started_at);
  dout(15) << __func__ << " " << c->cid << " [" << start << ", " << end << ") max " << max
           << " = " << r << ", " << ls->size() << " listed, next " << next << dendl;
  return r;
}
