// How free space is cut up: what an operator or a tool looks at.
#pragma once

#include <array>
#include <cstdint>

#include "os/tablestore/engine/format/extent.h"

namespace tablestore {

// Fragmentation as BlueStore scores it: 0 where free space could not be in fewer pieces, 1 where
// every free block lies alone. Twice as much in one piece is worth 1.2 times two pieces, up to
// 1 MiB; from there to 128 MiB that falls to nothing. A piece ends with its container, so that
// empty containers are the best that there can be.
class FragmentationScore {
 public:
  explicit FragmentationScore(uint64_t container_blocks) : container_blocks_(container_blocks) {}
  // A run of free blocks between two that are not.
  void add(uint64_t blocks);
  double score() const;

 private:
  const uint64_t container_blocks_;
  uint64_t blocks_ = 0;
  double worth_ = 0;
};

// Free space: neither owned by a row nor on its way there. What was given back to the file system
// (punched) is a part of it.
struct FreeSpace {
  // Runs of 2^n to 2^(n+1) - 1 blocks.
  struct Bin {
    uint64_t runs = 0;
    uint64_t blocks = 0;
  };
  struct Class {
    std::array<Bin, 32> bins;
    uint64_t blocks = 0;
    uint32_t largest_blocks = 0;   // of the longest run
    double score = 0;
  };
  std::array<Class, slot_classes> classes;
  uint64_t blocks = 0;
  double score = 0;   // of all runs
};

}  // namespace tablestore
