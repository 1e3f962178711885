// Blocks in a container file: an extent, which lies in one slot, and a run, which may not.
#pragma once

#include <compare>
#include <cstdint>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// Slot classes double from 4 KiB (class 0) to 4 MiB (class 10).
inline constexpr unsigned slot_classes = 11;
inline constexpr uint32_t slot_blocks(unsigned slot_class) { return 1u << slot_class; }
inline constexpr uint32_t largest_slot_blocks = slot_blocks(slot_classes - 1);

// [block, block + blocks) of container `container`, in blocks of 4 KiB; of one slot or of several.
struct Run {
  uint32_t container = 0;
  uint32_t block = 0;
  uint32_t blocks = 0;

  uint32_t end() const { return block + blocks; }
  uint64_t offset_bytes() const { return uint64_t(block) * block_bytes; }
  uint64_t length_bytes() const { return uint64_t(blocks) * block_bytes; }
  auto operator<=>(const Run&) const = default;
};

// The same, but never across a boundary of the slot that it was allocated in.
struct Extent {
  uint32_t container = 0;
  uint32_t block = 0;
  uint32_t blocks = 0;

  uint32_t end() const { return block + blocks; }
  uint64_t offset_bytes() const { return uint64_t(block) * block_bytes; }
  uint64_t length_bytes() const { return uint64_t(blocks) * block_bytes; }
  operator Run() const { return {container, block, blocks}; }
  auto operator<=>(const Extent&) const = default;
};

}  // namespace tablestore
