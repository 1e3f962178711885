// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/model.h"

#include <algorithm>
#include <cstring>

#include "include/rados.h"
#include "include/stringify.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/mounted_store.h"

namespace tablestore_sim {

using ceph::bufferlist;
using ceph::bufferptr;
using tablestore::Family;

namespace {

/// As a deep scrub of the OSD reads: for once, and from the disk.
constexpr uint32_t scrub_flags = CEPH_OSD_OP_FLAG_FADVISE_SEQUENTIAL |
    CEPH_OSD_OP_FLAG_FADVISE_DONTNEED | CEPH_OSD_OP_FLAG_BYPASS_CLEAN_CACHE;

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

bool Comparison::note_hit()
{
  ++eios;
  hit.insert(current);
  return true;
}

bool Comparison::excused(int r, bool is_hit)
{
  return r == -EIO && (may_fail || is_hit) && note_hit();
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
  std::vector<ghobject_t> wanted = expected.objects_of(cid);
  std::vector<ghobject_t> found;
  bool is_cut = false;
  // Some at a time, so that a listing that is continued is one too.
  for (ghobject_t next; !next.is_max();) {
    std::vector<ghobject_t> some;
    const int r = store.collection_list(ch, next, ghobject_t::get_max(), 7, &some, &next);
    found.insert(found.end(), some.begin(), some.end());
    if (is_cut = excused(r); is_cut)
      break;
    // What cannot be read is missing in the list, which says so and goes on.
    const bool lacks_rows = r == -EIO && (!damage.rows.empty() || damage.salvaged);
    if (r < 0 && !lacks_rows)
      return name + " cannot be listed: " + std::to_string(r);
    if (found.size() > wanted.size() + damage.rows.size() + damage.doubtful.size())
      break;
  }
  for (const ghobject_t& oid : wanted) {
    if (std::string d = object(cid, oid, expected.objects.at(oid).get()); !d.empty())
      return d;
  }
  // What is there and lost, and should not be there.
  std::vector<ghobject_t> lost;
  for (const ghobject_t& oid : found) {
    if (expected.objects.contains(oid) || !damage.doubtful.contains(oid))
      continue;
    if (std::string d = object(cid, oid, nullptr); !d.empty())
      return d;
    if (hit.contains(current))
      lost.push_back(oid);
  }
  std::erase_if(found, [&](const ghobject_t& oid) { return std::ranges::count(lost, oid) > 0; });
  // Nobody knows whether these are there, or what was there before.
  const auto is_hidden = [&](const ghobject_t& oid) { return damage.hides(oid, Damage::onode); };
  std::erase_if(found, is_hidden);
  std::erase_if(wanted, is_hidden);
  if (!is_cut && found != wanted)
    return name + " lists " + stringify(found) + ", expected " + stringify(wanted);
  return {};
}

std::string Comparison::object(const coll_t& cid, const ghobject_t& oid, const Object* expected)
{
  const std::string name = stringify(cid) + " " + stringify(oid);
  current = {cid, oid};
  auto ch = store.open_collection(cid);
  struct stat st;
  int r = store.stat(ch, oid, &st);
  const bool is_hidden = damage.hides(oid, Damage::onode);
  const auto& may_be_lost = expected ? damage.changed : damage.doubtful;
  if (excused(r, is_hidden || may_be_lost.contains(oid) ||
                     (damage.salvaged && damage.hides(oid, Damage::of_omap))))
    return {};
  if (damage.spoilt.contains(oid)) {
    note_hit();
    return r == -EIO ? std::string() : name + " has a damaged row, and says " + std::to_string(r);
  }
  if (!expected)
    return r == -ENOENT ? std::string() : name + " should not be there";
  if (r < 0)
    return name + " cannot be found: " + std::to_string(r);
  if (uint64_t(st.st_size) != expected->data.size())
    return name + " has size " + std::to_string(st.st_size) + ", expected " +
        std::to_string(expected->data.size());

  for (std::string d : {data(ch, oid, expected->data), attributes(ch, oid, *expected),
                        omap(ch, oid, *expected)}) {
    if (!d.empty())
      return name + " " + d;
  }
  return {};
}

std::string Comparison::data(ObjectStore::CollectionHandle& ch, const ghobject_t& oid,
                             const std::string& expected)
{
  if (is_scrub)
    return pieces(ch, oid, expected);
  bufferlist found;
  const int r = store.read(ch, oid, 0, 0, found);
  if (excused(r, damage.hides(oid, Damage::of_data)))
    return {};
  if (r == -EIO)
    return pieces(ch, oid, expected);
  if (r < 0)
    return "cannot be read: " + std::to_string(r);
  return equal(found, expected) ? std::string() : data_difference(found, expected);
}

std::string Comparison::pieces(ObjectStore::CollectionHandle& ch, const ghobject_t& oid,
                               const std::string& expected)
{
  const uint32_t flags = is_scrub ? scrub_flags : 0;
  const DamagedBlocks damaged = damaged_blocks(store, ch->cid, oid, damage.data);
  const bool may_be_marked = damage.changed.contains(oid);
  for (uint64_t at = 0; at < expected.size(); at += tablestore::block_bytes) {
    const uint64_t block = at / tablestore::block_bytes;
    const bool on_disk = block < damaged.on_disk.size() && damaged.on_disk[block];
    const bool marked = damaged.inline_marked ||
        (block < damaged.marked.size() && damaged.marked[block]);
    bufferlist found;
    const int r = store.read(ch, oid, at, tablestore::block_bytes, found, flags);
    if (excused(r, damage.hides(oid, Damage::of_data) || on_disk || (marked && may_be_marked)))
      continue;
    const std::string where = "at offset " + std::to_string(at);
    if (r < 0)
      return "cannot be read " + where + ", where nothing is damaged: " + std::to_string(r);
    if (is_scrub && on_disk)
      return "is damaged " + where + ", and a scrub does not see it";
    if (!equal(found, expected.substr(at, tablestore::block_bytes)))
      return "has other bytes " + where;
  }
  return {};
}

std::string Comparison::attributes(ObjectStore::CollectionHandle& ch, const ghobject_t& oid,
                                   const Object& expected)
{
  std::map<std::string, bufferptr, std::less<>> attrs;
  if (const int r = store.getattrs(ch, oid, attrs); r < 0)
    return excused(r) ? "" : "has no attributes: " + std::to_string(r);
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : attrs)
    found[key] = std::string(value.c_str(), value.length());
  return found == expected.attrs ? "" : "has other attributes";
}

std::string Comparison::omap(ObjectStore::CollectionHandle& ch, const ghobject_t& oid,
                             const Object& expected)
{
  bufferlist header;
  std::map<std::string, bufferlist> found;
  if (const int r = store.omap_get(ch, oid, &header, &found); r < 0)
    return excused(r, damage.hides(oid, Damage::of_omap))
        ? "" : "has no omap: " + std::to_string(r);
  if (!equal(header, expected.header))
    return "has another omap header";
  if (found.size() != expected.omap.size())
    return "has " + std::to_string(found.size()) + " omap keys, expected " +
        std::to_string(expected.omap.size());
  for (const auto& [key, value] : expected.omap) {
    const auto p = found.find(key);
    if (p == found.end() || !equal(p->second, value))
      return "has no omap key " + key + ", or another value";
  }
  if (expected.omap.empty())
    return {};
  const std::string& middle = std::next(expected.omap.begin(), expected.omap.size() / 2)->first;
  const std::string between = middle + "+";
  for (const auto& [key, with_it] :
       {std::pair(middle, true), std::pair(middle, false), std::pair(between, true)}) {
    if (std::string d = omap_from(ch, oid, expected, key, with_it); !d.empty())
      return d;
  }
  return {};
}

std::string Comparison::omap_from(ObjectStore::CollectionHandle& ch, const ghobject_t& oid,
                                  const Object& expected, const std::string& key, bool with_it)
{
  using seek_t = ObjectStore::omap_iter_seek_t;
  auto wanted = with_it ? expected.omap.lower_bound(key) : expected.omap.upper_bound(key);
  bool same = true;
  const seek_t from{key, with_it ? seek_t::LOWER_BOUND : seek_t::UPPER_BOUND};
  auto compare = [&](std::string_view name, std::string_view value) {
    same = same && wanted != expected.omap.end() && wanted->first == name &&
        wanted->second == value;
    if (same)
      ++wanted;
    return same ? ObjectStore::omap_iter_ret_t::NEXT : ObjectStore::omap_iter_ret_t::STOP;
  };
  const int r = store.omap_iterate(ch, oid, from, compare);
  if (r < 0)
    return excused(r, damage.hides(oid, Damage::of_omap))
        ? "" : "has no omap after a key: " + std::to_string(r);
  return same && wanted == expected.omap.end() ? "" : "has other omap keys from " + key + " on";
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
  // Nothing of this state is lost: a row that cannot be read is an older version, of what is gone.
  auto it = engine.iterate(Family::data, {}, {}, tablestore::AtDamage::step_over);
  for (it->seek_to_first(); it->valid(); it->next()) {
    std::string row;
    const auto found = engine.get(Family::data, it->key(), &row);
    if (found.ok() && *found)
      allocated += row.size();
  }
  store_statfs_t said;
  store.statfs(&said);
  if (std::string d = differs("statfs: data_stored", said.data_stored, sum); !d.empty())
    return d;
  return differs("statfs: allocated", said.allocated, allocated);
}

}  // namespace tablestore_sim
