// The rows of Family::super that the engine itself keeps; their keys begin with a zero byte.
#pragma once

#include <string>
#include <string_view>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/table/rows.h"

namespace tablestore::engine_rows {

// LogPosition: what recovery replays from; everything before is in the allocation rows.
std::string log_start();
// lsn:u64, the last transaction in the table.
std::string applied();
// class:u8, then the words of the container's durable bitmap. No row: nothing in it is owned.
inline constexpr std::string_view allocation_prefix("\0alloc", 6);
std::string allocation(uint32_t container);
void write_allocation(RowWriter& writer, const Allocator::DurableState& state);

}  // namespace tablestore::engine_rows
