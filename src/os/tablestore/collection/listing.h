// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <string>
#include <vector>

#include "include/common_fwd.h"
#include "os/tablestore/collection/collection.h"
#include "os/tablestore/collection/lost_names.h"
#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// Which objects a collection has, in the order of their keys: read from their rows. Thread-safe.
class Listing {
 public:
  Listing(CephContext* cct, Engine& engine, const LostNames& lost_names,
          ceph::common::PerfCounters& logger)
    : cct(cct), engine(engine), lost_names(lost_names), logger(logger)
  {
  }

  /// As ObjectStore::collection_list(), whose `next` may be null here, too. -EIO: rows that cannot
  /// be read, or that a repair had to give up, are missing in the list, an object may be in it that
  /// was removed by such a row, and all else, `next` too, is as after 0. Whoever takes what is
  /// missing for gone (backfill does) must not go on; scrub does, and finds what is lost: to read
  /// what was removed is -EIO where the disk is damaged, and -ENOENT where it had failed for a
  /// moment. Any other error: there is no list.
  ///
  /// Of what is queued, which a full store may not apply for as long as it is full; or of what is
  /// applied, for which nobody waits.
  enum class Of { queued, applied };
  int list(Collection& c, const ghobject_t& start, const ghobject_t& end, int max,
           std::vector<ghobject_t>* ls, ghobject_t* next, Of of = Of::queued);
  int is_empty(Collection& c, bool* empty);

 private:
  struct Request;
  int list_range(Request& request, const std::string& first, const std::string& range_end);
  Status list_rows(Request& request, std::string* at, const std::string& range_end,
                   AtDamage at_damage);

  CephContext* const cct;
  Engine& engine;
  const LostNames& lost_names;
  ceph::common::PerfCounters& logger;
};

}  // namespace tablestore
