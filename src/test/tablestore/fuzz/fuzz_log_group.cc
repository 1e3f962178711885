// One group of the log: its header, and the records behind its checksum.
//
//   input = how:u8 header:80 payload
//   how: bit 0 leaves the magic, uuid and position as they are, bit 1 the length, bit 2 the
//   checksum
#include <algorithm>

#include "os/tablestore/engine/format/log_group.h"
#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/rows.h"
#include "test/tablestore/fuzz/input.h"
#include "test/tablestore/fuzz/log_groups.h"

namespace tablestore::fuzz {
namespace {

constexpr uint64_t position = 123 * block_bytes;

bool lies_in(std::string_view part, std::span<const std::byte> whole) {
  const char* const begin = reinterpret_cast<const char*>(whole.data());
  return part.data() >= begin && part.data() + part.size() <= begin + whole.size();
}

// Records that were accepted are the payload: made again of them, it has the same bytes.
void check(const LogGroupHeader& header, std::span<const std::byte> payload,
           const std::vector<LogRecord>& records) {
  require(records.size() == header.transactions, "a record for each transaction");
  LogGroupBuilder builder;
  builder.begin(0);
  for (const LogRecord& r : records) {
    require(lies_in(r.rows, payload), "rows lie in their group");
    rows_are_sound(r.row_count, r.rows);
    builder.add(r.row_count, r.rows, r.writes, r.frees);
  }
  const auto again = builder.finish(header);
  require(builder.payload_bytes() == payload.size(), "records fill the payload");
  require(std::ranges::equal(again.subspan(sizeof(header), payload.size()), payload),
          "records are read as they were written");
}

void run(Input in) {
  const uint8_t how = in.u8();
  Exactly memory(in.rest());
  LogGroupHeader header{};
  if (memory.bytes().size() >= sizeof(header)) {
    std::memcpy(&header, memory.bytes().data(), sizeof(header));
    const auto payload = memory.bytes().subspan(sizeof(header));
    if (!(how & 1)) {
      std::memcpy(header.magic, LogGroupHeader::expected_magic, sizeof(header.magic));
      std::memcpy(header.store_uuid, uuid.data(), uuid.size());
      header.position = position;
    }
    if (!(how & 2)) header.payload_bytes = uint32_t(payload.size());
    if (!(how & 4))
      make_crc_right(header, payload.first(std::min<size_t>(header.payload_bytes,
                                                            payload.size())));
    std::memcpy(memory.bytes().data(), &header, sizeof(header));
  }
  const auto parsed = parse_header(memory.bytes(), uuid, position);
  if (!parsed || !crc_matches(*parsed, memory.bytes())) return;
  BlockMemory unpacked;
  const auto payload = unpack_payload(*parsed, memory.bytes(), &unpacked);
  if (!payload.ok()) {
    require(payload.status().code() == EIO, "what was not compressed is damage");
    return;
  }
  const Exactly copy({reinterpret_cast<const char*>(payload->data()), payload->size()});
  const auto records = parse_records(*parsed, copy.bytes());
  if (records.ok())
    check(*parsed, copy.bytes(), *records);
  else
    require(records.status().code() == EIO, "what does not fit is damage");
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tablestore::fuzz::run({data, size});
  return 0;
}
