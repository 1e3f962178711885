#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/io/block_memory.h"

namespace tablestore {
namespace {

std::vector<std::pair<const char*, Crc32cFunction>> implementations() {
  std::vector<std::pair<const char*, Crc32cFunction>> all{{"portable", crc32c_portable()}};
  if (crc32c_sse42()) all.emplace_back("sse4.2", crc32c_sse42());
  return all;
}

std::string random_bytes(size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string out(bytes, 0);
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

// Bit by bit, straight from the definition.
uint32_t by_definition(const std::string& data) {
  uint32_t crc = 0xffffffff;
  for (unsigned char byte : data) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

TEST(Crc32c, GivesThePublishedValues) {
  std::string ascending(32, 0), descending(32, 0);
  for (int i = 0; i < 32; ++i) {
    ascending[i] = static_cast<char>(i);
    descending[i] = static_cast<char>(31 - i);
  }
  for (auto [name, crc] : implementations()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(crc(0, "123456789", 9), 0xE3069283u);
    // RFC 3720, B.4
    EXPECT_EQ(crc(0, std::string(32, '\0').data(), 32), 0x8A9136AAu);
    EXPECT_EQ(crc(0, std::string(32, '\xff').data(), 32), 0x62A8AB43u);
    EXPECT_EQ(crc(0, ascending.data(), 32), 0x46DD794Eu);
    EXPECT_EQ(crc(0, descending.data(), 32), 0x113FDB5Cu);
    EXPECT_EQ(crc(0, nullptr, 0), 0u);
    EXPECT_EQ(crc(0x12345678, nullptr, 0), 0x12345678u);
  }
}

TEST(Crc32c, EveryImplementationFollowsTheDefinitionAtEveryLengthAndAlignment) {
  const std::string data = random_bytes(20000, 1);
  std::vector<size_t> lengths;
  for (size_t n = 0; n < 600; ++n) lengths.push_back(n);
  for (size_t n : {1359, 1360, 1361, 4079, 4080, 4081, 4096, 4097, 8160, 8192, 19990}) {
    lengths.push_back(n);
  }
  for (size_t n : lengths) {
    const size_t start = n % 9;
    const uint32_t expected = by_definition(data.substr(start, n));
    for (auto [name, crc] : implementations()) {
      ASSERT_EQ(crc(0, data.data() + start, n), expected) << name << " of " << n;
    }
  }
}

TEST(Crc32c, GoesOnFromASeed) {
  const std::string data = random_bytes(9000, 2);
  for (auto [name, crc] : implementations()) {
    const uint32_t whole = crc(0, data.data(), data.size());
    for (size_t cut = 0; cut <= data.size(); cut += 97) {
      const uint32_t first = crc(0, data.data(), cut);
      ASSERT_EQ(crc(first, data.data() + cut, data.size() - cut), whole) << name << " at " << cut;
    }
  }
}

TEST(Crc32c, BlocksAreSummedOneByOneAcrossPieces) {
  BlockMemory one(3 * block_bytes), two(2 * block_bytes);
  const std::string bytes = random_bytes(5 * block_bytes, 3);
  std::memcpy(one.data(), bytes.data(), one.size());
  std::memcpy(two.data(), bytes.data() + one.size(), two.size());
  std::vector<uint32_t> crcs{42};
  const iovec iov[] = {{one.data(), one.size()}, {two.data(), two.size()}};
  crc32c_blocks(iov, &crcs);
  ASSERT_EQ(crcs.size(), 6u);
  EXPECT_EQ(crcs[0], 42u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(crcs[i + 1], by_definition(bytes.substr(i * block_bytes, block_bytes)));
  }
}

TEST(Crc32c, TheSumOfSumsIsOverTheirLittleEndianBytes) {
  const uint32_t crcs[] = {0x04030201, 0x08070605};
  EXPECT_EQ(crc32c_of_blocks(crcs), by_definition(std::string("\1\2\3\4\5\6\7\10", 8)));
  EXPECT_EQ(crc32c_of_blocks({}), 0u);
}

}  // namespace
}  // namespace tablestore
