// What happens to one group of transactions: from the queue to durable and applied.
#include <algorithm>

#include "os/tablestore/engine/commit/commit_lane.h"
#include "os/tablestore/engine/commit/data_write.h"

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

// `overtaken`: sequencers of transactions that were left in the queue so far.
bool CommitLane::admissible(const Txn& txn, std::vector<const void*>* overtaken) const {
  if (std::ranges::find(*overtaken, txn.sequencer) != overtaken->end()) return false;
  if (txn.barrier || txn.data_bytes_ <= limits_.small_data_bytes || txn.writes_in_flight_ == 0)
    return true;
  overtaken->push_back(txn.sequencer);
  return false;
}

void CommitLane::take_group() {
  assert(lane_group_.empty());
  lane_group_start_ = std::chrono::steady_clock::now();
  std::vector<const void*> overtaken;
  uint64_t bytes = 0;
  std::deque<std::shared_ptr<Txn>> left;
  std::lock_guard lock(mutex_);
  while (!queue_.empty()) {
    // Nothing passes a barrier, and a barrier passes nothing.
    if (queue_.front()->barrier && !left.empty()) break;
    const uint64_t more = record_bytes(*queue_.front());
    if (!lane_group_.empty() && bytes + more > limits_.group_bytes_max) break;
    std::shared_ptr<Txn> txn = std::move(queue_.front());
    queue_.pop_front();
    if (admissible(*txn, &overtaken)) {
      bytes += more;
      lane_group_.push_back(std::move(txn));
    } else {
      left.push_back(std::move(txn));
    }
  }
  queue_.insert(queue_.begin(), std::make_move_iterator(left.begin()),
                std::make_move_iterator(left.end()));
  // Only what has data in flight is left: the lane waits for some of it. Not for what came after
  // this look, without a wake-up: so it is told here, with the lock, that there will be one.
  lane_blocked_in_reap_ =
      lane_group_.empty() && (!queue_.empty() || !discards_.empty()) &&
      std::ranges::all_of(discards_, [](const Txn* t) { return t->writes_in_flight_ > 0; });
}

std::span<const std::byte> CommitLane::build_group() {
  size_t payload = 0;
  for (const auto& txn : lane_group_) payload += record_bytes(*txn);
  lane_builder_.begin(payload);
  uint64_t lsn = lane_head_.next_lsn;
  std::vector<LoggedWrite> writes;
  for (const auto& txn : lane_group_) {
    txn->lsn_ = lsn++;
    writes.clear();
    for (const auto& w : txn->writes_) writes.push_back({w->run, w->checksum});
    lane_builder_.add(txn->row_count_, txn->rows_, writes, txn->frees_);
    parts_.counters.row_bytes += txn->rows_.size();
  }
  lane_header_ = {};
  std::ranges::copy(parts_.store_uuid, lane_header_.store_uuid);
  lane_header_.epoch = lane_head_.epoch;
  lane_header_.position = lane_head_.position;
  lane_header_.first_lsn = lane_head_.next_lsn;
  lane_header_.watermark = lane_durable_lsn_;
  lane_header_.previous_crc = lane_head_.previous_crc;
  lane_header_.transactions = lane_builder_.transactions();
  lane_header_.payload_bytes = uint32_t(lane_builder_.payload_bytes());
  return lane_builder_.finish(lane_header_);
}

bool CommitLane::log_has_space(uint64_t bytes) const {
  return head_position_ - tail_ + bytes + log_margin_bytes <= parts_.log.capacity_bytes();
}

bool CommitLane::is_log_half_full() const {
  return head_position_ - tail_ > parts_.log.capacity_bytes() / 2;
}

void CommitLane::wait_for_log_space(uint64_t bytes) {
  if (bytes + log_margin_bytes > parts_.log.capacity_bytes())
    fatal("a group of " + std::to_string(bytes) + " bytes does not fit the log of " +
          std::to_string(parts_.log.capacity_bytes()) +
          " bytes: the store needs a larger tablestore_log_size, set when it is made");
  for (bool counted = false;;) {
    // The checkpoint that will make space needs this thread for its capture.
    serve_capture();
    {
      std::unique_lock lock(mutex_);
      waits_for_log_ = !stopping_ && !log_has_space(bytes);
      if (!waits_for_log_) return;
      if (!counted) ++parts_.counters.log_full_waits;
      counted = true;
    }
    log_pressure_(true);
    std::unique_lock lock(mutex_);
    if (stepped_wait_) {
      const bool has_space = log_has_space(bytes);
      lock.unlock();
      if (!has_space) stepped_wait_();
      continue;
    }
    work_.wait(lock, [&] { return stopping_ || capture_ || log_has_space(bytes); });
  }
}

void CommitLane::log_written(WriteOp& op, int error) {
  auto& lane = *static_cast<CommitLane*>(op.owner);
  if (error)
    lane.fatal("cannot write the log " + op.file->path() + " at " + std::to_string(op.offset) +
               ": " + std::strerror(error) +
               "; the store stops, nothing acknowledged is lost: replace the disk");
  --lane.lane_log_writes_pending_;
  --lane.writes_in_flight_;
}

// Log and data are written side by side, in no order: the checksums tell at recovery.
void CommitLane::write_group(std::span<const std::byte> group) {
  std::vector<WriteOp> ops =
      parts_.log.make_writes(lane_header_.position, group, log_written, this);
  std::vector<WriteOp*> pointers;
  for (WriteOp& op : ops) pointers.push_back(&op);
  lane_log_writes_pending_ = ops.size();
  writes_in_flight_ += ops.size();
  posted_bytes_ = 0;
  parts_.writes.write(pointers);
  auto all_written = [this] {
    return lane_log_writes_pending_ == 0 &&
           std::ranges::all_of(lane_group_,
                               [](const auto& t) { return t->writes_in_flight_ == 0; });
  };
  while (!all_written()) parts_.writes.reap(true);
  parts_.counters.log_bytes += group.size();
  parts_.counters.log_padding_bytes +=
      group.size() - sizeof(LogGroupHeader) - lane_builder_.payload_bytes();
}

// One flush covers log and data, but for data in extents that had not been written before: these
// need the flush to be one of their own file, which makes the conversion durable.
void CommitLane::flush_group() {
  const auto start = std::chrono::steady_clock::now();
  std::vector<File*> touched;
  for (const auto& txn : lane_group_)
    for (const auto& w : txn->writes_)
      if (w->first_touch && std::ranges::find(touched, w->op.file) == touched.end())
        touched.push_back(w->op.file);
  auto flush = [this](File& file) {
    if (auto s = file.flush(); !s.ok())
      fatal("cannot flush " + file.path() + ": " + s.what() +
            "; the store stops, nothing acknowledged is lost: replace the disk");
    ++parts_.counters.flushes;
  };
  for (File* file : touched) {
    flush(*file);
    ++parts_.counters.container_flushes;
  }
  // A container's flush empties the disk's cache as well, and the log is always written extents.
  if (touched.empty()) flush(parts_.log.file(lane_header_.position));
  for (const auto& txn : lane_group_)
    for (const auto& w : txn->writes_)
      if (w->first_touch) {
        parts_.containers.allocator().mark_written(w->run);
        parts_.counters.first_touch_bytes += w->run.length_bytes();
      }
  const std::chrono::nanoseconds took(ns_since(start));
  lane_flush_time_ = lane_flush_time_.count() ? (7 * lane_flush_time_ + took) / 8 : took;
  parts_.counters.flush_ns += uint64_t(took.count());
}

void CommitLane::make_durable() {
  Allocator& allocator = parts_.containers.allocator();
  PendingFrees frees{lane_head_.next_lsn + lane_group_.size() - 1, {}};
  for (const auto& txn : lane_group_) {
    assert(txn->writes_in_flight_ == 0);           // I1
    assert(txn->lsn_ == lane_durable_lsn_ + 1);    // I1, I6: no gap
    lane_durable_lsn_ = txn->lsn_;
    for (const auto& w : txn->writes_)
      for (const Extent& e : w->slots) allocator.mark_owned(e);
    for (const Extent& e : txn->frees_) {
      allocator.mark_freed(e);
      frees.extents.push_back(e);
      pending_free_blocks_ += e.blocks;
    }
    parts_.counters.data_bytes += txn->data_bytes_;
  }
  {
    std::lock_guard lock(mutex_);
    head_position_ += lane_header_.total_bytes();
    lane_expected_ = lane_group_.size() + queue_.size();
    const bool alone = lane_expected_ == 1 && lane_flush_time_ < limits_.quick_flush;
    lending_.group_made(std::chrono::steady_clock::now(), alone);
  }
  lane_head_.position += lane_header_.total_bytes();
  lane_head_.next_lsn += lane_group_.size();
  lane_head_.previous_crc = lane_builder_.crc();
  release_frees(lane_header_.watermark);
  if (!frees.extents.empty()) lane_pending_frees_.push_back(std::move(frees));
  ++parts_.counters.groups;
  parts_.counters.transactions += lane_group_.size();
  parts_.counters.group_ns += ns_since(lane_group_start_);
  for (const auto& txn : lane_group_) txn->durable();
  parts_.group_durable();
}

// I3, I4: a slot may be written again only when recovery will not judge by its old content, that
// is, when a durable group says that the transaction that freed it (and so the one that wrote it)
// was durable.
void CommitLane::release_frees(uint64_t watermark) {
  while (!lane_pending_frees_.empty() && lane_pending_frees_.front().last_lsn <= watermark) {
    for (const Extent& e : lane_pending_frees_.front().extents) {
      parts_.containers.allocator().give_back(e);
      pending_free_blocks_ -= e.blocks;
    }
    lane_pending_frees_.pop_front();
  }
}

void CommitLane::hand_over_group() {
  assert(lane_group_.back()->lsn_ <= lane_durable_lsn_);  // I2
  applier_.apply(std::exchange(lane_group_, {}));
  bool half_full;
  {
    std::lock_guard lock(mutex_);
    half_full = is_log_half_full();
  }
  if (half_full) log_pressure_(false);
}

}  // namespace tablestore
