// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// Writes the first inputs of the fuzz targets of the store's rows, made by the store's own
// encoders: one directory per target below the one that is given.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "os/tablestore/collection/collection.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/object/onode.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/home/store_meta.h"
#include "test/objectstore/tablestore/fuzz/row_input.h"

namespace tablestore::fuzz {
namespace {

std::filesystem::path root;

void save(const std::string& target, const std::string& name, const std::string& bytes)
{
  std::filesystem::create_directories(root / target);
  std::ofstream out(root / target / name, std::ios::binary);
  out.write(bytes.data(), bytes.size());
  ceph_assert(out.good());
}

std::string with(std::initializer_list<uint8_t> first, const std::string& rest)
{
  return std::string(first.begin(), first.end()) + rest;
}

MappedExtent extent(uint32_t logical, uint32_t block, uint32_t blocks, bool shared)
{
  MappedExtent e;
  e.logical_block = logical;
  e.physical = Extent{logical + 1, block, blocks};
  e.shared = shared;
  e.map_block = shared ? block - 3 : 0;
  for (uint32_t i = 0; i < blocks; ++i) {
    e.checksums.push_back(0x01020304 * i);
  }
  return e;
}

ExtentShard shard()
{
  ExtentShard s;
  s.insert(extent(0, 16, 2, false));
  s.insert(extent(2, 1000, 1, true));
  s.insert(extent(60, 4, 4, true));
  return s;
}

void shards()
{
  const std::string row = shard().encode();
  save("extent_map", "body", with({1, 40, 0}, body_of(row)));
  save("extent_map", "row", with({1, 40, 1}, row));
  save("extent_map", "newer", with({1, 40, 2, 1}, body_of(row)));
}

void onodes()
{
  Onode small, large, in_line;
  small.nid = 77;
  small.size = 100000;
  small.span_blocks = wide_shard_span_blocks;
  small.shards[0] = shard();
  small.set_shard_present(0, true);
  small.attrs["_"] = ceph::buffer::copy("attribute", 9);
  small.attrs["snapset"] = ceph::buffer::copy("", 0);
  large.nid = 1 << 20;
  large.size = 5000000;
  large.has_omap = true;
  large.omap_pool = -5;
  large.alloc_hint_flags = 3;
  large.expected_object_size = 4 << 20;
  large.set_shard_present(2, true);
  large.set_shard_present(17, true);
  in_line.size = 50;
  in_line.inline_data = true;
  in_line.inline_checksum = 0x12345678;
  const std::pair<const char*, const Onode*> all[] = {
    {"small", &small}, {"large", &large}, {"inline", &in_line}};
  for (const auto& [name, o] : all) {
    const std::string row = o->encode();
    save("onode", name, with({0}, body_of(row)));
    save("onode", std::string(name) + "-row", with({1}, row));
  }
}

void reference_maps()
{
  ReferenceMap map;
  map.first_block = 100;
  map.runs[100] = {1, 0};
  map.runs[103] = {5, 2};
  map.runs[108] = {8, 1};
  const std::string row = map.encode();
  const std::string head = with({100, 0, 0, 0, 3, 1, 3, 5, 0, 4, 2, 0, 4, 2}, "");
  save("reference_map", "body", head + with({0}, body_of(row)));
  save("reference_map", "row", head + with({1}, row));
}

void small_rows()
{
  ceph::buffer::list node, meta;
  CollectionNode collection;
  collection.bits = 5;
  collection.encode(node);
  StoreMeta store;
  store.inline_bound = 4096;
  store.encode(meta);
  save("store_rows", "collection", with({0}, node.to_str()));
  save("store_rows", "meta", with({1}, meta.to_str()));
  save("store_rows", "pool", with({2}, std::string(32, '\7')));
}

void keys()
{
  save("keys", "shard", with({0}, shard_key(5, 6)));
  save("keys", "inline", with({1}, inline_key(7)));
  save("keys", "pool", with({2}, pool_stats_key(-3)));
  save("keys", "shared", with({3}, reference_map_key(2, 64)));
  const hobject_t plain(object_t("name"), "", 3, 0x12345678, 4, "");
  const hobject_t keyed(object_t("name#!~\xff"), "locator", CEPH_NOSNAP, 1, 4, "space");
  const hobject_t keyed_low(object_t("a"), "b", CEPH_NOSNAP, 1, -6, "");
  save("keys", "onode", with({4}, onode_key(ghobject_t(plain))));
  save("keys", "onode-keyed", with({4}, onode_key(ghobject_t(keyed, 7, shard_id_t(2)))));
  save("keys", "onode-temp", with({4}, onode_key(ghobject_t(keyed_low))));
  save("keys", "meta", with({5}, collection_key(coll_t())));
  save("keys", "pg", with({5}, collection_key(coll_t(spg_t(pg_t(0x1a, 3), shard_id_t(1))))));
  save("keys", "pg-whole", with({5}, collection_key(coll_t(spg_t(pg_t(0, 12))))));
  save("keys", "omap", with({6}, omap_key(omap_prefix(4, 9), "user key")));
  save("keys", "omap-header", with({6}, omap_header_key(omap_prefix(4, 9))));
}

}  // namespace
}  // namespace tablestore::fuzz

int main(int argc, char** argv)
{
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " DIRECTORY" << std::endl;
    return 2;
  }
  using namespace tablestore::fuzz;
  root = argv[1];
  shards();
  onodes();
  reference_maps();
  small_rows();
  keys();
}
