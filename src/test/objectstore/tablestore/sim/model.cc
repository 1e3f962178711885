// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/model.h"

#include <algorithm>
#include <cstring>

#include "include/stringify.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"

namespace tablestore_sim {

using ceph::bufferlist;
using ceph::bufferptr;
using tablestore::Family;

namespace {

bool equal(const bufferlist& found, const std::string& expected)
{
  if (found.length() != expected.size())
    return false;
  size_t at = 0;
  for (const auto& piece : found.buffers()) {
    if (std::memcmp(piece.c_str(), expected.data() + at, piece.length()) != 0)
      return false;
    at += piece.length();
  }
  return true;
}

/// Where bytes begin to differ, and how.
std::string data_difference(const bufferlist& found, const std::string& expected)
{
  const std::string bytes = found.to_str();
  if (bytes.size() != expected.size())
    return "has " + std::to_string(bytes.size()) + " bytes, expected " +
        std::to_string(expected.size());
  const auto [e, f] = std::mismatch(expected.begin(), expected.end(), bytes.begin());
  return "has other bytes from offset " + std::to_string(e - expected.begin()) + " on";
}

/// Statistics go by the pool that an object was made in: a temp object's is its own, and a
/// placement group's own object counts with the meta collection.
int64_t statistics_pool(const ghobject_t& oid)
{
  if (oid.is_pgmeta())
    return -1;
  return oid.hobj.pool < -1 ? -2 - oid.hobj.pool : oid.hobj.pool;
}

std::string differs(const std::string& what, uint64_t found, uint64_t expected)
{
  if (found == expected)
    return {};
  return what + " says " + std::to_string(found) + ", counted " + std::to_string(expected);
}

}  // namespace

void State::apply(const Change& change)
{
  for (const auto& [cid, bits] : change.collections) {
    if (bits)
      collections[cid] = *bits;
    else
      collections.erase(cid);
  }
  for (const auto& [oid, object] : change.objects) {
    if (object)
      objects[oid] = object;
    else
      objects.erase(oid);
  }
}

std::vector<ghobject_t> State::objects_of(const coll_t& cid) const
{
  std::vector<ghobject_t> found;
  const unsigned bits = collections.at(cid);
  for (const auto& [oid, object] : objects) {
    if (belongs(oid, cid, bits))
      found.push_back(oid);
  }
  return found;
}

bool belongs(const ghobject_t& oid, const coll_t& cid, unsigned bits)
{
  spg_t pgid;
  if (!cid.is_pg(&pgid))
    return oid.hobj.pool == -1;
  const int64_t pool = oid.hobj.pool < -1 ? -2 - oid.hobj.pool : oid.hobj.pool;
  return pool == int64_t(pgid.pool()) && oid.match(bits, pgid.ps());
}

std::string content(uint64_t seed, uint64_t length)
{
  std::string bytes((length + 7) / 8 * 8, '\0');
  uint64_t x = seed * 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i < bytes.size(); i += 8) {
    x += 0x9e3779b97f4a7c15u;
    uint64_t z = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    z ^= z >> 27;
    std::memcpy(bytes.data() + i, &z, 8);
  }
  bytes.resize(length);
  return bytes;
}

bool Comparison::excused(int r)
{
  if (r != -EIO || !damaged)
    return false;
  ++eios;
  return true;
}

std::string Comparison::all(const State& expected)
{
  std::vector<coll_t> cids;
  if (int r = store.list_collections(cids); r < 0)
    return "list_collections = " + std::to_string(r);
  std::sort(cids.begin(), cids.end());
  for (const auto& [cid, bits] : expected.collections) {
    if (!std::binary_search(cids.begin(), cids.end(), cid))
      return "collection " + stringify(cid) + " is missing";
  }
  for (const coll_t& cid : cids) {
    if (!expected.collections.count(cid))
      return "collection " + stringify(cid) + " should not be there";
  }
  for (const auto& [cid, bits] : expected.collections) {
    if (std::string d = collection(expected, cid, bits); !d.empty())
      return d;
  }
  return {};
}

std::string Comparison::collection(const State& expected, const coll_t& cid, unsigned bits)
{
  const std::string name = "collection " + stringify(cid);
  auto ch = store.open_collection(cid);
  if (!ch)
    return name + " cannot be opened";
  if (const int found = store.collection_bits(ch); found != int(bits))
    return name + " has " + std::to_string(found) + " bits, expected " + std::to_string(bits);
  const std::vector<ghobject_t> wanted = expected.objects_of(cid);
  std::vector<ghobject_t> found;
  // Some at a time, so that a listing that is continued is one too.
  for (ghobject_t next; !next.is_max();) {
    std::vector<ghobject_t> some;
    const int r = store.collection_list(ch, next, ghobject_t::get_max(), 7, &some, &next);
    found.insert(found.end(), some.begin(), some.end());
    if (excused(r))
      break;
    if (r < 0)
      return name + " cannot be listed: " + std::to_string(r);
    if (found.size() > wanted.size())
      break;
  }
  for (const ghobject_t& oid : wanted) {
    if (std::string d = object(cid, oid, expected.objects.at(oid).get()); !d.empty())
      return d;
  }
  if (eios == 0 && found != wanted)
    return name + " lists " + stringify(found) + ", expected " + stringify(wanted);
  return {};
}

std::string Comparison::object(const coll_t& cid, const ghobject_t& oid, const Object* expected)
{
  const std::string name = stringify(cid) + " " + stringify(oid);
  auto ch = store.open_collection(cid);
  struct stat st;
  int r = store.stat(ch, oid, &st);
  if (excused(r))
    return {};
  if (!expected)
    return r == -ENOENT ? std::string() : name + " should not be there";
  if (r < 0)
    return name + " cannot be found: " + std::to_string(r);
  if (uint64_t(st.st_size) != expected->data.size())
    return name + " has size " + std::to_string(st.st_size) + ", expected " +
        std::to_string(expected->data.size());

  bufferlist data;
  r = store.read(ch, oid, 0, 0, data);
  if (!excused(r)) {
    if (r < 0)
      return name + " cannot be read: " + std::to_string(r);
    if (!equal(data, expected->data))
      return name + " " + data_difference(data, expected->data);
  }
  std::map<std::string, bufferptr, std::less<>> attrs;
  if (r = store.getattrs(ch, oid, attrs); r < 0)
    return excused(r) ? "" : name + " has no attributes: " + std::to_string(r);
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : attrs)
    found[key] = std::string(value.c_str(), value.length());
  if (found != expected->attrs)
    return name + " has other attributes";

  bufferlist header;
  std::map<std::string, bufferlist> omap;
  if (r = store.omap_get(ch, oid, &header, &omap); r < 0)
    return excused(r) ? "" : name + " has no omap: " + std::to_string(r);
  if (!equal(header, expected->header))
    return name + " has another omap header";
  if (omap.size() != expected->omap.size())
    return name + " has " + std::to_string(omap.size()) + " omap keys, expected " +
        std::to_string(expected->omap.size());
  for (const auto& [key, value] : expected->omap) {
    const auto p = omap.find(key);
    if (p == omap.end() || !equal(p->second, value))
      return name + " has no omap key " + key + ", or another value";
  }
  return {};
}

std::string Comparison::space(const State& expected)
{
  std::map<int64_t, uint64_t> stored = {{-1, 0}, {1, 0}, {2, 0}, {3, 0}};
  uint64_t sum = 0;
  for (const auto& [cid, bits] : expected.collections) {
    auto ch = store.open_collection(cid);
    for (const ghobject_t& oid : expected.objects_of(cid)) {
      std::map<uint64_t, uint64_t> mapped;
      if (int r = store.fiemap(ch, oid, 0, UINT64_MAX, mapped); r < 0)
        return stringify(oid) + ": fiemap = " + std::to_string(r);
      for (const auto& [offset, length] : mapped) {
        stored[statistics_pool(oid)] += length;
        sum += length;
      }
    }
  }
  for (const auto& [pool, bytes] : stored) {
    store_statfs_t said;
    bool per_pool_omap;
    store.pool_statfs(pool, &said, &per_pool_omap);
    const std::string what = "pool_statfs of " + std::to_string(pool) + ": data_stored";
    if (std::string d = differs(what, said.data_stored, bytes); !d.empty())
      return d;
  }
  tablestore::Engine& engine = store.parts().engine;
  uint64_t allocated = 0;
  for (const auto& [container, owned] : engine.owned_blocks())
    allocated += owned.count() * tablestore::block_bytes;
  auto it = engine.iterate(Family::data, {}, {});
  for (it->seek_to_first(); it->valid(); it->next())
    allocated += it->value().size();
  store_statfs_t said;
  store.statfs(&said);
  if (std::string d = differs("statfs: data_stored", said.data_stored, sum); !d.empty())
    return d;
  return differs("statfs: allocated", said.allocated, allocated);
}

}  // namespace tablestore_sim
