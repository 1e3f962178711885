// The moment of a crash: what the disk held, and what the oracle knew then.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>

#include "test/tablestore/sim/disk_image.h"

namespace tablestore::sim {

// What was being done when a crash came; several may be.
enum class Moment : uint8_t {
  recovering,
  checkpointing,
  flushing,    // the table, of its own accord
  compacting,
  preparing,   // zeros ahead of use are not durable yet
  growing,     // a container, or the space of a punched part of one
  punching,
  removing,    // a container
  reclassing,  // a container gets another class, and with it another name
  wrapping,    // the log's end goes on at its beginning
  full,        // next to nothing is left on the disk
};
inline constexpr unsigned moments = 11;
const char* moment_name(Moment moment);
using Moments = std::bitset<moments>;

// What a crash needs to know about the moment.
struct Snapshot {
  DiskImage image;
  uint64_t acknowledged_lsn = 0;
  std::string io;
  Moments moments = {};
};

}  // namespace tablestore::sim
