#include "os/tablestore/engine/space/passed_compaction.h"

#include <algorithm>
#include <utility>

namespace tablestore {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds least_rest = 10s;
constexpr int rest_times = 20;
// Ranges that lie in the same files cost all of these each.
constexpr std::chrono::nanoseconds work_at_once = 1s;

}  // namespace

PassedCompaction::PassedCompaction(Threads& threads, Table& table, Counters& counters,
                                   std::function<bool()> space_is_scarce)
    : threads_(threads),
      table_(table),
      counters_(counters),
      space_is_scarce_(std::move(space_is_scarce)) {
  table_.passed().on_first([this] {
    std::lock_guard lock(mutex_);
    told_ = true;
    changed_.notify_one();
  });
}

void PassedCompaction::start() {
  worker_ = threads_.start(
      "compact_passed", Threads::Urgency::usual, [this] { run(); }, [] { return false; });
}

void PassedCompaction::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  worker_ = nullptr;
}

void PassedCompaction::compact_told() {
  const auto end = std::chrono::steady_clock::now() + work_at_once;
  for (const PassedRange& range : table_.passed().take()) {
    if (stopping_ || space_is_scarce_()) return;
    if (threads_.run_by_themselves() && std::chrono::steady_clock::now() > end) return;
    // What fails is left, as is what is not begun: the next reader tells of it.
    if (table_.compact(range, &stopping_).ok()) ++counters_.passed_ranges;
  }
}

void PassedCompaction::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || told_; });
    if (stopping_) return;
    told_ = false;
    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    compact_told();
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    lock.lock();
    // Whoever told meanwhile may have passed what is gone now. In this order: a reader says that it
    // has told where nothing was to take.
    told_ = false;
    table_.passed().take();
    changed_.wait_for(lock, std::max(least_rest, rest_times * took),
                      [this] { return stopping_.load(); });
  }
}

}  // namespace tablestore
