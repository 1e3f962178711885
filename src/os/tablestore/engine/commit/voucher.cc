#include "os/tablestore/engine/commit/voucher.h"

namespace tablestore {

Voucher::Voucher(Threads& threads, CommitLane& lane, std::chrono::milliseconds after)
    : threads_(threads), lane_(lane), after_(after) {}

Voucher::~Voucher() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  worker_ = nullptr;
}

void Voucher::start() {
  if (after_.count() == 0) return;
  worker_ = threads_.start(
      "vouch", Threads::Urgency::usual, [this] { run(); },
      [this] { return lane_.vouch_if_idle(); });
}

void Voucher::request() {
  std::lock_guard lock(mutex_);
  requested_ = true;
  changed_.notify_one();
}

// When to look again; nullopt: everything is vouched for.
std::optional<Voucher::Clock::time_point> Voucher::look() {
  const auto group = lane_.unvouched_since();
  if (!group) return std::nullopt;
  const auto now = Clock::now();
  if (now < *group + after_) return *group + after_;
  threads_.hand_over();
  if (lane_.vouch_if_idle()) return std::nullopt;
  return now + after_;
}

void Voucher::run() {
  std::unique_lock lock(mutex_);
  const auto stopping = [this] { return stopping_; };
  std::optional<Clock::time_point> due;
  for (;;) {
    if (due)
      changed_.wait_until(lock, *due, stopping);
    else
      changed_.wait(lock, [this] { return stopping_ || requested_; });
    if (stopping_) return;
    requested_ = false;
    lock.unlock();
    due = look();
    lock.lock();
  }
}

}  // namespace tablestore
