#include "os/tablestore/engine/space/ballast.h"

#include <vector>

namespace tablestore {

namespace {

constexpr const char* path = "ballast";

}  // namespace

Status Ballast::open() {
  std::lock_guard lock(mutex_);
  const auto found = disk_.exists(path);
  if (!found.ok()) return found.status();
  if (!*found) return {};
  {
    auto file = disk_.open(path, OpenMode::read_write);
    if (!file.ok()) return file.status();
    std::vector<ByteRange> holes;
    const auto extents = (*file)->unwritten(&holes);
    is_there_ = (*file)->size_bytes() == bytes_ && extents.ok() && holes.empty();
  }
  return is_there_ ? Status() : disk_.remove(path);
}

bool Ballast::make() {
  std::lock_guard lock(mutex_);
  if (is_there_) return true;
  {
    auto file = disk_.open(path, OpenMode::create_new);
    if (file.ok() && (*file)->allocate(0, bytes_).ok()) is_there_ = true;
  }
  if (!is_there_) (void)disk_.remove(path).ok();
  return is_there_;
}

bool Ballast::release() {
  std::lock_guard lock(mutex_);
  if (!is_there_ || !disk_.remove(path).ok()) return false;
  is_there_ = false;
  return true;
}

}  // namespace tablestore
