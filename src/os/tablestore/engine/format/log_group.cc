#include "os/tablestore/engine/format/log_group.h"

#include <lz4.h>

#include <algorithm>
#include <bit>

#include "os/tablestore/engine/format/crc32c.h"

namespace tablestore {

static_assert(std::endian::native == std::endian::little,
              "structs of the log are copied as they are");

namespace {

constexpr size_t record_header_bytes = 4 * sizeof(uint32_t);
constexpr size_t write_bytes = 4 * sizeof(uint32_t);
constexpr size_t free_bytes = 3 * sizeof(uint32_t);
constexpr size_t compressed_at = sizeof(LogGroupHeader) + sizeof(uint32_t);
// Of the format: what a reader takes. To compress so much takes some tenths of a millisecond; more
// would hold up the commit lane.
constexpr size_t unpacked_bytes_max = 256 << 10;

uint32_t group_crc(const LogGroupHeader& header, std::span<const std::byte> group) {
  const uint32_t crc = crc32c(0, &header, offsetof(LogGroupHeader, crc));
  return crc32c(crc, group.data() + sizeof(LogGroupHeader), header.payload_bytes);
}

// Reads little-endian fields and says whether they were all there.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool has(uint64_t bytes) const { return bytes <= bytes_.size() - at_; }
  uint32_t u32() {
    uint32_t value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }
  std::string_view view(size_t bytes) {
    std::string_view v(reinterpret_cast<const char*>(bytes_.data() + at_), bytes);
    at_ += bytes;
    return v;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

// A run or an extent.
template <typename Blocks>
Blocks read_blocks(Cursor& cursor) {
  Blocks read;
  read.container = cursor.u32();
  read.block = cursor.u32();
  read.blocks = cursor.u32();
  return read;
}

}  // namespace

size_t LogGroupBuilder::record_bytes(size_t row_bytes, size_t writes, size_t frees) {
  return record_header_bytes + writes * write_bytes + frees * free_bytes + row_bytes;
}

void LogGroupBuilder::begin(size_t payload_estimate) {
  const size_t wanted = round_up_to_block(sizeof(LogGroupHeader) + payload_estimate);
  if (memory_.size() < wanted) memory_ = BlockMemory(wanted);
  used_ = sizeof(LogGroupHeader);
  transactions_ = 0;
}

void LogGroupBuilder::append(const void* data, size_t bytes) {
  if (used_ + bytes > memory_.size()) {
    BlockMemory bigger(std::max<size_t>(memory_.size() * 2, used_ + bytes));
    std::memcpy(bigger.data(), memory_.data(), used_);
    memory_ = std::move(bigger);
  }
  std::memcpy(memory_.data() + used_, data, bytes);
  used_ += bytes;
}

void LogGroupBuilder::add(uint32_t row_count, std::string_view rows,
                          std::span<const LoggedWrite> writes, std::span<const Extent> frees) {
  const uint32_t head[4] = {row_count, uint32_t(rows.size()), uint32_t(writes.size()),
                            uint32_t(frees.size())};
  append(head, sizeof(head));
  for (const LoggedWrite& w : writes) {
    const uint32_t fields[4] = {w.run.container, w.run.block, w.run.blocks, w.checksum};
    append(fields, sizeof(fields));
  }
  for (const Extent& e : frees) {
    const uint32_t fields[3] = {e.container, e.block, e.blocks};
    append(fields, sizeof(fields));
  }
  append(rows.data(), rows.size());
  ++transactions_;
}

// Where it saves a block: the end of what is in compressed_. Else 0.
size_t LogGroupBuilder::compress() {
  const size_t total = round_up_to_block(used_);
  if (!may_compress_ || total == block_bytes || payload_bytes() > unpacked_bytes_max) return 0;
  const size_t most = total - block_bytes;
  if (compressed_.size() < most) compressed_ = BlockMemory(most);
  const auto raw_bytes = uint32_t(payload_bytes());
  const int bytes = LZ4_compress_default(
      reinterpret_cast<const char*>(memory_.data()) + sizeof(LogGroupHeader),
      reinterpret_cast<char*>(compressed_.data()) + compressed_at, int(raw_bytes),
      int(most - compressed_at));
  if (bytes <= 0) return 0;
  std::memcpy(compressed_.data() + sizeof(LogGroupHeader), &raw_bytes, sizeof(raw_bytes));
  return compressed_at + size_t(bytes);
}

std::span<const std::byte> LogGroupBuilder::finish(LogGroupHeader header) {
  const size_t compressed_end = compress();
  BlockMemory& memory = compressed_end ? compressed_ : memory_;
  const size_t end = compressed_end ? compressed_end : used_;
  std::memcpy(header.magic, LogGroupHeader::expected_magic, sizeof(header.magic));
  header.transactions = transactions_;
  header.payload_bytes = uint32_t(end - sizeof(header));
  header.flags &= ~LogGroupHeader::compressed;
  if (compressed_end) header.flags |= LogGroupHeader::compressed;
  header.reserved = 0;
  header.crc = group_crc(header, memory.span());
  header_ = header;
  std::memcpy(memory.data(), &header, sizeof(header));
  const size_t total = header.total_bytes();
  std::memset(memory.data() + end, 0, total - end);
  return memory.span().first(total);
}

std::optional<LogGroupHeader> parse_header(std::span<const std::byte> block,
                                           const StoreUuid& uuid) {
  LogGroupHeader header;
  if (block.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, block.data(), sizeof(header));
  if (std::memcmp(header.magic, LogGroupHeader::expected_magic, sizeof(header.magic)) != 0 ||
      std::memcmp(header.store_uuid, uuid.data(), uuid.size()) != 0)
    return std::nullopt;
  return header;
}

std::optional<LogGroupHeader> parse_header(std::span<const std::byte> block, const StoreUuid& uuid,
                                           uint64_t position) {
  const auto header = parse_header(block, uuid);
  if (!header || header->position != position) return std::nullopt;
  return header;
}

bool crc_matches(const LogGroupHeader& header, std::span<const std::byte> group) {
  return group.size() >= sizeof(header) + uint64_t(header.payload_bytes) &&
         group_crc(header, group) == header.crc;
}

Result<std::span<const std::byte>> unpack_payload(const LogGroupHeader& header,
                                                  std::span<const std::byte> group,
                                                  BlockMemory* unpacked) {
  const auto payload = group.subspan(sizeof(header), header.payload_bytes);
  if (!(header.flags & LogGroupHeader::compressed)) return payload;
  const Status damaged(EIO, "log group at position " + std::to_string(header.position) +
                                ": its payload is not what was compressed");
  Cursor cursor(payload);
  if (!cursor.has(sizeof(uint32_t))) return damaged;
  const uint32_t raw_bytes = cursor.u32();
  const auto packed = payload.subspan(sizeof(raw_bytes));
  if (raw_bytes == 0 || raw_bytes > unpacked_bytes_max || packed.size() > unpacked_bytes_max)
    return damaged;
  *unpacked = BlockMemory(round_up_to_block(raw_bytes));
  const int bytes = LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()),
                                        reinterpret_cast<char*>(unpacked->data()),
                                        int(packed.size()), int(raw_bytes));
  if (bytes != int(raw_bytes)) return damaged;
  return std::span<const std::byte>(unpacked->span().first(raw_bytes));
}

Result<std::vector<LogRecord>> parse_records(const LogGroupHeader& header,
                                             std::span<const std::byte> payload) {
  const Status damaged(EIO, "log group at position " + std::to_string(header.position) +
                                ": records do not fit its payload");
  Cursor cursor(payload);
  std::vector<LogRecord> records;
  for (uint32_t i = 0; i < header.transactions; ++i) {
    if (!cursor.has(record_header_bytes)) return damaged;
    LogRecord record;
    record.row_count = cursor.u32();
    const uint64_t row_bytes = cursor.u32();
    const uint64_t writes = cursor.u32();
    const uint64_t frees = cursor.u32();
    if (!cursor.has(writes * write_bytes + frees * free_bytes + row_bytes)) return damaged;
    for (uint64_t w = 0; w < writes; ++w) {
      LoggedWrite write;
      write.run = read_blocks<Run>(cursor);
      write.checksum = cursor.u32();
      record.writes.push_back(write);
    }
    for (uint64_t f = 0; f < frees; ++f) record.frees.push_back(read_blocks<Extent>(cursor));
    record.rows = cursor.view(row_bytes);
    records.push_back(std::move(record));
  }
  if (!cursor.at_end()) return damaged;
  return records;
}

}  // namespace tablestore
