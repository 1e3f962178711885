// Looks, about twice a second, whether somebody else shares or moves the blocks of a store's files.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "os/tablestore/engine/io/disk.h"
#include "os/tablestore/engine/threads.h"
#include "os/tablestore/engine/troubles.h"

namespace tablestore {

// Calls File::watch() of every file, and raises FS_SHARED for as long as blocks of one are shared.
// Where threads do not run by themselves nobody else is there, and nothing is done. start(), stop()
// and the destructor from one thread; `mutex_` guards `stopping_` and is not held over a look.
class FileWatch {
 public:
  // Calls its argument with each file of the store, which stays open meanwhile.
  using VisitFiles = std::function<Status(const std::function<Status(File&)>&)>;
  struct Parts {
    VisitFiles visit_files;
    Threads& threads;
    Troubles& troubles;
    std::function<void(const std::string&)> warn;
    std::function<void(const Status&)> on_error;  // at most once: then it looks no more
  };
  explicit FileWatch(Parts parts) : parts_(std::move(parts)) {}
  ~FileWatch() { stop(); }
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  void start();
  void stop();
  // All files once. An error: the disk fails.
  Status look();

 private:
  void run();
  void tell(uint64_t shared, const std::string& first);

  const Parts parts_;
  // Of whoever calls look().
  uint64_t turn_ = 0;  // the number of the first file whose extents are looked at in any case
  std::string told_;
  bool told_unguarded_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::unique_ptr<Worker> worker_;
};

}  // namespace tablestore
