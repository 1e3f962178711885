// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// The row of an object.
#include "os/tablestore/object/extent_map.h"
#include "os/tablestore/object/onode.h"
#include "test/objectstore/tablestore/fuzz/row_input.h"

namespace tablestore::fuzz {
namespace {

bool decode(std::string_view row, Onode* o)
{
  try {
    o->decode(row);
  } catch (const ceph::buffer::error&) {
    return false;
  }
  return true;
}

/// What reads and changes of the object rest on.
void check(const Onode& o)
{
  ceph_assert(o.size <= object_bytes_max);
  ceph_assert(o.shards_present.empty() || o.shards_present.back());
  ceph_assert(o.span_blocks == shard_span_blocks || o.span_blocks == wide_shard_span_blocks);
  ceph_assert(o.shards_present.size() <=
              (o.size + o.span_bytes() - 1) / o.span_bytes());
  ceph_assert(!o.inline_data || o.shards_present.empty());
  ceph_assert(o.shards.size() <= 1);
  ceph_assert(o.shards.empty() || (o.embeds_shard() && o.has_shard(0)));
}

void run(Input in)
{
  Onode o;
  if (!decode(take_row(in), &o))
    return;
  check(o);
  const std::string written = o.encode();
  Onode again;
  ceph_assert(decode(written, &again));
  ceph_assert(again.encode() == written);
  ceph_assert(again.nid == o.nid && again.size == o.size && again.attrs.size() == o.attrs.size());
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  tablestore::fuzz::run({data, size});
  return 0;
}
