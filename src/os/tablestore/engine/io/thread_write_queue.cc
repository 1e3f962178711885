#include "os/tablestore/engine/io/thread_write_queue.h"

#include <pthread.h>

#include <algorithm>

#include "os/tablestore/engine/io/posix_file.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {

ThreadWriteQueue::ThreadWriteQueue(unsigned threads) {
  for (unsigned i = 0; i < std::max(threads, 1u); ++i) {
    threads_.emplace_back([this] { work(); });
    pthread_setname_np(threads_.back().native_handle(), "tstore_write");
  }
}

ThreadWriteQueue::~ThreadWriteQueue() {
  {
    std::lock_guard lock(mutex_);
    require(waiting_.empty() && running_ == 0 && completed_.empty(),
            "a queue is drained before it is destroyed");
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadWriteQueue::submit(std::span<WriteOp* const> ops, Begin) {
  {
    std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), ops.begin(), ops.end());
  }
  requests_ += ops.size();
  if (ops.size() == 1) {
    work_.notify_one();
  } else {
    work_.notify_all();
  }
}

void ThreadWriteQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    WriteOp* const op = waiting_.front();
    waiting_.pop_front();
    ++running_;
    lock.unlock();
    const int error = posix_file(*op).write_all(op->offset, op->iov);
    lock.lock();
    --running_;
    completed_.push_back({op, error});
    if (completed_.size() == 1) completion_.notify_one();
  }
}

size_t ThreadWriteQueue::reap(bool wait) {
  std::vector<Completion> completed;
  {
    std::unique_lock lock(mutex_);
    if (wait) {
      completion_.wait(lock, [this] { return woken_ || !completed_.empty(); });
      woken_ = false;
    }
    completed.swap(completed_);
  }
  for (const Completion& each : completed) each.op->done(*each.op, each.error);
  return completed.size();
}

void ThreadWriteQueue::wake() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
  }
  completion_.notify_one();
}

}  // namespace tablestore
