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

std::string value(uint8_t slot_class, size_t words) {
  return std::string(1, char(slot_class)) + std::string(words * 8, '\x5a');
}

TEST(AllocationRow, IsReadAsItWasWritten) {
  const auto state = decode_allocation(allocation(0x01020304), value(4, 16));
  ASSERT_TRUE(state);
  EXPECT_EQ(state->container, 0x01020304u);
  EXPECT_EQ(state->slot_class, 4u);
  EXPECT_EQ(state->bitmap.blocks(), 16u * 64);
  EXPECT_EQ(state->bitmap.count(), 16u * 32);
}

TEST(AllocationRow, OneThatIsNeverWrittenIsDamage) {
  EXPECT_TRUE(decode_allocation(allocation(1), value(slot_classes - 1, 1)));
  EXPECT_FALSE(decode_allocation(allocation(1), value(slot_classes, 1)));
  EXPECT_FALSE(decode_allocation(allocation(1), value(0, 0)));
  EXPECT_FALSE(decode_allocation(allocation(1), value(0, 1) + "x"));
  EXPECT_FALSE(decode_allocation(allocation(1), ""));
  EXPECT_FALSE(decode_allocation(allocation(1) + "x", value(0, 1)));
  EXPECT_FALSE(decode_allocation(std::string(allocation_prefix), value(0, 1)));
  EXPECT_FALSE(decode_allocation("\1alloc1234", value(0, 1)));
}

}  // namespace
}  // namespace tablestore::engine_rows
