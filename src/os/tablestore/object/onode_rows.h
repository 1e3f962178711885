// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <string_view>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/onode_contents.h"
#include "os/tablestore/rows/keys.h"

namespace tablestore {

/// The row of an object; of one that no other OSD has, the second row, too.
inline void put_onode(Txn& txn, const Onode& o)
{
  const std::string row = o.encode();
  txn.put(Family::object, o.key, row);
  if (is_osds_own(o.oid))
    txn.put(Family::super, own_onode_key(o.key), row);
}

/// Whether the value of such a row can be read; not where a newer version has written it.
inline bool is_sound_onode(std::string_view row)
{
  try {
    ObjectContents().decode(row);
    return true;
  } catch (const ceph::buffer::error&) {
    return false;
  }
}

inline void erase_onode(Txn& txn, const Onode& o)
{
  txn.erase(Family::object, o.key);
  if (is_osds_own(o.oid))
    txn.erase(Family::super, own_onode_key(o.key));
}

}  // namespace tablestore
