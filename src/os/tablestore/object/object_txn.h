// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/object/onode.h"
#include "os/tablestore/space/pool_stats.h"

namespace tablestore {

struct ReferenceMap;
using ReferenceMapRef = std::shared_ptr<ReferenceMap>;

/// What the change of objects needs of a transaction: which objects it keeps in memory, the space
/// that it may take, and what it adds to the statistics.
///
/// The one rule for an object's life in memory: what a transaction changes, be it data, attributes
/// or omap, stays in memory until the transaction is applied. Until then the rows are older than
/// the object, and an object that is loaded from its rows is as old as they are.
///
/// Built by one thread, under the unique locks of the collections of all objects that it changes.
/// unpin() may run in any thread, and takes no lock.
class ObjectTxn : public Txn {
 public:
  /// Pins the object. Before it is changed, whatever is changed.
  void touch(const OnodeRef& o);
  /// The same, and the object's row is written at the end.
  void dirty(const OnodeRef& o);
  /// Pins the reference map, whose row is written at the end. Before it is changed.
  void dirty(const ReferenceMapRef& map);
  PoolStats& pool(int64_t normalised_pool) { return pool_deltas[normalised_pool]; }
  /// It is applied, or will never be: the cache may drop what only this transaction has pinned.
  void unpin();

  std::vector<OnodeRef> touched_onodes;   ///< each once; Onode::dirty says which need a row
  std::vector<ReferenceMapRef> dirty_reference_maps;
  std::map<int64_t, PoolStats> pool_deltas;
  uint64_t reserved_bytes = 0;            ///< promised by Engine::reserve, not yet taken
};

}  // namespace tablestore
