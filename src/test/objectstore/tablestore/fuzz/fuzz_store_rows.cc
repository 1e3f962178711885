// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// The small rows of Family::super: collections, the store's description, the totals of pools.
//
//   input = which:u8 value
#include "os/tablestore/collection/collection.h"
#include "os/tablestore/space/pool_totals.h"
#include "os/tablestore/home/store_meta.h"
#include "test/objectstore/tablestore/fuzz/row_input.h"

namespace tablestore::fuzz {
namespace {

/// False where refused; what was accepted is read again as it was written.
template <typename T, typename F>
bool round_trip(std::string_view value, F same)
{
  const ceph::buffer::list bl = one_buffer(value);
  T decoded, again;
  try {
    auto p = bl.cbegin();
    decoded.decode(p);
  } catch (const ceph::buffer::error&) {
    return false;
  }
  ceph::buffer::list written;
  decoded.encode(written);
  auto p = written.cbegin();
  again.decode(p);
  ceph_assert(same(decoded, again));
  return true;
}

void run(Input in)
{
  switch (in.u8() % 3) {
  case 0:
    round_trip<CollectionNode>(in.rest(), [](const auto& a, const auto& b) {
      ceph_assert(a.bits <= 32);
      return a.bits == b.bits;
    });
    return;
  case 1:
    round_trip<StoreMeta>(in.rest(), [](const auto& a, const auto& b) { return a == b; });
    return;
  default:
    const Exactly value(in.rest());
    PoolStats stats;
    if (PoolTotals::decode(value.view(), &stats)) {
      ceph_assert(value.view().size() <= sizeof(stats.values));
    }
  }
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  tablestore::fuzz::run({data, size});
  return 0;
}
