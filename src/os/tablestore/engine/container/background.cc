#include "os/tablestore/engine/container/background.h"

#include <algorithm>

#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

constexpr auto prepare_idle_interval = 100ms;
constexpr auto shrink_idle_interval = 1s;  // the unit of ContainerOptions::quiet_steps

}  // namespace

Background::Background(Containers& containers, Threads& threads,
                       std::function<void(const Status&)> on_error)
    : containers_(containers),
      threads_(threads),
      on_error_(std::move(on_error)),
      prepare_{"prepare", &Containers::prepare_step, containers.options().prepare_bytes_per_second,
               prepare_idle_interval, nullptr},
      shrink_{"shrink", &Containers::shrink_step, containers.options().punch_bytes_per_second,
              shrink_idle_interval, nullptr} {}

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
  const auto worked = (containers_.*work.step)(bytes_done);
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
    if (step(work, &bytes_done)) {
      const double seconds = double(bytes_done) / double(work.bytes_per_second);
      due = begin + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(seconds));
    } else {
      due = Clock::now() + work.idle_interval;
    }
    lock.lock();
  }
}

}  // namespace tablestore
