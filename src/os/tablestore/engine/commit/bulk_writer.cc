#include "os/tablestore/engine/commit/bulk_writer.h"

#include "os/tablestore/engine/thread.h"

namespace tablestore {

BulkWriter::BulkWriter(std::unique_ptr<WriteQueue> writes, std::function<void()> progress)
    : writes_(std::move(writes)),
      progress_(std::move(progress)),
      thread_([this] {
        name_thread("ts_data");
        wake_up_soon();
        run();
      }) {}

BulkWriter::~BulkWriter() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    work_.notify_one();
  }
  thread_.join();
}

void BulkWriter::submit(std::span<WriteOp* const> ops) {
  bool idle;
  {
    std::lock_guard lock(mutex_);
    idle = pending_ == 0;
    pending_ += ops.size();
    if (idle) {
      writes_->post(ops);
      work_.notify_one();
    }
  }
  if (!idle) writes_->submit(ops);
}

void BulkWriter::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return stopping_ || pending_ > 0; });
      if (pending_ == 0) return;
    }
    const size_t completed = writes_->reap(true);
    if (completed == 0) continue;
    progress_();
    std::lock_guard lock(mutex_);
    pending_ -= completed;
  }
}

}  // namespace tablestore
