// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <utility>

#include "os/tablestore/object/onode.h"
#include "os/tablestore/space/pool_stats.h"

namespace tablestore {

/// The pool that an object counts for, and whose omap has its keys. The omap of a placement group's
/// own object is the OSD's log, which is not what users stored: it goes with the meta collection's
/// objects.
inline int64_t statistics_pool(const ghobject_t& oid)
{
  constexpr int64_t meta_pool = -1;
  return oid.is_pgmeta() ? meta_pool : normalised_pool(oid.hobj.pool);
}

/// An OSD's own objects (its maps, its index of snapshots, a placement group's log): no other OSD
/// has the same, and no scrub brings them back.
inline bool is_osds_own(const ghobject_t& oid)
{
  return oid.hobj.is_meta() || oid.is_pgmeta();
}

/// As of an object that never existed.
inline void reset_contents(Onode& onode)
{
  static_cast<ObjectContents&>(onode) = ObjectContents();
}

/// As of an object that exists, and of which nothing else is known.
inline void lose_contents(Onode& onode)
{
  reset_contents(onode);
  onode.exists = true;
  onode.lost = true;
  onode.omap_pool = statistics_pool(onode.oid);
}

/// `to` becomes what `from` was; `from` becomes an object that never existed. Rows by nid stay
/// valid.
inline void move_contents(Onode& from, Onode& to)
{
  static_cast<ObjectContents&>(to) =
      std::exchange(static_cast<ObjectContents&>(from), ObjectContents());
}

}  // namespace tablestore
