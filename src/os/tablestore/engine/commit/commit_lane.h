// The group-commit lane: turns transactions into log groups, one at a time, and acknowledges them.
//
//   take what is queued -> build a group -> write it, beside the data that is in flight already ->
//   when log and data writes have completed: one flush -> durable() in log order ->
//   slots that are safe to reuse go back to the allocator, rows to the applier
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "os/tablestore/engine/commit/applier.h"
#include "os/tablestore/engine/commit/bulk_writer.h"
#include "os/tablestore/engine/commit/in_flight.h"
#include "os/tablestore/engine/commit/lending.h"
#include "os/tablestore/engine/container/containers.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "os/tablestore/engine/table/table.h"

namespace tablestore {

// Everything the lane works on; all of it outlives the lane.
struct CommitParts {
  LogRing& log;
  Table& table;
  Containers& containers;
  WriteQueue& writes;
  InFlightWrites& in_flight;
  Counters& counters;
  const Reporter& reporter;
  const std::function<void()>& group_durable;
  StoreUuid store_uuid;
};

struct CommitLimits {
  uint64_t group_bytes_max = 4 << 20;     // of the log, but at least one transaction
  uint64_t gather_percent = 12;
  std::chrono::microseconds quick_flush{200};
  uint64_t small_data_bytes = 256 << 10;
  uint64_t posted_data_bytes = 64 << 10;  // left to the lane to hand over to the kernel,
  uint64_t posted_bytes_max = 768 << 10;  // but no more than this at once: a flush may take long
};

// Threads: any thread calls submit(), submit_here(), start_write(), discard(), drain(); the
// checkpointer's calls capture() and recycle(); one thread, the lane's own or a simulator's, calls
// step(). `mutex_` guards the queue and what is shared with the checkpointer; everything named
// lane_* belongs to the thread that has set `taken_`: the stepping one, or one in commit_here().
class CommitLane {
 public:
  // The log's next group goes to `head`; groups from `tail` on are needed for recovery.
  CommitLane(CommitParts parts, CommitLimits limits, const LogPosition& head, uint64_t tail);
  // As a crash: what is queued is dropped; waits only for I/O that is in flight.
  ~CommitLane();

  void start(std::unique_ptr<WriteQueue> bulk_writes);  // the threads
  // Instead: no threads. Whoever waits for the lane makes its steps; where the lane itself would
  // wait, it calls `wait`.
  void start_stepped(std::function<void()> wait);
  // Ends them after the group in hand, and makes capture() return. What is queued stays undone.
  void stop();
  // Called (from the lane) when the log is half full, and, with true, when the lane waits for space
  // in it.
  void on_log_pressure(std::function<void(bool)> f) { log_pressure_ = std::move(f); }

  // Data: submits the writes of `txn` from index `first` on. Any thread; before submit().
  void start_writes(Txn& txn, size_t first);
  void submit(std::shared_ptr<Txn> txn);
  // See Engine.
  bool submit_here(std::shared_ptr<Txn> txn);
  void commit_here();
  // Gives back the slots of a transaction that will not be submitted; waits for its writes.
  void discard(Txn& txn);
  // Everything submitted before is durable and applied, and what it freed can be handed out again.
  void drain();

  // At the next boundary between groups: puts the allocation map and the log position into the
  // table. Returns that position; the table must be flushed before recycle(). nullopt: the lane is
  // stopping.
  std::optional<LogPosition> capture();
  // Groups before `position` are not needed any more.
  void recycle(uint64_t position);

  uint64_t log_used_bytes() const;
  // What was called for still holds: the log is half full, or the lane waits for space in it.
  bool is_log_pressed() const;
  uint64_t write_requests() const;  // handed to the kernel, of data and log
  // Freed, durably so, but not yet safe to hand out again.
  uint64_t pending_free_bytes() const { return pending_free_blocks_.load() * block_bytes; }

  // One round: a capture if one is asked for, and a group if something is queued. `wait`: blocks
  // until there is something to do. False when the lane is to stop.
  bool step(bool wait);
  // Somebody waits for applied() of what was submitted.
  void hurry() { applier_.hurry(); }
  Applier& applier() { return applier_; }

 private:
  struct Capture;
  void run();
  bool lends_itself_to(const Txn& txn) const;  // mutex_ held
  bool has_work() const;                       // mutex_ held
  bool wait_for_work(bool wait);
  bool commit_group(bool wait);
  void gather();
  void serve_capture();
  static uint64_t record_bytes(const Txn& txn);
  void take_group();
  bool admissible(const Txn& txn, std::vector<const void*>* overtaken) const;
  std::span<const std::byte> build_group();
  void wait_for_log_space(uint64_t bytes);
  void write_group(std::span<const std::byte> group);
  void flush_group();
  void make_durable();
  void hand_over_group();
  void release_frees(uint64_t watermark);
  void finish_discards();
  bool log_has_space(uint64_t bytes) const;  // mutex_ held
  bool is_log_half_full() const;             // mutex_ held
  [[noreturn]] void fatal(const std::string& what) const;
  static void data_written(WriteOp& op, int error);
  static void log_written(WriteOp& op, int error);

  CommitParts parts_;
  const CommitLimits limits_;
  std::function<void(bool)> log_pressure_ = [](bool) {};
  std::function<void()> stepped_wait_;  // set: there is no thread

  mutable std::mutex mutex_;
  std::condition_variable work_;      // the lane waits: queue, capture, stop, recycled space
  std::condition_variable progress_;  // others wait: captured, discarded
  std::deque<std::shared_ptr<Txn>> queue_;
  std::vector<Txn*> discards_;
  std::shared_ptr<Capture> capture_;  // asked for
  uint64_t tail_;            // position of the first group that recovery needs
  uint64_t head_position_;   // copy of lane_head_.position
  uint64_t gathered_ = 0;    // the lane sleeps until so many are queued; 0: for any
  bool stopping_ = false;
  bool taken_ = false;       // by a thread that makes a step, or is about to call commit_here()
  Lending lending_;
  bool lane_blocked_in_reap_ = false;  // or about to be: who has work for it wakes it
  bool waits_for_log_ = false;

  std::atomic<uint64_t> writes_in_flight_{0};      // data and log
  std::atomic<uint64_t> posted_bytes_{0};          // since the lane last wrote
  std::atomic<uint64_t> pending_free_blocks_{0};

  // The stepping thread's own.
  LogPosition lane_head_;
  uint64_t lane_durable_lsn_;
  std::vector<std::shared_ptr<Txn>> lane_group_;
  LogGroupBuilder lane_builder_;
  LogGroupHeader lane_header_;
  uint64_t lane_log_writes_pending_ = 0;
  std::chrono::steady_clock::time_point lane_group_start_;
  std::chrono::nanoseconds lane_flush_time_{0};  // a running mean
  uint64_t lane_expected_ = 0;  // transactions that were under way when the last group ended
  struct PendingFrees {
    uint64_t last_lsn;
    std::vector<Extent> extents;
  };
  std::deque<PendingFrees> lane_pending_frees_;

  Applier applier_;
  std::unique_ptr<BulkWriter> bulk_;  // null: there are no threads
  std::thread thread_;
};

}  // namespace tablestore
