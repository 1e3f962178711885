// A transaction that is too large for the log: a checkpoint makes it durable, in one piece.
#include <algorithm>

#include "os/tablestore/engine/commit/commit_lane.h"
#include "os/tablestore/engine/commit/data_write.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {

// One group is never larger than this, so that it always fits beside what a checkpoint needs.
bool CommitLane::is_too_large_for_log(const Txn& txn) const {
  return group_bytes(record_bytes(txn)) > parts_.log.capacity_bytes() / 4;
}

// Its rows, the ownership of its blocks and the position in the log after it go to the table in one
// batch, and the table is flushed. Before that has come to its end, a recovery starts from the
// checkpoint before and finds all groups, and nothing of this one; after it, it starts behind.
// False: the lane is stopping, and this one stays in hand.
bool CommitLane::commit_by_checkpoint(Turn& turn) {
  const std::shared_ptr<Txn> txn = turn.group.front();
  while (txn->writes_in_flight_ > 0) parts_.writes.reap(true);
  flush_data(*txn);
  // All before it first: its batch is one by itself.
  if (parts_.is_ending || !apply_now(0, {})) return false;
  Allocator& allocator = parts_.containers.allocator();
  txn->lsn_ = turn.head.next_lsn;
  require(txn->lsn_ == turn.durable_lsn + 1, "I1, I6: transactions get durable in log order");
  PendingFrees frees{txn->lsn_, {}};
  take_ownership(*txn, &frees);
  LogPosition behind = turn.head;
  ++behind.next_lsn;
  uint32_t count = std::exchange(txn->row_count_, 0);
  std::string rows = std::exchange(txn->rows_, {});
  parts_.counters.row_bytes += rows.size();
  RowWriter writer(rows);
  engine_rows::write_with_copy(writer, engine_rows::applied(),
                               engine_rows::encode_applied(txn->lsn_));
  engine_rows::write_with_copy(writer, engine_rows::log_start(), behind.encode());
  count += 2 * engine_rows::rows_with_copy;
  for (const auto& state : allocator.take_dirty()) {
    engine_rows::write_allocation(writer, state);
    ++count;
  }
  if (!apply_now(count, std::move(rows)) || !flush_table() || parts_.is_ending) return false;
  turn.head = behind;
  turn.durable_lsn = txn->lsn_;
  {
    std::lock_guard lock(mutex_);
    tail_ = std::max(tail_, turn.head.position);
    unvouched_since_ = std::nullopt;  // nothing is judged by its data any more
    turn.expected = 1 + queue_.size();
  }
  turn.pending_frees.push_back(std::move(frees));
  release_frees(turn, turn.durable_lsn);
  ++parts_.counters.groups;
  ++parts_.counters.transactions;
  ++parts_.counters.checkpoints;
  parts_.counters.data_bytes += txn->data_bytes_;
  txn->durable();
  parts_.group_durable();
  return true;
}

// Each file of it, as no flush of the log comes after.
void CommitLane::flush_data(Txn& txn) {
  std::vector<File*> files;
  for (const auto& w : txn.writes_)
    if (std::ranges::find(files, w->op.file) == files.end()) files.push_back(w->op.file);
  for (File* file : files) flush(*file);
  parts_.counters.flushes += files.size();
  for (const auto& w : txn.writes_)
    if (w->first_touch) parts_.containers.allocator().mark_written(w->run);
}

// Returns when these rows of the engine are in the table. False: the lane is stopping.
bool CommitLane::apply_now(uint32_t count, std::string rows) {
  const auto applied = std::make_shared<bool>(false);  // guarded by mutex_
  applier_.hurry();
  applier_.queue(count, std::move(rows), [this, applied] {
    std::lock_guard lock(mutex_);
    *applied = true;
    progress_.notify_all();
  });
  std::unique_lock lock(mutex_);
  parts_.threads.wait(lock, progress_, [&] { return stopping_ || *applied; });
  return *applied;
}

// Waits for what is lacking. False: the lane is stopping.
bool CommitLane::flush_table() {
  for (;;) {
    const Status s = parts_.table.flush();
    if (s.ok()) return true;
    if (!is_lack(s.code())) fatal("cannot write a checkpoint: " + s.what());
    if (!is_lack_of_space(s.code()) || !parts_.make_room()) {
      parts_.reporter.log(Reporter::Level::error,
                          "a transaction that is too large for the log waits for space: " +
                              s.what());
      std::unique_lock lock(mutex_);
      if (parts_.threads.wait_for(lock, work_, std::chrono::seconds(1),
                                  [this] { return stopping_; }))
        return false;
    }
    parts_.table.resume();
  }
}

}  // namespace tablestore
