// Whether anybody wants the store.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tablestore {

// A value, without a clock of its own. One thread.
class Lull {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::milliseconds begins_after{100};

  // `operations`: how many there have ever been; none while one is under way. The first look begins
  // the wait.
  bool lasts(Time now, std::optional<uint64_t> operations) {
    if (!operations || operations != operations_) since_ = now;
    operations_ = operations;
    return now - since_ >= begins_after;
  }

 private:
  std::optional<uint64_t> operations_;
  Time since_{};
};

}  // namespace tablestore
