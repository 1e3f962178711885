// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Keys: a key that is accepted is the one that its encoder makes.
//
//   input = which:u8 key
#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/fuzz/row_input.h"

namespace tablestore::fuzz {
namespace {

void onode(std::string_view key)
{
  ghobject_t oid;
  if (decode_onode_key(key, &oid)) {
    ceph_assert(onode_key(oid) == key);
  }
}

void collection(std::string_view key)
{
  coll_t cid;
  if (!decode_collection_key(key, &cid)) {
    return;
  }
  ceph_assert(collection_key(cid) == key);
  for (int bits = 0; bits <= 32; ++bits) {
    std::string temp_start, temp_end, start, end;
    collection_key_range(cid, bits, &temp_start, &temp_end, &start, &end);
    ceph_assert(temp_start <= temp_end && start < end);
  }
}

void omap(std::string_view key)
{
  int64_t pool;
  uint64_t nid;
  if (!decode_omap_prefix(key, &pool, &nid)) {
    return;
  }
  const std::string prefix = omap_prefix(pool, nid);
  ceph_assert(key.starts_with(prefix));
  const auto [first, last] = omap_range(prefix);
  ceph_assert(first <= key && key < last);
  const auto [first_key, last_key] = omap_key_range(prefix);
  if (first_key <= key && key < last_key) {
    ceph_assert(omap_key(prefix, decode_omap_key(prefix, key)) == key);
  } else {
    ceph_assert(omap_header_key(prefix) == key);
  }
}

void small(uint8_t which, std::string_view key)
{
  uint64_t nid;
  uint32_t a, b;
  int64_t pool;
  if (which == 0 && decode_shard_key(key, &nid, &a)) {
    ceph_assert(shard_key(nid, a) == key);
  }
  if (which == 1 && decode_inline_key(key, &nid)) {
    ceph_assert(inline_key(nid) == key);
  }
  if (which == 2 && decode_pool_stats_key(key, &pool)) {
    ceph_assert(pool_stats_key(pool) == key);
  }
  if (which == 3 && decode_reference_map_key(key, &a, &b)) {
    ceph_assert(reference_map_key(a, b) == key);
  }
}

void run(Input in)
{
  const uint8_t which = in.u8() % 7;
  const Exactly key(in.rest());
  switch (which) {
  case 4: return onode(key.view());
  case 5: return collection(key.view());
  case 6: return omap(key.view());
  default: return small(which, key.view());
  }
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  tablestore::fuzz::run({data, size});
  return 0;
}
