// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <string>
#include <vector>

#include "include/common_fwd.h"
#include "os/tablestore/collection/collection.h"
#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// Which objects a collection has, in the order of their keys: read from their rows, after waiting
/// for what was queued before. Thread-safe.
class Listing {
 public:
  Listing(CephContext* cct, Engine& engine, ceph::common::PerfCounters& logger)
    : cct(cct), engine(engine), logger(logger)
  {
  }

  /// As ObjectStore::collection_list(), whose `next` may be null here, too.
  int list(Collection& c, const ghobject_t& start, const ghobject_t& end, int max,
           std::vector<ghobject_t>* ls, ghobject_t* next);
  int is_empty(Collection& c, bool* empty);

 private:
  struct Request;
  int list_range(Request& request, const std::string& first, const std::string& range_end);

  CephContext* const cct;
  Engine& engine;
  ceph::common::PerfCounters& logger;
};

}  // namespace tablestore
