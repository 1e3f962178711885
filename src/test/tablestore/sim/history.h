// Random histories: made from a seed, run, and made smaller when they fail.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "test/tablestore/sim/machine.h"

namespace tablestore::sim {

// One thing that happens. Everything random in it comes from `seed`, so that a history stays what
// it is when other steps are taken out.
struct Step {
  enum class Kind : uint8_t {
    transaction,  // one to four ops, queued
    abandon,      // made, and not queued
    commit,       // one round of the lane
    drain,        // until all is applied, then compared
    checkpoint,
    prepare,      // some steps of background work each
    shrink,
    compact,
    fill_disk,    // others take what space there is, or give it back
    faults,       // from now to the next crash the disk fails now and then
    rot,          // a bit of a container's block flips, at rest
    crash,        // within the next I/Os, and again while recovering
    close,        // in order, and opened again
    bulk,         // a transaction of many rows, so that the log fills
    requested,    // the checkpoint that the filling log asks for
    huge,         // an object of more than a container is written or removed
    read,         // some of what is queued, while the disk may fail
  };
  Kind kind;
  uint64_t seed;
};
inline constexpr unsigned step_kinds = 17;
std::string to_string(const Step& step);
std::optional<Step> parse_step(const std::string& text);

struct HistoryOptions {
  unsigned steps = 120;
  bool wrapped = false;  // begins in the log's second lap
  bool provisioned = false;  // or with half of its containers made and written
  // What may happen beyond crashes.
  bool errors = true;  // reads, writes and flushes that fail
  bool full = true;    // a full file system
  bool trace = false;  // tells what happens, on standard output
  bool damage = false; // lost and misdirected writes, rotten bits
};

struct HistoryResult {
  uint64_t crashes = 0;        // and recoveries from them
  std::array<uint64_t, moments> crashes_while = {};
  uint64_t ios = 0;            // that change the disk
  uint64_t transactions = 0;
  uint64_t died = 0;           // of a failing disk
  uint64_t refused = 0;        // a damaged store that says so
  uint64_t damaged_reads = 0;
  uint64_t late_writes = 0;
  uint64_t short_reads = 0;
  uint64_t no_spaces = 0;      // I/Os that met a full disk
  uint64_t full_logs = 0;      // waits for space in the log
  uint64_t checkpoints = 0;
  uint64_t prepared = 0;       // bytes
  uint64_t punched = 0;        // bytes
  uint64_t created = 0;        // containers
  uint64_t removed = 0;
  uint64_t reclassed = 0;
  std::string failure;

  // All but the failure.
  HistoryResult& operator+=(const HistoryResult& other);
  uint64_t in_recovery() const { return crashes_while[unsigned(Moment::recovering)]; }
};

// What a history begins with, by its seed.
void choose_base(uint64_t seed, HistoryOptions* options);
std::vector<Step> make_history(uint64_t seed, const HistoryOptions& options);
HistoryResult run_history(const std::vector<Step>& steps, const HistoryOptions& options);
// Steps that still fail, and none of which can be left out.
std::vector<Step> minimise(std::vector<Step> steps, const HistoryOptions& options);

}  // namespace tablestore::sim
