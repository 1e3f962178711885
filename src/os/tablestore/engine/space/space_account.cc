#include "os/tablestore/engine/space/space_account.h"

#include <algorithm>

namespace tablestore {

namespace {

constexpr uint64_t compaction_bytes_max = 1 << 30;
constexpr auto size_lifetime = std::chrono::milliseconds(100);

}  // namespace

uint64_t table_reserve_bytes(const TableSize& table, uint64_t log_bytes, bool ballast_is_there) {
  const uint64_t compaction = std::min({std::max(table.file_bytes / 4, table.pending_bytes),
                                        table.file_bytes / 2, compaction_bytes_max});
  return compaction + log_bytes - (ballast_is_there ? ballast_bytes(log_bytes) : 0);
}

TableSize SpaceAccount::table_size() {
  std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (!time_passes_ || now - asked_at_ > size_lifetime) {
    size_ = table_.size();
    asked_at_ = now;
  }
  return size_;
}

OtherSpace SpaceAccount::others() {
  const TableSize table = table_size();
  return {table.file_bytes + log_bytes_ + ballast_.held_bytes() + last_.held_bytes(),
          table_reserve_bytes(table, log_bytes_, ballast_.is_whole())};
}

}  // namespace tablestore
