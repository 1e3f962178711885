// Vouches for the last group when the store is idle.
//
// Recovery judges a group by the checksums of its data, until a later group says that it was
// durable. An idle store's last group has no later one. Were it judged days afterwards, one block
// that has rotten since would take all transactions of the group with it. So once nothing has been
// committed for a moment, an empty group is written.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "os/tablestore/engine/commit/commit_lane.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

// request() from any thread, also one that has taken the lane. `mutex_` guards what request() and
// the destructor tell the work.
class Voucher {
 public:
  // `after`: of idleness; 0: never.
  Voucher(Threads& threads, CommitLane& lane, std::chrono::milliseconds after);
  // After CommitLane::stop().
  ~Voucher();
  void start();
  // A group was made that no other vouches for, where the one before had been vouched for: cheap,
  // and not called again while one group follows the other.
  void request();

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> look();
  void run();

  Threads& threads_;
  CommitLane& lane_;
  const std::chrono::milliseconds after_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool requested_ = false;
  bool stopping_ = false;
  std::unique_ptr<Worker> worker_;
};

}  // namespace tablestore
