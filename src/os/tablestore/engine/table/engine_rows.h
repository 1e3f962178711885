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
// class:u8, then the words of the container's durable bitmap. No row: nothing in it is owned.
inline constexpr std::string_view allocation_prefix("\0alloc", 6);
std::string allocation(uint32_t container);
void write_allocation(RowWriter& writer, const Allocator::OwnedState& state);
std::optional<uint32_t> decode_allocation_key(std::string_view key);  // the container
std::optional<Allocator::OwnedState> decode_allocation(std::string_view key,
                                                         std::string_view value);

}  // namespace tablestore::engine_rows
