// What happens to one group of transactions: from the queue to durable and applied.
#include <algorithm>

#include "os/tablestore/engine/commit/commit_lane.h"
#include "os/tablestore/engine/commit/data_write.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {

namespace {

// Kept free so that recovery can always begin its epoch without a checkpoint before it.
constexpr uint64_t log_margin_bytes = 16 * block_bytes;

uint64_t ns_since(std::chrono::steady_clock::time_point start) {
  return uint64_t(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

uint64_t CommitLane::record_bytes(const Txn& txn) {
  return LogGroupBuilder::record_bytes(txn.rows_.size(), txn.writes_.size(), txn.frees_.size());
}

uint64_t CommitLane::group_bytes(uint64_t payload_bytes) {
  return round_up_to_block(sizeof(LogGroupHeader) + payload_bytes);
}

// `overtaken`: sequencers of transactions that were left in the queue so far.
bool CommitLane::admissible(const Txn& txn, std::vector<const void*>* overtaken) const {
  const auto is_overtaken = [&](const void* sequencer) {
    return std::ranges::find(*overtaken, sequencer) != overtaken->end();
  };
  if (is_overtaken(txn.sequencer)) return false;
  if (std::ranges::any_of(txn.follows, is_overtaken)) {
    overtaken->push_back(txn.sequencer);
    return false;
  }
  if (txn.barrier || txn.data_bytes_ <= limits_.small_data_bytes || txn.writes_in_flight_ == 0)
    return true;
  overtaken->push_back(txn.sequencer);
  return false;
}

void CommitLane::take_group(Turn& turn) {
  require(turn.group.empty(), "one group is made at a time");
  turn.group_start = std::chrono::steady_clock::now();
  std::vector<const void*> overtaken;
  uint64_t bytes = 0;
  std::deque<std::shared_ptr<Txn>> left;
  std::chrono::nanoseconds queued{0};
  std::lock_guard lock(mutex_);
  turn.is_full = false;
  while (!queue_.empty() && !waits_for_capture()) {
    const uint64_t more = record_bytes(*queue_.front());
    // Nothing passes a barrier, and a barrier passes nothing.
    turn.is_full = (queue_.front()->barrier && !left.empty()) ||
                   (!turn.group.empty() && (bytes + more > limits_.group_bytes_max ||
                                            is_too_large_for_log(*turn.group.front())));
    if (turn.is_full) break;
    std::shared_ptr<Txn> txn = std::move(queue_.front());
    queue_.pop_front();
    if (admissible(*txn, &overtaken)) {
      bytes += more;
      if (turn.group_start > txn->queued_at_) queued += turn.group_start - txn->queued_at_;
      turn.group.push_back(std::move(txn));
    } else {
      left.push_back(std::move(txn));
    }
  }
  parts_.counters.queued_ns += uint64_t(queued.count());
  queue_.insert(queue_.begin(), std::make_move_iterator(left.begin()),
                std::make_move_iterator(left.end()));
  // All that is left has data in flight, so whoever has the lane is going to wait in reap() for
  // some of it. Work that comes after this look must end that wait: under the same lock, submit()
  // reads this flag, and wakes the queue.
  blocked_in_reap_ =
      turn.group.empty() &&
      (!abandoned_.empty() || (!queue_.empty() && !waits_for_capture())) &&
      std::ranges::all_of(abandoned_, [](const Txn* t) { return t->writes_in_flight_ > 0; });
}

// So that they are on their way while the log's group is built. A single write goes to the kernel
// together with that.
void CommitLane::begin_data(const Turn& turn) {
  size_t writes = 0;
  for (const auto& txn : turn.group) writes += txn->writes_.size();
  if (writes > 1) parts_.writes.reap(false);
}

std::span<const std::byte> CommitLane::build_group(Turn& turn) {
  size_t payload = 0;
  for (const auto& txn : turn.group) payload += record_bytes(*txn);
  turn.builder.begin(payload);
  uint64_t lsn = turn.head.next_lsn;
  std::vector<LoggedWrite> writes;
  for (const auto& txn : turn.group) {
    txn->lsn_ = lsn++;
    writes.clear();
    for (const auto& w : txn->writes_) writes.push_back({w->run, w->checksum});
    turn.builder.add(txn->row_count_, txn->rows_, writes, txn->frees_);
    parts_.counters.row_bytes += txn->rows_.size();
  }
  begin_header(turn);
  const std::span<const std::byte> group = turn.builder.finish(turn.header);
  turn.header = turn.builder.header();
  turn.saved_bytes = group_bytes(payload) - group.size();
  parts_.counters.log_saved_bytes += turn.saved_bytes;
  return group;
}

void CommitLane::begin_header(Turn& turn) const {
  turn.header = {};
  std::ranges::copy(parts_.store_uuid, turn.header.store_uuid);
  turn.header.epoch = turn.head.epoch;
  turn.header.position = turn.head.position;
  turn.header.first_lsn = turn.head.next_lsn;
  turn.header.watermark = turn.durable_lsn;
  turn.header.previous_crc = turn.head.previous_crc;
}

uint64_t CommitLane::unpacked_bytes() const {
  return head_position_ - tail_ + head_saved_ - tail_saved_;
}

bool CommitLane::log_has_space(uint64_t bytes) const {
  return unpacked_bytes() + bytes + log_margin_bytes <= parts_.log.capacity_bytes();
}

bool CommitLane::is_log_half_full() const {
  return unpacked_bytes() > parts_.log.capacity_bytes() / 2;
}

// The checkpoint that makes space takes the lane for its capture, so the lane is given back
// meanwhile, with the group in hand.
void CommitLane::wait_for_log_space(TakenLane& lane, uint64_t bytes) {
  require(bytes + log_margin_bytes <= parts_.log.capacity_bytes(), "a group fits the log");
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || log_has_space(bytes)) return;
    waits_for_log_ = true;
  }
  require(!lane->is_borrowed, "the lane is lent only where the log has space");
  ++parts_.counters.log_full_waits;
  lane = nullptr;
  log_pressure_();
  std::unique_lock lock(mutex_);
  parts_.threads.wait(lock, work_,
                      [&] { return turn_ && (stopping_ || log_has_space(bytes)); });
  waits_for_log_ = false;
  lane = take_lane();
}

void CommitLane::log_written(WriteOp& op, int error) {
  auto& turn = *static_cast<Turn*>(op.owner);
  if (error)
    turn.lane.fatal("cannot write the log " + op.file->path() + " at " + std::to_string(op.offset) +
               ": " + std::strerror(error) +
               why_it_stops(error));
  --turn.log_writes_pending;
  --turn.lane.writes_in_flight_;
}

// Log and data are written at the same time, in no order: at recovery the checksums tell whether
// all of it arrived.
void CommitLane::write_group(Turn& turn, std::span<const std::byte> group) {
  std::vector<WriteOp> ops =
      parts_.log.make_writes(turn.header.position, group, log_written, &turn);
  std::vector<WriteOp*> pointers;
  for (WriteOp& op : ops) pointers.push_back(&op);
  turn.log_writes_pending = ops.size();
  writes_in_flight_ += ops.size();
  deferred_bytes_ = 0;
  parts_.writes.submit(pointers, WriteQueue::Begin::in_this_thread);
  auto all_written = [&turn] {
    return turn.log_writes_pending == 0 &&
           std::ranges::all_of(turn.group,
                               [](const auto& t) { return t->writes_in_flight_ == 0; });
  };
  turn.log_written_at = std::nullopt;
  while (!all_written()) {
    parts_.writes.reap(true);
    if (turn.log_writes_pending == 0 && !turn.log_written_at && !all_written())
      turn.log_written_at = std::chrono::steady_clock::now();
  }
  parts_.counters.log_bytes += group.size();
  parts_.counters.log_padding_bytes +=
      group.size() - sizeof(LogGroupHeader) - turn.header.payload_bytes;
}

void CommitLane::flush(File& file) const {
  if (auto s = file.flush(); !s.ok())
    fatal("cannot flush " + file.path() + ": " + s.what() + why_it_stops(s.code()));
}

// One flush covers log and data, but for data in extents that had not been written before, and in
// files whose extents may be moving: these need the flush to be one of their own file, which makes
// the conversion or the move durable.
void CommitLane::flush_group(Turn& turn) {
  const auto start = std::chrono::steady_clock::now();
  const auto log_written_at = turn.log_written_at.value_or(start);
  parts_.counters.log_ns += uint64_t((log_written_at - turn.group_start).count());
  parts_.counters.data_ns += uint64_t((start - log_written_at).count());
  std::vector<File*> by_themselves;
  File* any_other = nullptr;
  auto add = [&](File* file, bool first_touch) {
    if (!first_touch && !file->needs_own_flush())
      any_other = file;
    else if (std::ranges::find(by_themselves, file) == by_themselves.end())
      by_themselves.push_back(file);
  };
  for (const auto& txn : turn.group)
    for (const auto& w : txn->writes_) add(w->op.file, w->first_touch);
  parts_.counters.container_flushes += by_themselves.size();
  for (File* file : parts_.log.files(turn.header.position, turn.header.total_bytes()))
    add(file, false);
  bool others_are_covered = !any_other;
  for (File* file : by_themselves) {
    others_are_covered |= !file->needs_own_flush();
    flush(*file);
  }
  if (!others_are_covered) flush(*any_other);
  parts_.counters.flushes += by_themselves.size() + !others_are_covered;
  for (const auto& txn : turn.group)
    for (const auto& w : txn->writes_)
      if (w->first_touch) {
        parts_.containers.allocator().mark_written(w->run);
        parts_.counters.first_touch_bytes += w->run.length_bytes();
      }
  const std::chrono::nanoseconds took(ns_since(start));
  turn.flush_time = turn.flush_time.count() ? (7 * turn.flush_time + took) / 8 : took;
  parts_.counters.flush_ns += uint64_t(took.count());
}

void CommitLane::take_ownership(const Txn& txn, PendingFrees* frees) {
  Allocator& allocator = parts_.containers.allocator();
  for (const auto& w : txn.writes_)
    for (const Extent& e : w->slots) allocator.mark_owned(e);
  for (const Extent& e : txn.frees_) {
    allocator.mark_freed(e);
    frees->extents.push_back(e);
    pending_free_blocks_ += e.blocks;
  }
}

void CommitLane::make_durable(Turn& turn) {
  PendingFrees frees{turn.head.next_lsn + turn.group.size(), {}};
  uint64_t data_bytes = 0;
  for (const auto& txn : turn.group) {
    require(txn->writes_in_flight_ == 0, "I1: the flush comes after the writes");
    require(txn->lsn_ == turn.durable_lsn + 1, "I1, I6: transactions get durable in log order");
    turn.durable_lsn = txn->lsn_;
    take_ownership(*txn, &frees);
    data_bytes += txn->data_bytes_;
  }
  parts_.counters.data_bytes += data_bytes;
  turn.has_much_data = data_bytes > turn.group.size() * limits_.gathered_data_bytes;
  bool first_unvouched;
  {
    std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    head_position_ += turn.header.total_bytes();
    head_saved_ += turn.saved_bytes;
    gathering_.group_made(now, now - turn.group_start, turn.group.size(), queue_.size());
    const bool alone = turn.group.size() == 1 && queue_.empty() &&
                       turn.flush_time < limits_.quick_flush;
    lending_.group_made(now, alone);
    first_unvouched = !unvouched_since_;
    unvouched_since_ = now;
  }
  turn.head.position += turn.header.total_bytes();
  turn.head.next_lsn += turn.group.size();
  turn.head.previous_crc = turn.builder.crc();
  release_frees(turn, turn.header.watermark);
  if (!frees.extents.empty()) turn.pending_frees.push_back(std::move(frees));
  ++parts_.counters.groups;
  parts_.counters.transactions += turn.group.size();
  parts_.counters.group_ns += ns_since(turn.group_start);
  for (const auto& txn : turn.group) txn->durable();
  parts_.group_durable();
  if (first_unvouched) unvouched_();
}

bool CommitLane::can_vouch() const {
  return unvouched_since_ && log_has_space(group_bytes(0));
}

// For an idle lane: nobody waits for it, and all writes of groups have completed, so that this one
// may be written in this thread.
void CommitLane::write_vouching_group(Turn& turn) {
  turn.builder.begin(0);
  begin_header(turn);
  const std::span<const std::byte> group = turn.builder.finish(turn.header);
  if (auto s = parts_.log.write(turn.header.position, group); !s.ok())
    fatal("cannot write the log: " + s.what() + why_it_stops(s.code()));
  flush(parts_.log.file(turn.header.position));
  {
    std::lock_guard lock(mutex_);
    head_position_ += group.size();
    unvouched_since_ = std::nullopt;
  }
  turn.head.position += group.size();
  turn.head.previous_crc = turn.builder.crc();
  release_frees(turn, turn.header.watermark);
  parts_.counters.log_bytes += group.size();
  parts_.counters.log_padding_bytes += group.size() - sizeof(LogGroupHeader);
  ++parts_.counters.vouching_groups;  // last: who sees the group sees what it has written
}

// I3, I4: a slot may be written again only when recovery will not judge by its old content. That is
// so where some group's watermark says that the transaction that freed it was durable, and so the
// one that wrote it. The disk may lose one such group: the first transaction behind must be vouched
// for as well, so that two groups say it.
void CommitLane::release_frees(Turn& turn, uint64_t watermark) {
  while (!turn.pending_frees.empty() && turn.pending_frees.front().next_lsn <= watermark) {
    for (const Extent& e : turn.pending_frees.front().extents) {
      parts_.containers.allocator().give_back(e);
      pending_free_blocks_ -= e.blocks;
    }
    turn.pending_frees.pop_front();
  }
}

void CommitLane::pass_to_applier(Turn& turn) {
  require(turn.group.back()->lsn_ <= turn.durable_lsn, "I2: only durable rows are applied");
  applier_.queue(std::exchange(turn.group, {}));
  bool half_full;
  {
    std::lock_guard lock(mutex_);
    half_full = is_log_half_full();
  }
  if (half_full) log_pressure_();
}

}  // namespace tablestore
