#include "os/tablestore/engine/container/background.h"

#include <algorithm>

#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

constexpr auto shrink_idle_interval = 1s;  // the unit of ContainerOptions::quiet_steps

std::chrono::nanoseconds time_for(uint64_t bytes, uint64_t bytes_per_second) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(double(bytes) / double(bytes_per_second)));
}

}  // namespace

Background::Background(Containers& containers, Threads& threads,
                       std::function<void(const Status&)> on_error)
    : containers_(containers),
      threads_(threads),
      on_error_(std::move(on_error)),
      pace_(std::max<uint64_t>(containers.options().prepare_bytes_per_second, 1),
            containers.options().prepare_ahead_bytes),
      prepare_(prepare()),
      shrink_(shrink()) {}

Background::Work Background::prepare() {
  return {.name = "prepare",
          .bytes_per_second = containers_.options().prepare_bytes_per_second,
          .step =
              [this](uint64_t* bytes_done) {
                return containers_.prepare_step(bytes_done, pace_.piece_bytes());
              },
          .rest =
              [this](uint64_t bytes, Clock::duration took) {
                return pace_.wrote(bytes, took, containers_.is_behind());
              },
          .idle = [this] { return pace_.nothing_to_do(); },
          .worker = nullptr};
}

Background::Work Background::shrink() {
  const uint64_t bytes_per_second = containers_.options().punch_bytes_per_second;
  return {.name = "shrink",
          .bytes_per_second = bytes_per_second,
          .step = [this](uint64_t* bytes_done) { return containers_.shrink_step(bytes_done); },
          .rest =
              [bytes_per_second](uint64_t bytes, Clock::duration took) {
                return time_for(bytes, bytes_per_second) - took;
              },
          .idle = [] { return Clock::duration(shrink_idle_interval); },
          .worker = nullptr};
}

Background::~Background() { stop(); }

void Background::start() {
  stopping_ = false;
  for (Work* work : {&prepare_, &shrink_}) {
    require(!work->worker, "the work is started once");
    work->worker = threads_.start(
        work->name, Threads::Urgency::usual, [this, work] { run(*work); },
        [this, work] {
          uint64_t bytes_done = 0;
          return step(*work, &bytes_done);
        });
  }
}

void Background::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  prepare_.worker = nullptr;
  shrink_.worker = nullptr;
}

// False where there was nothing to do.
bool Background::step(const Work& work, uint64_t* bytes_done) {
  if (failed_) return false;
  const auto worked = work.step(bytes_done);
  if (worked.ok()) return *worked == Worked::yes;
  if (!failed_.exchange(true)) on_error_(worked.status());
  return false;
}

void Background::run(const Work& work) {
  std::unique_lock lock(mutex_);
  const auto stopping = [this] { return stopping_; };
  if (!work.bytes_per_second) return wake_.wait(lock, stopping);
  Clock::time_point due = Clock::now();
  while (!wake_.wait_until(lock, due, stopping)) {
    lock.unlock();
    const Clock::time_point begin = Clock::now();
    uint64_t bytes_done = 0;
    const bool worked = step(work, &bytes_done);
    const Clock::time_point end = Clock::now();
    due = end + (worked ? work.rest(bytes_done, end - begin) : work.idle());
    lock.lock();
  }
}

}  // namespace tablestore
