// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// A segment of an extent map. One that is accepted can be changed as any other.
#include "os/tablestore/onode.h"
#include "test/objectstore/tablestore/fuzz/row_input.h"

namespace tablestore::fuzz {
namespace {

void check(const Segment& segment)
{
  uint32_t position = 0;
  for (const MappedExtent& e : segment.extents) {
    ceph_assert(e.logical_block >= position);
    ceph_assert(e.physical.blocks > 0 && e.logical_end() <= segment_span_blocks);
    ceph_assert(e.checksums.size() == e.physical.blocks);
    ceph_assert(e.physical.end() > e.physical.block);
    ceph_assert(e.shared ? e.slot_block <= e.physical.block : e.slot_block == 0);
    ceph_assert(e.physical.end() - e.slot_block <= largest_slot_blocks || !e.shared);
    position = e.logical_end();
  }
}

bool decode(std::string_view row, Segment* segment)
{
  const ceph::buffer::list bl = one_buffer(row);
  auto p = bl.cbegin();
  try {
    segment->decode(p);
  } catch (const ceph::buffer::error&) {
    return false;
  }
  ceph_assert(p.get_off() <= row.size());
  return true;
}

void run(Input in)
{
  const uint32_t first = in.u8() % segment_span_blocks;
  const uint32_t end = first + 1 + in.u8() % (segment_span_blocks - first);
  Segment segment;
  if (!decode(take_row(in), &segment)) {
    return;
  }
  check(segment);
  const std::string written = segment.encode();
  Segment again;
  ceph_assert(decode(written, &again) && again.encode() == written);

  std::vector<MappedExtent> removed;
  segment.punch(first, end, &removed);
  check(segment);
  for (const MappedExtent& e : segment.extents) {
    ceph_assert(e.logical_end() <= first || e.logical_block >= end);
  }
  for (MappedExtent& e : removed) {
    segment.insert(std::move(e));
  }
  check(segment);
  ceph_assert(decode(segment.encode(), &again));
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  tablestore::fuzz::run({data, size});
  return 0;
}
