// Whether a group waits for the clients of the one before (decision r in doc/dev/tablestore.rst).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tablestore {

// Clients that were just served come back with their next transactions. A lane that does not wait
// for them makes two teams of them, which take turns: each waits for the other's group, and there
// are two groups, with a flush each, where one would do. A lane that waits serves all by one group,
// and stands still until the last of them is back. So it waits where that takes less time than a
// group does.
//
// How long it takes is seen of each group, whether the next one waits or not: from its end, until
// as many transactions have been queued as were under way then. Some of these were queued already;
// the others are back sooner than all would be, where they share processors: their time is
// multiplied by all over those that had to come back. Clients that have other things to do are not
// back when the next group ends: they are not waited for.
//
// Not thread-safe: under the lane's mutex.
class Gathering {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;

  // At most so much of what a group takes; 0: never.
  explicit Gathering(uint64_t percent) : percent_(percent) {}

  // A group of `made` transactions, which has taken so long, ends now, and `queued` are waiting.
  void group_made(Time now, Duration took, uint64_t made, uint64_t queued);
  // One more.
  void queued(Time now);

  // Of the next group: until so many are queued, but no longer.
  struct Wait {
    uint64_t queued;
    Time until;
  };
  std::optional<Wait> wait() const;

 private:
  Duration most() const { return group_time_ * int64_t(percent_) / 100; }
  void note_return(Duration took);

  const uint64_t percent_;
  Duration group_time_{0};   // running means; 0: not known
  Duration return_time_{0};
  Time ended_{};             // the last group
  uint64_t expected_ = 0;    // were under way then
  uint64_t here_ = 0;        // of these, or in their place, so far
  uint64_t to_return_ = 0;   // those that were not queued then
};

}  // namespace tablestore
