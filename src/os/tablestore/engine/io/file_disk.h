// A Disk that is a directory of a real file system.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

class LargePages;

struct FileDiskOptions {
  bool io_uring = true;            // false: always use threads
  unsigned queue_depth = 256;      // writes in flight per queue, with io_uring
  unsigned fallback_threads = 16;  // per queue, without it
  bool direct = true;              // false: through the page cache
  bool read_only = false;          // nothing is made or tried that changes anything; files that are
                                   // opened have a lock that others who read can have, too
  unsigned lock_wait_ms = 5000;    // for a file that somebody else has locked
  size_t parkable_open_max = 0;    // of files with File::let_park(): how many are open at once,
                                   // where no more are in use; 0: all
  std::shared_ptr<LargePages> large_pages;  // what large reads go through, where direct; null: none
  // One line for each way in which this disk does less than it could, and why.
  std::function<void(const std::string&)> log;
};

// ENOENT, ENOTDIR, EACCES ... The directory must stay where it is.
Result<std::unique_ptr<Disk>> open_file_disk(const std::string& directory, FileDiskOptions options);

}  // namespace tablestore
