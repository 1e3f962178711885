// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/collection/collection.h"

#include <algorithm>

#include "include/encoding.h"
#include "os/tablestore/rows/row_codec.h"

namespace tablestore {

void CollectionNode::encode(ceph::buffer::list& bl) const
{
  ENCODE_START(version, 1, bl);
  ceph::encode(bits, bl);
  ENCODE_FINISH(bl);
}

void CollectionNode::decode(ceph::buffer::list::const_iterator& p)
{
  DECODE_START(version, p);
  ceph::decode(bits, p);
  DECODE_FINISH(p);
  if (bits > 32) {
    throw_malformed("more bits than a hash has");
  }
}

Collection::Collection(CephContext* cct, const coll_t& cid, Threads& threads)
  : CollectionImpl(cct, cid), osr(std::make_shared<OpSequencer>(threads))
{
}

void Collection::flush()
{
  TxnMark last;
  {
    std::shared_lock l{lock};
    last = last_change;
  }
  // Another handle's transaction may have been the last to change this collection.
  last.wait_applied();
  osr->flush();
}

bool Collection::flush_commit(Context* c)
{
  return osr->flush_commit(c);
}

bool Collection::contains(const ghobject_t& oid) const
{
  spg_t pgid;
  return !cid.is_pg(&pgid) || oid.match(node.bits, pgid.ps());
}

CollectionLocks::CollectionLocks(std::vector<CollectionRef> collections)
  : locked(std::move(collections))
{
  std::sort(locked.begin(), locked.end(), [](const auto& a, const auto& b) -> bool {
    if (a->cid.is_meta() != b->cid.is_meta())
      return b->cid.is_meta();
    return a->cid != b->cid ? a->cid < b->cid : a.get() < b.get();
  });
  locked.erase(std::unique(locked.begin(), locked.end()), locked.end());
  locks.reserve(locked.size());
  for (auto& c : locked)
    locks.emplace_back(c->lock);
}

}  // namespace tablestore
