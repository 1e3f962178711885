#include "os/tablestore/engine/container/background.h"

#include <algorithm>

#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

constexpr auto prepare_idle_interval = 100ms;
constexpr auto shrink_idle_interval = 1s;  // the unit of ContainerOptions::quiet_steps

}  // namespace

Background::Background(Containers& containers, std::function<void(const Status&)> on_error)
    : containers_(containers),
      on_error_(std::move(on_error)),
      prepare_{&Containers::prepare_step, containers.options().prepare_bytes_per_second,
               prepare_idle_interval},
      shrink_{&Containers::shrink_step, containers.options().punch_bytes_per_second,
              shrink_idle_interval} {
  for (Pace* pace : {&prepare_, &shrink_}) {
    if (!pace->bytes_per_second) pace->due = Clock::time_point::max();
  }
}

Background::~Background() { stop(); }

void Background::start() {
  require(!thread_.joinable(), "the thread is started once");
  stopping_ = false;
  thread_ = std::thread([this] { run(); });
}

void Background::stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Status Background::make_step(Pace& pace) {
  const Clock::time_point begin = Clock::now();
  uint64_t bytes_done = 0;
  const auto worked = (containers_.*pace.step)(&bytes_done);
  if (!worked.ok()) return worked.status();
  if (!*worked) {
    pace.due = Clock::now() + pace.idle_interval;
  } else {
    const double seconds = double(bytes_done) / double(pace.bytes_per_second);
    pace.due = begin + std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double>(seconds));
  }
  return {};
}

void Background::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    Pace& next = prepare_.due <= shrink_.due ? prepare_ : shrink_;
    if (next.due > Clock::now()) {
      auto told = [this] { return stopping_; };
      // wait_until(max) overflows in conversions between clocks.
      if (next.due == Clock::time_point::max()) {
        wake_.wait(lock, told);
      } else {
        wake_.wait_until(lock, next.due, told);
      }
      continue;
    }
    lock.unlock();
    const Status status = make_step(next);
    if (!status.ok()) return on_error_(status);
    lock.lock();
  }
}

}  // namespace tablestore
