#include "os/tablestore/engine/container/container_state.h"

#include <algorithm>
#include <bit>

#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

template <typename Act>
void each_run(const BlockBitmap& bitmap, Act act) {
  for (uint32_t first = bitmap.next_set(0); first < bitmap.blocks();) {
    const uint32_t end = bitmap.next_clear(first);
    act(first, end - first);
    first = bitmap.next_set(end);
  }
}

}  // namespace

ContainerState::ContainerState(uint32_t id, unsigned slot_class, BlockBitmap unwritten,
                               BlockBitmap punched)
    : id_(id),
      slot_class_(slot_class),
      owned_(unwritten.blocks()),
      held_(unwritten.blocks()),
      punched_(punched.blocks() ? std::move(punched) : BlockBitmap(unwritten.blocks())),
      unwritten_(std::move(unwritten)),
      changed_(owned_.chunks()) {
  require(slot_class < slot_classes, "a slot class is one of ours");
  require(blocks() > 0 && blocks() % largest_slot_blocks == 0, "a container holds whole slots");
  require(punched_.blocks() == blocks(), "both bitmaps are of one container");
  std::vector<Run> none;  // is owned
  hold_owned(&none);
}

void ContainerState::hold_owned(std::vector<Run>* without_space) {
  // A file system that cannot say which blocks have space names all of them.
  const bool can_tell = punched_.count() < blocks();
  unwritten_.add(punched_);
  BlockBitmap hollow = punched_;
  punched_.remove(owned_);
  unwritten_.remove(punched_);
  hollow.remove(punched_);
  if (can_tell) {
    each_run(hollow, [&](uint32_t first, uint32_t count) {
      without_space->push_back(run(first, first + count));
    });
  }
  held_ = BlockBitmap(blocks());
  BlockBitmap unwritten_free = unwritten_;
  unwritten_free.remove(owned_);
  counts_.punched = punched_.count();
  counts_.owned = owned_.count();
  counts_.free = blocks() - counts_.owned - counts_.punched;
  counts_.unwritten_free = unwritten_free.count();
  counts_.max_power = longest_power();
}

// Known from the start, or the first request for a long run of a store that is nearly full would
// look through all containers for it.
int ContainerState::longest_power() const {
  if (!counts_.free) return -1;
  unsigned power = 0;
  while (power < slot_class_ &&
         BlockBitmap::find_clear_run(busy(), 0, slot_blocks(power + 1), blocks()))
    ++power;
  return power;
}

uint64_t ContainerState::memory_bytes() const {
  return owned_.memory_bytes() + held_.memory_bytes() + punched_.memory_bytes() +
         unwritten_.memory_bytes() + changed_.memory_bytes();
}

void ContainerState::note_changed(uint32_t first, uint32_t count) {
  const uint32_t chunk = first / BlockBitmap::chunk_blocks;
  changed_.set(chunk, (first + count - 1) / BlockBitmap::chunk_blocks - chunk + 1);
}

bool ContainerState::is_any_busy(uint32_t first, uint32_t count) const {
  return owned_.any(first, count) || held_.any(first, count) || punched_.any(first, count);
}

void ContainerState::lower_max_power(int power) {
  power = std::min(power, counts_.max_power);
  if (!counts_.free) power = -1;
  while (power > 0 && counts_.free < slot_blocks(power)) --power;
  counts_.max_power = power;
}

// A freed block may have completed a longer run: follow the buddies of each aligned part.
void ContainerState::raise_max_power(uint32_t first, uint32_t count) {
  const int highest = slot_class_;
  const uint32_t end = first + count;
  for (uint32_t part = first; part < end && counts_.max_power < highest;) {
    int power = std::min<int>(highest, std::bit_width(end - part) - 1);
    if (part) power = std::min<int>(power, std::countr_zero(part));
    const uint32_t next = part + slot_blocks(power);
    while (power < highest) {
      const uint32_t parent = part & ~(slot_blocks(power + 1) - 1);
      if (is_any_busy(parent, slot_blocks(power + 1))) break;
      ++power;
    }
    counts_.max_power = std::max(counts_.max_power, power);
    part = next;
  }
}

void ContainerState::take(uint32_t first, uint32_t count) {
  require(!is_any_busy(first, count), "a block that is handed out was free");
  held_.set(first, count);
  counts_.free -= count;
  counts_.unwritten_free -= unwritten_.count(first, count);
  lower_max_power(counts_.max_power);
}

void ContainerState::give_back(uint32_t first, uint32_t count) {
  require(is_held(first, count), "a freed block was held");
  require(!owned_.any(first, count), "a freed block is owned by no row");
  held_.clear(first, count);
  counts_.free += count;
  counts_.unwritten_free += unwritten_.count(first, count);
  raise_max_power(first, count);
}

void ContainerState::give_back_punched(uint32_t first, uint32_t count) {
  require(is_held(first, count), "a punched block was held");
  require(!owned_.any(first, count), "a punched block is owned by no row");
  held_.clear(first, count);
  unwritten_.clear(first, count);
  punched_.set(first, count);
  counts_.punched += count;
}

void ContainerState::take_punched(uint32_t first, uint32_t count) {
  require(punched_.all(first, count), "a restored block was punched");
  punched_.clear(first, count);
  unwritten_.set(first, count);
  held_.set(first, count);
  counts_.punched -= count;
}

void ContainerState::give_back_unwritten(uint32_t first, uint32_t count) {
  unwritten_.set(first, count);
  give_back(first, count);
}

void ContainerState::mark_written(uint32_t first, uint32_t count) {
  require(is_held(first, count), "a written block is held");
  unwritten_.clear(first, count);
}

bool ContainerState::is_unwritten(uint32_t first, uint32_t count) const {
  return unwritten_.any(first, count) || punched_.any(first, count);
}

bool ContainerState::is_held(uint32_t first, uint32_t count) const {
  const BlockBitmap* const held[] = {&owned_, &held_};
  return held_.all(first, count) || BlockBitmap::next_clear(held, first) >= first + count;
}

bool ContainerState::set_owned(uint32_t first, uint32_t count) {
  if (owned_.any(first, count)) return false;
  held_.clear(first, count);
  owned_.set(first, count);
  counts_.owned += count;
  return true;
}

bool ContainerState::clear_owned(uint32_t first, uint32_t count) {
  if (!owned_.all(first, count)) return false;
  owned_.clear(first, count);
  held_.set(first, count);
  counts_.owned -= count;
  return true;
}

void ContainerState::adopt_owned(const BlockBitmap& owned, std::vector<Run>* given_up) {
  BlockBitmap gained = owned, lost = owned_;
  gained.remove(owned_);
  lost.remove(owned);
  BlockBitmap with_space = gained, without_space = gained;
  with_space.remove(punched_);
  without_space.remove(with_space);
  each_run(without_space, [&](uint32_t first, uint32_t count) { take_punched(first, count); });
  BlockBitmap free = with_space;
  free.remove(held_);
  each_run(free, [&](uint32_t first, uint32_t count) { take(first, count); });
  each_run(gained, [&](uint32_t first, uint32_t count) {
    require(set_owned(first, count), "a block has one owner");
  });
  each_run(lost, [&](uint32_t first, uint32_t count) {
    require(clear_owned(first, count), "a block that is given up had an owner");
    given_up->push_back(run(first, first + count));
  });
}

std::optional<uint32_t> ContainerState::find(unsigned power, uint32_t from) {
  require(power <= slot_class_, "a search stays within slots");
  if (counts_.max_power < int(power)) return std::nullopt;
  auto found = BlockBitmap::find_clear_run(busy(), from, slot_blocks(power), blocks());
  if (!found && from)
    found = BlockBitmap::find_clear_run(busy(), 0, slot_blocks(power), blocks());
  if (!found) lower_max_power(int(power) - 1);
  return found;
}

std::optional<uint32_t> ContainerState::find_written(unsigned power, uint32_t from,
                                                     uint32_t reach) const {
  const uint32_t run = slot_blocks(power);
  if (counts_.max_power < int(power) || counts_.free - counts_.unwritten_free < run) {
    return std::nullopt;
  }
  const BlockBitmap* const clear[] = {&owned_, &held_, &punched_, &unwritten_};
  const uint32_t limit = std::min<uint64_t>(blocks(), uint64_t(from) + reach);
  auto found = BlockBitmap::find_clear_run(clear, from, run, limit);
  // What was prepared while `from` went past it is just behind.
  const uint32_t behind = from - std::min(from, reach);
  if (!found && from) found = BlockBitmap::find_clear_run(clear, behind, run, from);
  if (!found && behind) found = BlockBitmap::find_clear_run(clear, 0, run, std::min(behind, reach));
  return found;
}

Run ContainerState::find_unwritten_run(uint32_t max) const {
  if (!counts_.unwritten_free) return run(0, 0);
  uint32_t first = 0;
  for (uint32_t next; (next = BlockBitmap::next_clear(busy(), first)) != first ||
                      (next = unwritten_.next_set(first)) != first;) {
    first = next;
  }
  require(first < blocks(), "the count of free unwritten blocks is right");
  const uint32_t end =
      std::min(BlockBitmap::next_set(busy(), first), unwritten_.next_clear(first));
  return run(first, std::min<uint64_t>(end, uint64_t(first) + max));
}

Run ContainerState::find_free_run(uint32_t min, uint32_t max) const {
  const auto found = BlockBitmap::find_clear_blocks(busy(), min, max);
  return {id_, found.first, found.count};
}

std::vector<Run> ContainerState::free_runs() const {
  const std::array<const BlockBitmap*, 2> used = {&owned_, &held_};
  std::vector<Run> runs;
  for (uint32_t first = BlockBitmap::next_clear(used, 0); first < blocks();) {
    const uint32_t end = BlockBitmap::next_set(used, first);
    runs.push_back(run(first, end));
    first = end < blocks() ? BlockBitmap::next_clear(used, end) : end;
  }
  return runs;
}

Run ContainerState::find_punched_run(uint32_t max) const {
  const uint32_t first = punched_.next_set(0);
  if (first == blocks()) return run(0, 0);
  return run(first, std::min<uint64_t>(punched_.next_clear(first), uint64_t(first) + max));
}

}  // namespace tablestore
