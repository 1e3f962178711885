// Somebody who copies files of a store in use, as a plain `cp` does on XFS: the copy shares the
// blocks of the file.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "test/tablestore/sim/disk_image.h"

namespace tablestore::powercut {

// Owns a thread, which makes and deletes copies of log segments and containers in the store's
// directory until the end of this object. Does nothing where the file system cannot share blocks.
class Copier {
 public:
  Copier(std::string dir, uint64_t seed);
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

 private:
  void run();
  // False where the file system cannot.
  bool copy_one();
  std::string any_file();

  const std::string dir_;
  sim::Random random_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace tablestore::powercut
