#include "os/tablestore/engine/commit/checkpointer.h"

#include <chrono>
#include <utility>

namespace tablestore {

namespace {

// A compaction under way may have the last space, and gives it back when it ends. The first
// resumption waits for that, and fails where the compaction does; the next one has the space.
constexpr unsigned resumptions_without_room = 2;

}  // namespace

Checkpointer::Checkpointer(Threads& threads, CommitLane& lane, Table& table, Counters& counters,
                           const Reporter& reporter, const std::function<bool()>& make_room)
    : threads_(threads),
      lane_(lane),
      table_(table),
      counters_(counters),
      reporter_(reporter),
      make_room_(make_room) {}

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

void Checkpointer::request_in_any_case() {
  std::lock_guard lock(mutex_);
  requested_ = in_any_case_ = true;
  changed_.notify_one();
}

Status Checkpointer::run_now(Patience patience) {
  std::unique_lock lock(one_at_a_time_, std::defer_lock);
  if (!wait_for_turn(lock, patience))
    return Status(ESHUTDOWN, "checkpoint: another one does not get on: is the file system full?");
  const auto start = std::chrono::steady_clock::now();
  table_.resume();  // what has failed meanwhile, for what was lacking, begins anew
  is_waiting_ = true;
  const auto position = lane_.capture(patience);
  is_waiting_ = false;
  if (!position) return Status(ESHUTDOWN, "checkpoint: the store is closing, or full");
  for (unsigned without_room = 0;; table_.resume()) {
    const Status flushed = table_.flush();
    if (flushed.ok()) break;
    if (!is_lack_of_space(flushed.code())) return flushed;
    is_waiting_ = true;
    if (make_room_() || ++without_room <= resumptions_without_room) continue;
    is_waiting_ = false;
    return flushed;
  }
  is_waiting_ = false;
  if (!lane_.recycle(position->position))
    return Status(ESHUTDOWN, "checkpoint: a flush has failed, the store ends");
  ++counters_.checkpoints;
  counters_.checkpoint_ns += uint64_t(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  return {};
}

// False: patience has come to its end. A flush of the table takes as long as it takes.
bool Checkpointer::wait_for_turn(std::unique_lock<std::timed_mutex>& lock, Patience patience) {
  if (!patience || !threads_.run_by_themselves()) {
    lock.lock();
    return true;
  }
  for (uint64_t before = lane_.progress();;) {
    if (lock.try_lock_for(*patience)) return true;
    const uint64_t now = lane_.progress();
    if (is_waiting_ && now == before) return false;
    before = now;
  }
}

Checkpointer::Outcome Checkpointer::run_requested() {
  bool in_any_case = false;
  {
    std::lock_guard lock(mutex_);
    if (!requested_) return Outcome::nothing_to_do;
    requested_ = false;
    in_any_case = std::exchange(in_any_case_, false);
  }
  // Each group asks, also those that come while a checkpoint makes space.
  if (!in_any_case && !lane_.is_log_pressed()) return Outcome::nothing_to_do;
  const Status s = run_now();
  if (s.ok() || s.code() == ESHUTDOWN) return Outcome::done;
  if (!is_lack(s.code())) reporter_.fatal("cannot write a checkpoint: " + s.what());
  reporter_.log(Reporter::Level::error,
                (is_lack_of_space(s.code())
                     ? "the file system is full, the log cannot be recycled until it has space "
                       "again: "
                     : "the log cannot be recycled until there is what the process lacks: ") +
                    s.what());
  in_any_case ? request_in_any_case() : request();
  return Outcome::lacking;
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || requested_; });
    if (stopping_) return;
    lock.unlock();
    const bool lacking = run_requested() == Outcome::lacking;
    lock.lock();
    if (lacking && changed_.wait_for(lock, std::chrono::seconds(5), [this] { return stopping_; }))
      return;
  }
}

}  // namespace tablestore
