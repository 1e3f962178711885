// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "include/common_fwd.h"
#include "include/uuid.h"
#include "os/tablestore/home/device_info.h"
#include "os/tablestore/home/options.h"
#include "os/tablestore/home/store_dir.h"
#include "os/tablestore/home/surroundings.h"

namespace tablestore {

/// What there is of a store whether or not it is mounted.
class StoreHome {
 public:
  StoreHome(CephContext* cct, const std::string& path, std::shared_ptr<Surroundings> surroundings);
  ~StoreHome();
  StoreHome(const StoreHome&) = delete;
  StoreHome& operator=(const StoreHome&) = delete;

  /// Of the store of this name; without one, of whichever is there.
  EngineOptions engine_options(const std::optional<uuid_d>& fsid) const;
  /// mkfs's part of the engine. A name of zeros becomes that of the store, which may be there
  /// already: from an mkfs that was interrupted. 0 or an error, after a log line.
  int format(uuid_d* fsid) const;

  CephContext* const cct;
  const std::string path;
  const std::shared_ptr<Surroundings> surroundings;
  StoreOptions options;
  const DeviceInfo devices;
  StoreDir dir;
  ceph::common::PerfCounters& logger;

 private:
  Reporter make_reporter() const;
};

}  // namespace tablestore
