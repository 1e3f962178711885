#include "os/tablestore/engine/container/block_bitmap.h"

#include <algorithm>
#include <bit>

#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

// Calls visit(word index, mask of the bits of the range in that word) until it returns false;
// true where it never did.
template <typename Visit>
bool each_word(uint32_t first, uint32_t count, Visit visit) {
  uint64_t position = first;
  const uint64_t end = uint64_t(first) + count;
  while (position < end) {
    const uint64_t bit = position % 64;
    const uint64_t bits = std::min<uint64_t>(64 - bit, end - position);
    const uint64_t mask = (bits == 64 ? ~0ull : (1ull << bits) - 1) << bit;
    if (!visit(position / 64, mask)) return false;
    position += bits;
  }
  return true;
}

// Bits at multiples of `count`, a power of two below 64.
constexpr uint64_t aligned_bits(uint32_t count) {
  uint64_t bits = 0;
  for (uint32_t bit = 0; bit < 64; bit += count) bits |= 1ull << bit;
  return bits;
}

// In each word, the bits at which an aligned run of `count` < 64 set bits begins.
uint64_t run_starts(uint64_t word, uint32_t count) {
  for (uint32_t width = 1; width < count; width *= 2) word &= word >> width;
  return word & aligned_bits(count);
}

// Both searches: `busy(i)` is word i of what must be clear.
template <typename Busy>
std::optional<uint32_t> find_run(uint32_t blocks, uint32_t from, uint32_t count, uint32_t limit,
                                 Busy busy) {
  require(std::has_single_bit(count), "a run is a power of two");
  uint64_t start = (uint64_t(from) + count - 1) / count * count;
  limit = std::min(limit, blocks);
  if (count >= 64) {
    for (; start < limit && start + count <= blocks; start += count) {
      uint64_t index = start / 64;
      const uint64_t end = index + count / 64;
      while (index < end && !busy(index)) ++index;
      if (index == end) return start;
    }
    return std::nullopt;
  }
  for (uint64_t index = start / 64; index * 64 < limit; ++index) {
    uint64_t starts = run_starts(~busy(index), count);
    if (index == start / 64) starts &= ~0ull << (start % 64);
    if (!starts) continue;
    const uint64_t found = index * 64 + std::countr_zero(starts);
    if (found >= limit || found + count > blocks) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

}  // namespace

void BlockBitmap::set(uint32_t first, uint32_t count) {
  require(uint64_t(first) + count <= blocks_, "a range lies in its container");
  each_word(first, count, [&](size_t i, uint64_t mask) { return words_[i] |= mask, true; });
}

void BlockBitmap::clear(uint32_t first, uint32_t count) {
  require(uint64_t(first) + count <= blocks_, "a range lies in its container");
  each_word(first, count, [&](size_t i, uint64_t mask) { return words_[i] &= ~mask, true; });
}

bool BlockBitmap::any(uint32_t first, uint32_t count) const {
  require(uint64_t(first) + count <= blocks_, "a range lies in its container");
  return !each_word(first, count, [&](size_t i, uint64_t mask) { return !(words_[i] & mask); });
}

bool BlockBitmap::all(uint32_t first, uint32_t count) const {
  require(uint64_t(first) + count <= blocks_, "a range lies in its container");
  return each_word(first, count,
                   [&](size_t i, uint64_t mask) { return (words_[i] & mask) == mask; });
}

uint32_t BlockBitmap::count() const {
  uint32_t total = 0;
  for (uint64_t word : words_) total += std::popcount(word);
  return total;
}

uint32_t BlockBitmap::count(uint32_t first, uint32_t count) const {
  require(uint64_t(first) + count <= blocks_, "a range lies in its container");
  uint32_t total = 0;
  each_word(first, count, [&](size_t i, uint64_t mask) {
    total += std::popcount(words_[i] & mask);
    return true;
  });
  return total;
}

void BlockBitmap::grow(uint32_t blocks) {
  if (blocks <= blocks_) return;
  blocks_ = blocks;
  words_.resize((uint64_t(blocks) + 63) / 64, 0);
}

uint32_t BlockBitmap::next_set(uint32_t from) const {
  if (from >= blocks_) return blocks_;
  size_t index = from / 64;
  uint64_t word = words_[index] & (~0ull << (from % 64));
  while (!word) {
    if (++index == words_.size()) return blocks_;
    word = words_[index];
  }
  return index * 64 + std::countr_zero(word);
}

uint32_t BlockBitmap::next_clear(uint32_t from) const {
  if (from >= blocks_) return blocks_;
  size_t index = from / 64;
  uint64_t word = ~words_[index] & (~0ull << (from % 64));
  while (!word) {
    if (++index == words_.size()) return blocks_;
    word = ~words_[index];
  }
  return std::min<uint64_t>(blocks_, index * 64 + std::countr_zero(word));
}

std::optional<uint32_t> BlockBitmap::find_clear_run(uint32_t from, uint32_t count) const {
  return find_run(blocks_, from, count, blocks_, [&](size_t i) { return words_[i]; });
}

std::optional<uint32_t> BlockBitmap::find_clear_run(uint32_t from, uint32_t count,
                                                    const BlockBitmap& other,
                                                    uint32_t limit) const {
  require(other.blocks_ == blocks_, "both bitmaps are of one container");
  return find_run(blocks_, from, count, limit,
                  [&](size_t i) { return words_[i] | other.words_[i]; });
}

}  // namespace tablestore
