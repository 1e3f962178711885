// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// What was found of one of the store's own rows that is kept twice: in Family::super, and as a
/// copy in Family::object, so never in one file of the table. These are the rows that no others can
/// replace, or only all others together: collections, the bound of object numbers, what describes
/// the store, names that a repair has given up.
struct CopiedRow {
  std::optional<std::string> value;   ///< none: there is no such row, or it is lost
  bool is_lost = false;               ///< neither can be read
  std::string damage;                 ///< in words; empty: all is as it should be

  /// Whether a row may hold this.
  using IsSound = std::function<bool(std::string_view value)>;
  /// `has_copies`: of the store (StoreMeta); where it has none, they are not looked at. An error
  /// says nothing about the row (EMFILE, ENOMEM).
  static Result<CopiedRow> load(Engine& engine, std::string_view key, bool has_copies,
                                const IsSound& is_sound);

  /// Adds the keys of [first, last) that rows or copies have. False: neither all rows can be read
  /// nor all copies, so that there may be more.
  static Result<bool> list(Engine& engine, const std::pair<std::string, std::string>& range,
                           bool has_copies, std::set<std::string>* keys);

  /// The row, and its copy.
  static void put(Txn& txn, std::string_view key, std::string_view value);
  static void erase(Txn& txn, std::string_view key);
};

}  // namespace tablestore
