// The bytes of the log: groups of transactions. No I/O.
//
//   log    = { group }                      in a ring of segment files, at ascending positions
//   group  = header payload padding         starts and ends at a multiple of 4 KiB
//   payload= { record }                     one per transaction, header.transactions of them
//   record = row_count:u32 row_bytes:u32 writes:u32 frees:u32
//            { container:u32 block:u32 blocks:u32 checksum:u32 }   writes times
//            { container:u32 block:u32 blocks:u32 }                frees times
//            rows                           row_bytes of RocksDB write-batch records
//
// Where the header's flag `compressed` is set, the payload is raw_bytes:u32 and the records as one
// LZ4 block. Rows of one group are much alike, and each group takes whole blocks of the disk.
//
// Integers are little endian. The n-th transaction of a group has the log sequence number
// header.first_lsn + n. A write's checksum is the crc32c of the array of the crc32c of each of its
// blocks. A group happened if its header and payload are intact *and* it follows the group before
// it (previous_crc) *and*, unless some later group vouches for it (watermark), all data that its
// records name is on the disk as their checksums say: the transactional checksum of SwimStore
// (HotStorage'18, section 3).
#pragma once

#include <array>
#include <cstddef>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "os/tablestore/engine/format/extent.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/status.h"

namespace tablestore {

using StoreUuid = std::array<uint8_t, 16>;

struct LogGroupHeader {
  static constexpr char expected_magic[8] = {'t', 'b', 'l', 's', 'l', 'o', 'g', '1'};
  static constexpr uint32_t begins_epoch = 1;
  static constexpr uint32_t compressed = 2;

  char magic[8];            // something else altogether lies here
  uint8_t store_uuid[16];   // a group of another store, left in recycled space
  uint64_t epoch;           // a group of before the last recovery, which must not come back (I5)
  uint64_t position;        // a misdirected write or read; a group of an earlier lap of the ring
  uint64_t first_lsn;       // a gap
  uint64_t watermark;       // all transactions up to this one were durable when this group was
                            // written (I4)
  uint32_t transactions;    // 0 in a group that only begins an epoch or carries a watermark
  uint32_t payload_bytes;
  uint32_t previous_crc;    // a group that followed another one than the one before it here
  uint32_t flags;           // begins_epoch: the first group of its epoch; compressed
  uint32_t reserved;
  uint32_t crc;             // a torn or rotten group: crc32c of the header up to here and of the
                            // payload

  uint64_t last_lsn() const { return first_lsn + transactions - 1; }
  uint64_t total_bytes() const { return round_up_to_block(sizeof(*this) + payload_bytes); }
};
static_assert(sizeof(LogGroupHeader) == 80 && std::is_trivially_copyable_v<LogGroupHeader>);
static_assert(offsetof(LogGroupHeader, epoch) == 24 && offsetof(LogGroupHeader, crc) == 76);

// One run of blocks that a transaction wrote.
struct LoggedWrite {
  Run run;
  uint32_t checksum = 0;
};

// One transaction, as it lies in the log. `rows` points into the group's memory.
struct LogRecord {
  uint32_t row_count = 0;
  std::string_view rows;
  std::vector<LoggedWrite> writes;
  std::vector<Extent> frees;
};

// Builds one group in block-aligned memory. Not thread-safe.
class LogGroupBuilder {
 public:
  // With `may_compress`: groups of more than a block, where that saves one.
  explicit LogGroupBuilder(bool may_compress = false) : may_compress_(may_compress) {}
  void begin(size_t payload_estimate);
  void add(uint32_t row_count, std::string_view rows, std::span<const LoggedWrite> writes,
           std::span<const Extent> frees);
  static size_t record_bytes(size_t row_bytes, size_t writes, size_t frees);
  // Fills in magic, payload_bytes, transactions, `compressed` and crc; zeroes the padding. The
  // memory is valid until begin().
  std::span<const std::byte> finish(LogGroupHeader header);
  // As finish() has made it.
  const LogGroupHeader& header() const { return header_; }
  uint32_t crc() const { return header_.crc; }
  // Of the records, not compressed.
  size_t payload_bytes() const { return used_ - sizeof(LogGroupHeader); }

 private:
  void append(const void* data, size_t bytes);
  size_t compress();
  const bool may_compress_;
  BlockMemory memory_;
  size_t used_ = 0;
  BlockMemory compressed_;
  uint32_t transactions_ = 0;
  LogGroupHeader header_{};
};

// The header at the start of `block`, if it looks like one of this store, or one that belongs at
// `position` of it; its crc is not yet checked.
std::optional<LogGroupHeader> parse_header(std::span<const std::byte> block,
                                           const StoreUuid& uuid);
std::optional<LogGroupHeader> parse_header(std::span<const std::byte> block, const StoreUuid& uuid,
                                           uint64_t position);
// True where header and payload match the crc. `group` holds at least header + payload.
bool crc_matches(const LogGroupHeader& header, std::span<const std::byte> group);
// The records' bytes of a group whose crc matches: a part of `group`, or of `unpacked`, where they
// are compressed. EIO as parse_records().
Result<std::span<const std::byte>> unpack_payload(const LogGroupHeader& header,
                                                  std::span<const std::byte> group,
                                                  BlockMemory* unpacked);
// The records of a group in its unpacked payload. EIO where they do not fit (a bug of the writer,
// or 1 in 2^32).
Result<std::vector<LogRecord>> parse_records(const LogGroupHeader& header,
                                             std::span<const std::byte> payload);

}  // namespace tablestore
