// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// A reference map, and changes of one that is accepted.
//
//   input = first_block:u32 changes:u8 {what:u8 block:u8 blocks:u8} row
//   what  = 1: one reference more; 2: handed over; else one less
#include <numeric>

#include "os/tablestore/object/reference_maps.h"
#include "test/objectstore/tablestore/fuzz/row_input.h"

namespace tablestore::fuzz {
namespace {

struct Change {
  uint8_t what;
  uint32_t block, blocks;
};

uint64_t blocks_of(const std::vector<Extent>& extents)
{
  return std::accumulate(extents.begin(), extents.end(), uint64_t(0),
                         [](uint64_t sum, const Extent& e) { return sum + e.blocks; });
}

void check(const ReferenceMap& map)
{
  uint64_t position = map.first_block;
  for (const auto& [block, run] : map.runs) {
    ceph_assert(block >= position && run.blocks > 0);
    ceph_assert(run.references > 0 || (block == map.first_block && run.blocks == 1));
    position = uint64_t(block) + run.blocks;
  }
  ceph_assert(position - map.first_block <= largest_slot_blocks);
}

bool decode(std::string_view row, ReferenceMap* map)
{
  const Exactly memory(row);
  try {
    map->decode(memory.view());
  } catch (const ceph::buffer::error&) {
    return false;
  }
  ceph_assert(!map->runs.empty() && map->runs.begin()->first == map->first_block);
  check(*map);
  return true;
}

void run(Input in)
{
  ReferenceMap map;
  map.first_block = in.u32();
  std::vector<Change> changes(in.u8() % 8);
  for (Change& c : changes) {
    c.what = in.u8() % 4;
    c.block = map.first_block + in.u8();
    c.blocks = in.u8() % 64 + 1;
  }
  if (!decode(take_row(in), &map))
    return;
  for (const Change& c : changes) {
    if (uint64_t(c.block) + c.blocks > UINT32_MAX || c.block < map.first_block) {
      continue;   // no extent does
    }
    const uint64_t before = blocks_of(map.owned());
    std::vector<Extent> freed;
    uint64_t handed_over = 0;
    if (c.what == 1) {
      map.add_reference(c.block, c.blocks);
    } else if (c.what != 2) {
      map.drop_reference(c.block, c.blocks, &freed);
    } else if (map.has_one_owner(c.block, c.blocks)) {
      map.hand_over(c.block, c.blocks, &freed);
      handed_over = c.blocks;
    }
    ceph_assert(blocks_of(map.owned()) + blocks_of(freed) + handed_over == before);
    check(map);
    if (map.runs.empty())
      return;
  }
  ReferenceMap again;
  again.first_block = map.first_block;
  ceph_assert(decode(map.encode(), &again));
  ceph_assert(again.runs == map.runs);
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  tablestore::fuzz::run({data, size});
  return 0;
}
