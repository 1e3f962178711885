#include "os/tablestore/engine/container/last_resort.h"

#include <algorithm>

namespace tablestore {

void LastResort::refill() {
  std::lock_guard lock(mutex_);
  const AllocatorUsage usage = allocator_.usage();
  const uint64_t some = std::min(blocks_ - held_, usage.free_blocks - usage.reserved_blocks);
  if (some > 0 && allocator_.reserve(some)) held_ += some;  // else others were faster
}

void LastResort::add(uint64_t blocks) {
  std::lock_guard lock(mutex_);
  const uint64_t kept = std::min(blocks, blocks_ - held_);
  held_ += kept;
  allocator_.unreserve(blocks - kept);
}

bool LastResort::take(uint64_t blocks) {
  std::lock_guard lock(mutex_);
  const uint64_t of_held = std::min(blocks, held_);
  if (blocks > of_held && !allocator_.reserve(blocks - of_held)) return false;
  held_ -= of_held;
  return true;
}

void LastResort::release() {
  std::lock_guard lock(mutex_);
  allocator_.unreserve(held_);
  held_ = 0;
}

uint64_t LastResort::held_blocks() const {
  std::lock_guard lock(mutex_);
  return held_;
}

uint64_t LastResort::lacking_blocks() const {
  std::lock_guard lock(mutex_);
  return blocks_ - held_;
}

}  // namespace tablestore
