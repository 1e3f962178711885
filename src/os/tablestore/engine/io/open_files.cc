#include "os/tablestore/engine/io/open_files.h"

#include <algorithm>
#include <cerrno>

namespace tablestore {

void OpenFiles::add(Parkable& file) {
  std::lock_guard lock(mutex_);
  make_room();
  open_.push_back(&file);
}

void OpenFiles::remove(Parkable& file) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(open_, &file);
  if (found == open_.end()) return;
  *found = open_.back();
  open_.pop_back();
}

Status OpenFiles::open_again(Parkable& file) {
  std::lock_guard lock(mutex_);
  if (!file.is_parked()) return {};  // another thread was faster
  make_room();
  Status s = file.open_again();
  // Others of this process take descriptors, too.
  while ((s.code() == EMFILE || s.code() == ENFILE) && park_least_used()) s = file.open_again();
  if (s.ok()) open_.push_back(&file);
  return s;
}

bool OpenFiles::park_one() {
  std::lock_guard lock(mutex_);
  return park_least_used();
}

// For one more. Where all are in use there are more than there should be, for a while.
void OpenFiles::make_room() {
  while (max_ > 0 && open_.size() >= max_ && park_least_used()) {
  }
}

// Twice around: the first time, a file that was used is given another chance.
bool OpenFiles::park_least_used() {
  for (size_t looks = 2 * open_.size(); looks > 0; --looks) {
    if (next_ >= open_.size()) next_ = 0;
    Parkable& file = *open_[next_];
    if (file.was_used.exchange(false, std::memory_order_relaxed) || !file.park()) {
      ++next_;
      continue;
    }
    open_[next_] = open_.back();
    open_.pop_back();
    ++parked_;
    return true;
  }
  return false;
}

}  // namespace tablestore
