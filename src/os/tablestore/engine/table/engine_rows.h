// The rows of Family::super that the engine itself keeps; their keys begin with a zero byte. What
// reads a row says so (nullopt) where it has bytes that the engine never writes.
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
std::optional<uint64_t> decode_applied(std::string_view value);
// class:u8, then the words of the container's durable bitmap. No row: nothing in it is owned.
inline constexpr std::string_view allocation_prefix("\0alloc", 6);
std::string allocation(uint32_t container);
void write_allocation(RowWriter& writer, const Allocator::OwnedState& state);
std::optional<Allocator::OwnedState> decode_allocation(std::string_view key,
                                                         std::string_view value);

}  // namespace tablestore::engine_rows
