#include "os/tablestore/engine/commit/checkpointer.h"

#include <chrono>

namespace tablestore {

Checkpointer::Checkpointer(Threads& threads, CommitLane& lane, Table& table, Counters& counters,
                           const Reporter& reporter)
    : threads_(threads), lane_(lane), table_(table), counters_(counters), reporter_(reporter) {}

Checkpointer::~Checkpointer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  worker_ = nullptr;
}

void Checkpointer::start() {
  // The lane stands while the checkpoint has taken it.
  worker_ = threads_.start(
      "checkpoint", Threads::Urgency::waited_for, [this] { run(); },
      [this] { return run_requested() == Outcome::done; });
}

void Checkpointer::request() {
  std::lock_guard lock(mutex_);
  requested_ = true;
  changed_.notify_one();
}

Status Checkpointer::run_now() {
  std::lock_guard lock(one_at_a_time_);
  const auto start = std::chrono::steady_clock::now();
  const auto position = lane_.capture();
  if (!position) return Status(ESHUTDOWN, "checkpoint: the store is closing");
  if (auto s = table_.flush(); !s.ok()) return s;
  lane_.recycle(position->position);
  ++counters_.checkpoints;
  counters_.checkpoint_ns += uint64_t(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  return {};
}

Checkpointer::Outcome Checkpointer::run_requested() {
  {
    std::lock_guard lock(mutex_);
    if (!requested_) return Outcome::nothing_to_do;
    requested_ = false;
  }
  // Each group asks, also those that come while a checkpoint makes space.
  if (!lane_.is_log_pressed()) return Outcome::nothing_to_do;
  if (full_) table_.resume();
  const Status s = run_now();
  full_ = s.code() == ENOSPC;
  if (s.ok() || s.code() == ESHUTDOWN) return Outcome::done;
  if (!full_) reporter_.fatal("cannot write a checkpoint: " + s.what());
  reporter_.log(Reporter::Level::error,
                "the file system is full, the log cannot be recycled until it has space again: " +
                    s.what());
  request();
  return Outcome::full;
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || requested_; });
    if (stopping_) return;
    lock.unlock();
    const bool full = run_requested() == Outcome::full;
    lock.lock();
    if (full && changed_.wait_for(lock, std::chrono::seconds(5), [this] { return stopping_; }))
      return;
  }
}

}  // namespace tablestore
