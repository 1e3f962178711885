// A file that holds nothing but space: given up when the file system is full, so that the table can
// be opened, flushed and compacted even then.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// Thread-safe. Nothing depends on the file: anybody may remove it, also while the store is open.
class Ballast {
 public:
  // Less than `least_bytes` is of no use to who needs it; it may be all of `bytes`.
  Ballast(Disk& disk, std::string path, uint64_t bytes, uint64_t least_bytes)
      : disk_(disk), path_(std::move(path)), bytes_(bytes), least_bytes_(least_bytes) {}
  Ballast(const Ballast&) = delete;
  Ballast& operator=(const Ballast&) = delete;

  // Looks whether it is there. One that is of no use, as after a crash, is removed.
  Status open();
  // All of it, or else as much as there is space for: a half, a quarter... What is there already
  // stays where all of it cannot be had. False: nothing has changed.
  bool make();
  // False: there was none.
  bool release();
  uint64_t bytes() const { return bytes_; }
  uint64_t held_bytes() const { return held_bytes_; }  // 0: it is not there
  bool is_whole() const { return held_bytes_ == bytes_; }

 private:
  bool grow_to(uint64_t bytes);

  Disk& disk_;
  const std::string path_;
  const uint64_t bytes_, least_bytes_;
  std::mutex mutex_;  // one change at a time
  std::atomic<uint64_t> held_bytes_{0};
};

}  // namespace tablestore
