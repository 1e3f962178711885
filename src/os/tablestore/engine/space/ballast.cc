#include "os/tablestore/engine/space/ballast.h"

#include <vector>

namespace tablestore {

Status Ballast::open() {
  std::lock_guard lock(mutex_);
  const auto found = disk_.exists(path_);
  if (!found.ok()) return found.status();
  if (!*found) return {};
  {
    auto file = disk_.open(path_, OpenMode::read_write);
    if (!file.ok()) return file.status();
    std::vector<ByteRange> holes;
    const auto extents = (*file)->unwritten(&holes);
    const uint64_t bytes = (*file)->size_bytes();
    if (extents.ok() && holes.empty() && bytes >= least_bytes_ && bytes <= bytes_)
      held_bytes_ = bytes;
  }
  return held_bytes_ > 0 ? Status() : disk_.remove(path_);
}

bool Ballast::make() {
  std::lock_guard lock(mutex_);
  for (uint64_t bytes = bytes_; bytes >= least_bytes_ && bytes > held_bytes_;
       bytes = bytes / 2 / block_bytes * block_bytes)
    if (grow_to(bytes)) return true;
  return false;
}

bool Ballast::grow_to(uint64_t bytes) {
  const bool is_there = held_bytes_ > 0;
  bool done = false;
  {
    auto file = disk_.open(path_, is_there ? OpenMode::read_write : OpenMode::create_new);
    done = file.ok() && (*file)->allocate(held_bytes_, bytes - held_bytes_).ok();
  }
  if (done) held_bytes_ = bytes;
  if (!done && !is_there) (void)disk_.remove(path_).ok();
  return done;
}

bool Ballast::release() {
  std::lock_guard lock(mutex_);
  if (held_bytes_ == 0 || !disk_.remove(path_).ok()) return false;
  held_bytes_ = 0;
  return true;
}

}  // namespace tablestore
