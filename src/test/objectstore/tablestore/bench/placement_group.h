// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// One collection as an OSD uses it: objects and a log in the omap of an object of its own.
#pragma once

#include <cstdint>

#include "os/ObjectStore.h"
#include "test/objectstore/tablestore/bench/object_names.h"
#include "test/objectstore/tablestore/bench/osd_rows.h"

namespace store_bench {

/// How long a PG's log is, as OSDService::get_target_pg_log_entries() has it.
struct LogLimits {
  uint64_t entries = 0;
  uint64_t trim_min = 0;
  uint64_t dups = 0;

  static LogLimits of(CephContext* cct, unsigned pgs, uint64_t wanted_entries);
};

/// Belongs to one shard; after create() or open() only its thread calls.
class PlacementGroup {
 public:
  PlacementGroup(uint32_t index, uint32_t pgs, const OsdRows& rows, const LogLimits& limits);

  /// Makes the collection with a log of full length, so that every operation trims from the first
  /// one on. Returns when it is durable.
  void create(ObjectStore& store);
  /// Finds the collection again after a mount.
  void open(ObjectStore& store);
  void close() { ch.reset(); }

  const coll_t& cid() const { return collection; }
  ObjectStore::CollectionHandle& handle() { return ch; }
  uint32_t index() const { return pg; }
  uint32_t group_count() const { return pgs; }
  ghobject_t object(uint64_t number, snapid_t snap = CEPH_NOSNAP) const
  {
    return object_name(number, pg, pgs, snap);
  }

  /// The attributes that every change of an object sets.
  void add_attributes(ObjectStore::Transaction& t, const ghobject_t& oid);
  /// What PG::append_log() adds to the transaction: a row of the log, the PG's info, and now and
  /// then the removal of old rows.
  void add_log(ObjectStore::Transaction& t);

 private:
  void fill_log(ObjectStore& store);
  /// Rows of the same version in two groups have nothing in common.
  uint64_t of_its_own(uint64_t version) const { return uint64_t(pg) << 40 | version; }
  void trim(std::map<std::string, ceph::buffer::list>& set, std::set<std::string>& remove);

  const uint32_t pg;
  const uint32_t pgs;
  const OsdRows& rows;
  const LogLimits limits;
  const spg_t pgid;
  const coll_t collection;
  const ghobject_t pgmeta;
  ObjectStore::CollectionHandle ch;

  // Versions; [tail, head) have rows of the log, [dup_tail, tail) rows of duplicates.
  uint64_t head = 1;
  uint64_t tail = 1;
  uint64_t dup_tail = 1;
};

}  // namespace store_bench
