// The rows of Family::super that the engine itself keeps; their keys begin with a zero byte. What
// reads a row says so (nullopt) where it has bytes that the engine never writes.
//
// log_start, applied and ownership_unknown follow from nothing else. So each is written twice, in
// one batch, under the same key: once more to Family::object, which is in other files of the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/table/rows.h"

namespace tablestore::engine_rows {

// LogPosition: what recovery replays from; everything before is in the allocation rows.
std::string log_start();
// lsn:u64, the last transaction in the table.
std::string applied();
std::string encode_applied(uint64_t lsn);
std::optional<uint64_t> decode_applied(std::string_view value);
// There: the table is ahead of a log that was cut, and rows own blocks that no allocation row says.
std::string ownership_unknown();
// One of these three, and its copy.
inline constexpr Family of_copies = Family::object;
inline constexpr uint32_t rows_with_copy = 2;
void write_with_copy(RowWriter& writer, std::string_view key, std::string_view value);
// Whether a row is the engine's.
bool is_ours(Family family, std::string_view key);
// The line of a trouble (troubles.h) that outlives the life of the store in which it came up, until
// it is settled.
std::string trouble(std::string_view name);

// --- the allocation map

inline constexpr std::string_view allocation_prefix("\0alloc", 6);

// Which blocks of a chunk of a container are owned, after all transactions before `as_of`. No row:
// none ever was.
std::string allocation(uint32_t container, uint32_t chunk);
// Of a whole container, as of log_start: what a store without incompat_allocation_chunks has.
std::string whole_allocation(uint32_t container);

struct AllocationKey {
  uint32_t container;
  std::optional<uint32_t> chunk;  // none: of a whole container
};
std::optional<AllocationKey> decode_allocation_key(std::string_view key);

void write_allocation(RowWriter& writer, const Allocator::OwnedChunk& chunk, uint64_t as_of);
struct AllocationRow {
  uint64_t as_of;
  BlockBitmap owned;
};
std::optional<AllocationRow> decode_allocation(std::string_view value);
std::optional<BlockBitmap> decode_whole_allocation(std::string_view value);
// Erases the rows that a checkpoint leaves behind; returns how many records that takes.
uint32_t erase_allocation(RowWriter& writer, const Allocator::GoneRows& gone);

}  // namespace tablestore::engine_rows
