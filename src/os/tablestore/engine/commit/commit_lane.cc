// The lane's queue and threads; what happens to one group is in commit_group.cc.
#include "os/tablestore/engine/commit/commit_lane.h"

#include <algorithm>

#include "os/tablestore/engine/commit/data_write.h"
#include "os/tablestore/engine/thread.h"

namespace tablestore {

struct CommitLane::Capture {
  LogPosition position;
  bool done = false;
};

namespace {

constexpr auto gather_min = std::chrono::microseconds(20);  // below it sleeping costs more

// A transaction of nothing, to wait for.
class Marker : public Txn {
 public:
  Marker() { barrier = true; }
  void applied() noexcept override {
    std::lock_guard lock(mutex_);
    applied_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return applied_; });
  }
  bool is_applied() {
    std::lock_guard lock(mutex_);
    return applied_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool applied_ = false;
};

}  // namespace

CommitLane::CommitLane(CommitParts parts, CommitLimits limits, const LogPosition& head,
                       uint64_t tail)
    : parts_(parts),
      limits_(limits),
      tail_(tail),
      head_position_(head.position),
      lending_(limits.quick_flush),
      lane_head_(head),
      lane_durable_lsn_(head.next_lsn - 1),
      applier_(parts.table, parts.counters, parts.reporter) {}

void CommitLane::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    work_.notify_all();
    progress_.notify_all();
  }
  parts_.writes.wake();
  applier_.stop();  // the lane may be waiting for it
  if (thread_.joinable()) thread_.join();
}

CommitLane::~CommitLane() {
  stop();
  bulk_.reset();
  while (writes_in_flight_ > 0) parts_.writes.reap(true);
}

void CommitLane::start(std::unique_ptr<WriteQueue> bulk_writes) {
  applier_.start();
  bulk_ = std::make_unique<BulkWriter>(std::move(bulk_writes), [this] { parts_.writes.wake(); });
  thread_ = std::thread([this] {
    name_thread("ts_commit");
    wake_up_soon();
    run();
  });
}

void CommitLane::start_stepped(std::function<void()> wait) {
  applier_.start_stepped(wait);
  stepped_wait_ = std::move(wait);
}

void CommitLane::run() {
  while (step(true)) {
  }
}

void CommitLane::fatal(const std::string& what) const {
  parts_.reporter.fatal(what);
  std::abort();  // fatal() must not return
}

void CommitLane::start_writes(Txn& txn, size_t first) {
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
      txn.data_bytes_ <= std::min(limits_.posted_data_bytes, limits_.small_data_bytes);
  if (is_small && posted_bytes_.fetch_add(txn.data_bytes_) < limits_.posted_bytes_max)
    parts_.writes.post(ops);
  else if (bulk_)
    bulk_->submit(ops);
  else
    parts_.writes.submit(ops);
}

// In the thread that reaps.
void CommitLane::data_written(WriteOp& op, int error) {
  auto& w = *static_cast<Txn::DataWrite*>(op.owner);
  CommitLane& lane = *w.lane;
  if (error)
    lane.fatal("cannot write data to " + op.file->path() + " at " + std::to_string(op.offset) +
               ": " + std::strerror(error) +
               "; the store stops, nothing acknowledged is lost: replace the disk");
  lane.parts_.in_flight.remove(w.run);
  w.keep_alive.reset();
  --lane.writes_in_flight_;
  --w.txn->writes_in_flight_;  // last: whoever waits for it may free the transaction
}

void CommitLane::submit(std::shared_ptr<Txn> txn) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(txn));
    wake = lane_blocked_in_reap_;
    const bool looks_anyway = taken_ && gathered_ == 0;
    if (!looks_anyway && queue_.size() >= gathered_) work_.notify_one();
  }
  if (wake) parts_.writes.wake();
}

bool CommitLane::lends_itself_to(const Txn& txn) const {
  return !taken_ && !stepped_wait_ && !has_work() &&
         txn.data_bytes_ <= limits_.small_data_bytes &&  // else it would wait for its data
         log_has_space(record_bytes(txn) + limits_.group_bytes_max) &&
         lending_.is_wanted(std::chrono::steady_clock::now());
}

bool CommitLane::submit_here(std::shared_ptr<Txn> txn) {
  {
    std::lock_guard lock(mutex_);
    if (lends_itself_to(*txn)) {
      queue_.push_back(std::move(txn));
      lending_.lend();
      return taken_ = true;
    }
  }
  submit(std::move(txn));
  return false;
}

void CommitLane::commit_here() {
  commit_group(true);
  ++parts_.counters.groups_here;
  const auto now = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex_);
  lending_.given_back(now, now - lane_group_start_);
  taken_ = false;
  if (has_work()) work_.notify_one();
}

void CommitLane::discard(Txn& txn) {
  if (txn.writes_.empty()) return;
  std::unique_lock lock(mutex_);
  discards_.push_back(&txn);
  work_.notify_one();
  if (lane_blocked_in_reap_) parts_.writes.wake();
  auto done = [&] { return std::ranges::find(discards_, &txn) == discards_.end(); };
  while (stepped_wait_ && !done()) {
    lock.unlock();
    if (txn.writes_in_flight_ > 0) parts_.writes.reap(true);
    finish_discards();
    lock.lock();
  }
  progress_.wait(lock, done);
}

void CommitLane::drain() {
  // The first marker waits for all frees but those of its own group; the second for these.
  for (int round = 0; round < 2; ++round) {
    auto marker = std::make_shared<Marker>();
    submit(marker);
    if (stepped_wait_)
      while (!marker->is_applied()) {
        step(false);
        applier_.step(false);
      }
    else {
      applier_.hurry();
      marker->wait();
    }
    if (pending_free_blocks_ == 0) return;
  }
}

std::optional<LogPosition> CommitLane::capture() {
  std::unique_lock lock(mutex_);
  if (stopping_) return std::nullopt;
  const auto capture = std::make_shared<Capture>();
  capture_ = capture;
  work_.notify_one();
  if (lane_blocked_in_reap_) parts_.writes.wake();
  if (stepped_wait_) {  // whoever calls is between two groups
    lock.unlock();
    serve_capture();
    while (applier_.step(false)) {
    }
    lock.lock();
  }
  progress_.wait(lock, [&] { return stopping_ || capture->done; });
  if (capture->done) return capture->position;
  capture_ = nullptr;
  return std::nullopt;
}

void CommitLane::recycle(uint64_t position) {
  std::lock_guard lock(mutex_);
  assert(position >= tail_ && position <= head_position_);
  tail_ = position;
  work_.notify_one();
}

uint64_t CommitLane::log_used_bytes() const {
  std::lock_guard lock(mutex_);
  return head_position_ - tail_;
}

bool CommitLane::is_log_pressed() const {
  std::lock_guard lock(mutex_);
  return waits_for_log_ || is_log_half_full();
}

uint64_t CommitLane::write_requests() const {
  return parts_.writes.requests() + (bulk_ ? bulk_->requests() : 0);
}

// Whoever was just told that a transaction is durable has, very likely, another one in a moment. A
// flush that waits for these, a small part of its own time, serves twice as many; otherwise the
// first to come takes the next flush alone, and all others wait for its end.
void CommitLane::gather() {
  std::unique_lock lock(mutex_);
  const auto limit = lane_flush_time_ * limits_.gather_percent / 100;
  if (stepped_wait_ || queue_.empty() || queue_.size() >= lane_expected_ || limit < gather_min)
    return;
  ++parts_.counters.gathers;
  gathered_ = lane_expected_;
  const auto enough = [this] { return stopping_ || capture_ || queue_.size() >= gathered_; };
  if (!work_.wait_for(lock, limit, enough)) ++parts_.counters.gathers_in_vain;
  gathered_ = 0;
}

bool CommitLane::has_work() const {
  return stopping_ || capture_ || !queue_.empty() || !discards_.empty();
}

// Takes the lane. False: nothing to do (or to stop).
bool CommitLane::wait_for_work(bool wait) {
  std::unique_lock lock(mutex_);
  taken_ = false;
  if (wait) work_.wait(lock, [this] { return !taken_ && has_work(); });
  taken_ = !stopping_ && has_work();
  return taken_;
}

bool CommitLane::step(bool wait) {
  if (!wait_for_work(wait)) {
    std::lock_guard lock(mutex_);
    return !stopping_;
  }
  return commit_group(wait);
}

// By the thread that has taken the lane. False when it is to stop.
bool CommitLane::commit_group(bool wait) {
  serve_capture();
  finish_discards();
  gather();
  take_group();
  if (lane_group_.empty()) {
    if (lane_blocked_in_reap_) parts_.writes.reap(wait);
    std::lock_guard lock(mutex_);
    lane_blocked_in_reap_ = false;
    return true;
  }
  const std::span<const std::byte> group = build_group();
  wait_for_log_space(group.size());
  {
    std::lock_guard lock(mutex_);
    if (stopping_) {
      lane_group_.clear();
      return false;
    }
  }
  write_group(group);
  flush_group();
  make_durable();
  hand_over_group();
  return true;
}

void CommitLane::finish_discards() {
  std::vector<Txn*> done;
  {
    std::lock_guard lock(mutex_);
    for (Txn* txn : discards_)
      if (txn->writes_in_flight_ == 0) done.push_back(txn);
  }
  if (done.empty()) return;
  for (Txn* txn : done) {
    // What was a first touch stays "unwritten" to the allocator, which is always safe.
    for (const auto& w : txn->writes_)
      for (const Extent& e : w->slots) parts_.containers.allocator().give_back(e);
  }
  std::lock_guard lock(mutex_);
  std::erase_if(discards_, [&](Txn* t) { return std::ranges::find(done, t) != done.end(); });
  progress_.notify_all();
}

// Puts what recovery starts from into the table: between two groups, so that it is exact, and after
// the rows of all groups before.
void CommitLane::serve_capture() {
  std::shared_ptr<Capture> capture;
  {
    std::lock_guard lock(mutex_);
    capture = std::exchange(capture_, nullptr);
  }
  if (!capture) return;
  std::string rows;
  RowWriter writer(rows);
  uint32_t count = 0;
  for (const auto& state : parts_.containers.allocator().take_dirty()) {
    engine_rows::write_allocation(writer, state);
    ++count;
  }
  writer.put(Family::super, engine_rows::log_start(), lane_head_.encode());
  capture->position = lane_head_;
  applier_.hurry();
  applier_.apply(count + 1, std::move(rows), [this, capture] {
    std::lock_guard lock(mutex_);
    capture->done = true;
    progress_.notify_all();
  });
}

}  // namespace tablestore
