// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "include/buffer.h"
#include "os/tablestore/engine/format/extent.h"

namespace tablestore {

/// Of a reference map: where its first block is.
struct ReferenceMapName {
  uint32_t container = 0;
  uint32_t first_block = 0;
  auto operator<=>(const ReferenceMapName&) const = default;
};

/// What of one object goes to other blocks, as it was when it was read and verified. The checksums
/// are those that it has had all along.
struct BlocksToMove {
  /// Contiguous in the object, which owns it alone.
  struct Part {
    uint64_t first_block = 0;
    std::vector<Extent> from;
    std::vector<uint32_t> checksums;
    ceph::buffer::list data;
  };
  std::vector<Part> parts;
  uint64_t bytes = 0;
  static constexpr uint64_t all = std::numeric_limits<uint64_t>::max();
  uint64_t next_block = all;            ///< of the object: what is before it was looked at
  uint64_t unreadable_bytes = 0;        ///< stays where it is
  std::set<ReferenceMapName> shared;    ///< with others: see SharedToMove
};

/// The same of what several objects share by one reference map.
struct SharedToMove {
  struct Block {
    uint32_t block;        ///< in the container
    uint32_t references;   ///< more than 0
    uint32_t checksum;
    bool operator==(const Block&) const = default;
  };
  /// An extent of one of the owners.
  struct Use {
    size_t owner;
    uint64_t logical_block;
    uint32_t block;        ///< in the container
    uint32_t blocks;
    bool operator==(const Use&) const = default;
  };
  ReferenceMapName name;
  std::vector<Block> blocks;   ///< ascending
  std::vector<Use> uses;
  ceph::buffer::list data;     ///< of the blocks

  bool is_of(const SharedToMove& other) const
  {
    return name == other.name && blocks == other.blocks && uses == other.uses;
  }
  uint64_t bytes() const { return blocks.size() * uint64_t(block_bytes); }
};

}  // namespace tablestore
