#include "os/tablestore/engine/io/file_watch.h"

#include <algorithm>

namespace tablestore {
namespace {

using namespace std::chrono_literals;

// How long somebody waits who opens a file of the store.
constexpr auto interval = 500ms;
// Of how many files the extents are looked at each time, in turn: the only means where the kernel
// gives no leases.
constexpr uint64_t extents_per_look = 8;

constexpr const char* trouble = "FS_SHARED";

}  // namespace

void FileWatch::start() {
  if (!parts_.threads.run_by_themselves()) return;
  worker_ = parts_.threads.start(
      "watch", Threads::Urgency::usual, [this] { run(); }, [] { return false; });
}

void FileWatch::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  worker_ = nullptr;
}

void FileWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const Status s = look();
    if (!s.ok()) return parts_.on_error(s);
    lock.lock();
    wake_.wait_for(lock, interval, [this] { return stopping_; });
  }
}

Status FileWatch::look() {
  uint64_t number = 0, shared = 0, unguarded = 0;
  std::string first;
  const Status s = parts_.visit_files([&](File& file) -> Status {
    const bool in_turn = number >= turn_ && number < turn_ + extents_per_look;
    ++number;
    const auto seen = file.watch(in_turn);
    if (!seen.ok()) return seen.status();
    unguarded += *seen == Sharing::unguarded;
    if (*seen != Sharing::shared) return {};
    if (++shared == 1 || file.path() < first) first = file.path();
    return {};
  });
  turn_ = turn_ + extents_per_look < number ? turn_ + extents_per_look : 0;
  if (!s.ok()) return s;
  tell(shared, first);
  if (unguarded && !std::exchange(told_unguarded_, true))
    parts_.warn("the kernel gives no leases on " + std::to_string(unguarded) + " of " +
                std::to_string(number) +
                " files of the store (do they belong to this process's user, is "
                "/proc/sys/fs/leases-enable 1?): whoever copies them by reflinks or defragments "
                "them is noticed late, and a power cut before that may lose commits");
  return s;
}

void FileWatch::tell(uint64_t shared, const std::string& first) {
  if (!shared) {
    if (!std::exchange(told_, "").empty()) parts_.troubles.clear(trouble);
    return;
  }
  const std::string others =
      shared > 1 ? " and " + std::to_string(shared - 1) + " more files" : std::string();
  const std::string line =
      first + others + ": a reflinked copy shares blocks with this file of a store in use; commits "
              "that write to it need flushes of their own, which is safe but slow: delete the copy "
              "(it is no backup: copy a stopped store, with 'cp --reflink=never')";
  if (line == told_) return;
  if (told_.empty()) parts_.warn(line);
  told_ = line;
  parts_.troubles.raise(trouble, line);
}

}  // namespace tablestore
