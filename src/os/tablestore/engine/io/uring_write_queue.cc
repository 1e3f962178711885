#include "os/tablestore/engine/io/uring_write_queue.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/io/iov_cursor.h"
#include "os/tablestore/engine/io/posix_file.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

// No slot's index, and not what liburing takes for a time-out of its own, and swallows, where the
// kernel is older than 5.11.
constexpr uint64_t wake_mark = UINT64_MAX - 1;
constexpr uint64_t third_mark = UINT64_MAX - 2;
static_assert(wake_mark != LIBURING_UDATA_TIMEOUT && third_mark != LIBURING_UDATA_TIMEOUT);
constexpr unsigned largest_depth = 16384;
constexpr unsigned completions_per_look = 64;
// Disks take so many scattered pages at once (128 or a little more). The kernel would cut a larger
// request as well, but into as much as the disk takes and a crumb.
constexpr uint64_t request_bytes_max = 512 << 10;

constexpr const char* room_in_ring = "the ring is empty whenever submit_mutex_ is free";

// The ring itself is broken: no operation can be told of its fate any more.
[[noreturn]] void give_up(const char* call, int error) {
  std::fprintf(stderr, "tablestore: %s failed: %s; writes can no longer be made durable\n", call,
               std::strerror(error));
  std::abort();
}

}  // namespace

Result<std::unique_ptr<WriteQueue>> UringWriteQueue::create(unsigned depth) {
  std::unique_ptr<UringWriteQueue> queue(
      new UringWriteQueue(std::clamp(depth, 1u, largest_depth)));
  if (Status s = queue->start(); !s.ok()) return s;
  return std::unique_ptr<WriteQueue>(std::move(queue));
}

UringWriteQueue::UringWriteQueue(unsigned depth) : depth_(depth), slots_(depth) {
  free_slots_.reserve(depth);
  for (unsigned i = depth; i > 0; --i) free_slots_.push_back(i - 1);
}

UringWriteQueue::~UringWriteQueue() {
  require(waiting_.empty() && free_slots_.size() == slots_.size(),
          "a queue is drained before it is destroyed");
  if (ring_made_) io_uring_queue_exit(&ring_);
}

Status UringWriteQueue::start() {
  // One entry more than operations: the wake-up.
  const int result = io_uring_queue_init(depth_ + 1, &ring_, 0);
  if (result < 0) return Status::from_errno(-result, "io_uring_setup");
  ring_made_ = true;
  skips_completions_ = ring_.features & IORING_FEAT_CQE_SKIP;

  std::unique_ptr<io_uring_probe, void (*)(io_uring_probe*)> probe(io_uring_get_probe_ring(&ring_),
                                                                  io_uring_free_probe);
  if (!probe) return Status(ENOTSUP, "io_uring: the kernel does not say what it supports");
  for (int opcode : {IORING_OP_NOP, IORING_OP_WRITE, IORING_OP_WRITEV}) {
    if (!io_uring_opcode_supported(probe.get(), opcode)) {
      return Status(ENOTSUP, "io_uring: the kernel lacks operation " + std::to_string(opcode));
    }
  }
  return try_it();
}

// A sandbox may allow the set-up and forbid the use.
Status UringWriteQueue::try_it() {
  io_uring_prep_nop(io_uring_get_sqe(&ring_));
  int result;
  do {
    result = io_uring_submit(&ring_);
  } while (result == -EINTR);
  if (result != 1) return Status::from_errno(result < 0 ? -result : EIO, "io_uring_enter");
  io_uring_cqe* cqe;
  do {
    result = io_uring_wait_cqe(&ring_, &cqe);
  } while (result == -EINTR);
  if (result < 0) return Status::from_errno(-result, "io_uring_enter");
  io_uring_cqe_seen(&ring_, cqe);
  return Status();
}

void UringWriteQueue::add_waiting(std::span<WriteOp* const> ops) {
  std::lock_guard lock(mutex_);
  waiting_.insert(waiting_.end(), ops.begin(), ops.end());
}

void UringWriteQueue::submit(std::span<WriteOp* const> ops, Begin begin) {
  if (begin == Begin::in_this_thread) return write_here(ops);
  add_waiting(ops);
  if (begin == Begin::at_once && blocked_) wake();
}

void UringWriteQueue::write_here(std::span<WriteOp* const> ops) {
  if (skips_completions_ && is_pair(ops)) {
    add_waiting(ops);
    submit_to_kernel({}, true);
    wait_for_completions(2);
    return;
  }
  if (can_take_waiting()) submit_to_kernel({});
  for (WriteOp* op : ops) {
    ++requests_;
    op->done(*op, posix_file(*op).write_all(op->offset, op->iov));
  }
}

// These and what waits are two requests, and the only ones.
bool UringWriteQueue::is_pair(std::span<WriteOp* const> ops) {
  std::lock_guard lock(mutex_);
  return ops.size() == 1 && waiting_.size() == 1 && slots_.size() > 1 &&
         free_slots_.size() == slots_.size() &&
         iov_bytes(waiting_.front()->iov) <= request_bytes_max &&
         iov_bytes(ops.front()->iov) <= request_bytes_max &&
         ops.front()->file != waiting_.front()->file;
}

void UringWriteQueue::submit_to_kernel(const std::vector<unsigned>& again, bool with_third) {
  std::lock_guard submitting(submit_mutex_);
  {
    std::lock_guard lock(mutex_);
    for (unsigned index : again) fill_entry(index);
    take_waiting();
  }
  if (with_third) fill_third_entry();
  enter_kernel();
}

// Neighbours become one request, which costs the kernel less than several.
void UringWriteQueue::take_waiting() {
  if (waiting_.size() > 1 && !free_slots_.empty())
    std::ranges::stable_sort(waiting_, [](const WriteOp* a, const WriteOp* b) {
      return std::pair(a->file, a->offset) < std::pair(b->file, b->offset);
    });
  std::vector<WriteOp*> run;
  while (!waiting_.empty() && !free_slots_.empty()) {
    run.clear();
    uint64_t bytes = 0;
    size_t pieces = 0;
    do {
      WriteOp& op = *waiting_.front();
      const bool neighbour = run.empty() || (op.file == run.front()->file &&
                                             op.offset == run.front()->offset + bytes &&
                                             bytes + iov_bytes(op.iov) <= request_bytes_max &&
                                             pieces + op.iov.size() <= IOV_MAX);
      if (!neighbour) break;
      bytes += iov_bytes(op.iov);
      pieces += op.iov.size();
      run.push_back(&op);
      waiting_.pop_front();
    } while (!waiting_.empty());
    if (bytes > request_bytes_max) {
      take_parts(*run.front(), bytes);
    } else {
      fill_entry(take_slot(run));
      ++requests_;
    }
  }
}

// As equal ones as there can be, and no more than there is room for.
void UringWriteQueue::take_parts(WriteOp& op, uint64_t bytes) {
  const uint64_t wanted = (bytes + request_bytes_max - 1) / request_bytes_max;
  const uint64_t parts = std::min<uint64_t>(wanted, free_slots_.size());
  const uint64_t part_bytes = round_up_to_block((bytes + parts - 1) / parts);
  WriteOp* const self = &op;
  IovCutter cutter(op.iov);
  uint32_t taken = 0;
  for (uint64_t done = 0; done < bytes; done += part_bytes, ++taken) {
    const unsigned index = take_slot({&self, 1});
    Slot& slot = slots_[index];
    slot.offset = op.offset + done;
    slot.rest_bytes = std::min(part_bytes, bytes - done);
    cutter.cut(slot.rest_bytes, &slot.rest);
    fill_entry(index);
    ++requests_;
  }
  op.requests_left = taken;
}

unsigned UringWriteQueue::take_slot(std::span<WriteOp* const> ops) {
  const unsigned index = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[index];
  slot.ops.assign(ops.begin(), ops.end());
  slot.offset = ops.front()->offset;
  slot.rest_bytes = 0;
  slot.rest.clear();
  for (WriteOp* op : ops) {
    op->requests_left = 1;
    op->first_error = 0;
    slot.rest_bytes += iov_bytes(op->iov);
    if (ops.size() > 1) slot.rest.insert(slot.rest.end(), op->iov.begin(), op->iov.end());
  }
  return index;
}

void UringWriteQueue::fill_entry(unsigned slot_index) {
  const Slot& slot = slots_[slot_index];
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  require(entry, room_in_ring);
  const int fd = posix_file(*slot.ops.front()).fd();
  const std::vector<iovec>& iov = slot.rest.empty() ? slot.ops.front()->iov : slot.rest;
  if (iov.size() == 1) {
    const auto length = static_cast<unsigned>(std::min<size_t>(iov[0].iov_len, 1u << 30));
    io_uring_prep_write(entry, fd, iov[0].iov_base, length, slot.offset);
  } else {
    io_uring_prep_writev(entry, fd, iov.data(), iov_count(iov), slot.offset);
  }
  io_uring_sqe_set_data64(entry, slot_index);
}

// Of three entries and more the kernel tells the disk at once, of fewer one by one.
void UringWriteQueue::fill_third_entry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  require(entry, room_in_ring);
  io_uring_prep_nop(entry);
  io_uring_sqe_set_flags(entry, IOSQE_CQE_SKIP_SUCCESS);
  io_uring_sqe_set_data64(entry, third_mark);
}

void UringWriteQueue::enter_kernel() {
  while (io_uring_sq_ready(&ring_) > 0) {
    const int result = io_uring_submit(&ring_);
    if (result > 0 || result == -EINTR) continue;
    if (result != 0 && result != -EAGAIN && result != -EBUSY) give_up("io_uring_enter", -result);
    // The kernel is short of memory for requests.
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

size_t UringWriteQueue::reap(bool wait) {
  std::vector<Finished> finished;
  for (;;) {
    std::vector<unsigned> again;
    const bool room_for_waiting = collect(&finished, &again);
    if (room_for_waiting || !again.empty()) submit_to_kernel(again);
    if (!finished.empty() || woken_ || !wait) break;
    blocked_ = true;  // before the last look: who submits after it sees this
    if (!can_take_waiting()) wait_for_completions(1);
    blocked_ = false;
  }
  if (wait) woken_ = false;
  for (const Finished& f : finished) f.op->done(*f.op, f.error);
  return finished.size();
}

bool UringWriteQueue::collect(std::vector<Finished>* finished, std::vector<unsigned>* again) {
  io_uring_cqe* entries[completions_per_look];
  while (finished->size() < depth_) {
    const unsigned found = io_uring_peek_batch_cqe(&ring_, entries, completions_per_look);
    if (found == 0) break;
    std::lock_guard lock(mutex_);
    for (unsigned i = 0; i < found; ++i) {
      const uint64_t mark = io_uring_cqe_get_data64(entries[i]);
      if (mark == wake_mark) {
        wake_submitted_.exchange(false);
        woken_ = true;
        continue;
      }
      if (mark == third_mark) continue;
      const auto index = static_cast<unsigned>(mark);
      if (std::optional<int> error = outcome_of(slots_[index], entries[i]->res)) {
        for (WriteOp* op : slots_[index].ops) {
          if (op->first_error == 0) op->first_error = *error;
          if (--op->requests_left == 0) finished->push_back({op, op->first_error});
        }
        free_slots_.push_back(index);
      } else {
        again->push_back(index);
      }
    }
    io_uring_cq_advance(&ring_, found);
  }
  return can_take_waiting();
}

bool UringWriteQueue::can_take_waiting() {
  std::lock_guard lock(mutex_);
  return !waiting_.empty() && !free_slots_.empty();
}

std::optional<int> UringWriteQueue::outcome_of(Slot& slot, int result) {
  // A request that was cancelled or interrupted before it began, which is the kernel's right when
  // the thread that submitted it ends. Nothing has been done: this thread submits it again.
  if (result == -ECANCELED || result == -EINTR || result == -EAGAIN) return std::nullopt;
  if (result < 0) return -result;
  const auto written = static_cast<uint64_t>(result);
  require(written <= slot.rest_bytes, "the kernel writes no more than it is given");
  if (written == slot.rest_bytes) return 0;
  if (written == 0) return EIO;
  if (slot.rest.empty()) slot.rest = slot.ops.front()->iov;
  iov_advance(&slot.rest, written);
  slot.offset += written;
  slot.rest_bytes -= written;
  return std::nullopt;
}

void UringWriteQueue::wait_for_completions(unsigned count) {
  io_uring_cqe* entry;
  const int result = io_uring_wait_cqe_nr(&ring_, &entry, count);
  if (result < 0 && result != -EINTR && result != -EAGAIN) give_up("io_uring_enter", -result);
}

void UringWriteQueue::wake() {
  if (wake_submitted_.exchange(true)) return;
  std::lock_guard submitting(submit_mutex_);
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  require(entry, room_in_ring);
  io_uring_prep_nop(entry);
  io_uring_sqe_set_data64(entry, wake_mark);
  enter_kernel();
}

}  // namespace tablestore
