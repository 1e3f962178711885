// The program of a simulator: its arguments, seed after seed, a report, and what is said of a
// failure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "test/tablestore/sim/frame/exhaustive.h"
#include "test/tablestore/sim/frame/history.h"

namespace tablestore::sim {

// What a report tells.
struct Totals {
  uint64_t first_seed = 0;
  uint64_t histories = 0;
  double seconds = 0;
  HistoryResult sum;

  uint64_t last_seed() const { return first_seed + histories - 1; }
};

struct Arguments {
  uint64_t seed = 1;
  bool seed_given = false;
  uint64_t seeds = 0;
  double minutes = 0;
  bool soak = false;
  bool exhaustive = false;
  bool minimise = true;
  bool twice = false;
  std::string faults = "errors,full";
  std::string replay;
  HistoryOptions history;
  ExhaustiveOptions all;
};

struct Simulator {
  const char* program;  // its name
  const char* command;  // with which `replay` lines call it
  const char* usage;
  const Histories& histories;
  unsigned short_transactions;  // of the longest of all short histories, where none is said
  ExhaustiveResult (*run_exhaustive)(const ExhaustiveOptions& options, const ExhaustiveLog& log);
  void (*report)(const Totals& totals);
  // Arguments that only this one has, without and with a value.
  std::map<std::string, bool*> own_flags;
  std::map<std::string, std::string*> own_values = {};
};

// Over the defaults in `a`. Ends the process where they are wrong, or ask for help.
void parse(int argc, char** argv, const Simulator& simulator, Arguments* a);

// What they ask for. The exit code.
int run(const Simulator& simulator, Arguments a);

}  // namespace tablestore::sim
