// Rows that were erased take their space until the table is flushed and compacted. While writes go
// on, that comes by itself; a store that is full gets none, and others may get none for days.
#pragma once

#include <cstdint>
#include <functional>

#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/table/table.h"

namespace tablestore {

// One thread.
class Erasures {
 public:
  // `checkpoint` is asked for one, soon; a compaction follows where that flushes many erasures.
  Erasures(Table& table, const Counters& counters, std::function<bool()> space_is_scarce,
           std::function<void()> checkpoint)
      : table_(table),
        counters_(counters),
        space_is_scarce_(std::move(space_is_scarce)),
        checkpoint_(std::move(checkpoint)) {}

  // About once a second. Nothing is asked for as long as there are more each time: a few flushes of
  // many give more back than many of few. Where space is not scarce, not until there have been no
  // more for a minute.
  void look();

 private:
  Table& table_;
  const Counters& counters_;
  const std::function<bool()> space_is_scarce_;
  const std::function<void()> checkpoint_;
  uint64_t seen_ = 0;
  unsigned quiet_looks_ = 0;
  uint64_t flushed_ranges_ = 0;
};

}  // namespace tablestore
