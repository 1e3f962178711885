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
  if (parts_.is_ending || !apply(0, {}, std::nullopt)) return false;
  Allocator& allocator = parts_.containers.allocator();
  txn->lsn_ = turn.head.next_lsn;
  require(txn->lsn_ == turn.durable_lsn + 1, "I1, I6: transactions get durable in log order");
  LogPosition behind = turn.head;
  ++behind.next_lsn;
  PendingFrees frees{behind.next_lsn, {}};
  take_ownership(*txn, &frees);
  uint32_t count = std::exchange(txn->row_count_, 0);
  std::string rows = std::exchange(txn->rows_, {});
  parts_.counters.row_bytes += rows.size();
  RowWriter writer(rows);
  engine_rows::write_with_copy(writer, engine_rows::applied(),
                               engine_rows::encode_applied(txn->lsn_));
  engine_rows::write_with_copy(writer, engine_rows::log_start(), behind.encode());
  count += 2 * engine_rows::rows_with_copy;
  allocator.begin_capture();
  for (;;) {
    const auto chunks = allocator.take_changed(limits_.capture_chunks_max);
    if (chunks.empty()) break;
    for (const auto& chunk : chunks)
      engine_rows::write_allocation(writer, chunk, behind.next_lsn);
    count += uint32_t(chunks.size());
  }
  if (!apply(count, std::move(rows), std::nullopt) || !flush_table()) return false;
  if (parts_.is_ending) return false;
  turn.head = behind;
  turn.durable_lsn = txn->lsn_;
  {
    std::lock_guard lock(mutex_);
    tail_ = std::max(tail_, turn.head.position);
    tail_saved_ = head_saved_;
    unvouched_since_ = std::nullopt;  // nothing is judged by its data any more
    const auto now = std::chrono::steady_clock::now();
    gathering_.group_made(now, now - turn.group_start, 1, queue_.size());
  }
  turn.pending_frees.push_back(std::move(frees));
  release_frees(turn, behind.next_lsn);  // a recovery judges nothing before that
  ++parts_.counters.groups;
  ++parts_.counters.transactions;
  ++parts_.counters.checkpoints;
  parts_.counters.data_bytes += txn->data_bytes_;
  txn->durable();
  parts_.group_durable();
  return true;
}

// A capture that is under way would put older rows, and an older position, over those of a
// checkpoint of its own. All that is queued behind it waits as well.
bool CommitLane::waits_for_capture() const {
  return capturing_ && !queue_.empty() && is_too_large_for_log(*queue_.front());
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
