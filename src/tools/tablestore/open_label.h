// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <memory>

#include "os/tablestore/engine/format/label.h"
#include "os/tablestore/engine/format/log_group.h"
#include "os/tablestore/home/store_dir.h"
#include "tools/tablestore/verbs.h"

namespace tablestore_tool {

/// The label of a store, as it is on the disk. Throws Failure.
tablestore::Label read_label_of(const std::string& path, bool* is_damaged = nullptr);

std::string as_text(const tablestore::StoreUuid& uuid);

/// Throws Failure where it is an error.
void require_ok(const tablestore::Status& s);

/// A store that nobody else can open while this lives, for changes of its label and its directory.
class LockedStore {
 public:
  explicit LockedStore(const Call& call);
  tablestore::Disk& disk() { return *opened; }

 private:
  tablestore::StoreDir lock;
  std::unique_ptr<tablestore::Disk> opened;
};

/// The option tablestore_capacity, where ceph.conf does not have it.
inline constexpr const char* capacity_key = "capacity";

}  // namespace tablestore_tool
