// What background work holds and gives back, and containers that change their class.
#include <algorithm>
#include <utility>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

// How many containers idle_container() looks at under the mutex.
constexpr size_t idle_candidates = 64;

}  // namespace

std::optional<Run> Allocator::begin_prepare(unsigned slot_class, uint64_t max_blocks) {
  std::lock_guard lock(mutex_);
  Class& index = classes_[slot_class];
  max_blocks = std::min({max_blocks, unreserved_blocks(), uint64_t(UINT32_MAX)});
  if (!max_blocks || index.with_unwritten.empty()) return std::nullopt;
  // Where the next slots will be taken from, first.
  const uint32_t id = index.with_unwritten.contains(index.cursor_container)
                          ? index.cursor_container
                          : *index.with_unwritten.begin();
  return hold_unwritten(id, max_blocks);
}

std::optional<Run> Allocator::begin_prepare_whole(uint64_t max_blocks) {
  std::lock_guard lock(mutex_);
  max_blocks = std::min({max_blocks, unreserved_blocks(), uint64_t(UINT32_MAX)});
  std::optional<std::pair<uint32_t, uint32_t>> best;
  for (const Class& index : classes_) {
    const auto it = index.all_free.lower_bound({1, 0});
    if (it != index.all_free.end() && (!best || *it < *best)) best = *it;
  }
  if (!max_blocks || !best) return std::nullopt;
  return hold_unwritten(best->second, max_blocks);
}

Run Allocator::hold_unwritten(uint32_t id, uint64_t max_blocks) {
  ContainerState& container = state(id);
  const Run run = container.find_unwritten_run(max_blocks);
  change(container, [&] { container.take(run.block, run.blocks); });
  return run;
}

bool Allocator::keeps_whole(const QuietRule& rule, const ContainerState& container) const {
  const uint64_t free = container.counts().free;
  return free == container.blocks() && usage_.whole_blocks() - free < rule.whole_blocks;
}

std::optional<Run> Allocator::begin_punch(const QuietRule& rule, uint32_t min_blocks,
                                             uint32_t max_blocks) {
  std::lock_guard lock(mutex_);
  auto it = containers_.lower_bound(punch_cursor_);
  const size_t budget = std::min(punch_candidates, containers_.size());
  for (size_t i = 0; i < budget; ++i, ++it) {
    if (it == containers_.end()) it = containers_.begin();
    ContainerState& container = *it->second;
    punch_cursor_ = container.id() + 1;
    const AllocatorUsage::Class& sums = usage_.classes[container.slot_class()];
    // What is kept whole is no spare of its class.
    const uint64_t class_free =
        sums.free_blocks - std::min(sums.whole_blocks, rule.whole_blocks);
    const uint64_t spare = rule.spare_blocks[container.slot_class()];
    if (age_ - container.last_taken_age < rule.min_age || class_free <= spare) continue;
    if (keeps_whole(rule, container)) continue;
    const uint64_t most = std::min({class_free - spare, unreserved_blocks(), uint64_t(max_blocks)});
    if (most < min_blocks || container.counts().free < min_blocks) continue;
    const Run run = container.find_free_run(min_blocks, most);
    if (!run.blocks) continue;
    change(container, [&] { container.take(run.block, run.blocks); });
    punch_cursor_ = container.id();
    return run;
  }
  return std::nullopt;
}

void Allocator::give_back_punched(const Run& run) {
  std::lock_guard lock(mutex_);
  ContainerState& container = state(run.container);
  change(container, [&] { container.give_back_punched(run.block, run.blocks); });
}

void Allocator::give_back_unwritten(const Run& run) {
  std::lock_guard lock(mutex_);
  ContainerState& container = state(run.container);
  change(container, [&] { container.give_back_unwritten(run.block, run.blocks); });
}

std::optional<Run> Allocator::begin_restore(std::optional<unsigned> slot_class,
                                               uint32_t max_blocks) {
  std::lock_guard lock(mutex_);
  if (!max_blocks) return std::nullopt;
  std::optional<uint32_t> id;  // the oldest
  for (unsigned c = 0; c < slot_classes; ++c) {
    const std::set<uint32_t>& candidates = classes_[c].with_punched;
    if (candidates.empty() || (slot_class && c != *slot_class)) continue;
    id = std::min(id.value_or(UINT32_MAX), *candidates.begin());
  }
  if (!id) return std::nullopt;
  ContainerState& container = state(*id);
  const Run run = container.find_punched_run(max_blocks);
  change(container, [&] { container.take_punched(run.block, run.blocks); });
  return run;
}

std::optional<uint32_t> Allocator::idle_container(const QuietRule& rule) {
  std::lock_guard lock(mutex_);
  // A call goes on where the last one has ended, but where that was the end.
  if (empty_.size() <= idle_candidates) idle_cursor_ = UINT32_MAX;
  for (size_t budget = std::min(idle_candidates, empty_.size()); budget > 0; --budget) {
    auto it = empty_.upper_bound(idle_cursor_);
    if (it == empty_.begin()) it = empty_.end();
    const ContainerState& container = state(*--it);
    idle_cursor_ = container.id() - 1;
    if (container.closed || age_ - container.last_taken_age < rule.min_age) continue;
    const uint64_t free = container.counts().free;
    if (free < rule.min_free_blocks) continue;
    const uint64_t class_free = usage_.classes[container.slot_class()].free_blocks;
    if (class_free - free < rule.spare_blocks[container.slot_class()]) continue;
    if (keeps_whole(rule, container)) continue;
    if (unreserved_blocks() < free) continue;
    return container.id();
  }
  return std::nullopt;
}

// All containers of a store are of one size, so the best one of each class stands for the others.
std::optional<uint32_t> Allocator::reclassable(unsigned slot_class, LastFree last) const {
  std::optional<std::pair<uint32_t, uint32_t>> best;
  for (unsigned c = 0; c < slot_classes; ++c) {
    const auto& candidates = classes_[c].all_free;
    const bool needs_its_last = usage_.classes[c].recent_slots > 0 && last == LastFree::keep;
    if (c == slot_class || candidates.size() <= (needs_its_last ? 1 : 0)) continue;
    const auto& first = *candidates.begin();
    if (unreserved_blocks() < state(first.second).blocks()) continue;
    if (!best || first.first < best->first) best = first;
  }
  if (!best) return std::nullopt;
  return best->second;
}

bool Allocator::can_reclass(unsigned slot_class, LastFree last) const {
  std::lock_guard lock(mutex_);
  return reclassable(slot_class, last).has_value();
}

std::optional<Allocator::Reclassed> Allocator::begin_reclass(unsigned slot_class,
                                                             LastFree last) {
  std::lock_guard lock(mutex_);
  const auto id = reclassable(slot_class, last);
  if (!id) return std::nullopt;
  ContainerState& container = state(*id);
  change(container, [&] { container.take(0, container.blocks()); });
  return Reclassed{*id, container.blocks()};
}

BlockBitmap Allocator::take_out(const Reclassed& old) {
  const auto it = containers_.find(old.container);
  require(it != containers_.end() && it->second->is_held(0, old.blocks),
          "a container that changes its class is held");
  require(it->second->counts().owned == 0, "and nothing in it is owned");
  BlockBitmap unwritten = it->second->unwritten();
  account_gone(*it->second);
  containers_.erase(it);
  return unwritten;
}

void Allocator::lose_reclassed(const Reclassed& old) {
  std::lock_guard lock(mutex_);
  take_out(old);
}

void Allocator::end_reclass(const Reclassed& old, uint32_t container, unsigned slot_class) {
  std::lock_guard lock(mutex_);
  BlockBitmap unwritten = take_out(old);
  const auto [added, is_new] = containers_.emplace(
      container, std::make_unique<ContainerState>(container, slot_class, std::move(unwritten),
                                                  BlockBitmap(0)));
  require(is_new && container < next_container_id_, "its number is a new one");
  added->second->last_taken_age = age_;
  account_new(*added->second);
}

void Allocator::advance_age() {
  std::lock_guard lock(mutex_);
  ++age_;
}

}  // namespace tablestore
