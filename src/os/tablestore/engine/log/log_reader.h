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
  // Of a group without transactions that goes here.
  LogGroupHeader empty_group(const StoreUuid& store) const;
  // nullopt: bytes that encode() never makes, of a position that a log has.
  static std::optional<LogPosition> decode(std::string_view row);
};

// A group that is intact and follows the one before. Its data is not judged here.
struct LogGroup {
  LogGroupHeader header;
  BlockMemory memory;              // of all of it, or of the unpacked records alone
  std::vector<LogRecord> records;  // point into memory
  uint64_t saved_bytes = 0;        // that it would take more in the log if it was not compressed
  bool is_derived = false;  // it has no transactions, and was not read: see LogReader::next()
};

// What lies behind the end of a chain: intact groups that belong there, though they may lie
// elsewhere.
struct BeyondEnd {
  // The highest of them; the chain's own where none has a higher one.
  uint64_t epoch = 0;
  // The last transaction that one of them says was durable; 0: none does. Where the chain lacks it,
  // the chain should have gone on: what is between has been lost.
  uint64_t durable_lsn = 0;
  // Positions of the blocks that cannot be read, ascending.
  std::vector<uint64_t> unreadable;
};

// Not thread-safe.
class LogReader {
 public:
  LogReader(LogRing& ring, const StoreUuid& uuid, const LogPosition& start)
      : ring_(ring), uuid_(uuid), at_(start), start_position_(start.position) {}

  // The next group of the chain; nullopt where there is none (the log's end, or damage). EIO where
  // an intact group has records that nobody writes; another error (ENOMEM) says nothing of the log.
  //
  // A group without transactions says nothing that the one before it does not, and the one behind
  // it knows its crc: where that is intact, damage of it loses nothing.
  Result<std::optional<LogGroup>> next();
  // After the group that next() returned last.
  const LogPosition& position() const { return at_; }
  // After next() has returned nullopt. Success: no next group was begun. EIO: one was, and is not
  // all there, or the disk cannot read what lies there; it is not known which transactions it had.
  const Status& end() const { return end_; }
  // Looks at `window_bytes` from `end` on. A block that cannot be read there proves nothing: space
  // of the log that is not in use may be unreadable without harm. An error: of a read, for a reason
  // that says nothing of the log (ENOMEM).
  Result<BeyondEnd> look_beyond(const LogPosition& end, uint64_t window_bytes);

 private:
  static constexpr size_t ahead_bytes_max = 1 << 20;

  bool follows(const LogGroupHeader& header) const;
  bool fits_the_lap(const LogGroupHeader& header, uint64_t position) const;
  Status read(uint64_t position, std::span<std::byte> out);
  Result<bool> read_next(LogGroup* group);
  Result<bool> read_group(const LogGroupHeader& header, uint64_t position,
                          std::span<const std::byte> first, LogGroup* group);
  Result<bool> derive_empty(LogGroup* group);
  Status look_at(std::span<const std::byte> block, uint64_t position, const LogPosition& end,
                 BeyondEnd* found);
  LogRing& ring_;
  const StoreUuid uuid_;
  LogPosition at_;
  Status end_;
  const uint64_t start_position_;
  BlockMemory ahead_{ahead_bytes_max};  // what was read last
  uint64_t ahead_position_ = 0;
  uint64_t ahead_bytes_ = 0;
  uint64_t not_ahead_until_ = 0;  // a large read has failed: a disk may take long to say so
};

}  // namespace tablestore
