// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/ceph_mutex.h"
#include "include/common_fwd.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/troubles.h"

namespace tablestore {

/// Which names of objects nobody knows: their rows, or what had removed these, were in a part of
/// the table that a repair had to give up. An object with such a name that has no row may have
/// been there: it is neither given as gone, nor made anew by a change of a part of it. Remembered
/// in rows, until an operator says that the loss is settled (doc/dev/tablestore-format.rst, "Lost
/// names"). Names are keys of Family::object. Where these rows cannot be read, more counts as lost,
/// and less as known.
///
/// Thread-safe, but for load() and lose(). Where nothing is lost, asking costs the look at one
/// atomic.
class LostNames {
 public:
  LostNames(CephContext* cct, Engine& engine, Troubles& troubles)
    : cct(cct), engine(engine), troubles(troubles)
  {
  }

  /// At the mount. What is damaged of its rows is in `mended` then, and in damage(). ENOTSUP: they
  /// are of a newer version.
  Status load(bool has_copies, Txn* mended);
  /// In words.
  const std::vector<std::string>& damage() const { return damage_found; }
  /// While nobody else uses the store: what lies from `first` on and before `end` is lost, and what
  /// was known of it is so no longer. Durable on return.
  void lose(std::string first, std::string end);

  bool any() const { return present.load(std::memory_order_relaxed); }
  /// Of an object that has no row: whether there may have been one.
  bool hides(std::string_view key) const;
  /// Whether it hides some name from `first` on and before `end`.
  bool hides_some(std::string_view first, std::string_view end) const;

  /// `txn` sees to it that there is no object with this name.
  void know(Txn& txn, std::string_view key);
  /// The same of all from `first` on and before `end`. `txn` is a barrier.
  void know_all(Txn& txn, const std::string& first, const std::string& end);
  /// All is known: what had a name that was lost, and has no row, is gone. Durable on return.
  /// False: nothing gets on, as on a full file system, so that it may be settled in the next life.
  bool settle();

 private:
  static constexpr const char* trouble = "OBJECTS_LOST";

  Status load_ranges(bool has_copies, Txn* mended);
  Status load_known();
  bool hides_locked(std::string_view key) const;
  void put(Txn& txn, const std::string& first, const std::string& end);
  void forget_known(Txn& txn, const std::string& first, const std::string& end);
  void submit(std::shared_ptr<Txn> txn);
  void tell();

  CephContext* const cct;
  Engine& engine;
  Troubles& troubles;
  std::atomic<bool> present{false};
  mutable ceph::shared_mutex mutex = ceph::make_shared_mutex("TableStore::LostNames::mutex");
  std::map<std::string, std::string, std::less<>> ranges;   ///< ends by firsts; under mutex
  std::set<std::string, std::less<>> known;                 ///< of these; under mutex
  std::vector<std::string> damage_found;
};

}  // namespace tablestore
