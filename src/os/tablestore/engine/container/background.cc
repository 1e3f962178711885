#include "os/tablestore/engine/container/background.h"

#include <algorithm>

#include "os/tablestore/engine/container/lull.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;

constexpr auto shrink_idle_interval = 1s;  // the unit of ContainerOptions::quiet_steps

}  // namespace

Background::Background(Containers& containers, Threads& threads,
                       std::function<void(const Status&)> on_error,
                       std::function<std::optional<uint64_t>()> operations)
    : containers_(containers),
      threads_(threads),
      on_error_(std::move(on_error)),
      operations_(std::move(operations)) {}

Background::~Background() { stop(); }

void Background::start() {
  require(!prepare_ && !shrink_, "the work is started once");
  stopping_ = false;
  prepare_ = threads_.start(
      "prepare", Threads::Urgency::usual, [this] { run_prepare(); },
      [this] {
        return step([this] {
          uint64_t bytes_done = 0;
          return containers_.prepare_step(&bytes_done);
        });
      });
  shrink_ = threads_.start(
      "shrink", Threads::Urgency::usual, [this] { run_shrink(); },
      [this] {
        return step([this] {
          uint64_t bytes_done = 0;
          return containers_.shrink_step(&bytes_done);
        });
      });
}

void Background::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  prepare_ = nullptr;
  shrink_ = nullptr;
}

bool Background::step(const std::function<Result<Worked>()>& make) {
  if (failed_) return false;
  const auto worked = make();
  if (worked.ok()) return *worked == Worked::yes;
  if (!failed_.exchange(true)) on_error_(worked.status());
  return false;
}

bool Background::rest(Clock::duration time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return stopping_; });
}

void Background::rest_for_good() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stopping_; });
}

void Background::run_prepare() {
  const uint64_t bytes_per_second = containers_.options().prepare_bytes_per_second;
  if (!bytes_per_second) return rest_for_good();
  PreparePace pace(bytes_per_second);
  Lull lull;
  for (Clock::duration next{}; rest(next);) {
    // Containers are made ahead at any time.
    Clock::time_point now = Clock::now();
    const bool is_due = pace.is_due(now, containers_.first_touch_bytes());
    const bool is_idle = lull.lasts(now, operations_());
    PreparePace::Piece piece;
    const bool worked = step([&] {
      return containers_.prepare_step(&piece, is_due ? pace.piece_bytes() : 0, is_idle);
    });
    now = Clock::now();
    if (piece.bytes)
      pace.wrote(now, piece);
    else if (is_due && !worked)
      pace.nothing_to_do(now);
    next = worked && !piece.bytes ? Clock::duration{} : pace.wait(now);
  }
}

void Background::run_shrink() {
  const uint64_t bytes_per_second = containers_.options().punch_bytes_per_second;
  if (!bytes_per_second) return rest_for_good();
  for (Clock::duration next{}; rest(next);) {
    const Clock::time_point begin = Clock::now();
    uint64_t bytes_done = 0;
    if (step([&] { return containers_.shrink_step(&bytes_done); })) {
      const std::chrono::duration<double> due(double(bytes_done) / double(bytes_per_second));
      next = std::chrono::duration_cast<Clock::duration>(due) - (Clock::now() - begin);
    } else {
      next = shrink_idle_interval;
    }
  }
}

}  // namespace tablestore
