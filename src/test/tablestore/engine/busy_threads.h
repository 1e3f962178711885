// Threads that run step by step, among which another one comes in wherever it may.
#pragma once

#include <functional>
#include <utility>

#include "test/tablestore/sim/stepped_threads.h"

namespace tablestore {

class BusyThreads : public sim::SteppedThreads {
 public:
  void hand_over() override {
    if (!work || std::exchange(is_at_work_, true)) return;
    work();
    is_at_work_ = false;
  }
  std::function<void()> work;

 private:
  bool is_at_work_ = false;
};

}  // namespace tablestore
