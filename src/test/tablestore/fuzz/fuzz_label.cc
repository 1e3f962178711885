// The label: two copies, damaged in any way, behind their checksums too.
//
//   input = how:u8 {fields of a copy: 104 bytes} x 2    with both checksums made right
//         = how:u8 bytes of the file                    where how is odd
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/format/extent.h"
#include "os/tablestore/engine/format/label.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/require.h"
#include "test/tablestore/engine/memory_disk.h"
#include "test/tablestore/fuzz/input.h"

namespace tablestore::fuzz {
namespace {

// What stands for something: the releases behind it are for people.
constexpr size_t field_bytes = 104;

void write_file(Disk& disk, std::span<const std::byte> blocks) {
  auto file = disk.open("label", OpenMode::create_new);
  require(file.ok() && (blocks.empty() || (*file)->write(0, blocks).ok()), "memory takes writes");
}

std::span<const std::byte> make_file(Input& in, BlockMemory& memory) {
  memory.zero();
  if (in.u8() & 1) {
    const std::string_view bytes = in.view(memory.size());
    std::memcpy(memory.data(), bytes.data(), bytes.size());
    return memory.span().first(round_up_to_block(bytes.size()));
  }
  for (unsigned copy = 0; copy < 2; ++copy) {
    std::byte* const block = memory.data() + copy * block_bytes;
    const std::string_view fields = in.view(field_bytes);
    std::memcpy(block, fields.data(), fields.size());
    const uint32_t crc = crc32c(0, block, block_bytes - sizeof(crc));
    std::memcpy(block + block_bytes - sizeof(crc), &crc, sizeof(crc));
  }
  return memory.span();
}

// A label that is read can be used: its geometry divides and multiplies without surprises.
void check(const Label& label) {
  require(label.format_version == label_format_version, "the version is known");
  require(label.segment_bytes > 0 && label.segment_bytes % block_bytes == 0 &&
              label.log_bytes % label.segment_bytes == 0 &&
              label.log_bytes / label.segment_bytes >= 2,
          "the log has whole segments");
  require(label.container_bytes > 0 &&
              label.container_bytes % (largest_slot_blocks * block_bytes) == 0 &&
              label.container_bytes / block_bytes < UINT32_MAX,
          "containers have whole slots");
}

void run(Input in) {
  BlockMemory memory(2 * block_bytes);
  MemoryDisk disk(1 << 20);
  write_file(disk, make_file(in, memory));
  bool repair_needed = false;
  const auto label = read_label(disk, &repair_needed);
  if (!label.ok()) {
    require(!label.status().what().empty(), "a refusal says why");
    return;
  }
  check(*label);
  const bool writable = check_writable(disk, *label).ok();
  if (!writable) return;
  // What is written over it is what is read again.
  require(write_label(disk, *label).ok(), "memory takes writes");
  const auto again = read_label(disk, &repair_needed);
  require(again.ok() && !repair_needed, "a label that was written is whole");
  Label expected = *label;
  expected.sequence = again->sequence;
  require(*again == expected, "a label is read as it was written");
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tablestore::fuzz::run({data, size});
  return 0;
}
