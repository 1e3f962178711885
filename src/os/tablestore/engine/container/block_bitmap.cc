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
  uint32_t position = first;
  const uint32_t end = first + count;
  while (position < end) {
    const uint32_t bit = position % 64;
    const uint32_t bits = std::min(64 - bit, end - position);
    const uint64_t mask = (bits == 64 ? ~0ull : (1ull << bits) - 1) << bit;
    if (!visit(position / 64, mask)) return false;
    position += bits;
  }
  return true;
}

// Calls visit(chunk, first block in it, count) until it returns false; true where it never did.
template <typename Visit>
bool each_chunk(uint32_t first, uint32_t count, Visit visit) {
  uint64_t position = first;
  const uint64_t end = uint64_t(first) + count;
  while (position < end) {
    const uint32_t in_chunk = position % BlockBitmap::chunk_blocks;
    const uint32_t blocks =
        uint32_t(std::min<uint64_t>(BlockBitmap::chunk_blocks - in_chunk, end - position));
    if (!visit(uint32_t(position / BlockBitmap::chunk_blocks), in_chunk, blocks)) return false;
    position += blocks;
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

// In one chunk, of which word(i) are the busy ones. `from` is aligned.
template <typename Word>
std::optional<uint32_t> find_run(Word word, uint32_t words, uint32_t from, uint32_t count) {
  if (count >= 64) {
    for (uint32_t start = from / 64; start < words; start += count / 64) {
      uint32_t index = start;
      while (index < start + count / 64 && !word(index)) ++index;
      if (index == start + count / 64) return start * 64;
    }
    return std::nullopt;
  }
  for (uint32_t index = from / 64; index < words; ++index) {
    uint64_t starts = run_starts(~word(index), count);
    if (index == from / 64) starts &= ~0ull << (from % 64);
    if (starts) return index * 64 + uint32_t(std::countr_zero(starts));
  }
  return std::nullopt;
}

// The first set bit at or after `from`; the number of bits where there is none.
template <typename Word>
uint32_t find_set(Word word, uint32_t words, uint32_t from) {
  uint64_t mask = ~0ull << (from % 64);
  for (uint32_t index = from / 64; index < words; ++index, mask = ~0ull)
    if (const uint64_t found = word(index) & mask)
      return index * 64 + uint32_t(std::countr_zero(found));
  return words * 64;
}

}  // namespace

constexpr BlockBitmap::Bits BlockBitmap::none_set = {};
constexpr BlockBitmap::Bits BlockBitmap::all_set = [] {
  Bits bits{};
  bits.words.fill(~0ull);
  return bits;
}();

BlockBitmap::BlockBitmap(uint32_t blocks)
    : blocks_(blocks), chunks_((uint64_t(blocks) + chunk_blocks - 1) / chunk_blocks) {}

BlockBitmap::BlockBitmap(uint32_t blocks, std::span<const uint64_t> words) : BlockBitmap(blocks) {
  require(words.size() == (uint64_t(blocks) + 63) / 64, "each block has a bit");
  for (uint32_t c = 0; c < chunks(); ++c)
    change(c, 0, blocks_in(c), [&](uint32_t i, uint64_t, uint64_t mask) {
      return words[size_t(c) * chunk_words + i] & mask;
    });
}

BlockBitmap::BlockBitmap(const BlockBitmap& other) : blocks_(other.blocks_) {
  chunks_.reserve(other.chunks_.size());
  for (const Chunk& chunk : other.chunks_) chunks_.push_back(copy_of(chunk));
}

BlockBitmap& BlockBitmap::operator=(const BlockBitmap& other) {
  if (this != &other) *this = BlockBitmap(other);
  return *this;
}

BlockBitmap::Chunk BlockBitmap::copy_of(const Chunk& chunk) {
  const bool has_bits = chunk && chunk.get() != &all_set;
  return Chunk(has_bits ? new Bits(*chunk) : chunk.get());
}

uint32_t BlockBitmap::blocks_in(uint32_t chunk) const {
  return uint32_t(std::min<uint64_t>(chunk_blocks, blocks_ - uint64_t(chunk) * chunk_blocks));
}

uint32_t BlockBitmap::count_in(uint32_t chunk) const {
  return is_all_set(chunk) ? blocks_in(chunk) : chunks_[chunk] ? chunks_[chunk]->count : 0;
}

template <typename Word>
void BlockBitmap::change(uint32_t chunk, uint32_t first, uint32_t count, Word word) {
  const uint32_t blocks = blocks_in(chunk);
  if (!chunks_[chunk]) chunks_[chunk].reset(new Bits{});
  if (is_all_set(chunk)) {
    chunks_[chunk].reset(new Bits{{}, blocks});
    each_word(0, blocks,
              [&](uint32_t i, uint64_t mask) { return chunks_[chunk]->words[i] = mask, true; });
  }
  Bits& bits = *chunks_[chunk];
  each_word(first, count, [&](uint32_t i, uint64_t mask) {
    const uint64_t before = bits.words[i];
    bits.words[i] = word(i, before, mask);
    bits.count += std::popcount(bits.words[i]) - std::popcount(before);
    return true;
  });
  if (bits.count == 0)
    chunks_[chunk].reset();
  else if (bits.count == blocks)
    chunks_[chunk] = all_of_them();
}

void BlockBitmap::set(uint32_t first, uint32_t count) {
  require(uint64_t(first) + count <= blocks_, "a range lies in its container");
  each_chunk(first, count, [&](uint32_t c, uint32_t from, uint32_t n) {
    if (n == blocks_in(c))
      chunks_[c] = all_of_them();
    else if (!is_all_set(c))
      change(c, from, n, [](uint32_t, uint64_t word, uint64_t mask) { return word | mask; });
    return true;
  });
}

void BlockBitmap::clear(uint32_t first, uint32_t count) {
  require(uint64_t(first) + count <= blocks_, "a range lies in its container");
  each_chunk(first, count, [&](uint32_t c, uint32_t from, uint32_t n) {
    if (n == blocks_in(c))
      chunks_[c].reset();
    else if (chunks_[c])
      change(c, from, n, [](uint32_t, uint64_t word, uint64_t mask) { return word & ~mask; });
    return true;
  });
}

bool BlockBitmap::any(uint32_t first, uint32_t count) const {
  require(uint64_t(first) + count <= blocks_, "a range lies in its container");
  return !each_chunk(first, count, [&](uint32_t c, uint32_t from, uint32_t n) {
    const auto& words = words_of(c);
    return !chunks_[c] ||
           each_word(from, n, [&](uint32_t i, uint64_t mask) { return !(words[i] & mask); });
  });
}

bool BlockBitmap::all(uint32_t first, uint32_t count) const {
  require(uint64_t(first) + count <= blocks_, "a range lies in its container");
  return each_chunk(first, count, [&](uint32_t c, uint32_t from, uint32_t n) {
    const auto& words = words_of(c);
    return is_all_set(c) || each_word(from, n, [&](uint32_t i, uint64_t mask) {
             return (words[i] & mask) == mask;
           });
  });
}

uint32_t BlockBitmap::count() const {
  uint32_t total = 0;
  for (uint32_t c = 0; c < chunks(); ++c) total += count_in(c);
  return total;
}

uint32_t BlockBitmap::count(uint32_t first, uint32_t count) const {
  require(uint64_t(first) + count <= blocks_, "a range lies in its container");
  uint32_t total = 0;
  each_chunk(first, count, [&](uint32_t c, uint32_t from, uint32_t n) {
    const auto& words = words_of(c);
    if (n == blocks_in(c))
      total += count_in(c);
    else
      each_word(from, n, [&](uint32_t i, uint64_t mask) {
        total += std::popcount(words[i] & mask);
        return true;
      });
    return true;
  });
  return total;
}

void BlockBitmap::grow(uint32_t blocks) {
  if (blocks <= blocks_) return;
  const uint32_t before = blocks_;
  const bool last_was_all_set = !chunks_.empty() && is_all_set(chunks() - 1);
  blocks_ = blocks;
  if (last_was_all_set) {  // of fewer blocks than it may have now
    const uint32_t last = chunks() - 1;
    chunks_[last].reset();
    set(last * chunk_blocks, before - last * chunk_blocks);
  }
  chunks_.resize((uint64_t(blocks) + chunk_blocks - 1) / chunk_blocks);
}

void BlockBitmap::add(const BlockBitmap& other) {
  require(other.blocks_ == blocks_, "both bitmaps are of one container");
  for (uint32_t c = 0; c < chunks(); ++c) {
    if (!other.chunks_[c] || is_all_set(c)) continue;
    if (!chunks_[c] || other.is_all_set(c)) {
      chunks_[c] = copy_of(other.chunks_[c]);
      continue;
    }
    change(c, 0, blocks_in(c), [&](uint32_t i, uint64_t word, uint64_t) {
      return word | other.words_of(c)[i];
    });
  }
}

void BlockBitmap::remove(const BlockBitmap& other) {
  require(other.blocks_ == blocks_, "both bitmaps are of one container");
  for (uint32_t c = 0; c < chunks(); ++c) {
    if (!other.chunks_[c] || !chunks_[c]) continue;
    change(c, 0, blocks_in(c), [&](uint32_t i, uint64_t word, uint64_t) {
      return word & ~other.words_of(c)[i];
    });
  }
}

uint32_t BlockBitmap::next_set(uint32_t from) const {
  const BlockBitmap* const self[] = {this};
  return next_set(self, from);
}

uint32_t BlockBitmap::next_clear(uint32_t from) const {
  const BlockBitmap* const self[] = {this};
  return next_clear(self, from);
}

class BlockBitmap::Union {
 public:
  Union(Several bitmaps, uint32_t chunk) {
    for (const BlockBitmap* bitmap : bitmaps) {
      const Chunk& of_one = bitmap->chunks_[chunk];
      if (of_one.get() == &all_set) is_all_set_ = true;
      if (of_one) words_[count_++] = of_one->words.data();
    }
  }
  bool is_all_set() const { return is_all_set_; }
  bool is_none_set() const { return count_ == 0; }
  uint64_t operator()(uint32_t index) const {
    uint64_t word = 0;
    for (unsigned i = 0; i < count_; ++i) word |= words_[i][index];
    return word;
  }

 private:
  std::array<const uint64_t*, 4> words_;
  unsigned count_ = 0;
  bool is_all_set_ = false;
};

uint32_t BlockBitmap::next_set(Several bitmaps, uint32_t from) {
  const BlockBitmap& first = *bitmaps.front();
  for (uint32_t c = from / chunk_blocks; c < first.chunks(); ++c) {
    const Union words(bitmaps, c);
    if (words.is_none_set()) continue;
    const uint32_t begin = c * chunk_blocks;
    const uint32_t in_chunk = std::max(from, begin) - begin;
    const uint32_t found = find_set(words, chunk_words, in_chunk);
    if (found < first.blocks_in(c)) return begin + found;
  }
  return first.blocks_;
}

uint32_t BlockBitmap::next_clear(Several bitmaps, uint32_t from) {
  const BlockBitmap& first = *bitmaps.front();
  for (uint32_t c = from / chunk_blocks; c < first.chunks(); ++c) {
    const Union words(bitmaps, c);
    if (words.is_all_set()) continue;
    const uint32_t begin = c * chunk_blocks;
    const uint32_t in_chunk = std::max(from, begin) - begin;
    const uint32_t found =
        find_set([&words](uint32_t i) { return ~words(i); }, chunk_words, in_chunk);
    if (found < first.blocks_in(c)) return begin + found;
  }
  return first.blocks_;
}

std::optional<uint32_t> BlockBitmap::find_clear_run(Several bitmaps, uint32_t from,
                                                    uint32_t count, uint32_t limit) {
  require(std::has_single_bit(count) && count <= chunk_blocks, "a run is a power of two");
  const BlockBitmap& first = *bitmaps.front();
  const uint64_t start = (uint64_t(from) + count - 1) / count * count;
  limit = std::min(limit, first.blocks_);
  for (uint64_t c = start / chunk_blocks; c * chunk_blocks < limit; ++c) {
    const Union words(bitmaps, uint32_t(c));
    if (words.is_all_set()) continue;
    const uint64_t begin = c * chunk_blocks;
    const uint32_t in_chunk = uint32_t(std::max(start, begin) - begin);
    const auto found = find_run(words, chunk_words, in_chunk, count);
    if (!found) continue;
    if (begin + *found >= limit || begin + *found + count > first.blocks_) return std::nullopt;
    return uint32_t(begin + *found);
  }
  return std::nullopt;
}

BlockBitmap::Blocks BlockBitmap::find_clear_blocks(Several bitmaps, uint32_t min, uint32_t max) {
  const BlockBitmap& first = *bitmaps.front();
  min = std::max<uint32_t>(min, 1);
  Blocks run;  // that ends where the next bits begin
  const auto go_on = [&](bool is_clear, uint32_t at, uint32_t bits) {
    if (!is_clear) {
      if (run.count >= min) return false;
      run.count = 0;
      return true;
    }
    if (!run.count) run.first = at;
    run.count += bits;
    return run.count < max;
  };
  const auto in_word = [&](uint64_t word, uint32_t at, uint32_t bits) {
    while (bits > 0) {
      const bool is_clear = !(word & 1);
      const uint32_t alike =
          std::min<uint32_t>(bits, is_clear ? std::countr_zero(word) : std::countr_one(word));
      if (!go_on(is_clear, at, alike)) return false;
      word = alike < 64 ? word >> alike : 0;
      at += alike;
      bits -= alike;
    }
    return true;
  };
  bool goes_on = true;
  for (uint32_t c = 0; c < first.chunks() && goes_on; ++c) {
    const Union words(bitmaps, c);
    const uint32_t begin = c * chunk_blocks, blocks = first.blocks_in(c);
    if (words.is_all_set() || words.is_none_set())
      goes_on = go_on(words.is_none_set(), begin, blocks);
    else
      for (uint32_t i = 0; i * 64 < blocks && goes_on; ++i)
        goes_on = in_word(words(i), begin + i * 64, std::min<uint32_t>(64, blocks - i * 64));
  }
  if (run.count < min) return {};
  return {run.first, std::min(run.count, max)};
}

std::vector<uint64_t> BlockBitmap::words() const {
  std::vector<uint64_t> all((uint64_t(blocks_) + 63) / 64);
  for (uint32_t c = 0; c < chunks(); ++c)
    each_word(0, blocks_in(c), [&](uint32_t i, uint64_t mask) {
      all[size_t(c) * chunk_words + i] = words_of(c)[i] & mask;
      return true;
    });
  return all;
}

BlockBitmap BlockBitmap::chunk(uint32_t index) const {
  BlockBitmap part(blocks_in(index));
  part.chunks_[0] = copy_of(chunks_[index]);
  return part;
}

void BlockBitmap::set_chunk(uint32_t index, const BlockBitmap& chunk) {
  require(chunk.blocks_ <= blocks_in(index), "a chunk has its size");
  if (chunk.is_all_set(0) && chunk.blocks_ < blocks_in(index)) {
    chunks_[index].reset();
    set(index * chunk_blocks, chunk.blocks_);
  } else {
    chunks_[index] = copy_of(chunk.chunks_[0]);
  }
}

uint64_t BlockBitmap::memory_bytes() const {
  uint64_t bytes = chunks_.capacity() * sizeof(Chunk);
  for (const Chunk& chunk : chunks_)
    if (chunk && chunk.get() != &all_set) bytes += sizeof(Bits);
  return bytes;
}

bool BlockBitmap::operator==(const BlockBitmap& other) const {
  if (blocks_ != other.blocks_) return false;
  for (uint32_t c = 0; c < chunks(); ++c) {
    const bool is_alike = !chunks_[c] || is_all_set(c);
    const bool other_is_alike = !other.chunks_[c] || other.is_all_set(c);
    if (is_alike != other_is_alike) return false;
    if (is_alike ? chunks_[c].get() != other.chunks_[c].get()
                 : chunks_[c]->words != other.chunks_[c]->words)
      return false;
  }
  return true;
}

}  // namespace tablestore
