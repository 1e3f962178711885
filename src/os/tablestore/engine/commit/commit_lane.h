// The group-commit lane: turns transactions into log groups, one at a time, and acknowledges them.
//
//   take what is queued -> build a group -> write it, beside the data that is in flight already ->
//   when log and data writes have completed: one flush -> durable() in log order ->
//   slots that are safe to reuse go back to the allocator, rows to the applier
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "os/tablestore/engine/commit/applier.h"
#include "os/tablestore/engine/commit/bulk_writer.h"
#include "os/tablestore/engine/commit/gathering.h"
#include "os/tablestore/engine/commit/in_flight.h"
#include "os/tablestore/engine/commit/lending.h"
#include "os/tablestore/engine/container/containers.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "os/tablestore/engine/table/table.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

// Everything the lane works on; all of it outlives the lane.
struct CommitParts {
  Threads& threads;
  LogRing& log;
  Table& table;
  Containers& containers;
  WriteQueue& writes;
  InFlightWrites& in_flight;
  Counters& counters;
  const Reporter& reporter;
  const std::function<void()>& group_durable;
  // Some thread has met what ends the process: nothing is acknowledged any more.
  const std::atomic<bool>& is_ending;
  // The table has met a full file system; false: nobody can give it space.
  const std::function<bool()>& make_room;
  StoreUuid store_uuid;
  bool may_compress;  // groups of the log
};

struct CommitLimits {
  uint64_t group_bytes_max = 4 << 20;     // of the log, but at least one transaction
  uint64_t gather_percent = 90;
  // Of a transaction, on the average: groups of more wait for nobody, as data take most of their
  // time, and a larger group has more of them.
  uint64_t gathered_data_bytes = 128 << 10;
  std::chrono::microseconds quick_flush{200};
  uint64_t small_data_bytes = 256 << 10;
  uint64_t deferred_data_bytes = 64 << 10;   // of a transaction: begins when a group is made,
  uint64_t deferred_bytes_max = 768 << 10;   // but no more than this: a flush may take long
  uint64_t capture_chunks_max = 1024;  // copied while a checkpoint has the lane, 512 bytes each
};

// For how long who waits does so while nothing gets on: no group is made and no rows are applied,
// as on a full file system. nullopt: for ever. Where threads do not run by themselves no time
// passes.
using Patience = std::optional<std::chrono::milliseconds>;

// Threads: any thread calls submit(), submit_here(), start_writes(), abandon(), drain(); the
// checkpointer's calls capture() and recycle(). `mutex_` guards the queue and what is shared with
// the checkpointer.
//
// Whatever only one may do at a time needs the lane's Turn: there is one, in `turn_` while nobody
// has taken the lane. Four take it: the work "commit", a thread between submit_here() and the end
// of commit_here(), the checkpointer for a capture, for which the others leave it free between
// two groups, and who vouches for the last group while there is nothing else to do.
class CommitLane {
 public:
  // The log's next group goes to `head`; groups from `tail` on are needed for recovery, and would
  // take `saved_bytes` more if none was compressed.
  CommitLane(CommitParts parts, CommitLimits limits, const LogPosition& head, uint64_t tail,
             uint64_t saved_bytes);
  // As a crash: what is queued is dropped; waits only for I/O that is in flight.
  ~CommitLane();

  // `bulk_writes`: for much data; null where threads do not run by themselves: then it goes the way
  // of all data.
  void start(std::unique_ptr<WriteQueue> bulk_writes);
  // Ends the work after the group that is being written, and makes capture() return. What is queued
  // or waits for space in the log stays undone.
  void stop();
  // Called, by who has the lane, when the log is half full, and when a group waits for space in it.
  void on_log_pressure(std::function<void()> f) { log_pressure_ = std::move(f); }
  // Called, by who has the lane, when a group has been made that nothing vouches for, and the one
  // before was vouched for. See voucher.h.
  void on_unvouched(std::function<void()> f) { unvouched_ = std::move(f); }

  // Data: submits the writes of `txn` from index `first` on. Any thread; before submit().
  void start_writes(Txn& txn, size_t first);
  void submit(std::shared_ptr<Txn> txn);
  // See Engine.
  bool submit_here(std::shared_ptr<Txn> txn);
  void commit_here();
  // Gives back the slots of a transaction that will not be submitted; waits for its writes.
  void abandon(Txn& txn);
  // Everything submitted before is durable and applied, and what it freed can be handed out again.
  // False: patience has come to its end.
  bool drain(Patience patience = std::nullopt);
  // Everything submitted before is durable; rows may still have to be applied, which on a full file
  // system may take for ever. False: patience has come to its end.
  bool wait_durable(Patience patience);
  // Everything submitted before is durable, and what it freed can be handed out again. False:
  // patience has come to its end.
  bool wait_released(Patience patience);
  // Everything submitted before is durable and vouched for. False: it may be not.
  bool vouch(Patience patience);
  // Writes an empty group, which vouches for all before. False, and nothing is written, where all
  // is vouched for, and where the lane has something else to do, which does it as well.
  bool vouch_if_idle();
  // Nothing is being committed, nor waits for it.
  bool is_at_rest() const;
  // When the last group was made; nullopt: it is vouched for.
  std::optional<std::chrono::steady_clock::time_point> unvouched_since() const;

  // Puts what has changed of the allocation map into the table, in pieces, each as of a boundary
  // between two groups, and then the log position of the first of these boundaries. Returns that
  // position; the table must be flushed before recycle(). nullopt: the lane is stopping, or
  // patience has come to its end. One at a time.
  std::optional<LogPosition> capture(Patience patience = std::nullopt);
  // Groups before `position` are not needed any more. False: a flush has failed, and what the table
  // has flushed since may be gone with what the disk has dropped; they stay.
  bool recycle(uint64_t position);

  // All that the log bounds (rows in memory, space for them in the table, what a restart replays)
  // is bounded by what its groups take unpacked, which is what this and the next two are about.
  uint64_t log_used_bytes() const;
  // What was called for still holds: the log is half full, or a group waits for space in it.
  bool is_log_pressed() const;
  uint64_t applier_bytes() const { return applier_.queued_bytes(); }
  // Grows with whatever brings those on who wait with patience.
  uint64_t progress() const;
  uint64_t write_requests() const;  // handed to the kernel, of data and log
  // Freed, durably so, but not yet safe to hand out again.
  uint64_t pending_free_bytes() const { return pending_free_blocks_.load() * block_bytes; }

  // Somebody waits for applied() of what was submitted.
  void hurry() { applier_.hurry(); }

 private:
  // Of one group.
  struct PendingFrees {
    uint64_t next_lsn;  // behind the group
    std::vector<Extent> extents;
  };
  // The log's end, and the group in hand.
  struct Turn {
    Turn(CommitLane& lane, const LogPosition& head)
        : lane(lane),
          head(head),
          durable_lsn(head.next_lsn - 1),
          builder(lane.parts_.may_compress) {}
    CommitLane& lane;
    LogPosition head;
    uint64_t durable_lsn;
    std::vector<std::shared_ptr<Txn>> group;
    bool is_full = false;      // more was queued than one group could take
    bool has_much_data = false;
    LogGroupBuilder builder;
    LogGroupHeader header;
    uint64_t saved_bytes = 0;  // by compressing the group
    uint64_t log_writes_pending = 0;
    std::chrono::steady_clock::time_point group_start;
    // Nullopt: with its data, or later.
    std::optional<std::chrono::steady_clock::time_point> log_written_at;
    std::chrono::nanoseconds flush_time{0};  // a running mean
    std::deque<PendingFrees> pending_frees;
    bool is_borrowed = false;  // by a thread in commit_here()
  };
  // Whoever holds one has taken the lane; its end gives the lane back.
  struct GiveBack {
    void operator()(Turn* turn) const { turn->lane.give_back(turn); }
  };
  using TakenLane = std::unique_ptr<Turn, GiveBack>;

  TakenLane take_lane();             // mutex_ held, `turn_` is there
  void give_back(Turn* turn);
  bool is_free() const;              // mutex_ held
  bool has_work() const;             // mutex_ held
  bool can_work() const;             // mutex_ held
  bool lends_itself_to(const Txn& txn) const;  // mutex_ held
  TakenLane wait_for_work();
  TakenLane wait_between_groups(Patience patience);
  struct CapturedPiece {
    LogPosition at;
    std::vector<Allocator::OwnedChunk> chunks;
  };
  std::optional<LogPosition> capture_pieces(Patience patience);
  std::optional<CapturedPiece> capture_piece(bool first, Patience patience);
  bool apply(uint32_t count, std::string rows, Patience patience);

  void run();
  bool step();
  bool commit_group(TakenLane& lane);
  void wait_for_data(bool block);
  void finish_abandoned();
  void gather(const Turn& turn);
  static uint64_t record_bytes(const Txn& txn);
  void take_group(Turn& turn);
  bool admissible(const Txn& txn, std::vector<const void*>* overtaken) const;
  static uint64_t group_bytes(uint64_t payload_bytes);
  void begin_header(Turn& turn) const;
  void begin_data(const Turn& turn);
  std::span<const std::byte> build_group(Turn& turn);
  bool can_vouch() const;                    // mutex_ held
  void write_vouching_group(Turn& turn);
  void wait_for_log_space(TakenLane& lane, uint64_t bytes);
  void write_group(Turn& turn, std::span<const std::byte> group);
  void flush(File& file) const;
  void flush_group(Turn& turn);
  void make_durable(Turn& turn);
  void take_ownership(const Txn& txn, PendingFrees* frees);
  void release_frees(Turn& turn, uint64_t watermark);
  void pass_to_applier(Turn& turn);
  bool is_too_large_for_log(const Txn& txn) const;
  bool commit_by_checkpoint(Turn& turn);
  bool waits_for_capture() const;    // mutex_ held
  void flush_data(Txn& txn);
  bool flush_table();
  uint64_t unpacked_bytes() const;           // mutex_ held
  bool log_has_space(uint64_t bytes) const;  // mutex_ held
  bool is_log_half_full() const;             // mutex_ held
  [[noreturn]] void fatal(const std::string& what) const;
  bool follow_with_markers(auto wait_for);
  template <typename Done>
  bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
            Patience patience, Done done);
  static void data_written(WriteOp& op, int error);
  static void log_written(WriteOp& op, int error);

  CommitParts parts_;
  const CommitLimits limits_;
  std::function<void()> log_pressure_ = [] {};
  std::function<void()> unvouched_ = [] {};

  mutable std::mutex mutex_;
  // The lane waits: queue, stop, recycled space. One notification is enough for one thing to do,
  // because the work "commit" is the only one that ever waits here: a borrower does not gather, as
  // it is alone, and has a log with space for any group that it could make (lends_itself_to()).
  std::condition_variable work_;
  std::condition_variable progress_;  // others wait: for the lane, captured rows, abandoned ones
  std::unique_ptr<Turn> turn_;        // null: somebody has taken the lane
  std::unique_ptr<Turn> lent_turn_;   // between submit_here() and commit_here()
  std::deque<std::shared_ptr<Txn>> queue_;
  std::vector<Txn*> abandoned_;
  uint64_t captures_waiting_ = 0;     // for the lane, between two groups
  bool capturing_ = false;            // between the first piece and the last row
  // When the last group was made that nothing vouches for; nullopt: all are vouched for.
  std::optional<std::chrono::steady_clock::time_point> unvouched_since_;
  uint64_t tail_;            // position of the first group that recovery needs
  uint64_t head_position_;   // copy of Turn::head.position
  // By compressing groups, from some group before tail_ on: up to the head, up to tail_, and up to
  // where the last capture began.
  uint64_t head_saved_, tail_saved_ = 0, captured_saved_ = 0;
  uint64_t captured_position_ = 0;
  uint64_t gathered_ = 0;    // the lane sleeps until so many are queued; 0: for any
  bool stopping_ = false;
  Lending lending_;
  Gathering gathering_;
  bool blocked_in_reap_ = false;  // who has the lane is, or is about to be: new work wakes it
  bool waits_for_log_ = false;

  std::atomic<uint64_t> writes_in_flight_{0};      // data and log
  std::atomic<uint64_t> deferred_bytes_{0};        // since the lane last wrote
  std::atomic<uint64_t> pending_free_blocks_{0};

  Applier applier_;
  std::unique_ptr<BulkWriter> bulk_;  // null: threads do not run by themselves
  std::unique_ptr<Worker> worker_;
};

}  // namespace tablestore
