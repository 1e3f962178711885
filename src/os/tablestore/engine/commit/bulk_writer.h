// Writes large data in a thread of its own. While the commit lane waits for a flush it submits no
// writes, and the disk would be idle.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "os/tablestore/engine/io/disk.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

// Owns a queue of writes and a thread that starts and completes them; their `done` runs there. Only
// where threads run by themselves. submit() from any thread.
class BulkWriter {
 public:
  // `progress` is called in the thread after some have completed.
  BulkWriter(Threads& threads, std::unique_ptr<WriteQueue> writes,
             std::function<void()> progress);
  // When all that was submitted has completed.
  ~BulkWriter();
  BulkWriter(const BulkWriter&) = delete;
  BulkWriter& operator=(const BulkWriter&) = delete;

  void submit(std::span<WriteOp* const> ops);
  uint64_t requests() const { return writes_->requests(); }

 private:
  void run();

  Threads& threads_;
  const std::unique_ptr<WriteQueue> writes_;
  const std::function<void()> progress_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable work_;
  uint64_t pending_ = 0;
  bool stopping_ = false;
  std::unique_ptr<Worker> worker_;  // last: it uses all others
};

}  // namespace tablestore
