#include "os/tablestore/engine/space/erasures.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tablestore {

namespace {

// Fewer are not worth a checkpoint: each write of an OSD erases some.
constexpr uint64_t many_rows = 4096;
// Of look(), from one to the next where space is scarce.
constexpr unsigned looks_where_scarce = 10;
// After a checkpoint for readers: each makes a small file of the table, and compactions of these
// write what is below them anew.
constexpr unsigned rest_looks = 100;

}  // namespace

void Erasures::look() {
  look_at_what_readers_passed();
  if (++looks_ % looks_where_scarce == 0) look_where_space_is_scarce();
}

// What is in memory has to be in a file first. Where the next look comes before it is, readers tell
// once more.
void Erasures::look_at_what_readers_passed() {
  std::ranges::move(table_.take_passed(), std::back_inserter(passed_));
  if (rest_looks_ > 0) --rest_looks_;
  if (passed_.empty()) return;
  if (rest_looks_ == 0 && table_.erasures_in_memory() >= compact_on_passing_) {
    rest_looks_ = rest_looks;
    checkpoint_();
    return;
  }
  counters_.passed_ranges += passed_.size();
  for (const PassedRange& range : std::exchange(passed_, {})) table_.compact_soon(range);
}

void Erasures::look_where_space_is_scarce() {
  const uint64_t ranges = counters_.range_deletions;
  const uint64_t rows = table_.erasures_in_memory();
  const bool grows = rows + ranges != std::exchange(seen_, rows + ranges);
  const bool are_many = rows >= many_rows || ranges > flushed_ranges_;
  if (!are_many || grows || !space_is_scarce_()) return;
  flushed_ranges_ = ranges;
  checkpoint_();
}

}  // namespace tablestore
