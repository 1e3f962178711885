// CRC-32C (Castagnoli), the checksum of everything the engine writes: "123456789" gives 0xE3069283.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tablestore {

// The checksum of (what `seed_crc` is the checksum of) + `data`; 0 is the checksum of nothing.
uint32_t crc32c(uint32_t seed_crc, const void* data, size_t bytes);

// The checksum of an array of block checksums, each little endian: what the log keeps of a run.
uint32_t crc32c_of_blocks(std::span<const uint32_t> block_crcs);

// Appends the checksum of each block of 4 KiB. Every iovec is a multiple of 4 KiB long.
void crc32c_blocks(std::span<const iovec> iov, std::vector<uint32_t>* out);

// The ways to compute it, for tests and for the log line at start. nullptr where this CPU has no
// such instruction.
using Crc32cFunction = uint32_t (*)(uint32_t seed_crc, const void* data, size_t bytes);
Crc32cFunction crc32c_portable();
Crc32cFunction crc32c_sse42();

}  // namespace tablestore
