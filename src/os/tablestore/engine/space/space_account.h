// What the table takes and may yet need, and with the log and the ballast what all but containers
// does: the one rule by which space is divided between them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "os/tablestore/engine/container/growth_policy.h"
#include "os/tablestore/engine/space/ballast.h"
#include "os/tablestore/engine/table/table.h"

namespace tablestore {

// What has to stay available beside a table of this size.
//
// All rows that are not in table files yet are in the log, so a log's worth of space is enough for
// every flush to come: half of it is held by the ballast, where there is one, the other half stays
// available. A compaction writes its rows before it removes those that it has read: that is a
// quarter of the table, more when more is due, at most a half, and never more than RocksDB takes at
// once.
uint64_t table_reserve_bytes(const TableSize& table, uint64_t log_bytes, bool ballast_is_there);
// Half of the log: a flush while the store is opened writes no more.
inline uint64_t ballast_bytes(uint64_t log_bytes) { return log_bytes / 2; }
// What RocksDB writes when it opens the table, many times over: a MANIFEST, which has some hundred
// bytes for each file. A small table is opened with the least.
inline uint64_t last_ballast_bytes(uint64_t log_bytes) {
  return std::min<uint64_t>(log_bytes / 8, 8 << 20);
}
inline constexpr uint64_t last_ballast_least_bytes = 128 << 10;

// Thread-safe.
class SpaceAccount {
 public:
  // `time_passes`: asking the table takes a while, so that what it said stands for a moment.
  SpaceAccount(Table& table, const Ballast& ballast, const Ballast& last, uint64_t log_bytes,
               bool time_passes)
      : table_(table),
        ballast_(ballast),
        last_(last),
        log_bytes_(log_bytes),
        time_passes_(time_passes) {}

  OtherSpace others();

 private:
  TableSize table_size();

  Table& table_;
  const Ballast& ballast_;
  const Ballast& last_;
  const uint64_t log_bytes_;
  const bool time_passes_;
  std::mutex mutex_;  // guards what follows it
  TableSize size_;
  std::chrono::steady_clock::time_point asked_at_{};
};

}  // namespace tablestore
