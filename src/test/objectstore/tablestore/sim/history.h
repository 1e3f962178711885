// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Random histories: made from a seed, run, and made smaller when they fail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "test/objectstore/tablestore/sim/machine.h"

namespace tablestore_sim {

/// One thing that happens. Everything random in it comes from `seed`, so that a history stays what
/// it is when other steps are taken out.
struct Step {
  enum class Kind : uint8_t {
    transaction,   ///< one to five ops, queued
    across,        ///< the same, through the handle of another collection
    collections,   ///< one that makes, removes, splits or merges some
    commit,        ///< one round of the lane
    read,          ///< what is queued is read
    drain,         ///< until all is applied, then compared with fsck and statfs
    flush_commit,  ///< a callback after all that was queued
    tick,          ///< what the store does once a second
    drop_caches,
    checkpoint,
    requested,     ///< the checkpoint that the filling log asks for
    prepare,       ///< some steps of background work each
    shrink,
    compact,
    bulk,          ///< a transaction of many rows, so that the log fills
    fill_disk,     ///< others take what space there is, or give it back
    faults,        ///< from now to the next crash the disk fails now and then
    rot,           ///< bits flip, at rest
    crash,         ///< within the next I/Os, and again while recovering
    close,         ///< umount and mount
    fsck,          ///< umount, fsck, mount
    repair,        ///< what belongs to nothing is put there and repaired
    stumble,       ///< transactions while many reads fail: taken back, in their middle
  };
  Kind kind;
  uint64_t seed;
};
inline constexpr unsigned step_kinds = 23;
std::string to_string(const Step& step);
std::optional<Step> parse_step(const std::string& text);

struct HistoryOptions {
  unsigned steps = 100;
  bool wrapped = false;   ///< begins in the log's second lap
  // What may happen beyond crashes.
  bool errors = true;     ///< reads, writes and flushes that fail
  bool full = true;       ///< a full file system
  bool damage = false;    ///< lost and misdirected writes, rotten bits
  bool trace = false;     ///< tells what happens, on standard output
};

struct HistoryResult {
  uint64_t crashes = 0;       ///< and recoveries from them
  uint64_t in_recovery = 0;   ///< of these, while recovering
  uint64_t ios = 0;
  uint64_t trace_hash = 0;    ///< of all I/Os and their order
  uint64_t died = 0;          ///< of a failing disk
  uint64_t refused = 0;       ///< a damaged store that says so
  uint64_t damaged_reads = 0;
  uint64_t transactions = 0;
  uint64_t taken_back = 0;    ///< transactions that the store refused
  uint64_t checks = 0;        ///< fsck, deep, and statfs
  uint64_t repairs = 0;
  uint64_t checkpoints = 0;
  uint64_t no_spaces = 0;     ///< I/Os that met a full disk
  std::string failure;
};

std::vector<Step> make_history(uint64_t seed, const HistoryOptions& options);
HistoryResult run_history(const std::vector<Step>& steps, const HistoryOptions& options);
/// Steps that still fail, and none of which can be left out.
std::vector<Step> minimise(std::vector<Step> steps, const HistoryOptions& options);

}  // namespace tablestore_sim
