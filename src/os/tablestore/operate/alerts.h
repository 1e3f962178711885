// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <optional>

#include "common/ceph_time.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/home/options.h"

namespace tablestore {

class SlowOps;
class Troubles;

/// What alerts follow from; made once a second.
struct StoreState {
  EngineGauges gauges;
  uint64_t checkpoints = 0;
  uint64_t log_full_waits = 0;
  uint64_t total_bytes = 0;      ///< of the store
  double fragmentation = 0;      ///< as FreeSpace::score
};

/// Alerts that say how the store does: raised and cleared as it gets worse and better. One thread.
/// What is broken is raised by who finds it.
class Alerts {
 public:
  Alerts(Troubles& troubles, SlowOps& slow_ops) : troubles(troubles), slow_ops(slow_ops) {}

  /// How long after a commit has waited for a full log that is still said.
  static constexpr ceph::timespan log_full_lifetime = std::chrono::minutes(5);

  void look(const StoreState& state, const StoreOptions::Warnings& warnings, ceph::mono_time now);

 private:
  void look_at_slow_ops(const StoreOptions::Warnings& warnings, ceph::mono_time now);
  void look_at_log(const StoreState& state, const StoreOptions::Warnings& warnings,
                   ceph::mono_time now);
  void look_at_space(const StoreState& state, const StoreOptions::Warnings& warnings);
  void tell(const char* name, bool is_so, const std::string& line);

  Troubles& troubles;
  SlowOps& slow_ops;
  std::optional<StoreState> before;   ///< nullopt: there was no look so far
  std::optional<ceph::mono_time> waited_at;          ///< for space in the log
  std::optional<ceph::mono_time> checkpoint_wanted;  ///< since then, and none has come
};

}  // namespace tablestore
