// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "os/tablestore/object/onode.h"
#include "os/tablestore/object/reference_maps.h"

namespace tablestore {

/// How many extents of objects refer to each block of shared extents, as counted in the extent
/// maps. Takes memory for runs of blocks that have one count, however many extents were added.
class ReferenceCounts {
 public:
  /// Blocks of one shared extent that have the same number of references.
  struct Run {
    uint32_t container = 0;
    uint32_t name = 0;         ///< of the shared extent: its first block
    uint32_t block = 0;
    uint32_t blocks = 0;
    uint32_t references = 0;
    int32_t pool = 0;          ///< of one of the objects

    bool is_of_same(const Run& other) const
    {
      return container == other.container && name == other.name;
    }
    bool operator==(const Run&) const = default;
  };
  explicit ReferenceCounts(std::pmr::memory_resource* memory) : all(memory) {}

  bool empty() const { return all.empty(); }
  /// One reference to each block of a shared extent.
  void add(const MappedExtent& e, int64_t pool);
  void add(const Run& run);
  void add(std::span<const Run> runs);
  /// What the row says.
  void add(const ReferenceMap& map, int64_t pool);
  /// What was counted: by container, name and block; of each shared extent, runs that meet have
  /// different numbers. Valid until the next call.
  std::span<const Run> runs();
  void clear() { all.clear(); }

 private:
  void add_up();

  std::pmr::vector<Run> all;
  size_t is_added_up = 0;   ///< so many runs in front
};

/// The runs of the first shared extent in `runs`.
std::span<const ReferenceCounts::Run> first_name(std::span<const ReferenceCounts::Run> runs);
/// Makes the map, which has a name, what the row should be; empty where nothing refers to it.
void fill(ReferenceMap* map, std::span<const ReferenceCounts::Run> runs);
/// Whether the map has the references that were counted.
bool agrees(const ReferenceMap& map, std::span<const ReferenceCounts::Run> runs);

}  // namespace tablestore
