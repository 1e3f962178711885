// What keeps containers ready and gives idle space back.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "os/tablestore/engine/container/containers.h"
#include "os/tablestore/engine/container/prepare_pace.h"
#include "os/tablestore/engine/status.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

// Two pieces of work, "prepare" and "shrink", which call Containers::prepare_step() and
// shrink_step(), no faster than the rates in ContainerOptions, the first with a PreparePace, and at
// long intervals while there is nothing to do. start(), stop() and the destructor from one thread.
// `mutex_` guards `stopping_` and is not held over a step.
class Background {
 public:
  // `on_error` runs in the work, at most once: after an error no more steps are made.
  Background(Containers& containers, Threads& threads,
             std::function<void(const Status&)> on_error);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();

  void start();
  // Returns when the steps in hand have ended.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Work {
    const char* name;
    uint64_t bytes_per_second;  // 0: never
    std::function<Result<Worked>(uint64_t* bytes_done)> step;
    // How long to rest after a step that moved so much, and after one that found nothing to do.
    std::function<Clock::duration(uint64_t bytes, Clock::duration took)> rest;
    std::function<Clock::duration()> idle;
    std::unique_ptr<Worker> worker;
  };
  Work prepare();
  Work shrink();
  void run(const Work& work);
  bool step(const Work& work, uint64_t* bytes_done);

  Containers& containers_;
  Threads& threads_;
  const std::function<void(const Status&)> on_error_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  PreparePace pace_;  // of the worker
  Work prepare_, shrink_;
};

}  // namespace tablestore
