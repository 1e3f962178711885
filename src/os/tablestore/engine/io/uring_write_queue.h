// Asynchronous writes through io_uring.
#pragma once

#include <liburing.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// Owns the ring. The thread in reap() submits all requests to the kernel, because the kernel
// completes a request in the thread that has made it, and that should be the one that waits. The
// kernel has at most `depth` requests; the rest stays in `waiting_`, so that submit() never waits,
// and neither the submission nor the completion ring can be full.
//
// Two locks, taken in this order:
//   submit_mutex_   the submission ring, and the system call that submits it: the thread in
//                   reap(), and those in wake()
//   mutex_          slots and `waiting_`; never held in a system call, so that reap() does not wait
//                   for submitters when there is nothing to submit
// The completion ring, and what is marked so, belongs to the thread in reap().
class UringWriteQueue : public WriteQueue {
 public:
  // ENOSYS, EPERM (forbidden here), ENOMEM, ENOTSUP (too old a kernel) ...
  static Result<std::unique_ptr<WriteQueue>> create(unsigned depth);
  ~UringWriteQueue() override;

  void submit(std::span<WriteOp* const> ops, Begin begin) override;
  size_t reap(bool wait) override;
  void wake() override;
  uint64_t requests() const override { return requests_; }

 private:
  // A request that the kernel has: one operation, a part of it, or several neighbours in a file.
  struct Slot {
    std::vector<WriteOp*> ops;
    uint64_t offset = 0;      // of the rest
    uint64_t rest_bytes = 0;  // not yet written
    std::vector<iovec> rest;  // empty: all of the only operation
  };
  struct Finished {
    WriteOp* op;
    int error;
  };

  explicit UringWriteQueue(unsigned depth);
  Status start();
  Status try_it();

  void add_waiting(std::span<WriteOp* const> ops);
  // By plain system calls: until Linux 6.19 a worker thread of the kernel, which has to be woken,
  // completes what a ring writes to a file. But where exactly one request waits, that one and this
  // go through the ring together, and the disk is told of both at once (decision p in
  // doc/dev/tablestore.rst).
  void write_here(std::span<WriteOp* const> ops);
  // Gives the kernel `again` (slots that are not done yet) and what waits, as far as there are
  // slots.
  void submit_to_kernel(const std::vector<unsigned>& again, bool with_third = false);
  bool is_pair(std::span<WriteOp* const> ops);
  void fill_third_entry();
  bool can_take_waiting();
  void take_waiting();
  unsigned take_slot(std::span<WriteOp* const> ops);
  void take_parts(WriteOp& op, uint64_t bytes);
  void fill_entry(unsigned slot_index);
  void enter_kernel();
  // Takes completions; true where waiting operations can now be submitted.
  bool collect(std::vector<Finished>* finished, std::vector<unsigned>* again);
  // Of a slot's operation: its final error or 0; nullopt where the rest has to be submitted.
  static std::optional<int> outcome_of(Slot& slot, int result);
  void wait_for_completions(unsigned count);

  const unsigned depth_;
  io_uring ring_{};
  bool ring_made_ = false;
  bool skips_completions_ = false;  // an entry that does nothing needs not be reaped

  std::mutex submit_mutex_;
  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<unsigned> free_slots_;
  std::deque<WriteOp*> waiting_;
  std::atomic<uint64_t> requests_{0};

  std::atomic<bool> blocked_{false};  // reap() waits, or is about to
  std::atomic<bool> wake_submitted_{false};
  bool woken_ = false;  // reap()'s: a wake-up for which no blocking call has returned yet
};

}  // namespace tablestore
