// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// A shard of an extent map. One that is accepted can be changed as any other.
#include "os/tablestore/object/onode.h"
#include "test/objectstore/tablestore/fuzz/row_input.h"

namespace tablestore::fuzz {
namespace {

void check(const ExtentShard& shard)
{
  uint32_t position = 0;
  for (const MappedExtent& e : shard.extents) {
    ceph_assert(e.logical_block >= position);
    ceph_assert(e.physical.blocks > 0 && e.logical_end() <= wide_shard_span_blocks);
    ceph_assert(e.checksums.size() == e.physical.blocks);
    ceph_assert(e.physical.end() > e.physical.block);
    ceph_assert(e.shared ? e.map_block <= e.physical.block : e.map_block == 0);
    ceph_assert(e.physical.end() - e.map_block <= largest_slot_blocks || !e.shared);
    position = e.logical_end();
  }
}

bool decode(std::string_view row, ExtentShard* shard)
{
  const ceph::buffer::list bl = one_buffer(row);
  auto p = bl.cbegin();
  try {
    shard->decode(p);
  } catch (const ceph::buffer::error&) {
    return false;
  }
  ceph_assert(p.get_off() <= row.size());
  return true;
}

void run(Input in)
{
  const uint32_t first = in.u8() % wide_shard_span_blocks;
  const uint32_t end = first + 1 + in.u8() % (wide_shard_span_blocks - first);
  ExtentShard shard;
  if (!decode(take_row(in), &shard))
    return;
  check(shard);
  const std::string written = shard.encode();
  ExtentShard again;
  ceph_assert(decode(written, &again) && again.encode() == written);

  std::vector<MappedExtent> removed;
  shard.punch(first, end, &removed);
  check(shard);
  for (const MappedExtent& e : shard.extents)
    ceph_assert(e.logical_end() <= first || e.logical_block >= end);
  for (MappedExtent& e : removed)
    shard.insert(std::move(e));
  check(shard);
  ceph_assert(decode(shard.encode(), &again));
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  tablestore::fuzz::run({data, size});
  return 0;
}
