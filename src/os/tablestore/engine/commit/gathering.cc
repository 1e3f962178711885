#include "os/tablestore/engine/commit/gathering.h"

#include <algorithm>

namespace tablestore {
namespace {

using Duration = Gathering::Duration;

// A group that took much longer than others, as on a disk that stood still or with a full log, says
// little of the next; and nobody is to wait for anybody for longer than this.
constexpr int most_at_once = 4;
constexpr Duration longest_group = std::chrono::milliseconds(100);
// What is told of clients that were not back when the next group ended: twice a group's time.
constexpr int not_back = 2;
// A smaller part of all says nothing of how long all of them take.
constexpr uint64_t telling_part = 4;
// Who is not back after so many times what it takes has left.
constexpr int patience = 3;

Duration mean(Duration so_far, Duration next) {
  return so_far.count() ? (7 * so_far + next) / 8 : next;
}

}  // namespace

void Gathering::group_made(Time now, Duration took, uint64_t made, uint64_t queued) {
  const Duration most = group_time_.count() ? most_at_once * group_time_ : longest_group;
  group_time_ = mean(group_time_, std::clamp(took, Duration(1), std::min(most, longest_group)));
  if (here_ < expected_) note_return(not_back * group_time_);
  ended_ = now;
  expected_ = made + queued;
  here_ = queued;
  to_return_ = made;
}

void Gathering::queued(Time now) {
  if (++here_ != expected_ || to_return_ * telling_part < expected_) return;
  const Duration took = std::min<Duration>(now - ended_, not_back * group_time_);
  note_return(took * int64_t(expected_) / int64_t(to_return_));
}

void Gathering::note_return(Duration took) {
  return_time_ = mean(return_time_, std::clamp(took, Duration(1), not_back * group_time_));
}

std::optional<Gathering::Wait> Gathering::wait() const {
  if (!return_time_.count() || return_time_ >= most()) return std::nullopt;
  return Wait{expected_, ended_ + std::min(most(), patience * return_time_)};
}

}  // namespace tablestore
