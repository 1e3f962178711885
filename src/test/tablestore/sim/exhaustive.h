// All short histories, crashed at every I/O in every dangerous way.
//
// A history is one to three transactions, each one op of the thirteen (transaction_builder.h), on a
// fresh store and on one in the log's second lap, each transaction in a group of its own or all in
// one. There is no split of a collection among the ops: the engine has rows and blocks, and no
// collections. That is for the simulator of the store above (src/test/objectstore/tablestore/sim).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tablestore::sim {

struct ExhaustiveOptions {
  unsigned transactions = 3;   // the longest history
  unsigned part = 0, parts = 1;  // every parts-th history only, from `part` on
  double minutes = 0;          // 0: until all is done
};

struct ExhaustiveResult {
  uint64_t histories = 0;
  uint64_t crash_points = 0;
  uint64_t cases = 0;       // crash points times fates
  uint64_t recoveries = 0;  // of which the disk was not the same as in another case
  double seconds = 0;
  bool complete = true;
  std::string failure;      // empty: none
};

ExhaustiveResult run_exhaustive(const ExhaustiveOptions& options,
                                const std::function<void(const std::string&)>& log);

}  // namespace tablestore::sim
