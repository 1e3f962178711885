// A file that holds nothing but space: given up when the file system is full, so that the table can
// be opened, flushed and compacted even then.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// Thread-safe. Nothing depends on the file "ballast": anybody may remove it, also while the store
// is open.
class Ballast {
 public:
  Ballast(Disk& disk, uint64_t bytes) : disk_(disk), bytes_(bytes) {}
  Ballast(const Ballast&) = delete;
  Ballast& operator=(const Ballast&) = delete;

  // Looks whether it is there. One that is not whole, as after a crash, is removed.
  Status open();
  // False: there is no space for it, or it cannot be made for another reason.
  bool make();
  // False: there was none.
  bool release();
  bool is_there() const { return is_there_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Disk& disk_;
  const uint64_t bytes_;
  std::mutex mutex_;  // one change at a time
  std::atomic<bool> is_there_{false};
};

}  // namespace tablestore
