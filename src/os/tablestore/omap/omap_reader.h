// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <functional>
#include <map>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "os/tablestore/object/objects.h"

namespace tablestore {

/// Reads the omap of objects: from the table, which shows what was applied.
///
/// While its collection's lock is held, nothing new is queued for an object, so once the last
/// change of its omap is applied, the table is what its omap is. An iterator keeps seeing that
/// after the lock is released: a visitor may call the store again, and no writer waits for a long
/// iteration. Thread-safe.
class OmapReader {
 public:
  OmapReader(CephContext* cct, Engine& engine, Objects& objects,
             ceph::common::PerfCounters& logger);

  // As ObjectStore's functions omap_*.
  int get(Collection& c, const ghobject_t& oid, ceph::buffer::list* header,
          std::map<std::string, ceph::buffer::list>* out);
  int get_header(Collection& c, const ghobject_t& oid, ceph::buffer::list* header);
  int get_keys(Collection& c, const ghobject_t& oid, std::set<std::string>* keys);
  int get_values(Collection& c, const ghobject_t& oid, const std::set<std::string>& keys,
                 std::map<std::string, ceph::buffer::list>* out);
  int check_keys(Collection& c, const ghobject_t& oid, const std::set<std::string>& keys,
                 std::set<std::string>* out);
  int iterate(Collection& c, const ghobject_t& oid, const ObjectStore::omap_iter_seek_t& from,
              const std::function<ObjectStore::omap_iter_ret_t(std::string_view,
                                                               std::string_view)>& visitor);

 private:
  /// The rows of one object's omap. They do not change while `lock` is held.
  struct View {
    const ghobject_t& oid;
    std::shared_lock<ceph::shared_mutex> lock;   ///< the collection's
    bool has_omap = false;
    std::string prefix;
  };
  /// What was queued for them is in the table.
  int open(Collection& c, View* view);
  /// Calls the visitor for each row of [first, last), in order, without the lock, until it returns
  /// false. 1 where it did, else 0 or -EIO.
  int visit(View& view, const std::pair<std::string, std::string>& range,
            const std::function<bool(std::string_view row_key, std::string_view value)>& visitor);
  int failed(const View& view, const Status& status);

  CephContext* const cct;
  Engine& engine;
  Objects& objects;
  ceph::common::PerfCounters& logger;
};

}  // namespace tablestore
