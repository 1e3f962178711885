// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <algorithm>

#include "common/debug.h"
#include "common/pretty_binary.h"
#include "os/tablestore/check/fsck.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.fsck "

namespace tablestore {

namespace {

/// The first runs of set blocks, in words.
std::string some_of(uint32_t container, const BlockBitmap& blocks)
{
  constexpr unsigned most = 3;
  std::string all;
  uint32_t block = blocks.next_set(0);
  for (unsigned n = 0; block < blocks.blocks() && n < most; ++n) {
    const uint32_t end = blocks.next_clear(block);
    all += (n == 0 ? " (container " + std::to_string(container) + " blocks " : ", ") +
           std::to_string(block) + "~" + std::to_string(end - block);
    block = blocks.next_set(end);
  }
  return all.empty() ? all : all + (block < blocks.blocks() ? ", ...)" : ")");
}

}  // namespace

Status Fsck::check_shard_rows()
{
  const auto [first, last] = all_shards_range();
  auto it = engine.iterate(Family::object, first, last);
  uint64_t nid = 0, rows = 0;   // of the object whose rows these are
  for (it->seek(first); it->valid(); it->next()) {
    const std::string key(it->key());
    uint64_t of;
    uint32_t index;
    const bool is_sound = decode_shard_key(key, &of, &index);
    if (is_sound) {
      if (of != nid) {
        check_shard_count(nid, rows);
        nid = of;
        rows = 0;
      }
      if (const auto [object, end] = numbers.find(of); object != end) {
        ++rows;
        continue;
      }
    }
    // The object may be one whose own row is damaged.
    if (extents_lost) {
      error("the extents in " + pretty_binary_string(key) + " belong to no object");
      continue;
    }
    repairable("the extents in " + pretty_binary_string(key) + " belong to no object",
               [&](Txn& txn) { txn.erase(Family::object, key); });
  }
  check_shard_count(nid, rows);
  return it->status();
}

// All rows that an object should have were there when its map was loaded, or it was said. So where
// there are as many as it should have, there is no other.
void Fsck::check_shard_count(uint64_t nid, uint64_t rows)
{
  const auto [object, end] = numbers.find(nid);
  if (end - object == 1 && rows != object->shard_rows)
    in_doubt[nid].surplus_shards = true;
}

Status Fsck::check_inline_rows()
{
  auto it = engine.iterate(Family::data, {}, {});
  for (it->seek_to_first(); it->valid(); it->next()) {
    const std::string key(it->key());
    uint64_t nid;
    if (decode_inline_key(key, &nid)) {
      bool belongs = false;
      for (auto [object, end] = numbers.find(nid); object != end; ++object) {
        if (object->inline_row == ObjectNumbers::InlineRow::none)
          continue;
        object->inline_row = ObjectNumbers::InlineRow::seen;
        belongs = true;
      }
      if (belongs)
        continue;
    }
    const std::string what = "the data in " + pretty_binary_string(key) + " belongs to no object";
    if (extents_lost)
      error(what);
    else
      repairable(what, [&](Txn& txn) { txn.erase(Family::data, key); });
  }
  numbers.for_each([this](auto object, auto end) {
    for (; object != end; ++object) {
      if (object->inline_row == ObjectNumbers::InlineRow::wanted)
        in_doubt[object->nid].inline_missing = true;
    }
  });
  return it->status();
}

Status Fsck::check_omap_rows()
{
  auto it = engine.iterate(Family::omap, {}, {});
  it->seek_to_first();
  while (it->valid()) {
    int64_t pool;
    uint64_t nid;
    const std::string key(it->key());
    if (!decode_omap_prefix(key, &pool, &nid)) {
      repairable("the omap row " + pretty_binary_string(key) + " has a bad key",
                 [&](Txn& txn) { txn.erase(Family::omap, key); });
      it->next();
      continue;
    }
    const auto [first, last] = omap_range(omap_prefix(pool, nid));
    const auto [object, end] = numbers.find(nid);
    const bool belongs = std::any_of(object, end, [pool](const auto& o) {
      return o.has_omap && o.pool == static_cast<int32_t>(pool);
    });
    if (object == end && lost_names.any()) {
      // Of one whose onode is lost, and that may be the only one that there is.
      dout(0) << "omap of pool " << pool << " number " << nid << " belongs to no object that is "
              << "known, and stays until what was lost is settled" << dendl;
    } else if (!belongs) {
      const std::string what = "omap of pool " + std::to_string(pool) + " number " +
          std::to_string(nid) + " belongs to no object";
      if (extents_lost)
        error(what);
      else
        repairable(what, [&](Txn& txn) { txn.erase_range(Family::omap, first, last); });
    }
    // Deep: every block of the table is read, and so verified.
    if (options.deep) {
      while (it->valid() && it->key() < last)
        it->next();
    } else {
      it->seek(last);
    }
  }
  return it->status();
}

Status Fsck::check_blocks()
{
  uint64_t leaked = 0, missing = 0;
  std::string where;   // some of those that are missing
  for (const auto& [container, engine_says] : engine_blocks) {
    const auto p = owned_blocks.find(container);
    BlockBitmap without_owner = engine_says;
    if (p != owned_blocks.end()) {
      without_owner.remove(p->second);
      BlockBitmap free = p->second;
      free.remove(engine_says);
      missing += free.count();
      if (where.empty())
        where = some_of(container, free);
    }
    leaked += without_owner.count();
  }
  bool adopts = options.repair && !engine.knows_owners();
  const auto adopt = [&](Txn&) { adopts = true; };
  if (missing > 0)
    repairable(std::to_string(missing) + " blocks of objects are free to the allocator" + where,
               adopt);
  if (leaked > 0 && extents_lost) {
    error(std::to_string(leaked) + " blocks that no object is known to have; they stay as they "
          "are, because the extents of some objects cannot be read");
  } else if (leaked > 0) {
    repairable(std::to_string(leaked) + " blocks that no object has", adopt);
  }
  if (!adopts)
    return {};
  if (extents_lost)
    keep_blocks_without_owner();
  return engine.adopt_owned(owned_blocks);
}

void Fsck::keep_blocks_without_owner()
{
  for (const auto& [container, engine_says] : engine_blocks) {
    BlockBitmap& owned =
        owned_blocks.try_emplace(container, engine_says.blocks()).first->second;
    for (uint32_t b = engine_says.next_set(0); b < engine_says.blocks();
         b = engine_says.next_set(b + 1))
      owned.set(b, 1);
  }
}

}  // namespace tablestore
