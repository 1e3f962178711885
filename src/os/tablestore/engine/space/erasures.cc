#include "os/tablestore/engine/space/erasures.h"

#include <utility>

namespace tablestore {

namespace {

// Fewer are not worth a checkpoint: each write of an OSD erases some.
constexpr uint64_t many_rows = 4096;
constexpr unsigned quiet_looks_where_space_is_plenty = 60;

}  // namespace

void Erasures::look() {
  const uint64_t ranges = counters_.range_deletions;
  const uint64_t rows = table_.erasures_in_memory();
  const bool grows = rows + ranges != std::exchange(seen_, rows + ranges);
  const bool are_many = rows >= many_rows || ranges > flushed_ranges_;
  quiet_looks_ = are_many && !grows ? quiet_looks_ + 1 : 0;
  if (quiet_looks_ == 0) return;
  if (quiet_looks_ < quiet_looks_where_space_is_plenty && !space_is_scarce_()) return;
  quiet_looks_ = 0;
  flushed_ranges_ = ranges;
  checkpoint_();
}

}  // namespace tablestore
