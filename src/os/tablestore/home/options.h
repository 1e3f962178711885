// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <set>
#include <string>

#include "common/config_obs.h"
#include "include/common_fwd.h"
#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// What an OSD may take in memory, as its options say: those that BlueStore follows too.
struct MemoryLimits {
  uint64_t target = 0;      ///< of the whole process
  uint64_t base = 0;        ///< of this, what no cache can have
  uint64_t cache_min = 0;
  double fragmentation = 0; ///< the part of the target that the allocator loses
  double resize_interval_seconds = 0;

  /// What all caches may have at most; `others` is what is known to be taken besides the base.
  uint64_t cache_max(uint64_t others = 0) const;
  bool operator==(const MemoryLimits&) const = default;
};

/// How caches share what they have in all, but for who has used his share of late. Rows first: a
/// miss there costs a read before the read of the data.
struct CacheShares {
  static constexpr double table = 0.4, onodes = 0.3, data = 0.3;
};

/// The store's options, read once and kept: get_val<>() looks names up, which is too slow for the
/// path of a transaction. Those that can change at run time are atomics and followed.
class StoreOptions : public md_config_obs_t {
 public:
  explicit StoreOptions(CephContext* cct);
  ~StoreOptions() override;

  /// What the engine is formatted and opened with.
  EngineOptions engine_options() const;

  /// Reads all of them anew: before mkfs and mount.
  void load();

  uint64_t capacity_bytes = 0;
  uint64_t inline_max_bytes = 0;
  std::atomic<uint64_t> throttle_bytes;
  std::atomic<uint64_t> throttle_ops;
  std::atomic<bool> blackhole;              ///< nothing gets durable any more (tests of the OSD)
  std::atomic<bool> throw_on_failed_txc;    ///< instead of an abort (tests of the store)
  std::atomic<double> read_error_probability;
  std::atomic<uint64_t> retry_disk_reads;            ///< of a read that fails
  std::atomic<bool> warn_on_spurious_read_errors;
  std::atomic<int64_t> log_op_age_ns;                ///< longer than this is slow
  std::atomic<bool> inject_read_errors;     ///< those that were injected are in force

  /// Of all caches together, where the operator has fixed it; else 0.
  uint64_t fixed_cache_bytes() const;
  MemoryLimits memory_limits() const;
  /// What they take before the first look at the target: little, while a log is replayed.
  uint64_t first_cache_bytes() const;
  /// What the store keeps for itself of a disk of this size.
  uint64_t reserve_bytes(uint64_t total_bytes) const;

  /// When the operator is warned. Looked up once a second.
  struct Warnings {
    uint64_t slow_ops_lifetime_seconds, slow_ops_threshold;
    uint64_t stalled_read_lifetime_seconds, stalled_read_threshold;
    double free_fragmentation, table_size;
    uint64_t fragmentation_check_seconds, checkpoint_late_seconds;
    bool log_full;
  };
  Warnings warnings() const;
  /// Whether a mount for use begins with a check, and with which.
  enum class CheckAtMount { none, quick, deep };
  CheckAtMount check_at_mount() const;

  std::vector<std::string> get_tracked_keys() const noexcept override;
  void handle_conf_change(const ConfigProxy& conf,
                          const std::set<std::string>& changed) override;

 private:
  void load_changeable();

  CephContext* const cct;
};

}  // namespace tablestore
