// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tablestore {

/// Threads that take part in one read of many pieces, so that a fragmented object costs a few waits
/// for the disk and not one for each piece.
///
/// The caller takes part too, and never waits for a helper to get to its work: with all helpers
/// busy it does everything itself. The threads start with the first such read. Thread-safe.
class ReadHelpers {
 public:
  explicit ReadHelpers(unsigned threads_max);
  /// No run() is under way.
  ~ReadHelpers();

  /// f(0) to f(count - 1), in any order, several at a time; returns when all have returned.
  void run(size_t count, const std::function<void(size_t)>& f);

 private:
  struct Job {
    const std::function<void(size_t)>* f = nullptr;
    size_t count = 0;
    size_t next = 0;       ///< not yet begun
    size_t running = 0;
    std::condition_variable finished;
  };

  void work();
  /// Begins one after the other until all have begun. `l` is held at entry and at return.
  void take_part(Job& job, std::unique_lock<std::mutex>& l);

  const unsigned threads_max;
  std::mutex mutex;                        ///< guards all below, and the jobs
  std::condition_variable wanted;
  std::deque<std::shared_ptr<Job>> jobs;   ///< those with something left to begin
  std::vector<std::thread> threads;
  bool stopping = false;
};

}  // namespace tablestore
