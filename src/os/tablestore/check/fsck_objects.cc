// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <algorithm>

#include "common/debug.h"
#include "common/pretty_binary.h"
#include "include/rados.h"
#include "include/stringify.h"
#include "os/tablestore/check/fsck.h"
#include "os/tablestore/object/onode_contents.h"
#include "os/tablestore/object/onode_rows.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.fsck "

namespace tablestore {

namespace {

std::string name_of(const Extent& e)
{
  return "container " + std::to_string(e.container) + " blocks " + std::to_string(e.block) + "~" +
         std::to_string(e.blocks);
}

}  // namespace

void Fsck::check_collection(const Onode& o)
{
  for (const KeyRange& range : collection_ranges) {
    if (o.key >= range.first && o.key < range.last)
      return;
  }
  // A placement group's own object: the group was there, and its row is not.
  if (o.oid.is_pgmeta())
    note_lost_collection(o.oid);
  if (!collection_rows.lost.empty() || !collection_rows.is_complete)
    return;
  // The meta collection takes objects of any pool, though it does not list them.
  if (has_meta && pools_with_collections.count(normalised_pool(o.oid.hobj.pool)) == 0)
    dout(0) << o.oid << " is in no collection that lists it" << dendl;
  else
    error(stringify(o.oid) + " is in no collection");
}

void Fsck::note_lost_collection(const ghobject_t& pgmeta)
{
  const hobject_t& o = pgmeta.hobj;
  const coll_t cid(spg_t(pg_t(o.get_hash(), o.pool), pgmeta.shard_id));
  if (std::ranges::count(collection_rows.lost, cid) == 0)
    collection_rows.lost.push_back(cid);
}

Status Fsck::check_objects()
{
  const auto [first, last] = all_onodes_range();
  auto it = engine.iterate(Family::object, first, last);
  std::string hash;
  for (it->seek(first); it->valid(); it->next()) {
    if (Status s = advance(options.deep ? block_bytes : 1); !s.ok())
      return s;
    auto o = std::make_shared<Onode>();
    o->key = it->key();
    if (hash_part(o->key) != hash) {
      settle_references();
      hash = hash_part(o->key);
    }
    if (!decode_onode_key(it->key(), &o->oid)) {
      repairable("the key " + pretty_binary_string(o->key) + " is no object",
                 [&](Txn& txn) { txn.erase(Family::object, o->key); });
      continue;
    }
    try {
      o->decode(it->value());
      o->exists = true;
    } catch (const NewerVersion& e) {
      return Status(ENOTSUP, "the row of " + stringify(o->oid) + ": " + e.what());
    } catch (const ceph::buffer::error& e) {
      check_damaged(*o, e.what());
      continue;
    }
    check_collection(*o);
    if (is_osds_own(o->oid))
      own_onodes.emplace(o->key, it->value());
    if (!o->lost) {
      if (Status s = check_object(o); !s.ok())
        return s;
      continue;
    }
    error(stringify(o->oid) + " is lost" +
          (is_osds_own(o->oid) ? ", and no other OSD has it: export what can be read of the OSD, "
                                 "and rebuild it"
                               : ": 'ceph pg deep-scrub' and 'ceph pg repair' bring it back from "
                                 "another OSD"));
    if (o->nid == 0) {
      ++pools[o->omap_pool][PoolStats::objects];
    } else if (Status s = check_object(o); !s.ok()) {   // what is left of it is kept
      return s;
    }
  }
  settle_references();
  if (Status s = deep_reads.finish(); !s.ok())
    return s;
  numbers.sort();
  numbers.for_each([this](auto entry, auto end) {
    if (end - entry == 1)
      return;
    Doubt& doubt = in_doubt[entry->nid];
    doubt.objects = end - entry;
    for (; entry != end; ++entry)
      doubt.with_rows += entry->has_rows();
  });
  return it->status();
}

Status Fsck::check_own_onodes()
{
  const auto [first, last] = own_onodes_range();
  // What cannot be read is as good as missing: the first rows are there.
  auto it = engine.iterate(Family::super, first, last, AtDamage::step_over);
  for (it->seek(first); it->valid(); it->next()) {
    const std::string row_key(it->key());
    std::string second;
    const auto found = engine.get(Family::super, row_key, &second);
    if (!found.ok() && found.status().code() != EIO)
      return found.status();
    if (!found.ok() || !*found)
      continue;
    const auto p = own_onodes.find(std::string(named_in(row_key)));
    if (p != own_onodes.end()) {
      if (p->second == second)
        own_onodes.erase(p);
    } else if (is_sound_onode(second)) {
      error("the row " + pretty_binary_string(row_key) + " is the second one of an object whose "
            "first is missing; repair takes this one");
    } else {
      repairable("the row " + pretty_binary_string(row_key) + " is the second one of no object",
                 [&](Txn& txn) { txn.erase(Family::super, row_key); });
    }
  }
  for (const auto& [key, row] : own_onodes) {
    if (row.empty())
      continue;   // damaged both, which was said
    repairable("the second row of " + pretty_binary_string(key) + " is missing, or another than "
               "the first",
               [&](Txn& txn) { txn.put(Family::super, own_onode_key(key), row); });
  }
  if (lost_names.any())
    dout(0) << "rows of objects that a repair had to give up are not settled: see "
            << "TABLESTORE_OBJECTS_LOST in the documentation" << dendl;
  return it->status();
}

void Fsck::check_damaged(Onode& o, const std::string& what)
{
  const std::string said = stringify(o.oid) + " has a damaged row (" + what + ")";
  if (is_osds_own(o.oid)) {
    std::string second;
    const auto found = engine.get(Family::super, own_onode_key(o.key), &second);
    // What is left of it is not given up: see TableCheck.
    error(said + (found.ok() && *found && is_sound_onode(second)
                      ? "; repair takes its second one"
                      : ", and no other OSD has it: export what can be read of the OSD, and "
                        "rebuild it"));
    own_onodes.emplace(o.key, std::move(second));
    extents_lost = true;
    return;
  }
  if (!options.repair) {
    error(said + "; repair frees what it had, and 'ceph pg repair' then brings it back from "
          "another OSD");
    extents_lost = true;
    return;
  }
  error(said + "; what it had is freed, 'ceph pg deep-scrub' and 'ceph pg repair' bring it back "
        "from another OSD");
  lose_contents(o);
  ++pools[o.omap_pool][PoolStats::objects];
  fixes->put(Family::object, o.key, o.encode());
}

Status Fsck::check_object(const OnodeRef& o)
{
  ObjectNumbers::Entry entry;
  entry.nid = o->nid;
  entry.pool = static_cast<int32_t>(o->omap_pool);
  entry.has_omap = o->has_omap;
  if (o->inline_data)
    entry.inline_row = ObjectNumbers::InlineRow::wanted;
  if (!o->embeds_shard())
    entry.shard_rows = std::ranges::count(o->shards_present, true);
  numbers.add(entry);
  nid_max = std::max(nid_max, o->nid);
  if (o->inline_data)
    largest_inline_bytes = std::max(largest_inline_bytes, o->size);

  PoolStats& stats = pools[o->omap_pool];
  ++stats[PoolStats::objects];
  if (o->inline_data) {
    stats[PoolStats::stored_bytes] += o->size;
    stats[PoolStats::inline_bytes] += o->size;
  }
  if (const int r = data.load_all(o); r < 0) {
    if (r == -EOPNOTSUPP)
      return Status(ENOTSUP, "the extent map of " + stringify(o->oid) + ": " +
                                 NewerVersion().what());
    if (Status s = check_lost_shards(*o); !s.ok())
      return s;
    error(stringify(o->oid) + " has a damaged extent map");
    extents_lost = true;
    // What the rest of it says must stay owned, also where all ownership is written anew.
    count_extents(*o, &stats);
    return {};
  }
  count_extents(*o, &stats);
  return options.deep ? deep_reads.add(o) : Status();
}

bool Fsck::is_good(const DeepReads::Piece& piece)
{
  ceph::buffer::list unused;
  return data.read(piece.o, piece.offset, piece.length, unused,
                   CEPH_OSD_OP_FLAG_FADVISE_NOCACHE) >= 0;
}

Status Fsck::check_piece(const DeepReads::Piece& piece)
{
  if (!piece.good)
    error(stringify(piece.o->oid) + " has damaged data after offset " +
          std::to_string(piece.offset));
  return advance(piece.length);
}

Status Fsck::check_lost_shards(const Onode& o)
{
  if (!options.repair || engine.knows_owners())
    return {};
  for (uint32_t index = 0; index < o.shards_present.size(); ++index) {
    if (!o.has_shard(index) || o.shards.contains(index))
      continue;
    std::string row;
    const auto found = engine.get(Family::object, shard_key(o.nid, index), &row);
    if (!found.ok())
      return found.status();
    if (!*found)
      continue;
    try {
      ValueReader(newest_shard_version, row);
    } catch (const ceph::buffer::error&) {
      continue;
    }
    return Status(EIO, "the extent map of " + stringify(o.oid) + " can be read now and then; "
                       "nothing was adopted: look at the disk, and repair once more");
  }
  return {};
}

void Fsck::count_extents(const Onode& o, PoolStats* stats)
{
  for (const auto& [index, shard] : o.shards) {
    const uint64_t shard_start = index * o.span_bytes();
    for (const MappedExtent& e : shard.extents) {
      const uint64_t start = shard_start + uint64_t(e.logical_block) * block_bytes;
      (*stats)[PoolStats::stored_bytes] +=
          std::min(start + e.physical.length_bytes(), std::max(o.size, start)) - start;
      if (!e.shared) {
        own(e.physical, stringify(o.oid));
        (*stats)[PoolStats::allocated_bytes] += e.physical.length_bytes();
        continue;
      }
      of_hash.add(e, o.omap_pool);
    }
  }
}

void Fsck::own(const Extent& extent, const std::string& owner)
{
  const auto there = engine_blocks.find(extent.container);
  if (there == engine_blocks.end() || extent.end() > there->second.blocks()) {
    error(owner + " has " + name_of(extent) + ", which is not in this store");
    return;
  }
  BlockBitmap& owned =
      owned_blocks.try_emplace(extent.container, there->second.blocks()).first->second;
  if (owned.any(extent.block, extent.blocks)) {
    error(owner + " has " + name_of(extent) + ", of which something else has a part");
    BlockBitmap& contested =
        contested_blocks.try_emplace(extent.container, there->second.blocks()).first->second;
    for (uint32_t block = extent.block; block < extent.end(); ++block) {
      if (owned.test(block))
        contested.set(block, 1);
    }
  }
  owned.set(extent.block, extent.blocks);
}

}  // namespace tablestore
