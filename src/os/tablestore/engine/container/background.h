// What keeps containers ready and gives idle space back.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "os/tablestore/engine/container/containers.h"
#include "os/tablestore/engine/status.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

// Two pieces of work, "prepare" and "shrink", which call Containers::prepare_step() and
// shrink_step(), no faster than the rates in ContainerOptions, the first as PreparePace says, and
// now and then while there is nothing to do. start(), stop() and the destructor from one
// thread. `mutex_` guards `stopping_` and is not held over a step.
class Background {
 public:
  // `on_error` runs in the work, at most once: after an error no more steps are made.
  // `operations`: see Lull; asked in the work.
  Background(Containers& containers, Threads& threads,
             std::function<void(const Status&)> on_error,
             std::function<std::optional<uint64_t>()> operations);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();

  void start();
  // Returns when the steps in hand have ended.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  void run_prepare();
  void run_shrink();
  // False where there was nothing to do, or nothing is done any more.
  bool step(const std::function<Result<Worked>()>& make);
  // False when it is to end.
  bool rest(Clock::duration time);
  void rest_for_good();

  Containers& containers_;
  Threads& threads_;
  const std::function<void(const Status&)> on_error_;
  const std::function<std::optional<uint64_t>()> operations_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::unique_ptr<Worker> prepare_, shrink_;
};

}  // namespace tablestore
