// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/object/onode_contents.h"

namespace tablestore {

void copy_contents(const Onode& from, Onode& to)
{
  to.exists = from.exists;
  to.nid = from.nid;
  to.size = from.size;
  to.inline_data = from.inline_data;
  to.inline_checksum = from.inline_checksum;
  to.has_omap = from.has_omap;
  to.omap_pool = from.omap_pool;
  to.alloc_hint_flags = from.alloc_hint_flags;
  to.expected_object_size = from.expected_object_size;
  to.expected_write_size = from.expected_write_size;
  to.attrs = from.attrs;
  to.shards_present = from.shards_present;
  to.shards = from.shards;
  to.inline_cache = from.inline_cache;
  to.inline_dirty = from.inline_dirty;
  to.inline_has_row = from.inline_has_row;
  to.last_omap_change = from.last_omap_change;
}

void move_contents(Onode& from, Onode& to)
{
  copy_contents(from, to);
  reset_contents(from);
}

void reset_contents(Onode& onode)
{
  const Onode none;
  copy_contents(none, onode);
}

}  // namespace tablestore
