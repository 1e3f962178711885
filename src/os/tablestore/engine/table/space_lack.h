// Notices where a compaction has met a full file system, of which nobody else is told: writes and
// flushes go on, and space that rows have given up does not come back.
#pragma once

#include <atomic>

#include "rocksdb/listener.h"

namespace tablestore {

// Thread-safe.
class SpaceLack : public rocksdb::EventListener {
 public:
  const char* Name() const override { return "SpaceLack"; }
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    if (reason == rocksdb::BackgroundErrorReason::kCompaction && error->IsNoSpace()) met_ = true;
  }
  // Since the last call.
  bool take() { return met_.exchange(false); }

 private:
  std::atomic<bool> met_{false};
};

}  // namespace tablestore
