// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <string>

#include "include/common_fwd.h"
#include "include/uuid.h"

namespace tablestore {

/// The OSD's data directory as others see it: its `fsid` file, which names the store and whose lock
/// says that somebody has it open.
///
/// The lock belongs to the open file, not to the process (F_OFD_SETLK): two instances in one
/// process exclude each other as two processes do. Not thread-safe.
class StoreDir {
 public:
  StoreDir(CephContext* cct, std::string path) : cct(cct), path(std::move(path)) {}
  ~StoreDir() { close(); }
  StoreDir(const StoreDir&) = delete;
  StoreDir& operator=(const StoreDir&) = delete;

  enum class Open {
    create,   ///< the fsid file is made where it is not there
    use,
    reading,  ///< with a lock that others who read can have, too
  };
  /// Opens and locks the fsid file. -ENOENT, -EBUSY.
  int open(Open how);
  void close();

  /// -ENOENT where it is empty: an mkfs that was interrupted. -EINVAL where it is no uuid.
  int read_fsid(uuid_d* fsid) const;
  int write_fsid(const uuid_d& fsid);
  int clear_fsid();

  /// Somebody has the store open, so that open() would give -EBUSY.
  static bool in_use(const std::string& path, Open how = Open::use);

 private:
  int lock(bool for_reading, bool complain);
  int write(const std::string& text);

  CephContext* const cct;
  const std::string path;
  int fd = -1;
};

}  // namespace tablestore
