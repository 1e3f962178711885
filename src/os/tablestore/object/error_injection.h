// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <set>

#include "common/ceph_mutex.h"
#include "common/hobject.h"

namespace tablestore {

/// Objects that are to fail with -EIO, for tests of the OSD, as BlueStore does it: reads of data
/// where a data error was injected, stat and attributes where a metadata error was. Errors are in
/// force while an option is on (tablestore_debug_inject_read_err). Thread-safe; costs a load of a
/// flag where the option is off.
class ErrorInjection {
 public:
  explicit ErrorInjection(const std::atomic<bool>& in_force) : in_force(in_force) {}
  void add_data_error(const ghobject_t& oid) { add(&data, oid); }
  void add_metadata_error(const ghobject_t& oid) { add(&metadata, oid); }
  bool data_error(const ghobject_t& oid) const { return has(data, oid); }
  bool metadata_error(const ghobject_t& oid) const { return has(metadata, oid); }
  /// A removed object takes its errors along: one that recovery puts in its place has none.
  void forget(const ghobject_t& oid)
  {
    if (!any)
      return;
    std::lock_guard l{mutex};
    data.erase(oid);
    metadata.erase(oid);
  }

 private:
  void add(std::set<ghobject_t>* set, const ghobject_t& oid)
  {
    std::lock_guard l{mutex};
    set->insert(oid);
    any = true;
  }
  bool has(const std::set<ghobject_t>& set, const ghobject_t& oid) const
  {
    if (!in_force || !any)
      return false;
    std::lock_guard l{mutex};
    return set.count(oid) > 0;
  }

  const std::atomic<bool>& in_force;
  mutable ceph::mutex mutex = ceph::make_mutex("TableStore::ErrorInjection::mutex");
  std::atomic<bool> any{false};
  std::set<ghobject_t> data;
  std::set<ghobject_t> metadata;
};

}  // namespace tablestore
