// Random histories: made from a seed, run, and made smaller when they fail.
//
// What can happen in a history, and to what, is the simulator's: it defines Step::Kind, and
// gives a Histories.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "test/tablestore/sim/frame/snapshot.h"

namespace tablestore::sim {

// One thing that happens. Everything random in it comes from `seed`, so that a history stays what
// it is when other steps are taken out.
struct Step {
  enum class Kind : uint8_t;  // defined once in each program
  Kind kind;
  uint64_t seed;
};

struct HistoryOptions {
  unsigned steps = 120;
  // Where it begins, by its seed.
  bool wrapped = false;      // in the log's second lap
  bool provisioned = false;  // or with half of its containers made and written
  bool remapped = false;     // on a file system that writes nothing in place
  // Never by its seed alone:
  bool in_turn = false;      // who waits is helped by all in turn
  bool nearly_full = false;  // others fill the disk up, again and again, or make some room
  // What may happen beyond crashes.
  bool errors = true;   // reads, writes and flushes that fail
  bool full = true;     // a full file system
  bool damage = false;  // lost and misdirected writes, rotten bits
  bool trace = false;   // tells what happens, on standard output
};

// A simulator counts what its report tells; the rest stays zero.
struct HistoryResult {
  uint64_t crashes = 0;  // and recoveries from them
  std::array<uint64_t, moments> crashes_while = {};
  uint64_t ios = 0;         // that change the disk
  uint64_t trace_hash = 0;  // of all I/Os and their order
  uint64_t transactions = 0;
  uint64_t taken_back = 0;  // transactions that the store refused
  uint64_t checks = 0;      // fsck, deep, and statfs
  uint64_t repairs = 0;
  uint64_t died = 0;        // of a failing disk
  uint64_t refused = 0;     // a damaged store that says so
  uint64_t damaged_reads = 0;
  uint64_t late_writes = 0;
  uint64_t short_reads = 0;
  uint64_t no_spaces = 0;   // I/Os that met a full disk
  uint64_t full_logs = 0;   // waits for space in the log
  uint64_t passed_ranges = 0;  // compacted because readers passed erased rows there
  uint64_t checkpoints = 0;
  uint64_t prepared = 0;    // bytes
  uint64_t punched = 0;     // bytes
  uint64_t created = 0;     // containers
  uint64_t removed = 0;
  uint64_t moved = 0;       // bytes, to empty containers
  uint64_t reclassed = 0;
  std::string failure;

  // All but the trace and the failure.
  HistoryResult& operator+=(const HistoryResult& other);
  void count_crash(const Snapshot& at);
  uint64_t in_recovery() const { return crashes_while[unsigned(Moment::recovering)]; }
};

// One history on its way. Single-threaded. All throw Failure, Died and Unreadable.
class HistoryRun {
 public:
  virtual ~HistoryRun() = default;
  virtual void step(const Step& step) = 0;
  // The last crash, so that every history ends with a recovery.
  virtual void finish() = 0;
  bool over() const { return over_; }  // the store was lost, as it may be
  bool lied() const { return lied_; }  // the disk did not keep its promises
  HistoryResult& result() { return result_; }

 protected:
  HistoryResult result_;
  bool over_ = false;
  bool lied_ = false;
};

// The histories of one simulator.
struct Histories {
  const char* subject;  // in what a failure says: "the engine"
  std::span<const char* const> names;  // of steps, by kind
  // How often each kind of step comes in the history of a seed.
  std::span<const unsigned> (*weights)(uint64_t seed);
  // What the history of a seed begins with.
  void (*choose_base)(uint64_t seed, HistoryOptions* options);
  std::unique_ptr<HistoryRun> (*begin)(const HistoryOptions& options);

  std::vector<Step> make(uint64_t seed, unsigned steps) const;
  HistoryResult run(const std::vector<Step>& steps, const HistoryOptions& options) const;
  // Steps that still fail, and none of which can be left out; or, after so long, as few as had been
  // found.
  std::vector<Step> minimise(std::vector<Step> steps, const HistoryOptions& options,
                             std::chrono::seconds limit) const;
  // Steps as text, "kind:seed" with commas between them, and read again. None: there is no such
  // step as that in `wrong`.
  std::string print(const std::vector<Step>& steps) const;
  std::optional<std::vector<Step>> parse(const std::string& text, std::string* wrong) const;
};

}  // namespace tablestore::sim
