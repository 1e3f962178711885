// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "include/buffer.h"
#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// What the row 'M' "store" says of the store as a whole.
struct StoreMeta {
  static constexpr uint32_t current_version = 2;
  /// From this version on, rows of CopiedRow have copies.
  static constexpr uint32_t version_with_copies = 2;

  uint32_t version = current_version;
  /// No object's inline data is larger: the largest tablestore_inline_max that it was ever mounted
  /// with.
  uint64_t inline_bound = 0;

  void encode(ceph::buffer::list& bl) const;
  void decode(ceph::buffer::list::const_iterator& p);

  struct Loaded;
  /// ENOTSUP: a newer version.
  static Result<Loaded> load(Engine& engine);
  void put(Txn& txn) const;
  bool operator==(const StoreMeta&) const = default;
};

struct StoreMeta::Loaded {
  std::optional<StoreMeta> meta;   ///< none: there is no row yet, as in a new store, or it is lost
  std::string damage;              ///< as CopiedRow's
  bool has_copies = false;         ///< of its rows
};

}  // namespace tablestore
