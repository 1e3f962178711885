// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The metadata that an OSD writes with every operation, as its own encoders make it.
#pragma once

#include <cstdint>
#include <string>

#include "include/buffer.h"
#include "osd/osd_types.h"

namespace store_bench {

/// Encoded once, then copied with other bytes in it: an OSD's own encoding costs several
/// microseconds, which are not the store's. So many bytes as in an OSD's rows tell nothing of
/// those of the row before, for a store that compresses them. Immutable after construction; any
/// thread.
class OsdRows {
 public:
  OsdRows();

  /// The attribute "_" of an object.
  ceph::buffer::list object_info(uint64_t version) const { return stamped(info, version, 40); }
  /// The attribute "snapset", the same for all objects without snapshots.
  ceph::buffer::list snapset() const { return stamped(snaps, 0, 0); }
  /// Rows in the omap of a PG's own object.
  ceph::buffer::list log_entry(uint64_t version) const { return stamped(entry, version, 40); }
  ceph::buffer::list log_dup(uint64_t version) const { return stamped(dup, version, 16); }
  ceph::buffer::list fast_info(uint64_t version) const { return stamped(fast, version, 24); }
  /// The bytes of one operation's rows, without the data.
  uint64_t bytes_per_operation() const;

  static std::string log_key(uint64_t version);
  static std::string dup_key(uint64_t version);

 private:
  static ceph::buffer::list stamped(const std::string& encoded, uint64_t version,
                                    size_t other_bytes);

  std::string info, snaps, entry, dup, fast;
};

}  // namespace store_bench
