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
  /// `how`: Open::create also where the fsid file is missing, which makes an empty one.
  LockedStore(const Call& call, tablestore::StoreDir::Open how);
  tablestore::Disk& disk() { return *opened; }
  /// From here on the directory holds what an mkfs was interrupted in.
  void disown();

 private:
  tablestore::StoreDir lock;
  std::unique_ptr<tablestore::Disk> opened;
  std::unique_ptr<tablestore::File> log;   ///< whose lock an OSD has, with or without an fsid file
};

/// The option tablestore_capacity, where ceph.conf does not have it.
inline constexpr const char* capacity_key = "capacity";

}  // namespace tablestore_tool
