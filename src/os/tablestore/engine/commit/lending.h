// Whether the commit lane lends itself to who submits (decision v in doc/dev/tablestore.rst).
#pragma once

#include <chrono>
#include <cstdint>

namespace tablestore {

// Where transactions come one by one, each finds the lane's thread asleep, and after it its own:
// two wake-ups, which take longer than a quick flush. A thread that commits by itself needs none.
// But it does nothing else meanwhile: where it had more to do, as the one thread that serves all
// clients of a placement group, commits by the lane would have gone on beside that. Nobody tells
// which of the two it is, so both are tried, and that one is kept in which transactions follow each
// other sooner.
//
// Not thread-safe: under the lane's mutex.
class Lending {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;

  static constexpr uint64_t after = 8;  // groups of one: with several clients one is nothing rare
  static constexpr uint64_t tried_after = 32;
  static constexpr uint64_t looks_again_after = 1024;
  static constexpr auto pause_where_worse = std::chrono::milliseconds(100);
  static constexpr auto pause_where_slow = std::chrono::seconds(1);

  explicit Lending(Duration quick_flush) : slow_(slow_in_flushes * quick_flush) {}

  bool is_wanted(Time now) const;
  void lend() { lent_ = true; }
  // The lane is given back after so long.
  void given_back(Time now, Duration took);
  // By the lane's thread, or by who had it lent. `alone`: of one transaction, nothing was queued
  // behind it, and flushes are quick.
  void group_made(Time now, bool alone);

 private:
  // A group that another's thread commits takes some three flushes' time. Where it takes more than
  // so many of the slowest quick ones, the machine is busy, and the lane's thread gets a processor
  // sooner than others do (wake_up_soon()).
  static constexpr int slow_in_flushes = 5;

  void begin_run(bool lent, Time now);
  void pause(Time now, Duration length);
  Duration interval() const { return groups_ ? (last_ - began_) / int64_t(groups_) : Duration(0); }
  bool is_worse() const;

  const Duration slow_;
  bool lent_ = false;
  // The last groups, each alone, while the lane was lent or while it was not.
  bool run_is_lent_ = false;
  uint64_t groups_ = 0;
  Time began_{}, last_{};
  Duration lane_interval_{0};  // of the run before the one that is lent
  Duration time_here_{0};      // of a group while lent, a running mean
  Time not_before_{};
};

}  // namespace tablestore
