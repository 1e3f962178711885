// Asynchronous writes where io_uring may not be used: threads that write and wait.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// Owns the threads. `mutex_` guards all else. An operation is in `waiting_`, then with a thread,
// then in `completed_` until reap() tells its owner.
class ThreadWriteQueue : public WriteQueue {
 public:
  explicit ThreadWriteQueue(unsigned threads);
  ~ThreadWriteQueue() override;

  // All begin as soon as a thread is free, which is not the one that reaps.
  void submit(std::span<WriteOp* const> ops, Begin begin) override;
  size_t reap(bool wait) override;
  void wake() override;
  uint64_t requests() const override { return requests_; }

 private:
  struct Completion {
    WriteOp* op;
    int error;
  };
  void work();

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable completion_;
  std::deque<WriteOp*> waiting_;
  std::vector<Completion> completed_;
  size_t running_ = 0;
  std::atomic<uint64_t> requests_{0};
  bool woken_ = false;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tablestore
