#include "os/tablestore/engine/format/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#include "os/tablestore/engine/io/disk.h"
#include "os/tablestore/engine/require.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tablestore {
namespace {

static_assert(std::endian::native == std::endian::little,
              "on-disk structures are used as they are in memory");

constexpr uint32_t polynomial = 0x82f63b78;  // 0x1EDC6F41, bits reversed

// ---- portable: eight bytes at a time by eight tables ("slicing by 8") ----

using SlicingTables = std::array<std::array<uint32_t, 256>, 8>;

constexpr SlicingTables make_slicing_tables() {
  SlicingTables t{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
    t[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (int k = 1; k < 8; ++k) t[k][byte] = (t[k - 1][byte] >> 8) ^ t[0][t[k - 1][byte] & 255];
  }
  return t;
}

constexpr SlicingTables slicing = make_slicing_tables();

uint32_t portable(uint32_t seed_crc, const void* data, size_t bytes) {
  auto p = static_cast<const unsigned char*>(data);
  uint32_t crc = ~seed_crc;
  for (; bytes >= 8; bytes -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= slicing[7 - k][(word >> (8 * k)) & 255];
  }
  for (; bytes; --bytes, ++p) crc = (crc >> 8) ^ slicing[0][(crc ^ *p) & 255];
  return ~crc;
}

// ---- x86: three streams at once ----
//
// The instruction takes three cycles and a new one can start in each, so one stream alone uses a
// third of the unit. A long piece is cut into three lanes, whose sums are then joined: appending n
// zero bytes is a linear map of the sum, done with four tables for the lane's length.

#if defined(__x86_64__)

template <size_t lane_bytes>
struct AppendZeros {
  std::array<std::array<uint32_t, 256>, 4> table{};

  constexpr AppendZeros() {
    std::array<uint32_t, 32> of_bit{};
    for (int bit = 0; bit < 32; ++bit) {
      uint32_t crc = uint32_t(1) << bit;
      for (size_t i = 0; i < lane_bytes; ++i) crc = (crc >> 8) ^ slicing[0][crc & 255];
      of_bit[bit] = crc;
    }
    for (int byte = 0; byte < 4; ++byte) {
      for (uint32_t value = 0; value < 256; ++value) {
        for (int bit = 0; bit < 8; ++bit) {
          if (value >> bit & 1) table[byte][value] ^= of_bit[8 * byte + bit];
        }
      }
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return table[0][crc & 255] ^ table[1][crc >> 8 & 255] ^ table[2][crc >> 16 & 255] ^
           table[3][crc >> 24];
  }
};

// Three long lanes are a block of 4 KiB but for 16 bytes; the short ones take most of what is left
// of other lengths.
constexpr size_t long_lane = 1360;
constexpr size_t short_lane = 168;
constexpr AppendZeros<long_lane> append_long;
constexpr AppendZeros<short_lane> append_short;

inline uint64_t load64(const unsigned char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

template <size_t lane_bytes>
__attribute__((target("sse4.2"))) uint32_t three_lanes(uint32_t crc, const unsigned char* p,
                                                       const AppendZeros<lane_bytes>& append) {
  uint64_t a = crc, b = 0, c = 0;
  for (size_t i = 0; i < lane_bytes; i += 8) {
    a = _mm_crc32_u64(a, load64(p + i));
    b = _mm_crc32_u64(b, load64(p + lane_bytes + i));
    c = _mm_crc32_u64(c, load64(p + 2 * lane_bytes + i));
  }
  return append(append(uint32_t(a)) ^ uint32_t(b)) ^ uint32_t(c);
}

__attribute__((target("sse4.2"))) uint32_t sse42(uint32_t seed_crc, const void* data,
                                                 size_t bytes) {
  auto p = static_cast<const unsigned char*>(data);
  uint32_t crc = ~seed_crc;
  for (; bytes >= 3 * long_lane; bytes -= 3 * long_lane, p += 3 * long_lane) {
    crc = three_lanes(crc, p, append_long);
  }
  for (; bytes >= 3 * short_lane; bytes -= 3 * short_lane, p += 3 * short_lane) {
    crc = three_lanes(crc, p, append_short);
  }
  for (; bytes >= 8; bytes -= 8, p += 8) crc = uint32_t(_mm_crc32_u64(crc, load64(p)));
  for (; bytes; --bytes, ++p) crc = _mm_crc32_u8(crc, *p);
  return ~crc;
}

#endif

}  // namespace

Crc32cFunction crc32c_portable() { return portable; }

Crc32cFunction crc32c_sse42() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2")) return sse42;
#endif
  return nullptr;
}

uint32_t crc32c(uint32_t seed_crc, const void* data, size_t bytes) {
  static const Crc32cFunction fastest = crc32c_sse42() ? crc32c_sse42() : crc32c_portable();
  return fastest(seed_crc, data, bytes);
}

uint32_t crc32c_of_blocks(std::span<const uint32_t> block_crcs) {
  return crc32c(0, block_crcs.data(), block_crcs.size_bytes());
}

void crc32c_blocks(std::span<const iovec> iov, std::vector<uint32_t>* out) {
  for (const iovec& piece : iov) {
    require(piece.iov_len % block_bytes == 0, "a checksum is of whole blocks");
    auto p = static_cast<const unsigned char*>(piece.iov_base);
    for (size_t at = 0; at < piece.iov_len; at += block_bytes) {
      out->push_back(crc32c(0, p + at, block_bytes));
    }
  }
}

}  // namespace tablestore
