// The thread that keeps containers ready and gives idle space back.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "os/tablestore/engine/container/containers.h"
#include "os/tablestore/engine/status.h"

namespace tablestore {

// One thread that calls Containers::prepare_step() and shrink_step(), no faster than the rates in
// ContainerOptions, and at long intervals while there is nothing to do. start(), stop() and the
// destructor from one thread. `mutex_` guards `stopping_` and is not held over a step.
class Background {
 public:
  // `on_error` runs in the thread, at most once: after an error no more steps are made.
  Background(Containers& containers, std::function<void(const Status&)> on_error);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();

  void start();
  // Returns when the step in hand has ended.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  // One kind of work: when its next step is due.
  struct Pace {
    Result<bool> (Containers::*step)(uint64_t* bytes_done);
    uint64_t bytes_per_second;     // 0: never
    Clock::duration idle_interval; // after a step that found nothing to do
    Clock::time_point due{};
  };
  void run();
  Status make_step(Pace& pace);

  Containers& containers_;
  const std::function<void(const Status&)> on_error_;
  Pace prepare_;  // both used by the thread only
  Pace shrink_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tablestore
