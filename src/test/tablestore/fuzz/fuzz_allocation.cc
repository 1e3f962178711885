// Allocation checkpoints, and the extents of the log over them: recovery's half of the allocator.
//
//   input = { op:u8 container:u8 ... }
#include <algorithm>
#include <map>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "test/tablestore/fuzz/input.h"

namespace tablestore::fuzz {
namespace {

constexpr uint32_t chunk_blocks = BlockBitmap::chunk_blocks;
constexpr uint32_t blocks = chunk_blocks + largest_slot_blocks;  // two chunks

// Some of few containers, or any.
uint32_t container_of(Input& in) {
  const uint8_t n = in.u8();
  return n < 0xf0 ? n % 4 : in.u32();
}

BlockBitmap bits_of(Input& in, uint32_t blocks = fuzz::blocks) {
  BlockBitmap bitmap(blocks);
  for (uint8_t runs = in.u8() % 8; runs > 0; --runs) {
    const uint32_t first = in.u16() % blocks;
    bitmap.set(first, std::min<uint32_t>(in.u16(), blocks - first));
  }
  return bitmap;
}

// Everything adds up, and what is free can be handed out, all of it, once.
void check(Allocator& allocator) {
  const AllocatorUsage usage = allocator.usage();
  uint64_t durable = 0;
  for (uint32_t id : allocator.containers()) durable += allocator.owned_bitmap(id)->count();
  require(durable == usage.owned_blocks, "owned blocks are counted");
  require(usage.free_blocks + usage.punched_blocks + durable == usage.blocks,
          "a block is free, punched or owned");
  require(allocator.reserve(usage.free_blocks), "free blocks can be promised");
  uint64_t taken = 0;
  for (const Extent& e : allocator.allocate(usage.free_blocks, true, nullptr)) {
    require(!allocator.owned_bitmap(e.container)->any(e.block, e.blocks),
            "what is handed out has no owner");
    allocator.mark_owned(e);
    taken += e.blocks;
  }
  require(taken == usage.free_blocks, "all free blocks are handed out");
  std::map<Allocator::ChunkName, bool> written;
  allocator.begin_capture();
  for (auto piece = allocator.take_changed(2); !piece.empty(); piece = allocator.take_changed(2)) {
    std::string rows;
    RowWriter writer(rows);
    for (const auto& chunk : piece) {
      engine_rows::write_allocation(writer, chunk, 1);
      require(written.try_emplace({chunk.container, chunk.chunk}).second,
              "a chunk is taken once");
    }
  }
  while (!allocator.take_gone(2).empty()) {
  }
}

// A row of either format, of which all bytes are the input's, or the bits.
void load(Allocator& allocator, uint8_t op, uint32_t container, Input& in) {
  const bool is_whole = op & 0x40;
  const uint32_t chunk = is_whole ? 0 : in.u8() % 3;
  if (op & 0x80) {
    const std::string_view value = in.view(in.u16() % 1024);
    if (is_whole) {
      if (const auto owned = engine_rows::decode_whole_allocation(value))
        allocator.load_whole(container, *owned);
    } else if (const auto row = engine_rows::decode_allocation(value)) {
      allocator.load(container, chunk, row->owned, row->as_of);
    }
  } else if (is_whole) {
    allocator.load_whole(container, bits_of(in));
  } else {
    const uint64_t as_of = in.u8();
    const uint32_t blocks_in_chunk = chunk ? largest_slot_blocks : chunk_blocks;
    allocator.load(container, chunk, bits_of(in, blocks_in_chunk), as_of);
  }
}

void run(Input in) {
  Allocator allocator;
  std::vector<uint32_t> added;
  for (unsigned steps = 0; !in.empty() && steps < 64; ++steps) {
    const uint8_t op = in.u8();
    const uint32_t container = container_of(in);
    switch (op % 4) {
      case 0: {
        if (std::ranges::count(added, container) || container == UINT32_MAX) break;
        added.push_back(container);
        const BlockBitmap unwritten = bits_of(in);
        allocator.add_container(container, op / 4 % slot_classes, blocks, unwritten, bits_of(in));
        break;
      }
      case 1: {
        load(allocator, op, container, in);
        break;
      }
      default: {
        // Recovery lets no extent through that lies in no container of this size.
        const uint32_t first = in.u16() % blocks;
        const Extent extent{container, first,
                            std::min<uint32_t>(in.u16() % 64 + 1, blocks - first)};
        op % 4 == 2 ? allocator.replay_owned(extent, steps) : allocator.replay_freed(extent, steps);
      }
    }
  }
  const Status status = allocator.finish_recovery();
  if (status.ok())
    check(allocator);
  else
    require(status.code() == EIO, "what contradicts itself is damage");
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tablestore::fuzz::run({data, size});
  return 0;
}
