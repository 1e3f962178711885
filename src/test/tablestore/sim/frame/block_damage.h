// One damaged block.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "test/tablestore/sim/disk_image.h"

namespace tablestore::sim {

struct BlockDamage {
  enum class Kind : uint8_t {
    rot,         // a bit of it has flipped
    unreadable,
    stale,       // it holds what it held in an older image
  };
  Kind kind;
  std::string path;
  uint32_t block;

  std::string name() const;   // in that of a case
  std::string story() const;
  // To what lies there at rest. `seed` chooses the bit, of bytes that are not zero where there are
  // any; in the table's files by its place alone, since what they hold hangs on the time of day.
  // False: nothing lies there that could become so.
  bool apply(const DiskImage& older, uint64_t seed, DiskImage* image) const;
};
inline constexpr std::array block_damage_kinds = {
    BlockDamage::Kind::rot, BlockDamage::Kind::unreadable, BlockDamage::Kind::stale};

}  // namespace tablestore::sim
