// Blocks that are kept free for what has to be written also when nothing is available: by then all
// that others could take has been taken.
#pragma once

#include <cstdint>
#include <mutex>

#include "os/tablestore/engine/container/allocator.h"

namespace tablestore {

// Holds a reservation in the allocator, so that its blocks are neither promised to others nor given
// back to the file system. Thread-safe.
class LastResort {
 public:
  LastResort(Allocator& allocator, uint64_t blocks) : allocator_(allocator), blocks_(blocks) {}
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

  // Takes of what is free and promised to nobody.
  void refill();
  // Who calls has reserved so many in the allocator.
  void add(uint64_t blocks);
  // Turns to a reservation of the caller, together with what else is free. False: there is not so
  // much, and nothing is taken.
  bool take(uint64_t blocks);
  // Gives all of it up, until the next refill().
  void release();
  uint64_t held_blocks() const;
  uint64_t lacking_blocks() const;

 private:
  Allocator& allocator_;
  const uint64_t blocks_;
  mutable std::mutex mutex_;
  uint64_t held_ = 0;  // guarded by mutex_
};

}  // namespace tablestore
