// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Where something is wrong: which objects are concerned. While the first look is under way, only
// numbers of objects and bits of blocks are known of them.

#include <algorithm>

#include "common/debug.h"
#include "common/pretty_binary.h"
#include "include/stringify.h"
#include "os/tablestore/check/derived_rows.h"
#include "os/tablestore/check/fsck.h"
#include "os/tablestore/object/onode_rows.h"
#include "os/tablestore/rows/keys.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.fsck "

namespace tablestore {

Status Fsck::look_again()
{
  if (in_doubt.empty())
    return check_contested_blocks();
  const auto [first, last] = all_onodes_range();
  auto it = engine.iterate(Family::object, first, last);
  for (it->seek(first); it->valid(); it->next()) {
    auto o = std::make_shared<Onode>();
    o->key = it->key();
    try {
      if (!decode_onode_key(it->key(), &o->oid))
        continue;
      o->decode(it->value());
    } catch (const ceph::buffer::error&) {
      continue;   // which was said
    }
    if (const auto p = in_doubt.find(o->nid); p != in_doubt.end() && (o->nid > 0 || !o->lost)) {
      if (Status s = look_again_at(o, p->second); !s.ok())
        return s;
    }
  }
  const Status s = it->status();
  return s.ok() ? check_contested_blocks() : s;
}

Status Fsck::look_again_at(const OnodeRef& o, const Doubt& doubt)
{
  if (doubt.inline_missing && o->inline_data)
    error("the inline data of " + stringify(o->oid) + " is missing");
  if (doubt.surplus_shards) {
    if (Status s = erase_surplus_shards(*o); !s.ok())
      return s;
  }
  return doubt.objects > 1 ? mend_number(*o, doubt) : Status();
}

Status Fsck::erase_surplus_shards(const Onode& o)
{
  const std::string first = shard_key(o.nid, 0), last = shard_key(o.nid + 1, 0);
  auto it = engine.iterate(Family::object, first, last);
  for (it->seek(first); it->valid(); it->next()) {
    const std::string key(it->key());
    uint64_t nid;
    uint32_t index;
    if (!decode_shard_key(key, &nid, &index) || (!o.embeds_shard() && o.has_shard(index)))
      continue;
    const std::string what = "the extents in " + pretty_binary_string(key) + " belong to no part "
                             "of " + stringify(o.oid);
    if (extents_lost)
      error(what);
    else
      repairable(what, [&](Txn& txn) { txn.erase(Family::object, key); });
  }
  return it->status();
}

// An object that has no rows by its number can have any other. Where all have none, one keeps it.
Status Fsck::mend_number(Onode& o, const Doubt& doubt)
{
  const bool has_rows = o.has_omap || o.inline_data ||
                        (!o.embeds_shard() && !o.shards_present.empty());
  const std::string what =
      stringify(o.oid) + " has the number of another object: " + std::to_string(o.nid);
  if (has_rows && doubt.with_rows == 1)
    return {};
  if (has_rows) {
    error(what + ", and which of them its rows belong to nobody can tell: remove both with "
          "ceph-objectstore-tool, repair, and let 'ceph pg repair' bring them back");
    return {};
  }
  if (++in_doubt[o.nid].without_rows_met == 1 && doubt.with_rows == 0)
    return {};
  if (options.repair && !highest_of_rows) {
    const auto derived = derive_rows(engine);
    if (!derived.ok())
      return derived.status();
    highest_of_rows = derived->nid_max;
  }
  repairable(what, [&](Txn& txn) {
    o.nid = nid_max = std::max(nid_max, *highest_of_rows) + 1;
    put_onode(txn, o);
    more_to_do |= !contested_blocks.empty();   // it may be one of those
  });
  return {};
}

}  // namespace tablestore
