// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/hobject.h"
#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// Goes through the rows of all objects, some at a time and without a lock, for those that have
/// blocks in some containers. What it finds is a hint: as of a moment when it was applied.
///
/// First the rows of extent maps, which have no names but numbers; then those of objects. So both
/// are read in their order. Not thread-safe.
class ObjectWalk {
 public:
  explicit ObjectWalk(Engine& engine) : engine(engine) {}

  void begin();
  /// Looks at so many rows; appends what it finds.
  void look(const std::set<uint32_t>& containers, unsigned rows, std::vector<ghobject_t>* found);
  /// All rows were looked at, or what is left cannot be read.
  bool at_end() const { return phase == Phase::end; }

 private:
  enum class Phase { extent_maps, objects, end };
  void look_at_extent_map(const std::set<uint32_t>& containers, std::string_view key,
                          std::string_view row);
  bool is_wanted(const std::set<uint32_t>& containers, std::string_view row) const;

  Engine& engine;
  Phase phase = Phase::end;
  std::string at;                        ///< the next key
  std::unordered_set<uint64_t> nids;     ///< of objects that have extent maps of their own
};

}  // namespace tablestore
