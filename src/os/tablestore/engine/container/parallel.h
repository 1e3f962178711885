// The same work for many things, in several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "os/tablestore/engine/status.h"

namespace tablestore {

// Calls work(item) for each, in this thread and in others, `threads` in sum or as many as can be
// had; returns when all have ended. With one thread, in their order. An error ends the work; where
// there are several, one of them is returned.
template <typename Item, typename Work>
Status for_each_in_threads(unsigned threads, std::vector<Item>& items, Work work) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Status failed;  // guarded by mutex
  const auto take_turns = [&] {
    for (size_t i; (i = next++) < items.size();) {
      Status s = work(items[i]);
      if (s.ok()) continue;
      std::lock_guard lock(mutex);
      failed = s;
      next = items.size();
    }
  };
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < std::min<size_t>(threads, items.size()); ++i)
      others.emplace_back(take_turns);
  } catch (const std::system_error&) {
  }
  take_turns();
  for (std::thread& other : others) other.join();
  return failed;
}

}  // namespace tablestore
