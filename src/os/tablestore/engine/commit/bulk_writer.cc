#include "os/tablestore/engine/commit/bulk_writer.h"

namespace tablestore {

BulkWriter::BulkWriter(Threads& threads, std::unique_ptr<WriteQueue> writes,
                       std::function<void()> progress)
    : threads_(threads),
      writes_(std::move(writes)),
      progress_(std::move(progress)),
      worker_(threads.start("data", Threads::Urgency::waited_for, [this] { run(); },
                            [] { return false; })) {}

BulkWriter::~BulkWriter() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    work_.notify_one();
  }
  worker_ = nullptr;
}

void BulkWriter::submit(std::span<WriteOp* const> ops) {
  bool idle;
  {
    std::lock_guard lock(mutex_);
    idle = pending_ == 0;
    pending_ += ops.size();
    if (idle) {
      writes_->submit(ops, WriteQueue::Begin::at_next_reap);
      work_.notify_one();
    }
  }
  threads_.hand_over();
  if (!idle) writes_->submit(ops, WriteQueue::Begin::at_once);
}

void BulkWriter::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return stopping_ || pending_ > 0; });
      if (pending_ == 0) return;
    }
    const size_t completed = writes_->reap(true);
    threads_.hand_over();
    if (completed == 0) continue;
    progress_();
    std::lock_guard lock(mutex_);
    pending_ -= completed;
  }
}

}  // namespace tablestore
