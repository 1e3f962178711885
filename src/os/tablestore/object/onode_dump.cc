// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/object/onode_dump.h"

#include "include/stringify.h"

namespace tablestore {

namespace {

void dump_extent(const MappedExtent& e, uint64_t shard_start, ceph::Formatter* f)
{
  f->open_object_section("extent");
  f->dump_unsigned("offset", shard_start + uint64_t(e.logical_block) * block_bytes);
  f->dump_unsigned("length", e.physical.length_bytes());
  f->dump_unsigned("container", e.physical.container);
  f->dump_unsigned("block", e.physical.block);
  f->dump_bool("shared", e.shared);
  f->close_section();
}

}  // namespace

void dump(const Onode& onode, ceph::Formatter* f)
{
  f->dump_string("oid", stringify(onode.oid));
  f->dump_bool("lost", onode.lost);
  f->dump_unsigned("nid", onode.nid);
  f->dump_unsigned("size", onode.size);
  f->dump_bool("inline_data", onode.inline_data);
  f->dump_bool("has_omap", onode.has_omap);
  f->dump_int("pool", onode.omap_pool);
  f->dump_unsigned("alloc_hint_flags", onode.alloc_hint_flags);
  f->dump_unsigned("expected_object_size", onode.expected_object_size);
  f->dump_unsigned("expected_write_size", onode.expected_write_size);
  f->dump_unsigned("transactions_in_flight", onode.transactions_in_flight);
  f->open_object_section("attrs");
  for (const auto& [name, value] : onode.attrs)
    f->dump_unsigned(name, value.length());
  f->close_section();
  f->open_array_section("extents");
  for (const auto& [index, shard] : onode.shards) {
    for (const auto& e : shard.extents)
      dump_extent(e, index * onode.span_bytes(), f);
  }
  f->close_section();
}

}  // namespace tablestore
