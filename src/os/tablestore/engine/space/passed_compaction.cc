#include "os/tablestore/engine/space/passed_compaction.h"

#include <algorithm>
#include <utility>

namespace tablestore {

namespace {

using namespace std::chrono_literals;

// Of one reader who goes on, one range.
constexpr auto gathering = 100ms;
constexpr std::chrono::nanoseconds least_rest = 10s, most_of_least_rest = 160s;
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
      "compact_passed", Threads::Urgency::usual, [this] { run(); }, [this] { return step(); });
}

PassedCompaction::~PassedCompaction() {
  cancel();
  worker_ = nullptr;
}

void PassedCompaction::cancel() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_one();
}

std::vector<PassedRange> PassedCompaction::compact(std::vector<PassedRange> told,
                                                   Clock::time_point end) {
  std::vector<PassedRange> compacted;
  for (PassedRange& range : told) {
    if (stopping_ || space_is_scarce_()) break;
    if (end != Clock::time_point::max() && Clock::now() > end) {
      table_.passed().tell(std::move(range));  // for the next time
    } else if (table_.compact(range, &stopping_).ok()) {
      ++counters_.passed_ranges;
      compacted.push_back(std::move(range));
    }  // else: the next reader tells of it
  }
  return compacted;
}

// Whoever told of these meanwhile may have passed what is gone now.
void PassedCompaction::drop_told_within(const std::vector<PassedRange>& compacted) {
  for (PassedRange& range : table_.passed().take()) {
    if (!range.is_within_one_of(compacted)) table_.passed().tell(std::move(range));
  }
}

bool PassedCompaction::step() {
  std::vector<PassedRange> told = table_.passed().take();
  return !told.empty() && !compact(std::move(told), Clock::time_point::max()).empty();
}

void PassedCompaction::run() {
  std::unique_lock lock(mutex_);
  const auto stopping = [this] { return stopping_.load(); };
  std::chrono::nanoseconds rest = least_rest;
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || told_; });
    if (changed_.wait_for(lock, gathering, stopping)) return;
    // Before anything is taken: a reader says that it has told where there was nothing to take.
    told_ = false;
    std::vector<PassedRange> told = table_.passed().take();
    if (told.empty()) continue;
    lock.unlock();
    const auto start = Clock::now();
    const std::vector<PassedRange> compacted = compact(std::move(told), start + work_at_once);
    const std::chrono::nanoseconds took = Clock::now() - start;
    lock.lock();
    told_ = false;
    lock.unlock();
    drop_told_within(compacted);
    lock.lock();
    if (changed_.wait_for(lock, std::max(rest, rest_times * took), stopping)) return;
    rest = told_ ? std::min(2 * rest, most_of_least_rest) : least_rest;
  }
}

}  // namespace tablestore
