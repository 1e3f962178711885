// Which files of a disk have a descriptor, where there may be more files than descriptors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "os/tablestore/engine/status.h"

namespace tablestore {

// Parks files that nobody has used for the longest time, about, when there are too many open ones:
// a parked file has no descriptor, and gets one when somebody uses it.
//
// Thread-safe. `mutex_` is held while files are parked and opened again, one after the other.
class OpenFiles {
 public:
  class Parkable {
   public:
    virtual ~Parkable() = default;
    // False: somebody uses it, or it has to stay open.
    virtual bool park() = 0;
    virtual bool is_parked() const = 0;
    // EMFILE, ENFILE: when fewer are open.
    virtual Status open_again() = 0;
    std::atomic<bool> was_used{true};  // since it was last looked at
  };

  // 0: as many as there are.
  void set_max(size_t max) { max_ = max; }
  // A file that is open.
  void add(Parkable& file);
  void remove(Parkable& file);
  // Opens a file that is parked, if it still is, and parks others.
  Status open_again(Parkable& file);
  // For who needs a descriptor and gets none. False: all are in use.
  bool park_one();
  uint64_t parked() const { return parked_; }  // so often

 private:
  // With the mutex held.
  void make_room();
  bool park_least_used();

  size_t max_ = 0;
  std::mutex mutex_;
  std::vector<Parkable*> open_;
  size_t next_ = 0;  // of open_: to be looked at
  std::atomic<uint64_t> parked_{0};
};

}  // namespace tablestore
