#include "os/tablestore/engine/commit/lending.h"

#include <algorithm>

namespace tablestore {

bool Lending::is_wanted(Time now) const {
  return (run_is_lent_ ? groups_ < looks_again_after : groups_ >= after) && now >= not_before_;
}

void Lending::given_back(Time now, Duration took) {
  lent_ = false;
  // A single one that took long says nothing, whatever it took.
  time_here_ = (7 * time_here_ + std::min(took, 2 * slow_)) / 8;
  if (time_here_ > slow_) {
    time_here_ = {};
    pause(now, pause_where_slow);
  } else if (run_is_lent_ && groups_ == tried_after && is_worse()) {
    pause(now, pause_where_worse);
  }
}

void Lending::group_made(Time now, bool alone) {
  if (!alone) {
    begin_run(false, now);
  } else if (run_is_lent_ && !lent_) {  // one of those that are never lent, or it is time to look
    if (groups_ >= looks_again_after) begin_run(false, now);
  } else if (!run_is_lent_ && lent_) {
    lane_interval_ = interval();
    begin_run(true, now);
  } else {
    ++groups_;
    last_ = now;
  }
}

void Lending::begin_run(bool lent, Time now) {
  run_is_lent_ = lent;
  groups_ = 0;
  began_ = now;
}

void Lending::pause(Time now, Duration length) {
  not_before_ = now + length;
  begin_run(false, now);
}

// Where committing is a small part of the time, intervals are the clients' own.
bool Lending::is_worse() const {
  return interval() > lane_interval_ + lane_interval_ / 20 && 3 * time_here_ > interval();
}

}  // namespace tablestore
