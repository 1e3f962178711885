// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <map>
#include <shared_mutex>
#include <string>
#include <sys/stat.h>

#include "common/Formatter.h"
#include "include/common_fwd.h"
#include "include/interval_set.h"
#include "os/tablestore/collection/collection.h"
#include "os/tablestore/collection/lost_names.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/home/options.h"
#include "os/tablestore/object/damaged_objects.h"
#include "os/tablestore/object/erased_rows.h"
#include "os/tablestore/object/error_injection.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/object/onode_cache.h"

namespace tablestore {

class SlowOps;

/// An object that is being read: its collection is locked, shared, as long as this lives.
struct ObjectInUse {
  Collection& c;
  std::shared_lock<ceph::shared_mutex> lock;
  OnodeRef o;
  int r = 0;   ///< of Objects::find()
};

/// Objects by their names: finds them, loads them where they are not in memory, and reads all of
/// them but their omap. Thread-safe; the functions that read an object lock its collection.
class Objects {
 public:
  struct Parts {
    CephContext* cct;
    Engine& engine;
    OnodeCache& onodes;
    ObjectData& data;
    const ErrorInjection& injected;
    DamagedObjects& damaged;
    ErasedRows& erased;
    const LostNames& lost_names;
    const StoreOptions& options;
    ceph::common::PerfCounters& logger;
    SlowOps& slow_ops;
  };
  explicit Objects(const Parts& parts) : parts(parts), cct(parts.cct) {}

  /// The onode of `oid`, to change it: loaded where it is not in memory. It may not exist, and it
  /// may be lost. An error where its row cannot be read, and that is no damage (-EMFILE, -ENOMEM;
  /// -EOPNOTSUPP where a newer version has written it).
  /// The caller holds the collection's lock, unique.
  int load(const Collection& c, const ghobject_t& oid, OnodeRef* out);
  /// The same, to read an object that must exist in the collection: else -ENOENT; -EIO where it is
  /// lost, or its row cannot be read. The caller holds the collection's lock.
  int find(const Collection& c, const ghobject_t& oid, OnodeRef* out);
  ObjectInUse use(Collection& c, const ghobject_t& oid);

  // As the functions of ObjectStore with these names.
  bool exists(Collection& c, const ghobject_t& oid);
  int stat(Collection& c, const ghobject_t& oid, struct stat* st);
  int read(Collection& c, const ghobject_t& oid, uint64_t offset, size_t len,
           ceph::buffer::list& bl, uint32_t op_flags);
  int readv(Collection& c, const ghobject_t& oid, interval_set<uint64_t>& m,
            ceph::buffer::list& bl, uint32_t op_flags);
  int fiemap(Collection& c, const ghobject_t& oid, uint64_t offset, size_t len,
             std::map<uint64_t, uint64_t>& out);
  int get_attr(Collection& c, const ghobject_t& oid, const char* name, ceph::buffer::ptr& value);
  int get_attrs(Collection& c, const ghobject_t& oid,
                std::map<std::string, ceph::buffer::ptr, std::less<>>& out);
  int dump(Collection& c, const ghobject_t& oid, const std::string& section, ceph::Formatter* f);

 private:
  /// As its row says: lost where that is damaged, or may have been given up by a repair.
  int from_row(const Collection& c, const ghobject_t& oid, OnodeRef* out);
  int read_part(const ObjectInUse& object, uint64_t offset, uint64_t length,
                ceph::buffer::list& bl, uint32_t op_flags);
  void note_read(ceph::timespan took, const ghobject_t& oid);
  /// -EIO where a metadata error was injected.
  int injected_error(const ObjectInUse& object) const;

  const Parts parts;
  CephContext* const cct;
};

}  // namespace tablestore
