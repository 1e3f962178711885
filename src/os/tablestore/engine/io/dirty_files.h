// The files that a flush of any file must take along, on a disk where a flush covers only its own
// file.
#pragma once

#include <mutex>
#include <set>

namespace tablestore {

// Keeps a promise of Disk (a flush of any file covers the completed writes to all) where the file
// system does not: in the page cache of tmpfs, or on a copy-on-write file system.
//
// Thread-safe. `mutex_` guards the set; `flush_mutex_` (taken first) makes flushes take turns,
// since one that finds the set empty may return only after the one that emptied it.
class DirtyFiles {
 public:
  // After each write to `fd` that completed, before anybody is told.
  void add(int fd);
  // Flushes `fd` and all files that were added. 0 or an errno; after an error always that errno.
  int flush(int fd);
  // Before `fd` is closed.
  void forget(int fd);

 private:
  std::mutex flush_mutex_;
  std::mutex mutex_;
  std::set<int> dirty_;
  int error_ = 0;  // the first, under flush_mutex_
};

}  // namespace tablestore
