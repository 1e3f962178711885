#include <gtest/gtest.h>

#include "os/tablestore/engine/table/engine_rows.h"

namespace tablestore::engine_rows {
namespace {

TEST(AppliedRow, HasEightBytes) {
  const uint64_t lsn = 77;
  const std::string row(reinterpret_cast<const char*>(&lsn), sizeof(lsn));
  EXPECT_EQ(decode_applied(row), lsn);
  EXPECT_FALSE(decode_applied(row + "x"));
  EXPECT_FALSE(decode_applied(row.substr(1)));
  EXPECT_FALSE(decode_applied(""));
}

// --- the allocation map

struct Written {
  std::string key, value;
};

Written written(uint32_t container, uint32_t chunk, const BlockBitmap& owned, uint64_t as_of) {
  std::string rows;
  RowWriter writer(rows);
  write_allocation(writer, {container, chunk, owned}, as_of);
  RowReader reader(rows);
  Row row;
  EXPECT_TRUE(reader.next(&row));
  EXPECT_TRUE(reader.at_end());
  return {std::string(row.key), std::string(row.value)};
}

TEST(AllocationRow, IsReadAsItWasWritten) {
  BlockBitmap some(BlockBitmap::chunk_blocks);
  some.set(77, 1000);
  BlockBitmap all(1024);
  all.set(0, 1024);
  for (const BlockBitmap& owned : {some, all, BlockBitmap(1024)}) {
    const Written row = written(0x01020304, 0x50607, owned, 0x1122334455667788);
    const auto key = decode_allocation_key(row.key);
    ASSERT_TRUE(key);
    EXPECT_EQ(key->container, 0x01020304u);
    EXPECT_EQ(key->chunk, 0x50607u);
    const auto state = decode_allocation(row.value);
    ASSERT_TRUE(state);
    EXPECT_EQ(state->as_of, 0x1122334455667788u);
    EXPECT_EQ(state->owned, owned);
  }
}

TEST(AllocationRow, WhatIsAlikeTakesElevenBytes) {
  BlockBitmap chunk(BlockBitmap::chunk_blocks);
  EXPECT_EQ(written(1, 0, chunk, 9).value.size(), 11u);
  chunk.set(0, chunk.blocks());
  EXPECT_EQ(written(1, 0, chunk, 9).value.size(), 11u);
  chunk.clear(5, 1);
  EXPECT_EQ(written(1, 0, chunk, 9).value.size(), 11u + 512);
}

TEST(AllocationRow, OneThatIsNeverWrittenIsDamage) {
  BlockBitmap some(1024);
  some.set(3, 1);
  const std::string row = written(1, 0, some, 9).value;
  ASSERT_TRUE(decode_allocation(row));
  EXPECT_FALSE(decode_allocation(""));
  EXPECT_FALSE(decode_allocation(row.substr(0, 10)));
  EXPECT_FALSE(decode_allocation(row + std::string(8, 1)));
  EXPECT_FALSE(decode_allocation(row.substr(0, row.size() - 1)));
  const auto with = [&row](size_t at, char byte) {
    std::string other = row;
    other[at] = byte;
    return other;
  };
  EXPECT_FALSE(decode_allocation(with(9, 0)));             // no blocks
  EXPECT_FALSE(decode_allocation(with(9, 0x11)));          // more than a chunk has
  EXPECT_FALSE(decode_allocation(with(10, 0)));            // bits where all are alike
  EXPECT_FALSE(decode_allocation(with(10, 3)));
  EXPECT_FALSE(decode_allocation(with(11, 0)));            // bits that are all alike
  EXPECT_FALSE(decode_allocation(with(10, 3).substr(0, 11)));
  EXPECT_TRUE(decode_allocation(with(10, 1).substr(0, 11)));
}

std::string whole(uint8_t slot_class, size_t words) {
  return std::string(1, char(slot_class)) + std::string(words * 8, '\x5a');
}

TEST(AllocationRow, OfAWholeContainerIsRead) {
  const auto key = decode_allocation_key(whole_allocation(0x01020304));
  ASSERT_TRUE(key);
  EXPECT_EQ(key->container, 0x01020304u);
  EXPECT_FALSE(key->chunk);
  const auto owned = decode_whole_allocation(whole(4, 16));
  ASSERT_TRUE(owned);
  EXPECT_EQ(owned->blocks(), 16u * 64);
  EXPECT_EQ(owned->count(), 16u * 32);
  EXPECT_TRUE(decode_whole_allocation(whole(slot_classes - 1, 1)));
  EXPECT_FALSE(decode_whole_allocation(whole(slot_classes, 1)));
  EXPECT_FALSE(decode_whole_allocation(whole(0, 0)));
  EXPECT_FALSE(decode_whole_allocation(whole(0, 1) + "x"));
  EXPECT_FALSE(decode_whole_allocation(""));
}

TEST(AllocationRow, AKeyThatIsNeverWrittenIsDamage) {
  EXPECT_TRUE(decode_allocation_key(allocation(1, 0xfffff)));
  EXPECT_FALSE(decode_allocation_key(allocation(1, 0x100000)));  // a block number has 32 bits
  EXPECT_FALSE(decode_allocation_key(allocation(1, 2) + "x"));
  EXPECT_FALSE(decode_allocation_key(whole_allocation(1) + "x"));
  EXPECT_FALSE(decode_allocation_key(std::string(allocation_prefix)));
  EXPECT_FALSE(decode_allocation_key("\1alloc1234"));
}

// The row of a whole container is read first, and those of its chunks count before it.
TEST(AllocationRow, OfAWholeContainerComesBeforeThoseOfItsChunks) {
  EXPECT_LT(whole_allocation(7), allocation(7, 0));
  EXPECT_LT(allocation(7, 0xfffff), whole_allocation(8));
}

}  // namespace
}  // namespace tablestore::engine_rows
