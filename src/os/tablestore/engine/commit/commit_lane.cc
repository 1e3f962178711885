// The lane's queue, and who takes the lane; what happens to one group is in commit_group.cc.
#include "os/tablestore/engine/commit/commit_lane.h"

#include <algorithm>

#include "os/tablestore/engine/commit/data_write.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {

namespace {

constexpr auto gather_min = std::chrono::microseconds(20);  // below it sleeping costs more

// A transaction of nothing, to wait for.
class Marker : public Txn {
 public:
  Marker() { barrier = true; }
  void durable() noexcept override { note(durable_); }
  void applied() noexcept override { note(applied_); }
  // `wait`: see CommitLane.
  bool wait_until_durable(auto wait) { return wait_until(durable_, wait); }
  bool wait_until_applied(auto wait) { return wait_until(applied_, wait); }

 private:
  void note(bool& happened) {
    std::lock_guard lock(mutex_);
    happened = true;
    changed_.notify_all();
  }
  bool wait_until(const bool& happened, auto wait) {
    std::unique_lock lock(mutex_);
    return wait(lock, changed_, [&happened] { return happened; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool durable_ = false;
  bool applied_ = false;
};

}  // namespace

CommitLane::CommitLane(CommitParts parts, CommitLimits limits, const LogPosition& head,
                       uint64_t tail, uint64_t saved_bytes)
    : parts_(parts),
      limits_(limits),
      turn_(std::make_unique<Turn>(*this, head)),
      tail_(tail),
      head_position_(head.position),
      head_saved_(saved_bytes),
      lending_(limits.quick_flush),
      gathering_(limits.gather_percent),
      applier_(parts.threads, parts.table, parts.counters, parts.reporter, parts.make_room) {}

void CommitLane::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    work_.notify_all();
    progress_.notify_all();
  }
  parts_.writes.wake();
  applier_.stop();  // the lane may be waiting for it
  worker_ = nullptr;
}

CommitLane::~CommitLane() {
  stop();
  bulk_.reset();
  while (writes_in_flight_ > 0) parts_.writes.reap(true);
}

void CommitLane::start(std::unique_ptr<WriteQueue> bulk_writes) {
  applier_.start();
  if (bulk_writes)
    bulk_ = std::make_unique<BulkWriter>(parts_.threads, std::move(bulk_writes),
                                         [this] { parts_.writes.wake(); });
  worker_ = parts_.threads.start(
      "commit", Threads::Urgency::waited_for, [this] { run(); }, [this] { return step(); });
}

void CommitLane::fatal(const std::string& what) const {
  parts_.reporter.fatal(what);
  std::abort();  // fatal() must not return
}

void CommitLane::start_writes(Txn& txn, size_t first) {
  parts_.threads.hand_over();
  std::vector<WriteOp*> ops;
  for (size_t i = first; i < txn.writes_.size(); ++i) {
    Txn::DataWrite& w = *txn.writes_[i];
    w.lane = this;
    w.op.owner = &w;
    w.op.done = data_written;
    parts_.in_flight.add(w.run, w.op.iov, w.keep_alive);
    ops.push_back(&w.op);
  }
  txn.writes_in_flight_ += uint32_t(ops.size());
  writes_in_flight_ += ops.size();
  parts_.counters.data_writes += ops.size();
  const bool is_small =
      txn.data_bytes_ <= std::min(limits_.deferred_data_bytes, limits_.small_data_bytes);
  if (is_small && deferred_bytes_.fetch_add(txn.data_bytes_) < limits_.deferred_bytes_max)
    parts_.writes.submit(ops, WriteQueue::Begin::at_next_reap);
  else if (bulk_)
    bulk_->submit(ops);
  else
    parts_.writes.submit(ops, WriteQueue::Begin::at_once);
}

// In the thread that reaps.
void CommitLane::data_written(WriteOp& op, int error) {
  auto& w = *static_cast<Txn::DataWrite*>(op.owner);
  CommitLane& lane = *w.lane;
  if (error)
    lane.fatal("cannot write data to " + op.file->path() + " at " + std::to_string(op.offset) +
               ": " + std::strerror(error) +
               why_it_stops(error));
  lane.parts_.threads.hand_over();
  lane.parts_.in_flight.remove(w.run);
  w.keep_alive.reset();
  w.held.let_go();
  --lane.writes_in_flight_;
  --w.txn->writes_in_flight_;  // last: whoever waits for it may free the transaction
}

void CommitLane::submit(std::shared_ptr<Txn> txn) {
  bool wake = false;
  txn->queued_at_ = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    gathering_.queued(txn->queued_at_);
    queue_.push_back(std::move(txn));
    wake = blocked_in_reap_;
    const bool looks_anyway = !turn_ && gathered_ == 0;
    if (!looks_anyway && queue_.size() >= gathered_) work_.notify_one();
  }
  parts_.threads.hand_over();
  if (wake) parts_.writes.wake();
}

bool CommitLane::lends_itself_to(const Txn& txn) const {
  return is_free() && !has_work() && !parts_.is_ending &&
         txn.data_bytes_ <= limits_.small_data_bytes &&  // else it would wait for its data
         !is_too_large_for_log(txn) &&
         log_has_space(group_bytes(std::max(record_bytes(txn), limits_.group_bytes_max))) &&
         lending_.is_wanted(std::chrono::steady_clock::now()) &&
         applier_.has_room();  // else it would wait for the table
}

bool CommitLane::submit_here(std::shared_ptr<Txn> txn) {
  {
    std::lock_guard lock(mutex_);
    if (lends_itself_to(*txn)) {
      txn->queued_at_ = std::chrono::steady_clock::now();
      gathering_.queued(txn->queued_at_);
      queue_.push_back(std::move(txn));
      lending_.lend();
      lent_turn_ = std::move(turn_);
      return true;
    }
  }
  submit(std::move(txn));
  return false;
}

void CommitLane::commit_here() {
  parts_.threads.hand_over();
  TakenLane lane;
  {
    std::lock_guard lock(mutex_);
    lane.reset(lent_turn_.release());
  }
  lane->is_borrowed = true;
  if (!commit_group(lane)) wait_for_data(true);
  lane->is_borrowed = false;
  ++parts_.counters.groups_here;
  const auto now = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex_);
  lending_.given_back(now, now - lane->group_start);
}

void CommitLane::abandon(Txn& txn) {
  if (txn.writes_.empty()) return;
  std::unique_lock lock(mutex_);
  abandoned_.push_back(&txn);
  work_.notify_one();
  if (blocked_in_reap_) parts_.writes.wake();
  parts_.threads.wait(lock, progress_, [&] {
    return std::ranges::find(abandoned_, &txn) == abandoned_.end();
  });
}

uint64_t CommitLane::progress() const {
  return parts_.counters.groups + parts_.counters.vouching_groups +
         parts_.counters.applied_batches + parts_.counters.checkpoints;
}

// False: patience has come to its end.
template <typename Done>
bool CommitLane::wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                      Patience patience, Done done) {
  if (!patience || !parts_.threads.run_by_themselves()) {
    parts_.threads.wait(lock, changed, done);
    return true;
  }
  for (uint64_t before = progress();;) {
    if (changed.wait_for(lock, *patience, done)) return true;
    if (progress() == before) return false;
    before = progress();
  }
}

// Until what was freed before them is released. The first one may be in the group that frees, the
// second is behind it, and the group of the third vouches for the second.
bool CommitLane::follow_with_markers(auto wait_for) {
  for (int round = 0; round < 3; ++round) {
    auto marker = std::make_shared<Marker>();
    submit(marker);
    if (!wait_for(*marker)) return false;
    if (pending_free_blocks_ == 0) break;
  }
  return true;
}

bool CommitLane::drain(Patience patience) {
  return follow_with_markers([&](Marker& marker) {
    applier_.hurry();
    return marker.wait_until_applied([&](auto& lock, auto& changed, auto done) {
      return wait(lock, changed, patience, done);
    });
  });
}

bool CommitLane::wait_released(Patience patience) {
  return follow_with_markers([&](Marker& marker) {
    return marker.wait_until_durable([&](auto& lock, auto& changed, auto done) {
      return wait(lock, changed, patience, done);
    });
  });
}

bool CommitLane::wait_durable(Patience patience) {
  auto marker = std::make_shared<Marker>();
  submit(marker);
  return marker->wait_until_durable([&](auto& lock, auto& changed, auto done) {
    return wait(lock, changed, patience, done);
  });
}

bool CommitLane::vouch(Patience patience) {
  if (vouch_if_idle()) return true;
  {
    std::lock_guard lock(mutex_);
    if (is_free() && !has_work() && !unvouched_since_) return true;
  }
  if (!wait_durable(patience)) return false;
  const TakenLane lane = wait_between_groups(patience);
  if (!lane) return false;
  bool wanted;
  {
    std::lock_guard lock(mutex_);
    wanted = can_vouch();
  }
  if (wanted && lane->group.empty()) write_vouching_group(*lane);
  return !unvouched_since();
}

bool CommitLane::vouch_if_idle() {
  TakenLane lane;
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || parts_.is_ending || !is_free() || has_work() || !can_vouch()) return false;
    lane = take_lane();
  }
  write_vouching_group(*lane);
  return true;
}

bool CommitLane::is_at_rest() const {
  std::lock_guard lock(mutex_);
  return is_free() && !has_work() && writes_in_flight_ == 0;
}

std::optional<std::chrono::steady_clock::time_point> CommitLane::unvouched_since() const {
  std::lock_guard lock(mutex_);
  return unvouched_since_;
}

// What recovery starts from: the position is that of the first piece, and each row says as of which
// transaction it is. Pieces wait for their turn in the table one by one, so that the lane never
// finds the applier's queue full of them.
std::optional<LogPosition> CommitLane::capture(Patience patience) {
  const auto start = capture_pieces(patience);
  std::lock_guard lock(mutex_);
  capturing_ = false;
  work_.notify_all();
  return start;
}

std::optional<LogPosition> CommitLane::capture_pieces(Patience patience) {
  Allocator& allocator = parts_.containers.allocator();
  std::optional<LogPosition> start;
  for (;;) {
    const auto piece = capture_piece(!start, patience);
    if (!piece) return std::nullopt;
    if (!start) start = piece->at;
    if (piece->chunks.empty()) break;
    std::string rows;
    RowWriter writer(rows);
    for (const auto& chunk : piece->chunks)
      engine_rows::write_allocation(writer, chunk, piece->at.next_lsn);
    if (!apply(uint32_t(piece->chunks.size()), std::move(rows), patience)) return std::nullopt;
  }
  std::string rows;
  RowWriter writer(rows);
  engine_rows::write_with_copy(writer, engine_rows::log_start(), start->encode());
  if (!apply(engine_rows::rows_with_copy, std::move(rows), patience)) return std::nullopt;
  for (;;) {
    const auto gone = allocator.take_gone(limits_.capture_chunks_max);
    if (gone.empty()) return start;
    uint32_t count = 0;
    std::string erasures;
    RowWriter eraser(erasures);
    for (const auto& of_container : gone)
      count += engine_rows::erase_allocation(eraser, of_container);
    if (!apply(count, std::move(erasures), patience)) return std::nullopt;
  }
}

// The lane is taken for as long as it takes to copy some bits, and no longer.
std::optional<CommitLane::CapturedPiece> CommitLane::capture_piece(bool first,
                                                                   Patience patience) {
  const TakenLane lane = wait_between_groups(patience);
  if (!lane) return std::nullopt;
  Allocator& allocator = parts_.containers.allocator();
  if (first) {
    allocator.begin_capture();
    std::lock_guard lock(mutex_);
    capturing_ = true;
    captured_position_ = lane->head.position;
    captured_saved_ = head_saved_;
  }
  CapturedPiece piece{lane->head, allocator.take_changed(limits_.capture_chunks_max)};
  Counters& counters = parts_.counters;
  ++counters.checkpoint_takes;
  counters.checkpoint_chunks += piece.chunks.size();
  counters.checkpoint_take_chunks_max =
      std::max<uint64_t>(counters.checkpoint_take_chunks_max, piece.chunks.size());
  return piece;
}

// The engine's own rows. False: the lane is stopping, or patience has come to its end.
bool CommitLane::apply(uint32_t count, std::string rows, Patience patience) {
  const auto applied = std::make_shared<bool>(false);  // guarded by mutex_
  applier_.hurry();
  applier_.queue(count, std::move(rows), [this, applied] {
    std::lock_guard lock(mutex_);
    *applied = true;
    progress_.notify_all();
  });
  std::unique_lock lock(mutex_);
  wait(lock, progress_, patience, [&] { return stopping_ || *applied; });
  return *applied;
}

bool CommitLane::recycle(uint64_t position) {
  std::lock_guard lock(mutex_);
  require(position == captured_position_, "the log is recycled up to the last capture");
  if (parts_.is_ending) return false;
  if (position > tail_) {  // else a transaction has been its own checkpoint meanwhile
    tail_ = position;
    tail_saved_ = captured_saved_;
  }
  work_.notify_all();
  return true;
}

uint64_t CommitLane::log_used_bytes() const {
  std::lock_guard lock(mutex_);
  return unpacked_bytes();
}

bool CommitLane::is_log_pressed() const {
  std::lock_guard lock(mutex_);
  return waits_for_log_ || is_log_half_full();
}

uint64_t CommitLane::write_requests() const {
  return parts_.writes.requests() + (bulk_ ? bulk_->requests() : 0);
}

CommitLane::TakenLane CommitLane::take_lane() {
  return TakenLane(turn_.release());
}

void CommitLane::give_back(Turn* turn) {
  parts_.threads.hand_over();
  std::lock_guard lock(mutex_);
  turn_.reset(turn);
  if (captures_waiting_ > 0) progress_.notify_all();
  if (!turn_->group.empty())
    work_.notify_all();  // whoever made the group waits for space in the log, and for the lane
  else if (has_work())
    work_.notify_one();
}

// For a group. It is not while somebody who has made one waits for space in the log.
bool CommitLane::is_free() const {
  return turn_ && turn_->group.empty() && captures_waiting_ == 0;
}

bool CommitLane::has_work() const {
  return stopping_ || !queue_.empty() || !abandoned_.empty();
}

bool CommitLane::can_work() const {
  return is_free() && has_work() && (!waits_for_capture() || !abandoned_.empty()) &&
         !parts_.is_ending;  // a group is in hand
}

// Null: the work is to end.
CommitLane::TakenLane CommitLane::wait_for_work() {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [this] { return stopping_ || can_work(); });
  return stopping_ ? TakenLane() : take_lane();
}

// Null: the lane is stopping, or patience has come to its end. Where a group waits for space in the
// log, that one is in hand.
CommitLane::TakenLane CommitLane::wait_between_groups(Patience patience) {
  std::unique_lock lock(mutex_);
  ++captures_waiting_;
  work_.notify_one();  // it may be gathering
  if (blocked_in_reap_) parts_.writes.wake();
  const bool is_there =
      wait(lock, progress_, patience, [this] { return stopping_ || turn_; });
  --captures_waiting_;
  if (is_there && !stopping_) return take_lane();
  work_.notify_one();  // it may have left the lane to this
  return TakenLane();
}

void CommitLane::run() {
  while (TakenLane lane = wait_for_work())
    if (!commit_group(lane)) wait_for_data(true);
}

bool CommitLane::step() {
  TakenLane lane;
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || !can_work()) return false;
    lane = take_lane();
  }
  if (!commit_group(lane)) wait_for_data(false);
  return true;
}

// False where there was no group to make.
bool CommitLane::commit_group(TakenLane& lane) {
  parts_.threads.hand_over();
  finish_abandoned();
  gather(*lane);
  take_group(*lane);
  parts_.threads.hand_over();
  if (lane->group.empty()) return false;
  begin_data(*lane);
  if (is_too_large_for_log(*lane->group.front())) {
    if (commit_by_checkpoint(*lane)) pass_to_applier(*lane);
    return true;
  }
  const std::span<const std::byte> group = build_group(*lane);
  wait_for_log_space(lane, group.size() + lane->saved_bytes);
  {
    std::lock_guard lock(mutex_);
    // The group stays in hand: its data may be on its way to the disk.
    if (stopping_ || parts_.is_ending) return true;
  }
  write_group(*lane, group);
  parts_.threads.hand_over();
  flush_group(*lane);
  parts_.threads.hand_over();
  // A flush of another thread that failed may have dropped what this one seems to have covered. The
  // group stays in hand.
  if (parts_.is_ending) return true;
  make_durable(*lane);
  parts_.threads.hand_over();
  pass_to_applier(*lane);
  return true;
}

// Of transactions that cannot go into a group, or not be given up, before some of it is written.
void CommitLane::wait_for_data(bool block) {
  if (blocked_in_reap_) parts_.writes.reap(block);
  std::lock_guard lock(mutex_);
  blocked_in_reap_ = false;
}

// For clients whose last commit was just acknowledged.
void CommitLane::gather(const Turn& turn) {
  std::unique_lock lock(mutex_);
  if (queue_.empty() || turn.is_full || turn.has_much_data) return;
  const auto wait = gathering_.wait();
  if (!wait || queue_.size() >= wait->queued ||
      wait->until < std::chrono::steady_clock::now() + gather_min)
    return;
  ++parts_.counters.gathers;
  gathered_ = wait->queued;
  const auto enough = [this] {
    return stopping_ || captures_waiting_ > 0 || queue_.size() >= gathered_;
  };
  if (!work_.wait_until(lock, wait->until, enough)) ++parts_.counters.gathers_in_vain;
  gathered_ = 0;
}

void CommitLane::finish_abandoned() {
  std::vector<Txn*> done;
  {
    std::lock_guard lock(mutex_);
    for (Txn* txn : abandoned_)
      if (txn->writes_in_flight_ == 0) done.push_back(txn);
  }
  if (done.empty()) return;
  for (Txn* txn : done) {
    // What was a first touch stays "unwritten" to the allocator, which is always safe.
    for (const auto& w : txn->writes_)
      for (const Extent& e : w->slots) parts_.containers.allocator().give_back(e);
  }
  std::lock_guard lock(mutex_);
  std::erase_if(abandoned_, [&](Txn* t) { return std::ranges::find(done, t) != done.end(); });
  progress_.notify_all();
}

}  // namespace tablestore
