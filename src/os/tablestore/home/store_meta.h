// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "include/buffer.h"
#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// What the row 'M' "store" says of the store as a whole.
struct StoreMeta {
  static constexpr uint32_t current_version = 1;

  uint32_t version = current_version;
  /// No object's inline data is larger: the largest tablestore_inline_max that it was ever mounted
  /// with.
  uint64_t inline_bound = 0;

  void encode(ceph::buffer::list& bl) const;
  void decode(ceph::buffer::list::const_iterator& p);

  /// As of a new store where there is no row yet. ENOTSUP: a newer version.
  static Result<StoreMeta> load(Engine& engine);
  /// Durable on return.
  void save(Engine& engine) const;
  bool operator==(const StoreMeta&) const = default;
};

}  // namespace tablestore
