// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "common/ceph_mutex.h"
#include "common/ceph_time.h"
#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// Stands before every transaction.
///
/// The OSD looks at statfs once a second and stops clients at its full ratios. What it sees as
/// available does not include the reserve; when only the reserve is left, this gate slows writers
/// down so that it lasts for at least `reserve_seconds`, many times what the OSD needs to react.
/// Rows count as data does: they come out of the same space. Removals are not slowed down.
/// Thread-safe.
class SpaceGate {
 public:
  /// `waits` = false: ENOSPC at once, and nobody is slowed down.
  SpaceGate(Engine& engine, uint64_t reserve_bytes, bool waits);

  struct Claim {
    uint64_t data_bytes;   ///< of containers
    uint64_t row_bytes;
    bool removes;
    bool removes_rows;     ///< is not refused for its rows, which may be those that it erases
    bool is_of_osd;        ///< it changes objects of the OSD's own, without which it cannot go on
  };
  /// Lets a transaction in: Engine::reserve() has promised the space of its data, after waiting
  /// where space is short. Who has waited for as long as `patience` gets of what the engine keeps
  /// for the last, as who is on the way when something else fills the file system, or when
  /// containers cannot grow; the OSD's own objects do at once. Where that is used up, too, it is
  /// ENOSPC on a full disk, also for many rows (`row_bytes_free` are never refused: the table's
  /// reserve is for them), and who cannot grow for another reason waits for as long as it takes.
  /// `*waited`: how long it slowed the caller down.
  Status admit(const Claim& claim, ceph::timespan* waited);

  uint64_t reserve_bytes() const { return reserve_max_bytes; }

  static constexpr uint64_t reserve_seconds = 20;
  static constexpr uint64_t row_bytes_free = 1 << 20;
  static constexpr auto patience = std::chrono::seconds(5);

 private:
  Status reserve(const Claim& claim);
  Status reserve_at_last(const Claim& claim);
  bool rows_fit(const Claim& claim, std::string* why);
  /// How long a writer of `bytes` has to wait.
  ceph::timespan delay(uint64_t bytes);
  /// As of at most a moment ago: asking the file system for each transaction is too much.
  uint64_t available_bytes();

  Engine& engine;
  const uint64_t reserve_max_bytes;
  const bool waits;
  ceph::mutex mutex = ceph::make_mutex("TableStore::SpaceGate::mutex");
  uint64_t available;
  ceph::mono_time available_at;
  ceph::mono_time next_write_at;   ///< when space is short
};

}  // namespace tablestore
