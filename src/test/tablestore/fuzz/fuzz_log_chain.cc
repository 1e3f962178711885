// The log's reader over a chain of segments.
//
//   input = start:LogPosition as in its row (28 bytes), then the log's content from there on
//   Groups are mended as their headers ask (log_groups.h).
#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/require.h"
#include "test/tablestore/engine/memory_disk.h"
#include "test/tablestore/fuzz/input.h"
#include "test/tablestore/fuzz/log_groups.h"

namespace tablestore::fuzz {
namespace {

constexpr uint64_t segment_bytes = 4 * block_bytes;
constexpr uint64_t log_bytes = 4 * segment_bytes;
constexpr size_t row_bytes = 28;

void read_chain(LogRing& ring, const LogPosition& start) {
  LogReader reader(ring, uuid, start);
  LogPosition before = start;
  uint64_t taken = 0;
  for (;;) {
    auto group = reader.next();
    if (!group.ok()) {
      require(group.status().code() == EIO, "what cannot be read is damage");
      return;
    }
    if (!*group) break;
    const LogGroupHeader& h = (*group)->header;
    const LogPosition& after = reader.position();
    taken += h.total_bytes();
    require(taken <= log_bytes, "a chain is no longer than the log");
    require(h.position == before.position && after.position == h.position + h.total_bytes() &&
                after.position > before.position,
            "groups follow each other");
    require(h.first_lsn == before.next_lsn && after.next_lsn == h.first_lsn + h.transactions,
            "transactions follow each other");
    require((*group)->records.size() == h.transactions, "a record for each transaction");
    before = after;
  }
  require(reader.end().ok() || reader.end().code() == EIO, "what is not whole is damage");
  const LogPosition& end = reader.position();
  const BeyondEnd beyond = reader.look_beyond(end, UINT64_MAX / 2).take();
  require(beyond.epoch >= end.epoch, "no epoch is below the chain's");
}

void run(Input in) {
  const auto start = LogPosition::decode(Exactly(in.view(row_bytes)).view());
  if (!start) return;
  std::vector<std::byte> log(log_bytes);
  for (size_t i = 0; !in.empty() && i < log.size(); i += block_bytes) {
    const std::string_view block = in.view(block_bytes);
    std::memcpy(log.data() + (start->position / block_bytes * block_bytes + i) % log_bytes,
                block.data(), block.size());
  }
  mend_log(log, *start);

  MemoryDisk disk(log_bytes + (1 << 20));
  require(disk.make_dir("log").ok(), "memory takes directories");
  for (uint64_t n = 0; n < log_bytes / segment_bytes; ++n) {
    auto file = disk.open("log/" + std::to_string(n), OpenMode::create_new);
    BlockMemory segment(segment_bytes);
    std::memcpy(segment.data(), log.data() + n * segment_bytes, segment_bytes);
    require(file.ok() && (*file)->write(0, segment.span()).ok(), "memory takes writes");
  }
  auto ring = LogRing::open(disk, log_bytes, segment_bytes);
  require(ring.ok(), "the segments are there");
  read_chain(**ring, *start);
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tablestore::fuzz::run({data, size});
  return 0;
}
