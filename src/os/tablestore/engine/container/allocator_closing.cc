// Containers from which nothing is handed out, so that they can be emptied.
#include <algorithm>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {

// Its blocks leave the sums and the indexes as what they were, and come back as what they are now.
void Allocator::set_closed(ContainerState& container, bool closed) {
  if (container.closed == closed) return;
  const ContainerState::Counts counts = container.counts();
  add_to_sums(container, counts, {});
  if (!container.closed) index(container, counts, {});
  container.closed = closed;
  add_to_sums(container, {}, counts);
  if (!closed) index(container, {}, counts);
  if (closed)
    closed_.insert(container.id());
  else
    closed_.erase(container.id());
}

namespace {

bool is_nearly_empty(const ContainerState& container, unsigned max_live_percent) {
  const uint64_t owned = container.counts().owned;
  return owned > 0 && owned * 100 <= uint64_t(max_live_percent) * container.blocks();
}

}  // namespace

uint64_t Allocator::count_nearly_empty(unsigned max_live_percent) const {
  std::lock_guard lock(mutex_);
  return std::ranges::count_if(containers_, [&](const auto& container) {
    return is_nearly_empty(*container.second, max_live_percent);
  });
}

void Allocator::close_containers(unsigned max_live_percent, uint64_t growable_blocks) {
  open_all();
  std::lock_guard lock(mutex_);
  std::vector<ContainerState*> candidates;
  for (const auto& [id, container] : containers_)
    if (is_nearly_empty(*container, max_live_percent)) candidates.push_back(container.get());
  std::ranges::stable_sort(candidates, {},
                           [](const ContainerState* c) { return c->counts().owned; });
  // So many of them that the most containers are gained: of more, what one gains another takes.
  size_t chosen = 0, gained = 0;
  uint64_t live = 0, free_elsewhere = unreserved_blocks();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const ContainerState& c = *candidates[i];
    live += c.counts().owned;
    free_elsewhere -= std::min<uint64_t>(free_elsewhere, c.counts().free);
    if (live > free_elsewhere + growable_blocks) break;
    const uint64_t grown = live - std::min(live, free_elsewhere);
    const uint64_t new_files = (grown + c.blocks() - 1) / c.blocks();
    if (i + 1 > new_files + gained) {
      chosen = i + 1;
      gained = chosen - new_files;
    }
  }
  for (size_t i = 0; i < chosen; ++i) set_closed(*candidates[i], true);
}

std::set<uint32_t> Allocator::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

uint64_t Allocator::closed_live_blocks() const {
  std::lock_guard lock(mutex_);
  uint64_t blocks = 0;
  for (uint32_t id : closed_) blocks += state(id).counts().owned;
  return blocks;
}

std::optional<uint32_t> Allocator::emptied() const {
  std::lock_guard lock(mutex_);
  const auto is_empty = [this](uint32_t id) { return empty_.contains(id); };
  const auto found = std::ranges::find_if(closed_, is_empty);
  if (found == closed_.end()) return std::nullopt;
  return *found;
}

void Allocator::open_container(uint32_t container) {
  std::lock_guard lock(mutex_);
  if (closed_.contains(container)) set_closed(state(container), false);
}

bool Allocator::open_all() {
  std::lock_guard lock(mutex_);
  const bool some = !closed_.empty();
  while (!closed_.empty()) set_closed(state(*closed_.begin()), false);
  return some;
}

bool Allocator::open_fullest() {
  ContainerState* fullest = nullptr;
  for (uint32_t id : closed_) {
    ContainerState& c = state(id);
    if (c.counts().free == 0) continue;
    if (!fullest || c.counts().owned > fullest->counts().owned) fullest = &c;
  }
  if (!fullest) return false;
  set_closed(*fullest, false);
  return true;
}

}  // namespace tablestore
