// One bit per block of one container.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tablestore {

// A plain value; not thread-safe. The words go to disk as they are (little endian); bits past
// blocks() are always clear.
class BlockBitmap {
 public:
  explicit BlockBitmap(uint32_t blocks) : blocks_(blocks), words_((blocks + 63) / 64, 0) {}
  uint32_t blocks() const { return blocks_; }
  bool test(uint32_t block) const { return words_[block / 64] >> (block % 64) & 1; }
  // Ranges must lie within blocks(). An empty range has none of anything and all of it.
  void set(uint32_t first, uint32_t count);
  void clear(uint32_t first, uint32_t count);
  bool any(uint32_t first, uint32_t count) const;
  bool all(uint32_t first, uint32_t count) const;
  uint32_t count() const;
  uint32_t count(uint32_t first, uint32_t count) const;
  // Appends clear blocks; never shrinks.
  void grow(uint32_t blocks);

  // The first block at or after `from` that is set (clear); blocks() where there is none.
  uint32_t next_set(uint32_t from) const;
  uint32_t next_clear(uint32_t from) const;

  // The first aligned, entirely clear run of `count` blocks (a power of two) at or after `from`.
  std::optional<uint32_t> find_clear_run(uint32_t from, uint32_t count) const;
  // The same for a run that is clear in `other` as well (of the same size), and that begins
  // before `limit`.
  std::optional<uint32_t> find_clear_run(uint32_t from, uint32_t count, const BlockBitmap& other,
                                         uint32_t limit) const;

  std::vector<uint64_t>& words() { return words_; }
  const std::vector<uint64_t>& words() const { return words_; }
  bool operator==(const BlockBitmap&) const = default;

 private:
  uint32_t blocks_;
  std::vector<uint64_t> words_;
};

}  // namespace tablestore
