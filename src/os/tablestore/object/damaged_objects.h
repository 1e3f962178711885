// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <set>

#include "common/ceph_mutex.h"
#include "common/hobject.h"
#include "include/stringify.h"
#include "os/tablestore/engine/troubles.h"

namespace tablestore {

/// The objects that were found to be lost since the mount, for as long as they are: what the
/// operator is told of them. Of a store that falls apart it keeps some names, and says that there
/// are more until the next mount. Thread-safe.
class DamagedObjects {
 public:
  explicit DamagedObjects(Troubles& troubles) : troubles(troubles) {}

  void add(const ghobject_t& oid)
  {
    std::lock_guard l{mutex};
    any = true;
    if (objects.contains(oid) || (objects.size() == most && more))
      return;
    if (objects.size() < most)
      objects.insert(oid);
    else
      more = true;
    tell();
  }
  /// It was removed, or made anew, or could be read.
  void forget(const ghobject_t& oid)
  {
    if (!any)
      return;
    std::lock_guard l{mutex};
    if (objects.erase(oid) > 0)
      tell();
  }

 private:
  static constexpr size_t most = 1000;
  static constexpr const char* name = "OBJECTS_DAMAGED";

  void tell()
  {
    if (objects.empty() && !more) {
      troubles.clear(name);
      return;
    }
    const std::string how_many = (!more                    ? ""
                                  : objects.size() == most ? "more than "
                                                           : "at least ") +
                                 stringify(objects.size());
    const std::string one = objects.empty() ? "" : ", one of them " + stringify(*objects.begin());
    troubles.raise(name, how_many + " objects have rows that cannot be read" + one +
                             ": they give EIO. Run 'ceph pg deep-scrub' on their placement groups" +
                             (more ? ", which are too many to name" : "") +
                             ", then 'ceph pg repair', which brings them back from other OSDs; "
                             "look at the disk" +
                             (more ? ". They are counted anew when this OSD starts" : ""));
  }

  Troubles& troubles;
  std::atomic<bool> any{false};
  ceph::mutex mutex = ceph::make_mutex("TableStore::DamagedObjects::mutex");
  std::set<ghobject_t> objects;   ///< under mutex, as the next
  bool more = false;              ///< than these were found
};

}  // namespace tablestore
