// Reads the chain of log groups from a position on.
#pragma once

#include <optional>

#include "os/tablestore/engine/format/log_group.h"
#include "os/tablestore/engine/log/log_ring.h"

namespace tablestore {

// Where the next group goes, and what it must say to belong there. At every moment the state of the
// commit lane; the row "log_start" of the table is the one of the last checkpoint.
struct LogPosition {
  uint64_t position = 0;
  uint64_t next_lsn = 1;
  uint64_t epoch = 0;
  uint32_t previous_crc = 0;

  std::string encode() const;
  // nullopt: bytes that encode() never makes, of a position that a log has.
  static std::optional<LogPosition> decode(std::string_view row);
};

// A group that is intact and follows the one before. Its data is not judged here.
struct LogGroup {
  LogGroupHeader header;
  BlockMemory memory;
  std::vector<LogRecord> records;  // point into memory
};

// Not thread-safe.
class LogReader {
 public:
  LogReader(LogRing& ring, const StoreUuid& uuid, const LogPosition& start)
      : ring_(ring), uuid_(uuid), at_(start), start_position_(start.position) {}

  // The next group of the chain; nullopt where there is none (the log's end, or damage). EIO where
  // the disk fails.
  Result<std::optional<LogGroup>> next();
  // After the group that next() returned last.
  const LogPosition& position() const { return at_; }
  // After next() has returned nullopt: EIO where a later group proves that the chain should have
  // gone on, because it was written when transactions that are missing here were durable. Looks at
  // the next `window_bytes`.
  Status expect_end(uint64_t window_bytes);

 private:
  static constexpr size_t ahead_bytes_max = 1 << 20;

  Status read(uint64_t position, std::span<std::byte> out);
  Result<bool> read_group(uint64_t position, LogGroup* group);
  Result<bool> proves_damage(std::span<const std::byte> block, uint64_t position);
  LogRing& ring_;
  const StoreUuid uuid_;
  LogPosition at_;
  const uint64_t start_position_;
  BlockMemory ahead_{ahead_bytes_max};  // what was read last
  uint64_t ahead_position_ = 0;
  uint64_t ahead_bytes_ = 0;
};

}  // namespace tablestore
