// Checkpoints: makes the table durable and recycles the log before it, in the background.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "os/tablestore/engine/commit/commit_lane.h"

namespace tablestore {

// request() from any thread, the lane's included; run_now() from any but the lane's. One checkpoint
// at a time.
class Checkpointer {
 public:
  Checkpointer(CommitLane& lane, Table& table, Counters& counters, const Reporter& reporter);
  ~Checkpointer();  // after CommitLane::stop() where a checkpoint may be waiting for the
                    // lane
  void start();
  // Soon, in the background. A file system that is full is waited for; other errors are fatal.
  void request();
  // What request() asked for, in this thread; false where the file system is full: the request
  // stands.
  bool run_requested();
  // Now; returns when the log before this call is not needed any more.
  Status run_now();

 private:
  void run();
  CommitLane& lane_;
  Table& table_;
  Counters& counters_;
  const Reporter& reporter_;
  std::mutex one_at_a_time_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool requested_ = false;
  bool stopping_ = false;
  bool full_ = false;  // the last one met a full file system; of the thread that runs requests
  std::thread thread_;
};

}  // namespace tablestore
