#include "os/tablestore/engine/container/free_space.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

#include "os/tablestore/engine/container/allocator.h"

namespace tablestore {

namespace {

constexpr unsigned small_power = 20, huge_power = 27;   // 1 MiB, 128 MiB
constexpr double small_worth = 1.2, huge_worth = 1;     // of twice as much in one piece

// What each byte is worth in a piece of 2^power bytes.
std::array<double, 64> make_scales() {
  std::array<double, 64> scales{};
  scales[0] = 1;
  for (unsigned power = 1; power < scales.size(); ++power) {
    double worth = small_worth;
    if (power >= huge_power)
      worth = huge_worth;
    else if (power > small_power)
      worth = (huge_worth * (power - small_power) + small_worth * (huge_power - power)) /
              (huge_power - small_power);
    scales[power] = scales[power - 1] * worth;
  }
  return scales;
}

double worth_of(uint64_t bytes) {
  static const std::array<double, 64> scales = make_scales();
  if (bytes == 0) return 0;
  const unsigned power = std::bit_width(bytes) - 1;
  const double grade = double(uint64_t(1) << power);
  const double beyond = (double(bytes) - grade) / grade;
  return grade * scales[power] * (1 - beyond) + 2 * grade * scales[power + 1] * beyond;
}

}  // namespace

void FragmentationScore::add(uint64_t blocks) {
  blocks_ += blocks;
  worth_ += worth_of(blocks * block_bytes);
}

double FragmentationScore::score() const {
  const uint64_t whole = container_blocks_ ? blocks_ / container_blocks_ : 0;
  const uint64_t rest = blocks_ - whole * container_blocks_;
  const double ideal = double(whole) * worth_of(container_blocks_ * block_bytes) +
                       worth_of(rest * block_bytes);
  const double terrible = double(blocks_) * worth_of(block_bytes);
  if (ideal <= terrible) return 0;
  return std::clamp((ideal - worth_) / (ideal - terrible), 0.0, 1.0);   // sums are not exact
}

// One container at a time, so that nobody waits long for the mutex; their runs are looked at
// without it.
void Allocator::visit_free_runs(
    const std::function<void(unsigned slot_class, const Run& run)>& visitor) const {
  std::vector<Run> runs;
  for (uint64_t next = 0; next <= UINT32_MAX;) {
    unsigned slot_class;
    {
      std::lock_guard lock(mutex_);
      const auto it = containers_.lower_bound(uint32_t(next));
      if (it == containers_.end()) return;
      runs = it->second->free_runs();
      slot_class = it->second->slot_class();
      next = uint64_t(it->first) + 1;
    }
    for (const Run& run : runs) visitor(slot_class, run);
  }
}

FreeSpace Allocator::free_space() const {
  uint64_t container_blocks = 0;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, container] : containers_)
      container_blocks = std::max<uint64_t>(container_blocks, container->blocks());
  }
  FreeSpace space;
  FragmentationScore all(container_blocks);
  std::vector<FragmentationScore> by_class(slot_classes, FragmentationScore(container_blocks));
  visit_free_runs([&](unsigned slot_class, const Run& run) {
    FreeSpace::Class& c = space.classes[slot_class];
    FreeSpace::Bin& bin = c.bins[std::bit_width(run.blocks) - 1];
    ++bin.runs;
    bin.blocks += run.blocks;
    c.blocks += run.blocks;
    c.largest_blocks = std::max(c.largest_blocks, run.blocks);
    space.blocks += run.blocks;
    by_class[slot_class].add(run.blocks);
    all.add(run.blocks);
  });
  for (unsigned c = 0; c < slot_classes; ++c) space.classes[c].score = by_class[c].score();
  space.score = all.score();
  return space;
}

}  // namespace tablestore
