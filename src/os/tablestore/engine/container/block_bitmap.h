// One bit per block of one container.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tablestore {

// A plain value; not thread-safe.
//
// It is kept in chunks, because most of a container is alike: of a chunk in which all blocks are
// clear, or all are set, only that is kept. Any other one has its bits, and a count of them, so
// that it is known when it becomes alike again.
class BlockBitmap {
 public:
  static constexpr uint32_t chunk_blocks = 4096;  // the last chunk may have fewer

  explicit BlockBitmap(uint32_t blocks);
  // The inverse of words(); what lies past `blocks` is passed over.
  BlockBitmap(uint32_t blocks, std::span<const uint64_t> words);
  BlockBitmap(const BlockBitmap& other);
  BlockBitmap(BlockBitmap&&) = default;
  BlockBitmap& operator=(const BlockBitmap& other);
  BlockBitmap& operator=(BlockBitmap&&) = default;

  uint32_t blocks() const { return blocks_; }
  bool test(uint32_t block) const {
    return words_of(block / chunk_blocks)[block % chunk_blocks / 64] >> (block % 64) & 1;
  }
  // Ranges must lie within blocks(). An empty range has none of anything and all of it.
  void set(uint32_t first, uint32_t count);
  void clear(uint32_t first, uint32_t count);
  bool any(uint32_t first, uint32_t count) const;
  bool all(uint32_t first, uint32_t count) const;
  uint32_t count() const;
  uint32_t count(uint32_t first, uint32_t count) const;
  // Appends clear blocks; never shrinks.
  void grow(uint32_t blocks);
  // Sets (clears) what is set in `other`, which is of the same size.
  void add(const BlockBitmap& other);
  void remove(const BlockBitmap& other);

  // The first block at or after `from` that is set (clear); blocks() where there is none.
  uint32_t next_set(uint32_t from) const;
  uint32_t next_clear(uint32_t from) const;

  // Several bitmaps of one size: one to four.
  using Several = std::span<const BlockBitmap* const>;
  // The first block at or after `from` that is set in one of them (clear in all); blocks() where
  // there is none.
  static uint32_t next_set(Several bitmaps, uint32_t from);
  static uint32_t next_clear(Several bitmaps, uint32_t from);
  // The first aligned run of `count` blocks (a power of two, at most a chunk) at or after `from`
  // that is entirely clear in all of them, and begins before `limit`.
  static std::optional<uint32_t> find_clear_run(Several bitmaps, uint32_t from, uint32_t count,
                                                uint32_t limit);

  // The first run of at least `min` blocks that are clear in all of them; of it, at most `max`
  // blocks. 0 blocks where there is none.
  struct Blocks {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  static Blocks find_clear_blocks(Several bitmaps, uint32_t min, uint32_t max);

  // As on the disk: block i is bit i % 64 of word i / 64.
  std::vector<uint64_t> words() const;
  uint32_t chunks() const { return uint32_t(chunks_.size()); }
  uint32_t blocks_in(uint32_t chunk) const;
  // A chunk by itself, as a bitmap of its blocks.
  BlockBitmap chunk(uint32_t index) const;
  // Where `chunk` has fewer blocks, the others are clear.
  void set_chunk(uint32_t index, const BlockBitmap& chunk);

  // What it takes beside the object itself.
  uint64_t memory_bytes() const;
  bool operator==(const BlockBitmap& other) const;

 private:
  static constexpr uint32_t chunk_words = chunk_blocks / 64;
  struct Bits {
    std::array<uint64_t, chunk_words> words;
    uint32_t count;
  };
  static const Bits none_set, all_set;
  struct Delete {
    void operator()(Bits* bits) const {
      if (bits != &all_set) delete bits;
    }
  };
  // Null: all are clear. &all_set: all are set. Else some are set and some are not, and bits past
  // blocks() are clear.
  using Chunk = std::unique_ptr<Bits, Delete>;
  // Of a chunk of several bitmaps: which blocks are set in one of them.
  class Union;

  const std::array<uint64_t, chunk_words>& words_of(uint32_t chunk) const {
    return (chunks_[chunk] ? *chunks_[chunk] : none_set).words;
  }
  bool is_all_set(uint32_t chunk) const { return chunks_[chunk].get() == &all_set; }
  uint32_t count_in(uint32_t chunk) const;
  static Chunk all_of_them() { return Chunk(const_cast<Bits*>(&all_set)); }  // never written
  static Chunk copy_of(const Chunk& chunk);
  // Gives a chunk bits of its own, calls word(index, the word now, its mask), which returns the
  // word from now on, and keeps what comes of it.
  template <typename Word>
  void change(uint32_t chunk, uint32_t first, uint32_t count, Word word);
  uint32_t blocks_;
  std::vector<Chunk> chunks_;
};

}  // namespace tablestore
