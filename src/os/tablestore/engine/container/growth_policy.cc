#include "os/tablestore/engine/container/growth_policy.h"

#include <algorithm>
#include <bit>

namespace tablestore {
namespace {

constexpr uint64_t mebibyte_blocks = (1 << 20) / block_bytes;
constexpr uint32_t punch_min_blocks = mebibyte_blocks;
constexpr uint32_t punch_max_blocks = 16 * mebibyte_blocks;
constexpr uint64_t restore_max_bytes = 64 << 20;

// A class has shown that it needs containers when it lately called for so many slots, for so many
// blocks, or for this part of a container.
constexpr uint64_t demanding_slots = 1024;
constexpr uint64_t demanding_blocks = 16 * mebibyte_blocks;
constexpr uint64_t demanding_part = 8;
// The part of the capacity from which only reservations make containers; the part of a class's
// blocks that stays free without being given back; and the most of the capacity that is in stock.
constexpr uint64_t last_part = 8;
// Of what is to be prepared: less than this part is not worth a flush.
constexpr uint64_t small_part = 8;
// Of a container, the part that is prepared at once: nobody can have it meanwhile.
constexpr uint64_t prepared_part = 8;
// Fewer slots than this say nothing about which classes are in use.
constexpr uint64_t telling_slots = 1024;

uint64_t less(uint64_t a, uint64_t b) { return a - std::min(a, b); }

bool in_use(const AllocatorUsage& usage, unsigned slot_class) {
  return usage.classes[slot_class].recent_slots > 0;
}

uint64_t open_free_blocks(const AllocatorUsage& usage, unsigned slot_class) {
  const AllocatorUsage::Class& sums = usage.classes[slot_class];
  return sums.free_blocks - sums.closed_free_blocks;
}

}  // namespace

// --- how much there is

uint64_t GrowthPolicy::file_bytes(const AllocatorUsage& usage) {
  return (usage.blocks - usage.punched_blocks) * block_bytes;
}

SpaceState GrowthPolicy::state(const AllocatorUsage& usage, uint64_t available_bytes,
                               const OtherSpace& others) const {
  SpaceState state{usage, less(available_bytes, others.reserve_bytes),
                   less(others.reserve_bytes, available_bytes)};
  if (!options_.capacity_bytes) return state;
  const uint64_t used = file_bytes(usage) + others.taken_bytes + others.reserve_bytes;
  state.growable_bytes = std::min(state.growable_bytes, less(options_.capacity_bytes, used));
  state.short_bytes = std::max(state.short_bytes, less(used, options_.capacity_bytes));
  return state;
}

uint64_t GrowthPolicy::obtainable_bytes(const SpaceState& state) const {
  const uint64_t punched = std::min(state.usage.punched_blocks * block_bytes,
                                    state.growable_bytes / block_bytes * block_bytes);
  const uint64_t files = (state.growable_bytes - punched) / options_.container_bytes;
  return punched + files * options_.container_bytes;
}

uint64_t GrowthPolicy::free_bytes(const SpaceState& state) const {
  return less(state.usage.free_blocks * block_bytes + obtainable_bytes(state), state.short_bytes);
}

bool GrowthPolicy::can_promise(const SpaceState& state, uint64_t blocks) const {
  const uint64_t unreserved = state.usage.free_blocks - state.usage.reserved_blocks;
  return unreserved * block_bytes + obtainable_bytes(state) >=
         blocks * block_bytes + state.short_bytes;
}

// --- how to grow

unsigned GrowthPolicy::class_for_reservation(std::optional<unsigned> lacked, uint64_t blocks) {
  if (lacked) return *lacked;
  return std::min<unsigned>(slot_classes - 1, std::bit_width(std::max<uint64_t>(blocks, 1)) - 1);
}

Claim GrowthPolicy::claim(const AllocatorUsage& usage, unsigned slot_class,
                          bool run_is_free) const {
  if (!run_is_free) return Claim::pressing;
  const uint64_t slots = usage.classes[slot_class].recent_slots;
  const uint64_t enough = std::min(demanding_blocks, container_blocks() / demanding_part);
  const bool in_demand = slots >= demanding_slots || slots * slot_blocks(slot_class) >= enough;
  return in_demand ? Claim::ordinary : Claim::none;
}

NewFile GrowthPolicy::new_file(const SpaceState& state) const {
  if (state.growable_bytes < options_.container_bytes) return NewFile::for_nobody;
  const uint64_t capacity = state.growable_bytes + file_bytes(state.usage);
  return state.growable_bytes > capacity / last_part ? NewFile::for_any_class
                                                     : NewFile::for_reservations;
}

uint32_t GrowthPolicy::restore_blocks(const SpaceState& state) {
  return std::min(state.growable_bytes, restore_max_bytes) / block_bytes;
}

// --- what to do ahead of use

bool GrowthPolicy::runs_low(const AllocatorUsage& usage, unsigned slot_class) const {
  const uint64_t low = std::min(options_.container_bytes, options_.prepare_ahead_bytes) / 2;
  return in_use(usage, slot_class) && open_free_blocks(usage, slot_class) * block_bytes < low;
}

uint64_t GrowthPolicy::prepared_blocks(const AllocatorUsage& usage, unsigned slot_class) {
  return open_free_blocks(usage, slot_class) - usage.classes[slot_class].unwritten_free_blocks;
}

uint64_t GrowthPolicy::blocks_to_prepare(const AllocatorUsage& usage, unsigned slot_class) const {
  if (slot_class > options_.largest_prepared_class || !in_use(usage, slot_class)) return 0;
  const uint64_t ahead = (options_.prepare_ahead_bytes + block_bytes - 1) / block_bytes;
  const uint64_t lacking = less(ahead, prepared_blocks(usage, slot_class));
  if (lacking < std::min(mebibyte_blocks, ahead / small_part)) return 0;
  return std::min(lacking, piece_blocks());
}

uint64_t GrowthPolicy::piece_blocks() const {
  return std::max(mebibyte_blocks, container_blocks() / prepared_part);
}

uint64_t GrowthPolicy::first_touch_bytes(const AllocatorUsage& usage) const {
  uint64_t blocks = 0;
  for (unsigned c = 0; c <= options_.largest_prepared_class; ++c)
    blocks += usage.classes[c].first_touch_blocks;
  return blocks * block_bytes;
}

uint64_t GrowthPolicy::stock_blocks(const SpaceState& state) const {
  if (state.short_bytes || !options_.prepare_bytes_per_second) return 0;
  const uint64_t capacity = state.growable_bytes + file_bytes(state.usage);
  const uint64_t bytes = std::min(options_.stock_bytes, capacity / last_part);
  return bytes / options_.container_bytes * container_blocks();
}

uint64_t GrowthPolicy::kept_blocks(const AllocatorUsage& usage, unsigned slot_class) const {
  return in_use(usage, slot_class) && usage.classes[slot_class].whole_blocks ? container_blocks()
                                                                             : 0;
}

uint64_t GrowthPolicy::other_whole_blocks(const AllocatorUsage& usage) const {
  uint64_t blocks = less(usage.reserved_blocks, less(usage.free_blocks, usage.whole_blocks()));
  for (unsigned c = 0; c < slot_classes; ++c) blocks += kept_blocks(usage, c);
  return blocks;
}

bool GrowthPolicy::stock_lacks_container(const SpaceState& state) const {
  const uint64_t whole = less(state.usage.whole_blocks(), other_whole_blocks(state.usage));
  return whole + container_blocks() <= stock_blocks(state) &&
         new_file(state) == NewFile::for_any_class;
}

uint64_t GrowthPolicy::stock_blocks_to_write(const SpaceState& state) const {
  const AllocatorUsage& usage = state.usage;
  uint64_t unwritten = 0, written = 0;
  for (unsigned c = 0; c < slot_classes; ++c) {
    const AllocatorUsage::Class& sums = usage.classes[c];
    unwritten += sums.whole_unwritten_blocks;
    written += less(sums.whole_blocks - sums.whole_unwritten_blocks, kept_blocks(usage, c));
  }
  const uint64_t lacking = less(stock_blocks(state), written);
  if (lacking < mebibyte_blocks) return 0;
  return std::min({lacking, unwritten, piece_blocks()});
}

uint64_t GrowthPolicy::own_blocks_to_write(const SpaceState& state, unsigned slot_class) const {
  const uint64_t unwritten = state.usage.classes[slot_class].unwritten_free_blocks;
  if (!stock_blocks(state) || !in_use(state.usage, slot_class) || unwritten < mebibyte_blocks)
    return 0;
  return std::min(unwritten, piece_blocks());
}

// --- what to give back

// One container more than is to be in stock: how much that is changes a little with the table.
QuietRule GrowthPolicy::quiet_rule(const SpaceState& state) const {
  const AllocatorUsage& usage = state.usage;
  uint64_t slots = 0;
  for (const AllocatorUsage::Class& sums : usage.classes) slots += sums.recent_slots;
  QuietRule rule;
  rule.min_age = options_.quiet_steps;
  if (const uint64_t stock = stock_blocks(state))
    rule.whole_blocks = stock + container_blocks() + other_whole_blocks(usage);
  for (unsigned c = 0; c < slot_classes; ++c) {
    if (slots >= telling_slots && !in_use(usage, c)) continue;
    rule.spare_blocks[c] =
        std::max({container_blocks(), options_.prepare_ahead_bytes / block_bytes,
                  usage.classes[c].blocks / last_part});
  }
  return rule;
}

uint64_t GrowthPolicy::surplus_bytes(const AllocatorUsage& usage) const {
  return less(file_bytes(usage), options_.provision_bytes);
}

bool GrowthPolicy::may_remove_container(const AllocatorUsage& usage) const {
  return surplus_bytes(usage) >= options_.container_bytes;
}

std::optional<GrowthPolicy::PunchSize> GrowthPolicy::punch_size(
    const AllocatorUsage& usage) const {
  const uint64_t most = std::min<uint64_t>(surplus_bytes(usage) / block_bytes, punch_max_blocks);
  if (most < punch_min_blocks) return std::nullopt;
  return PunchSize{punch_min_blocks, uint32_t(most)};
}

std::array<GrowthPolicy::PunchSize, 3> GrowthPolicy::relief_sizes(uint64_t short_bytes) {
  const uint32_t most = std::clamp<uint64_t>(short_bytes / block_bytes, punch_min_blocks,
                                             restore_max_bytes / block_bytes);
  return {PunchSize{punch_min_blocks, most}, PunchSize{punch_min_blocks / 16, most},
          PunchSize{1, most}};
}

bool GrowthPolicy::relieves_with_container(uint64_t short_bytes) const {
  return short_bytes >= options_.container_bytes;
}

}  // namespace tablestore
