// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

// ObjectData on a real engine, with as little of a store around it as it needs.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "global/global_context.h"
#include "os/tablestore/engine/troubles.h"
#include "os/tablestore/home/slow_ops.h"
#include "os/tablestore/object/data_cache.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/object/spurious_reads.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {

class ObjectDataFixture : public EngineFixture {
 protected:
  static constexpr uint64_t inline_max = 8 << 10;
  static constexpr int64_t pool = 7;

  void SetUp() override;
  void TearDown() override;

  /// An object that is not there yet is made by it.
  OnodeRef object(const std::string& name);
  /// Forgets all that is in memory and opens the store again.
  void reopen(bool crash);
  /// Loads the onode anew from its rows.
  void evict(const std::string& name);

  std::shared_ptr<ObjectTxn> begin();
  void submit(std::shared_ptr<ObjectTxn> txn);

  // One operation, one transaction. Errors fail the test.
  void write(const std::string& name, uint64_t offset, const std::string& data);
  void zero(const std::string& name, uint64_t offset, uint64_t length);
  void truncate(const std::string& name, uint64_t size);
  void remove(const std::string& name);
  void clone_range(const std::string& from, const std::string& to, uint64_t from_offset,
                   uint64_t length, uint64_t to_offset);
  std::string read(const std::string& name, uint64_t offset, uint64_t length,
                   uint32_t flags = 0);
  std::string read_all(const std::string& name);
  std::map<uint64_t, uint64_t> fiemap(const std::string& name, uint64_t offset = 0,
                                      uint64_t length = ~uint64_t(0));
  /// Physical extents, in logical order.
  std::vector<MappedExtent> extents(const std::string& name);
  /// Without holes, and without what is beyond the object's size.
  static uint64_t mapped_bytes(const Onode& o);

  /// What PoolStats::stored_bytes has to be, counted in the rows: loads nothing of `onodes`. The
  /// store is idle.
  int64_t stored_bytes_of_rows();

  /// How many there are in [first, second).
  unsigned rows(Family family, const std::pair<std::string, std::string>& range);

  /// Every block of the containers has exactly the owners that rows say, and the pool's statistics
  /// agree. The store is idle.
  void check_ownership();
  /// Changes a byte of a container file behind the engine's back.
  void damage(const Extent& extent, uint64_t offset);

  void open_layers();
  void close_layers();

  PoolStats totals;
  uint64_t next_nid = 1;
  /// Every so manieth new object has the spans of older stores; 0: none.
  unsigned wide_every = 0;
  std::map<std::string, OnodeRef> onodes;
  std::unique_ptr<DataCache> cache;
  std::unique_ptr<ReferenceMaps> references;
  StoreOptions store_options{g_ceph_context};
  Troubles troubles;
  ceph::common::PerfCounters* logger = nullptr;
  std::unique_ptr<SpuriousReads> spurious_reads;
  std::unique_ptr<SlowOps> slow_ops;
  std::unique_ptr<ObjectData> data;
};

/// `length` bytes that depend on `seed` and differ from block to block.
std::string pattern(uint64_t length, uint64_t seed);

}  // namespace tablestore
