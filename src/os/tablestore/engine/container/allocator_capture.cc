// What a checkpoint takes of the allocator.
#include <algorithm>
#include <utility>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {

void Allocator::note_changed(ContainerState& container, const Run& run) {
  container.note_changed(run.block, run.blocks);
  changed_.insert(container.id());
}

void Allocator::begin_capture() {
  std::lock_guard lock(mutex_);
  ++captures_;
  next_captured_ = {0, 0};
}

std::vector<Allocator::OwnedChunk> Allocator::take_changed(size_t max) {
  std::vector<OwnedChunk> taken;
  std::lock_guard lock(mutex_);
  auto it = changed_.lower_bound(next_captured_.container);
  while (taken.size() < max && it != changed_.end()) {
    const uint32_t id = *it;
    const uint32_t from = id == next_captured_.container ? next_captured_.chunk : 0;
    const auto here = containers_.find(id);
    BlockBitmap& changed =
        here != containers_.end() ? here->second->changed() : gone_.at(id).changed;
    const uint32_t chunk = changed.next_set(from);
    if (chunk == changed.blocks()) {
      ++it;
      continue;
    }
    // Nothing is owned in what is gone.
    taken.push_back({id, chunk, here != containers_.end()
                                    ? here->second->owned().chunk(chunk)
                                    : BlockBitmap(gone_.at(id).blocks).chunk(chunk)});
    changed.clear(chunk, 1);
    next_captured_ = {id, chunk + 1};
    if (changed.next_set(0) == changed.blocks()) it = changed_.erase(it);
  }
  return taken;
}

void Allocator::put_back_changed(const std::vector<OwnedChunk>& chunks) {
  std::lock_guard lock(mutex_);
  for (const OwnedChunk& taken : chunks) {
    const auto here = containers_.find(taken.container);
    BlockBitmap& changed = here != containers_.end() ? here->second->changed()
                                                     : gone_.at(taken.container).changed;
    changed.set(taken.chunk, 1);
    changed_.insert(taken.container);
  }
}

void Allocator::mark_all_changed() {
  std::lock_guard lock(mutex_);
  for (const auto& [id, container] : containers_)
    note_changed(*container, {id, 0, container->blocks()});
}

std::vector<Allocator::GoneRows> Allocator::take_gone(size_t max) {
  std::vector<GoneRows> rows;
  size_t count = 0;
  std::lock_guard lock(mutex_);
  for (auto it = gone_.begin(); it != gone_.end() && count < max;) {
    if (it->second.captures >= captures_) {
      ++it;
      continue;
    }
    rows.push_back({it->first, BlockBitmap(it->second.blocks).chunks()});
    count += 1 + rows.back().chunks;
    it = gone_.erase(it);
  }
  return rows;
}

}  // namespace tablestore
