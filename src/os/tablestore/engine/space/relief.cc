#include "os/tablestore/engine/space/relief.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tablestore {

namespace {

using namespace std::chrono_literals;

constexpr auto interval = 100ms;
// Steps that find nothing to do, after which what was refused is tried once more: somebody may have
// raised a quota.
constexpr unsigned retry_steps = 100;
// After which the ballast, once used, is made again: who has used it, and meets a full file system
// all the same, as with a quota that statfs does not know, is not to use it for ever.
constexpr unsigned rest_steps = 50;
constexpr unsigned rest_steps_where_no_time_passes = 2;
constexpr unsigned look_steps = 10;
// One call of make_room() gives at least so much, where there is so much, and makes so many steps
// at the most.
constexpr uint64_t room_bytes = 16 << 20;
constexpr unsigned room_steps = 256;

constexpr const char* table_short = "TABLE_SHORT_OF_SPACE";
constexpr const char* growth_failed = "GROWTH_FAILED";

std::string in_mib(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

Relief::Relief(Parts parts) : parts_(std::move(parts)) {}

void Relief::start() {
  stopping_ = false;
  worker_ = parts_.threads.start(
      "relieve", Threads::Urgency::usual, [this] { run(); }, [this] { return step(); });
}

void Relief::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  worker_ = nullptr;
}

void Relief::run() {
  std::unique_lock lock(mutex_);
  const auto stopping = [this] { return stopping_; };
  while (!stopping_) {
    lock.unlock();
    const bool worked = step();
    lock.lock();
    if (!worked) wake_.wait_for(lock, interval, stopping);
  }
}

bool Relief::step() {
  const auto state = parts_.containers.state();
  if (!state.ok()) return false;  // it is asked again
  if (++idle_steps_ >= retry_steps) {
    idle_steps_ = 0;
    parts_.containers.forget_refusals();
    parts_.containers.retry_growth();
  }
  if (rest_steps_ > 0) --rest_steps_;
  if (idle_steps_ % look_steps == 0) parts_.look_at_erasures();
  parts_.containers.refill_last_resort();
  if (parts_.compaction_lacked_space() && make_room()) return true;
  if (state->short_bytes == 0) {
    tell(*state, false);
    return make_ballasts();
  }
  uint64_t bytes = 0;
  const auto worked = parts_.containers.relieve_step(0, &bytes);
  if (!worked.ok()) parts_.failed(worked.status());
  const bool gave = worked.ok() && *worked == Worked::yes;
  tell(*state, !gave);
  return gave;
}

bool Relief::make_ballasts() {
  const bool made = parts_.last.make();
  return (rest_steps_ == 0 && parts_.ballast.make()) || made;
}

bool Relief::make_room() {
  uint64_t given = 0;
  for (unsigned n = 0; n < room_steps && parts_.free_is_free; ++n) {
    // What statfs says may leave out a quota.
    const uint64_t at_least = room_bytes - std::min(given, room_bytes);
    uint64_t bytes = 0;
    const auto worked = parts_.containers.relieve_step(at_least, &bytes);
    if (!worked.ok()) parts_.failed(worked.status());
    given += bytes;
    if (!worked.ok() || *worked == Worked::nothing_to_do) break;
  }
  if (given > 0) return true;
  if (!parts_.ballast.release()) return false;
  rest_steps_ = parts_.threads.run_by_themselves() ? rest_steps : rest_steps_where_no_time_passes;
  parts_.containers.forget_refusals();
  parts_.warn("the file system is full, and containers have nothing to give back: the ballast of " +
              in_mib(parts_.ballast.bytes()) + " is used for the table");
  return true;
}

void Relief::tell(const SpaceState& state, bool helpless) {
  const bool was = parts_.troubles.all().contains(table_short);
  if (!helpless) {
    if (was && state.short_bytes == 0) parts_.troubles.clear(table_short);
    return;
  }
  const std::string line =
      parts_.disk.name() + ": " + in_mib(state.short_bytes) +
      " are lacking of what the table may need, and containers have nothing left to give: delete "
      "objects, or what else lies on that file system, or give it, or tablestore_capacity, more "
      "space, before writes have to wait";
  parts_.troubles.raise(table_short, line);
  if (!was) parts_.warn(line);
}

void Relief::growth_told(const Status& s) {
  if (s.ok()) return parts_.troubles.clear(growth_failed);
  const std::string line = "containers cannot grow: " + s.what() +
                           "; what is free can still be written, and it is tried again: look at "
                           "the quotas, at the limit of open files and at the disk";
  const bool was = parts_.troubles.all().contains(growth_failed);
  parts_.troubles.raise(growth_failed, line);
  if (!was) parts_.warn(line);
}

}  // namespace tablestore
