#include "os/tablestore/engine/container/allocator.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

// How many containers of a class are looked at for a prepared slot, and how far in each: an
// unprepared slot costs one more flush, a long search costs every request.
constexpr unsigned prepared_candidates = 4;
constexpr unsigned containers_at_once = 64;  // looked at, while others wait
constexpr uint32_t prepared_reach_blocks = 8192;

}  // namespace

ContainerState& Allocator::state(uint32_t container) {
  auto it = containers_.find(container);
  require(it != containers_.end(), "an extent lies in a container that exists");
  return *it->second;
}

const ContainerState& Allocator::state(uint32_t container) const {
  auto it = containers_.find(container);
  require(it != containers_.end(), "an extent lies in a container that exists");
  return *it->second;
}

void Allocator::account(const ContainerState& container, const ContainerState::Counts& before,
                        const ContainerState::Counts& after) {
  add_to_sums(container, before, after);
  const auto is_empty = [&](const ContainerState::Counts& counts) {
    return counts.free + counts.punched == container.blocks();
  };
  if (is_empty(before) && !is_empty(after)) empty_.erase(container.id());
  if (is_empty(after)) empty_.insert(container.id());
  if (!container.closed) index(container, before, after);
}

void Allocator::add_to_sums(const ContainerState& container, const ContainerState::Counts& before,
                            const ContainerState::Counts& after) {
  AllocatorUsage::Class& sums = usage_.classes[container.slot_class()];
  sums.free_blocks += uint64_t(after.free) - before.free;
  if (container.closed)
    sums.closed_free_blocks += uint64_t(after.free) - before.free;
  else
    sums.unwritten_free_blocks += uint64_t(after.unwritten_free) - before.unwritten_free;
  sums.punched_blocks += uint64_t(after.punched) - before.punched;
  usage_.free_blocks += uint64_t(after.free) - before.free;
  usage_.punched_blocks += uint64_t(after.punched) - before.punched;
  usage_.owned_blocks += uint64_t(after.owned) - before.owned;
}

void Allocator::index(const ContainerState& container, const ContainerState::Counts& before,
                      const ContainerState::Counts& after) {
  Class& index = classes_[container.slot_class()];
  AllocatorUsage::Class& sums = usage_.classes[container.slot_class()];
  if (before.max_power != after.max_power) {
    if (before.max_power >= 0) index.by_max_power[before.max_power].erase(container.id());
    if (after.max_power >= 0) index.by_max_power[after.max_power].insert(container.id());
  }
  const auto note = [](auto& set, const auto& key, bool before, bool after) {
    if (before && !after) set.erase(key);
    if (after && !before) set.insert(key);
  };
  const uint32_t id = container.id();
  note(index.with_unwritten, id, before.unwritten_free > 0, after.unwritten_free > 0);
  note(index.with_punched, id, before.punched > 0, after.punched > 0);
  if (before.free == container.blocks()) {
    index.all_free.erase({before.unwritten_free, id});
    sums.whole_blocks -= before.free;
    sums.whole_unwritten_blocks -= before.unwritten_free;
  }
  if (after.free == container.blocks()) {
    index.all_free.insert({after.unwritten_free, id});
    sums.whole_blocks += after.free;
    sums.whole_unwritten_blocks += after.unwritten_free;
  }
}

void Allocator::account_new(const ContainerState& container) {
  AllocatorUsage::Class& sums = usage_.classes[container.slot_class()];
  ++sums.containers;
  sums.blocks += container.blocks();
  usage_.blocks += container.blocks();
  account(container, {}, container.counts());
}

void Allocator::account_gone(ContainerState& container) {
  set_closed(container, false);
  AllocatorUsage::Class& sums = usage_.classes[container.slot_class()];
  --sums.containers;
  sums.blocks -= container.blocks();
  usage_.blocks -= container.blocks();
  account(container, container.counts(), {});
  gone_.insert_or_assign(container.id(), Gone{container.blocks(), container.changed(), captures_});
}

void Allocator::add_container(uint32_t container, unsigned slot_class, uint32_t blocks,
                              BlockBitmap unwritten, BlockBitmap punched) {
  require(unwritten.blocks() == blocks, "a bitmap is of its container");
  std::lock_guard lock(mutex_);
  auto [it, added] = containers_.emplace(
      container, std::make_unique<ContainerState>(container, slot_class, std::move(unwritten),
                                                  std::move(punched)));
  require(added, "a container is added once");
  it->second->last_taken_age = age_;
  next_container_id_ = std::max(next_container_id_, container + 1);
  if (const auto owned = missing_.find(container); owned != missing_.end()) {
    if (owned->second.blocks() <= blocks) {
      owned->second.grow(blocks);
      it->second->load_owned(owned->second);
      note_changed(*it->second, {container, 0, blocks});
    } else {
      load_failed(container, " has " + std::to_string(blocks) + " blocks, its rows are of " +
                                 std::to_string(owned->second.blocks()));
    }
    missing_.erase(owned);
  }
  if (!recovering_) account_new(*it->second);
}

bool Allocator::remove_container(uint32_t container) {
  std::lock_guard lock(mutex_);
  require(!recovering_, "recovery comes first");
  ContainerState& c = state(container);
  const ContainerState::Counts counts = c.counts();
  if (!c.empty() || unreserved_blocks() < counts.free) return false;
  require(counts.owned == 0, "an owned block is held");
  account_gone(c);
  containers_.erase(container);
  return true;
}

uint32_t Allocator::next_container_id() const {
  std::lock_guard lock(mutex_);
  return next_container_id_;
}

void Allocator::skip_container_id(uint32_t container) {
  std::lock_guard lock(mutex_);
  next_container_id_ = std::max(next_container_id_, container + 1);
}

// --- reserve, allocate, give back

bool Allocator::reserve(uint64_t blocks) {
  std::lock_guard lock(mutex_);
  if (unreserved_blocks() < blocks) return false;
  usage_.reserved_blocks += blocks;
  return true;
}

void Allocator::unreserve(uint64_t blocks) {
  std::lock_guard lock(mutex_);
  require(blocks <= usage_.reserved_blocks, "what is returned was reserved");
  usage_.reserved_blocks -= blocks;
}

void Allocator::note_demand(unsigned slot_class) {
  ++usage_.classes[slot_class].recent_slots;
  if (++demand_ < demand_window) return;
  demand_ = 0;
  for (AllocatorUsage::Class& sums : usage_.classes) demand_ += sums.recent_slots /= 2;
}

Extent Allocator::take(ContainerState& container, uint32_t block, uint32_t blocks) {
  change(container, [&] { container.take(block, blocks); });
  container.last_taken_age = age_;
  return {container.id(), block, blocks};
}

// A slot of a container of its own class: the next one after the last, preferably a prepared one.
std::optional<Extent> Allocator::take_slot(unsigned slot_class) {
  Class& index = classes_[slot_class];
  const std::set<uint32_t>& whole = index.by_max_power[slot_class];
  auto taken = [&](ContainerState& container, uint32_t block) {
    index.cursor_container = container.id();
    index.cursor_block = block + slot_blocks(slot_class);
    return take(container, block, slot_blocks(slot_class));
  };
  auto from = [&](uint32_t id) { return id == index.cursor_container ? index.cursor_block : 0; };

  unsigned looked_at = 0;
  auto try_prepared = [&](uint32_t id) -> std::optional<Extent> {
    ContainerState& container = state(id);
    ++looked_at;
    auto block = container.find_written(slot_class, from(id), prepared_reach_blocks);
    if (!block) return std::nullopt;
    return taken(container, *block);
  };
  if (whole.contains(index.cursor_container)) {
    if (auto extent = try_prepared(index.cursor_container)) return extent;
  }
  for (auto it = whole.begin(); it != whole.end() && looked_at < prepared_candidates; ++it) {
    if (*it == index.cursor_container) continue;
    if (auto extent = try_prepared(*it)) return extent;
  }

  while (!whole.empty()) {
    const uint32_t id =
        whole.contains(index.cursor_container) ? index.cursor_container : *whole.begin();
    ContainerState& container = state(id);
    std::optional<uint32_t> block;
    change(container, [&] { block = container.find(slot_class, from(id)); });
    if (block) return taken(container, *block);
  }
  return std::nullopt;
}

// An aligned run of 2^power blocks of any larger slot. It is cut from the smallest free run that
// fits, so that whole slots are broken last.
std::optional<Extent> Allocator::take_part(unsigned power) {
  for (unsigned run_power = power; run_power < slot_classes; ++run_power) {
    for (unsigned slot_class = run_power; slot_class < slot_classes; ++slot_class) {
      const std::set<uint32_t>& candidates = classes_[slot_class].by_max_power[run_power];
      while (!candidates.empty()) {
        ContainerState& container = state(*candidates.begin());
        const uint32_t from = container.part_cursor;
        auto block = container.find_written(power, from, prepared_reach_blocks);
        if (!block) change(container, [&] { block = container.find(power, from); });
        if (!block) continue;
        container.part_cursor = *block;
        return take(container, *block, slot_blocks(power));
      }
    }
  }
  return std::nullopt;
}

void Allocator::append(const Extent& extent, std::vector<Extent>* extents) const {
  if (!extents->empty()) {
    Extent& last = extents->back();
    if (last.container == extent.container && last.end() == extent.block) {
      const unsigned slot_class = state(extent.container).slot_class();
      if (last.block >> slot_class == (extent.end() - 1) >> slot_class) {
        last.blocks += extent.blocks;
        return;
      }
    }
  }
  extents->push_back(extent);
}

// 2^power blocks: a slot, a part of a larger one, or smaller pieces. A reservation stands for free
// blocks wherever they are, so single blocks can always be had.
void Allocator::take_pieces(unsigned power, std::vector<Extent>* extents) {
  auto extent = take_slot(power);
  if (!extent) extent = take_part(power);
  if (extent) return append(*extent, extents);
  if (power == 0) {
    require(open_fullest(), "a reservation stands for free blocks");
    return take_pieces(power, extents);
  }
  take_pieces(power - 1, extents);
  take_pieces(power - 1, extents);
}

std::vector<Extent> Allocator::allocate(uint64_t blocks, bool may_split, unsigned* wanted_class) {
  std::lock_guard lock(mutex_);
  require(blocks <= usage_.reserved_blocks, "what is allocated was reserved");
  // All or nothing: where a slot is missing, the reservation is as it was.
  usage_.reserved_blocks -= blocks;
  std::vector<Extent> extents;
  std::array<uint32_t, slot_classes> called_for{}, first_touches{};
  for (uint64_t rest = blocks; rest > 0;) {
    const unsigned slot_class = std::min<unsigned>(slot_classes - 1, std::bit_width(rest) - 1);
    if (may_split) {
      take_pieces(slot_class, &extents);
    } else if (auto extent = take_slot(slot_class)) {
      extents.push_back(*extent);
      if (state(extent->container).is_unwritten(extent->block, extent->blocks))
        ++first_touches[slot_class];
    } else {
      for (const Extent& taken : extents) give_back_locked(taken);
      usage_.reserved_blocks += blocks;
      if (wanted_class) *wanted_class = slot_class;
      return {};
    }
    ++called_for[slot_class];
    rest -= slot_blocks(slot_class);
  }
  for (unsigned c = 0; c < slot_classes; ++c) {
    usage_.classes[c].first_touch_blocks += uint64_t(first_touches[c]) * slot_blocks(c);
    for (uint32_t i = 0; i < called_for[c]; ++i) note_demand(c);
  }
  require(usage_.reserved_blocks <= usage_.free_blocks, "a reservation stands for free blocks");
  return extents;
}

bool Allocator::may_have_run(unsigned slot_class) const {
  std::lock_guard lock(mutex_);
  for (unsigned c = slot_class; c < slot_classes; ++c) {
    for (unsigned power = slot_class; power <= c; ++power) {
      if (!classes_[c].by_max_power[power].empty()) return true;
    }
  }
  return false;
}

void Allocator::give_back_locked(const Run& run) {
  ContainerState& container = state(run.container);
  change(container, [&] { container.give_back(run.block, run.blocks); });
}

void Allocator::give_back(const Run& run) {
  std::lock_guard lock(mutex_);
  give_back_locked(run);
}

// --- what the log says

void Allocator::mark_owned(const Run& run) {
  std::lock_guard lock(mutex_);
  require(!recovering_, "recovery comes first");
  ContainerState& container = state(run.container);
  change(container, [&] {
    require(container.is_held(run.block, run.blocks), "an owned block is held");
    require(container.set_owned(run.block, run.blocks), "a block has one owner");
  });
  note_changed(container, run);
}

void Allocator::mark_freed(const Extent& extent) {
  std::lock_guard lock(mutex_);
  require(!recovering_, "recovery comes first");
  ContainerState& container = state(extent.container);
  change(container, [&] {
    require(container.clear_owned(extent.block, extent.blocks), "a freed block had an owner");
  });
  note_changed(container, extent);
}

bool Allocator::is_unwritten(const Extent& extent) const {
  std::lock_guard lock(mutex_);
  return state(extent.container).is_unwritten(extent.block, extent.blocks);
}

void Allocator::mark_written(const Run& run) {
  std::lock_guard lock(mutex_);
  state(run.container).mark_written(run.block, run.blocks);
}

std::optional<BlockBitmap> Allocator::owned_bitmap(uint32_t container) const {
  std::lock_guard lock(mutex_);
  auto it = containers_.find(container);
  if (it == containers_.end()) return std::nullopt;
  return it->second->owned();
}

std::vector<uint32_t> Allocator::containers() const {
  std::lock_guard lock(mutex_);
  std::vector<uint32_t> ids;
  ids.reserve(containers_.size());
  for (const auto& [id, container] : containers_) ids.push_back(id);
  return ids;
}

std::vector<ContainerUsage> Allocator::usage_by_container() const {
  std::lock_guard lock(mutex_);
  std::vector<ContainerUsage> all;
  all.reserve(containers_.size());
  for (const auto& [id, container] : containers_) {
    const ContainerState::Counts& counts = container->counts();
    all.push_back({.container = id,
                   .path = {},
                   .slot_class = container->slot_class(),
                   .is_closed = container->closed,
                   .blocks = container->blocks(),
                   .owned_blocks = counts.owned,
                   .free_blocks = counts.free,
                   .unwritten_free_blocks = counts.unwritten_free,
                   .punched_blocks = counts.punched});
  }
  return all;
}

AllocatorUsage Allocator::usage() const {
  std::lock_guard lock(mutex_);
  return usage_;
}

uint64_t Allocator::bitmap_bytes() const {
  uint64_t bytes = 0;
  std::unique_lock lock(mutex_);
  for (auto it = containers_.begin(); it != containers_.end();) {
    uint32_t next = it->first;
    for (unsigned n = 0; n < containers_at_once && it != containers_.end(); ++n, ++it) {
      bytes += it->second->memory_bytes();
      next = it->first + 1;
    }
    // Others come in between: a disk of ten terabytes has ten thousand containers.
    lock.unlock();
    lock.lock();
    it = containers_.lower_bound(next);
  }
  return bytes;
}

}  // namespace tablestore
