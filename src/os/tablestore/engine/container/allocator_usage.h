// The allocator in numbers: what policies look at, and the limits that they set.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "os/tablestore/engine/format/extent.h"

namespace tablestore {

// Blocks per state and class; a snapshot, for statfs, counters and the policy of background work.
struct AllocatorUsage {
  struct Class {
    uint64_t containers = 0;
    uint64_t blocks = 0;
    uint64_t free_blocks = 0;
    uint64_t closed_free_blocks = 0;     // part of free_blocks: see Allocator::close_containers()
    uint64_t unwritten_free_blocks = 0;  // part of free_blocks, none of them closed
    uint64_t punched_blocks = 0;
    // Slots of this class that requests called for lately, also where they were served by
    // splitting; halved whenever the sum over all classes gets to Allocator::demand_window. 0: the
    // class is not in use.
    uint64_t recent_slots = 0;
    // In containers of which every block is free, closed ones left out.
    uint64_t whole_blocks = 0;
    uint64_t whole_unwritten_blocks = 0;  // part of whole_blocks
    uint64_t first_touch_blocks = 0;     // of whole slots, ever: taken before they were written
  };
  std::array<Class, slot_classes> classes;
  uint64_t blocks = 0;           // in all containers
  uint64_t free_blocks = 0;      // neither held nor punched
  uint64_t punched_blocks = 0;
  uint64_t reserved_blocks = 0;  // of the free ones, promised by reserve()
  uint64_t owned_blocks = 0;

  uint64_t containers() const {
    uint64_t sum = 0;
    for (const Class& of : classes) sum += of.containers;
    return sum;
  }
  uint64_t whole_blocks() const {
    uint64_t sum = 0;
    for (const Class& of : classes) sum += of.whole_blocks;
    return sum;
  }
};

// A container, and its blocks by what they are.
struct ContainerUsage {
  uint32_t container = 0;
  std::string path;             // of its file: who knows the files fills it in
  unsigned slot_class = 0;
  bool is_closed = false;       // see Allocator::close_containers()
  uint32_t blocks = 0;
  uint32_t owned_blocks = 0;    // by rows
  uint32_t free_blocks = 0;
  uint32_t unwritten_free_blocks = 0;  // part of free_blocks
  uint32_t punched_blocks = 0;
};

// What background work that gives space back must leave alone.
struct QuietRule {
  // Per class: free blocks that stay as they are.
  std::array<uint64_t, slot_classes> spare_blocks{};
  // Of AllocatorUsage::whole_blocks(): so many stay as they are, of whatever class.
  uint64_t whole_blocks = 0;
  // Only containers of which no block was handed out during the last so many
  // Allocator::advance_age().
  uint64_t min_age = 0;
  // Only containers with so many free blocks: what is punched has no space to give.
  uint32_t min_free_blocks = 0;
};

}  // namespace tablestore
