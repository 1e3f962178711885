// A Disk that reads another one and keeps all changes to itself, in memory.
#pragma once

#include <memory>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// Whoever uses it sees what he has written; `below` is read, and nothing of it is changed: no byte,
// no name, no time of a change. So a store can be opened, and its log replayed, on a file system
// that is mounted read-only, or that must stay as it is. What is written is lost with this disk.
//
// What is written takes memory: rows of the log that is replayed, not data. Nothing is renamed, and
// no directory is removed (EROFS).
std::shared_ptr<Disk> freeze(std::shared_ptr<Disk> below);

}  // namespace tablestore
