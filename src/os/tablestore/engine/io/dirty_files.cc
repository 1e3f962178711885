#include "os/tablestore/engine/io/dirty_files.h"

#include "os/tablestore/engine/io/system_call.h"

namespace tablestore {

void DirtyFiles::add(int fd) {
  std::lock_guard lock(mutex_);
  dirty_.insert(fd);
}

int DirtyFiles::flush(int fd) {
  std::lock_guard turn(flush_mutex_);
  std::set<int> files;
  {
    std::lock_guard lock(mutex_);
    files.swap(dirty_);
  }
  files.insert(fd);
  for (int file : files) {
    if (error_) break;
    error_ = flush_file(file);
  }
  return error_;
}

void DirtyFiles::forget(int fd) {
  std::lock_guard turn(flush_mutex_);
  {
    std::lock_guard lock(mutex_);
    if (dirty_.erase(fd) == 0) return;
  }
  if (!error_) error_ = flush_file(fd);
}

}  // namespace tablestore
