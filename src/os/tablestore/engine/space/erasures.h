// Rows that were erased take their space, and readers' time, until the table is flushed and
// compacted. While writes go on, that comes by itself; a store that is full gets none, and readers
// do not wait for it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/table/table.h"

namespace tablestore {

// One thread.
class Erasures {
 public:
  // `checkpoint` is asked for one, soon; a compaction follows where that flushes many erasures.
  // `compact_on_passing`: as EngineOptions has it.
  Erasures(Table& table, Counters& counters, uint64_t compact_on_passing,
           std::function<bool()> space_is_scarce, std::function<void()> checkpoint)
      : table_(table),
        counters_(counters),
        compact_on_passing_(compact_on_passing),
        space_is_scarce_(std::move(space_is_scarce)),
        checkpoint_(std::move(checkpoint)) {}

  // About ten times a second.
  void look();

 private:
  // Nothing is asked for as long as there are more each time: a few flushes of many give more back
  // than many of few.
  void look_where_space_is_scarce();
  void look_at_what_readers_passed();

  Table& table_;
  Counters& counters_;
  const uint64_t compact_on_passing_;
  const std::function<bool()> space_is_scarce_;
  const std::function<void()> checkpoint_;
  uint64_t seen_ = 0;
  uint64_t flushed_ranges_ = 0;
  unsigned looks_ = 0;
  std::vector<PassedRange> passed_;  // not compacted yet
  unsigned rest_looks_ = 0;          // until a checkpoint may be asked for because of them
};

}  // namespace tablestore
