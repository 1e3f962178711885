// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/placement_group.h"

#include <algorithm>
#include <bit>

#include "common/Cond.h"
#include "common/ceph_context.h"
#include "common/config.h"
#include "test/objectstore/tablestore/bench/store.h"

namespace store_bench {

namespace {

constexpr uint64_t rows_per_transaction = 500;   // when a log is filled

}  // namespace

LogLimits LogLimits::of(CephContext* cct, unsigned pgs, uint64_t wanted_entries)
{
  const auto& conf = cct->_conf;
  LogLimits limits;
  limits.entries = std::max<uint64_t>(
      std::min<uint64_t>(conf->osd_target_pg_log_entries_per_osd / pgs,
                         conf->osd_max_pg_log_entries),
      conf->osd_min_pg_log_entries);
  if (wanted_entries != 0)
    limits.entries = wanted_entries;
  limits.trim_min = conf->osd_pg_log_trim_min;
  limits.dups = std::min<uint64_t>(conf->osd_pg_log_dups_tracked, limits.entries);
  return limits;
}

PlacementGroup::PlacementGroup(uint32_t index, uint32_t pgs, const OsdRows& rows,
                               const LogLimits& limits)
  : pg(index),
    pgs(pgs),
    rows(rows),
    limits(limits),
    pgid(pg_t(index, pool), shard_id_t::NO_SHARD),
    collection(pgid),
    pgmeta(pgid.make_pgmeta_oid())
{
}

void PlacementGroup::create(ObjectStore& store)
{
  ch = store.create_new_collection(collection);
  ObjectStore::Transaction t;
  t.create_collection(collection, std::countr_zero(pgs));
  t.touch(collection, pgmeta);
  require(store.queue_transaction(ch, std::move(t)), "making a collection");
  fill_log(store);
}

void PlacementGroup::open(ObjectStore& store)
{
  ch = store.open_collection(collection);
  if (!ch)
    throw BenchError("collection " + collection.to_str() + " is not there");
}

void PlacementGroup::fill_log(ObjectStore& store)
{
  std::map<std::string, ceph::buffer::list> set;
  C_SaferCond durable;
  tail = 1 + limits.dups;
  head = tail + limits.entries;
  for (uint64_t version = 1; version < head; ++version) {
    if (version < tail)
      set[OsdRows::dup_key(version)] = rows.log_dup(of_its_own(version));
    else
      set[OsdRows::log_key(version)] = rows.log_entry(of_its_own(version));
    const bool last = version + 1 == head;
    if (set.size() < rows_per_transaction && !last)
      continue;
    ObjectStore::Transaction t;
    t.omap_setkeys(collection, pgmeta, set);
    if (last)
      t.register_on_commit(&durable);
    require(store.queue_transaction(ch, std::move(t)), "filling a PG's log");
    set.clear();
  }
  durable.wait();
}

void PlacementGroup::add_attributes(ObjectStore::Transaction& t, const ghobject_t& oid)
{
  std::map<std::string, ceph::buffer::list, std::less<>> attributes;
  attributes.emplace(OI_ATTR, rows.object_info(of_its_own(head)));
  attributes.emplace(SS_ATTR, rows.snapset());
  t.setattrs(collection, oid, attributes);
}

void PlacementGroup::add_log(ObjectStore::Transaction& t)
{
  std::map<std::string, ceph::buffer::list> set;
  std::set<std::string> remove;
  set.emplace(OsdRows::log_key(head), rows.log_entry(of_its_own(head)));
  set.emplace("_fastinfo", rows.fast_info(of_its_own(head)));
  ++head;
  if (head - tail >= limits.entries + limits.trim_min)
    trim(set, remove);
  if (!remove.empty())
    t.omap_rmkeys(collection, pgmeta, remove);
  t.omap_setkeys(collection, pgmeta, set);
}

// As PGLog::trim(): old entries become shorter ones that only tell duplicates, and of those the
// oldest go.
void PlacementGroup::trim(std::map<std::string, ceph::buffer::list>& set,
                          std::set<std::string>& remove)
{
  for (; head - tail > limits.entries; ++tail) {
    remove.insert(OsdRows::log_key(tail));
    set.emplace(OsdRows::dup_key(tail), rows.log_dup(of_its_own(tail)));
  }
  for (; tail - dup_tail > limits.dups; ++dup_tail)
    remove.insert(OsdRows::dup_key(dup_tail));
}

}  // namespace store_bench
