// What a process that lives on a store shares with whoever starts and ends it: the beginning of a
// file in memory that both map.
#pragma once

#include <atomic>
#include <cstdint>

namespace tablestore::powercut {

struct LifeReport {
  // Each has an order of its own, and its own count of what was acknowledged.
  static constexpr unsigned sequences = 8;

  // From who starts it.
  uint64_t shape;              // of the store, the same for all its lives
  uint64_t seed;               // of what this one does
  uint64_t floor[sequences];   // what the lives before it have acknowledged
  bool writes;                 // it goes on writing after it has judged what it found

  // From the process. Until it has begun, the store is to be judged by the floor.
  std::atomic<bool> begun;
  std::atomic<uint64_t> acknowledged[sequences];
};

}  // namespace tablestore::powercut
