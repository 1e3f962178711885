// Checkpoints: makes the table durable and recycles the log before it, in the background.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "os/tablestore/engine/commit/commit_lane.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

// request() from any thread, also one that has taken the lane; run_now() from any that has not. One
// checkpoint at a time.
class Checkpointer {
 public:
  // `make_room`: see CommitParts.
  Checkpointer(Threads& threads, CommitLane& lane, Table& table, Counters& counters,
               const Reporter& reporter, const std::function<bool()>& make_room);
  // After CommitLane::stop() where a checkpoint may be waiting for the lane.
  ~Checkpointer();
  void start();
  // Soon, in the background, where the log is still pressed then. It waits where a file system is
  // full, or something else is lacking; other errors are fatal.
  void request();
  // The same, however little is in the log.
  void request_in_any_case();
  // Now; returns when the log before this call is not needed any more. ESHUTDOWN: the lane has
  // stopped, or patience has come to its end.
  Status run_now(Patience patience = std::nullopt);

 private:
  void run();
  bool wait_for_turn(std::unique_lock<std::timed_mutex>& lock, Patience patience);
  // What request() has asked for. Lacking: space, or something else; the request stands.
  enum class Outcome { nothing_to_do, done, lacking };
  Outcome run_requested();

  Threads& threads_;
  CommitLane& lane_;
  Table& table_;
  Counters& counters_;
  const Reporter& reporter_;
  const std::function<bool()>& make_room_;
  std::timed_mutex one_at_a_time_;
  // Whoever has that one waits for the lane, the applier or space, which may be for ever.
  std::atomic<bool> is_waiting_ = false;
  std::mutex mutex_;   // guards what follows
  std::condition_variable changed_;
  bool requested_ = false;
  bool in_any_case_ = false;
  bool stopping_ = false;
  std::unique_ptr<Worker> worker_;
};

}  // namespace tablestore
