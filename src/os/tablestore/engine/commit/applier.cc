#include "os/tablestore/engine/commit/applier.h"

#include <chrono>
#include <cstdlib>

#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/engine_rows.h"

namespace tablestore {

namespace {

// Of rows: what the lane may be ahead, and what goes to the table at once.
constexpr uint64_t queue_bytes_max = 16 << 20;
constexpr uint64_t queue_bytes_without_space_max = 64 << 20;
constexpr uint64_t batch_bytes_max = 4 << 20;

constexpr auto linger_time = std::chrono::milliseconds(1);
constexpr uint64_t linger_bytes = 256 << 10;
constexpr auto hurry_time = std::chrono::milliseconds(10);  // longer than most commits take

}  // namespace

void Applier::start() {
  worker_ = threads_.start(
      "apply", Threads::Urgency::usual, [this] { run(); }, [this] { return step(); });
}

void Applier::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    work_.notify_all();
    room_.notify_all();
  }
  worker_ = nullptr;
}

void Applier::queue(std::vector<std::shared_ptr<Txn>> group) {
  Item item;
  for (const auto& txn : group) item.bytes += txn->rows_.size();
  item.group = std::move(group);
  push(std::move(item));
}

void Applier::queue(uint32_t count, std::string rows, std::function<void()> done) {
  Item item;
  item.bytes = rows.size();
  item.count = count;
  item.rows = std::move(rows);
  item.done = std::move(done);
  push(std::move(item));
}

void Applier::push(Item item) {
  std::unique_lock lock(mutex_);
  // The engine's own rows are few, and whoever queues them waits for them with patience.
  threads_.wait(lock, room_, [&] {
    return stopping_ || item.done ||
           queued_bytes_ < (lacks_space_ ? queue_bytes_without_space_max : queue_bytes_max);
  });
  if (stopping_) return;
  const bool first = queue_.empty();
  const uint64_t before = queued_bytes_;
  queued_bytes_ += item.bytes;
  queue_.push_back(std::move(item));
  if (first || (before < linger_bytes && queued_bytes_ >= linger_bytes)) work_.notify_one();
}

bool Applier::has_room() const {
  std::lock_guard lock(mutex_);
  return queued_bytes_ < queue_bytes_max;
}

uint64_t Applier::queued_bytes() const {
  std::lock_guard lock(mutex_);
  return queued_bytes_;
}

void Applier::hurry() {
  std::lock_guard lock(mutex_);
  hurried_until_ = std::chrono::steady_clock::now() + hurry_time;
  work_.notify_one();
}

void Applier::run() {
  while (wait_for_rows()) step();
}

// False when the work is to end.
bool Applier::wait_for_rows() {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  const auto start = std::chrono::steady_clock::now();
  work_.wait_for(lock, linger_time, [this, start] {
    return stopping_ || hurried_until_ > start || queued_bytes_ >= linger_bytes;
  });
  return !stopping_;
}

std::vector<Applier::Item> Applier::take() {
  std::vector<Item> items;
  std::lock_guard lock(mutex_);
  if (stopping_) return items;
  for (uint64_t bytes = 0; !queue_.empty() && bytes < batch_bytes_max;) {
    bytes += queue_.front().bytes;
    items.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return items;
}

bool Applier::step() {
  const std::vector<Item> items = take();
  threads_.hand_over();
  if (items.empty()) return false;
  const auto start = std::chrono::steady_clock::now();
  uint64_t bytes = 0, last_lsn = 0;
  std::string applied;
  for (const Item& item : items) {
    bytes += item.bytes;
    for (const auto& txn : item.group) {
      require(txn->lsn_ > last_lsn, "I6: rows are applied in log order");
      combiner_.append(txn->row_count_, txn->rows_);
      last_lsn = txn->lsn_;
    }
    combiner_.append(item.count, item.rows);
  }
  if (last_lsn) {
    RowWriter writer(applied);
    engine_rows::write_with_copy(writer, engine_rows::applied(),
                                 engine_rows::encode_applied(last_lsn));
    combiner_.append(engine_rows::rows_with_copy, applied);
  }
  write(combiner_.take(counters_));
  ++counters_.applied_batches;
  counters_.apply_ns += uint64_t(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return false;  // perhaps not written
    queued_bytes_ -= bytes;
    lacks_space_ = false;
    room_.notify_all();
  }
  for (const Item& item : items) {
    for (const auto& txn : item.group) txn->applied();
    if (item.done) item.done();
  }
  return true;
}

// A full file system is no reason to stop, nor that the process has too many open files: the rows
// are safe in the log, and wait until there is what is lacking.
void Applier::write(std::string batch) {
  for (unsigned tries = 0;; ++tries) {
    const Status s = table_.write(&batch);
    if (s.ok()) return;
    if (!is_lack(s.code())) {
      reporter_.fatal("cannot apply a group to the table: " + s.what());
      std::abort();  // fatal() must not return
    }
    if (is_lack_of_space(s.code()) && make_room_()) {
      table_.resume();
      continue;
    }
    if (tries % 10 == 0)
      reporter_.log(Reporter::Level::error,
                    is_lack_of_space(s.code())
                        ? "the file system is full, writes wait until it has space again: " +
                              s.what()
                        : "writes wait until there is what the process lacks: " + s.what());
    {
      std::unique_lock lock(mutex_);
      lacks_space_ = is_lack_of_space(s.code());
      if (lacks_space_) room_.notify_all();
      if (threads_.wait_for(lock, work_, std::chrono::seconds(1), [this] { return stopping_; }))
        return;
    }
    table_.resume();
  }
}

}  // namespace tablestore
