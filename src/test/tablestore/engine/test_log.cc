// The log's bytes, its ring, and what the reader accepts.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine_fixture.h"
#include "io_calls.h"
#include "memory_disk.h"
#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/io/repeated_read.h"

namespace tablestore {
namespace {

constexpr uint64_t segment_bytes = 1 << 20;
constexpr uint64_t log_bytes = 4 << 20;
constexpr StoreUuid uuid = {1, 2, 3};

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    directory = make_test_directory("log");
    auto opened = open_file_disk(directory, {});
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    disk = opened.take();
    ASSERT_TRUE(LogRing::format(*disk, log_bytes, segment_bytes).ok());
    auto r = LogRing::open(*disk, log_bytes, segment_bytes);
    ASSERT_TRUE(r.ok()) << r.status().what();
    ring = r.take();
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  // Appends a group of `transactions` records with rows of `row_bytes` each at `at`, and moves
  // `at`.
  LogGroupHeader append(LogPosition& at, uint32_t transactions, size_t row_bytes,
                        uint32_t flags = 0, uint64_t watermark = 0) {
    LogGroupBuilder builder;
    builder.begin(transactions * (row_bytes + 64));
    for (uint32_t i = 0; i < transactions; ++i) {
      const std::string rows(row_bytes, char('a' + i % 26));
      const LoggedWrite write{{i, 2, 3}, 4};
      const Extent freed{5, i, 7};
      builder.add(1, rows, {&write, 1}, {&freed, 1});
    }
    LogGroupHeader header{};
    std::ranges::copy(uuid, header.store_uuid);
    header.epoch = flags & LogGroupHeader::begins_epoch ? ++at.epoch : at.epoch;
    header.position = at.position;
    header.first_lsn = at.next_lsn;
    header.previous_crc = at.previous_crc;
    header.watermark = watermark;
    header.flags = flags;
    const auto bytes = builder.finish(header);
    EXPECT_TRUE(ring->write(at.position, bytes).ok());
    at.position += bytes.size();
    at.next_lsn += transactions;
    at.previous_crc = builder.crc();
    return header;
  }
  // How many groups a reader finds from `start` on.
  size_t count(const LogPosition& start) {
    LogReader reader(*ring, uuid, start);
    for (size_t n = 0;; ++n) {
      auto group = reader.next();
      EXPECT_TRUE(group.ok()) << group.status().what();
      if (!*group) {
        durable_lsn = reader.look_beyond(reader.position(), log_bytes)->durable_lsn;
        return n;
      }
    }
  }
  void flip(uint64_t position, size_t byte) {
    BlockMemory block(block_bytes);
    const uint64_t start = (position + byte) / block_bytes * block_bytes;
    ASSERT_TRUE(ring->read(start, block.span()).ok());
    block.data()[(position + byte) % block_bytes] ^= std::byte{0x40};
    ASSERT_TRUE(ring->write(start, block.span()).ok());
  }

  std::string directory;
  std::unique_ptr<Disk> disk;
  std::unique_ptr<LogRing> ring;
  uint64_t durable_lsn = 0;  // which something behind the end says was
};

TEST_F(LogTest, AFreshLogIsEmpty) { EXPECT_EQ(count({}), 0u); }

// By the megabyte: a restart reads a log of many small groups.
TEST_F(LogTest, FewReadsTakeManyGroups) {
  LogPosition at;
  constexpr size_t groups = 600;
  for (size_t i = 0; i < groups; ++i) append(at, 1, 100 + i % 7 * 900);
  LogReader reader(*ring, uuid, {});
  const uint64_t before = io_calls("syscr");
  for (size_t i = 0; i < groups; ++i) {
    auto group = reader.next();
    ASSERT_TRUE(group.ok() && *group) << i;
    ASSERT_EQ((*group)->records.at(0).rows.size(), 100 + i % 7 * 900);
  }
  EXPECT_LE(io_calls("syscr") - before, 4 * (at.position >> 20) + 4);
}

// What nobody has written may be unreadable: it has nothing to do with the groups before it.
TEST(LogOnABadDisk, WhatCannotBeReadBeyondTheChainDoesNotMatter) {
  MemoryDisk disk(64 << 20);
  ASSERT_TRUE(LogRing::format(disk, log_bytes, segment_bytes).ok());
  auto ring = LogRing::open(disk, log_bytes, segment_bytes);
  ASSERT_TRUE(ring.ok()) << ring.status().what();
  LogReader reader(**ring, uuid, {});
  disk.fail(MemoryDisk::Operation::read, "log", EIO);  // the large one
  auto group = reader.next();
  EXPECT_TRUE(group.ok() && !*group);
  EXPECT_TRUE(reader.end().ok());
  disk.fail(MemoryDisk::Operation::read, "log", EIO, 2 * read_tries);
  LogReader other(**ring, uuid, {});
  group = other.next();
  EXPECT_TRUE(group.ok() && !*group);
  EXPECT_EQ(other.end().code(), EIO);  // which is for recovery to judge
}

TEST_F(LogTest, GroupsAreReadBackAsWritten) {
  LogPosition at;
  append(at, 3, 100);
  append(at, 1, 9000);
  LogReader reader(*ring, uuid, {});
  auto first = reader.next();
  ASSERT_TRUE(first.ok() && *first);
  const auto& records = (*first)->records;
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].rows, std::string(100, 'b'));
  EXPECT_EQ(records[2].writes.at(0).run, (tablestore::Run{2, 2, 3}));
  EXPECT_EQ(records[2].writes.at(0).checksum, 4u);
  EXPECT_EQ(records[1].frees.at(0), (Extent{5, 1, 7}));
  auto second = reader.next();
  ASSERT_TRUE(second.ok() && *second);
  EXPECT_EQ((*second)->header.first_lsn, 4u);
  EXPECT_EQ((*second)->records[0].rows.size(), 9000u);
  EXPECT_EQ(reader.position().position, at.position);
  EXPECT_EQ(reader.position().previous_crc, at.previous_crc);
}

TEST_F(LogTest, AGroupMayCrossSegmentsAndTheRingsEnd) {
  LogPosition at;
  at.position = 3 * segment_bytes - 2 * block_bytes;
  const LogPosition start = at;
  append(at, 1, 5 * block_bytes);  // crosses into the last segment
  append(at, 1, segment_bytes);    // crosses the end of the ring
  append(at, 2, 10);
  EXPECT_EQ(count(start), 3u);
}

TEST_F(LogTest, AnyFlippedByteEndsTheLogThere) {
  LogPosition at;
  append(at, 1, 50);
  const LogPosition second = at;
  append(at, 2, 5000);
  append(at, 1, 50);
  for (size_t byte : {0u, 8u, 24u, 32u, 40u, 56u, 60u, 64u, 76u, 80u, 100u, 4095u, 4096u, 9000u}) {
    flip(second.position, byte);
    EXPECT_EQ(count({}), 1u) << "byte " << byte;
    flip(second.position, byte);
  }
  EXPECT_EQ(count({}), 3u);
}

TEST_F(LogTest, AStaleGroupOfAnEarlierLapDoesNotParse) {
  LogPosition at;
  while (at.position < log_bytes) append(at, 1, 30000);
  const LogPosition second_lap = at;
  append(at, 1, 30000);
  EXPECT_EQ(count(second_lap), 1u);
}

TEST_F(LogTest, GroupsOfAnEarlierEpochDoNotFollowTheBeginningOfANewOne) {
  LogPosition at;
  append(at, 1, 50);
  LogPosition cut = at;
  append(at, 1, 50);
  append(at, 1, 50);
  append(cut, 0, 0, LogGroupHeader::begins_epoch);
  EXPECT_EQ(count({}), 2u);
  append(cut, 1, 50);
  EXPECT_EQ(count({}), 3u);
}

TEST_F(LogTest, AnotherStoresGroupDoesNotParse) {
  LogPosition at;
  append(at, 1, 50);
  LogReader reader(*ring, StoreUuid{9}, {});
  auto group = reader.next();
  ASSERT_TRUE(group.ok());
  EXPECT_FALSE(*group);
}

TEST_F(LogTest, DamageBeforeADurableGroupIsReported) {
  LogPosition at;
  append(at, 1, 50);
  const LogPosition second = at;
  append(at, 1, 50);
  append(at, 1, 50, 0, 2);  // says that transaction 2 was durable
  EXPECT_EQ(count({}), 3u);
  EXPECT_EQ(durable_lsn, 0u);  // nothing is behind the end
  flip(second.position, 85);
  EXPECT_EQ(count({}), 1u);
  EXPECT_EQ(durable_lsn, 2u);
}

TEST_F(LogTest, TornGroupsThatNothingVouchesForAreNoDamage) {
  LogPosition at;
  append(at, 1, 50);
  const LogPosition second = at;
  append(at, 1, 50, 0, 1);
  append(at, 1, 50, 0, 1);
  flip(second.position, 85);
  EXPECT_EQ(count({}), 1u);
  EXPECT_EQ(durable_lsn, 1u);
}

TEST_F(LogTest, ARecordThatDoesNotFitIsAnErrorNotACrash) {
  // A group whose crc is right and whose records lie.
  BlockMemory memory(block_bytes);
  memory.zero();
  LogGroupHeader header{};
  header.transactions = 1;
  header.payload_bytes = 32;
  const uint32_t lies[4] = {1, 0xFFFFFFFF, 0x7FFFFFFF, 3};
  std::memcpy(memory.data() + sizeof(header), lies, sizeof(lies));
  auto records = parse_records(header, memory.span().subspan(sizeof(header), 32));
  EXPECT_EQ(records.status().code(), EIO);
}

// Rows of one transaction after the other, as alike as an OSD's are.
std::vector<std::string> rows_alike(unsigned count) {
  std::vector<std::string> rows;
  for (unsigned i = 0; i < count; ++i)
    rows.push_back("0000000011.0000000000000000" + std::to_string(1000 + i) +
                   std::string(200, 'x') + std::to_string(i * 2654435761u) +
                   std::string(300, 'y'));
  return rows;
}

std::vector<std::string> random_rows(unsigned count, size_t bytes) {
  std::mt19937_64 random(1);
  std::vector<std::string> rows(count);
  for (std::string& row : rows)
    while (row.size() < bytes) row.push_back(char(random()));
  return rows;
}

// A group of these rows as it is written at `position`.
std::string group_of(LogGroupBuilder& builder, const std::vector<std::string>& rows,
                     uint64_t position = 0) {
  builder.begin(0);
  for (const std::string& row : rows) builder.add(1, row, {}, {});
  LogGroupHeader header{};
  std::ranges::copy(uuid, header.store_uuid);
  header.position = position;
  header.first_lsn = 1;
  const auto bytes = builder.finish(header);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(const std::string& s) {
  return std::as_bytes(std::span(s));
}

// Of several blocks also when they are compressed.
std::vector<std::string> rows_half_alike() {
  std::vector<std::string> rows = rows_alike(20);
  for (const std::string& row : random_rows(20, 700)) rows.push_back(row);
  return rows;
}

class CompressedLogTest : public LogTest {
 protected:
  void write(const std::string& group, uint64_t position = 0) {
    BlockMemory memory(group.size());
    std::memcpy(memory.data(), group.data(), group.size());
    ASSERT_TRUE(ring->write(position, memory.span()).ok());
  }
  void expect_rows(const std::vector<std::string>& rows, uint64_t position = 0) {
    LogPosition start;
    start.position = position;
    LogReader reader(*ring, uuid, start);
    auto group = reader.next();
    ASSERT_TRUE(group.ok() && *group) << group.status().what();
    ASSERT_EQ((*group)->records.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ((*group)->records[i].rows, rows[i]);
  }
  LogGroupBuilder builder{true};
};

TEST_F(CompressedLogTest, RowsAreReadAsTheyWere) {
  const auto rows = rows_alike(30);
  const std::string group = group_of(builder, rows);
  EXPECT_TRUE(builder.header().flags & LogGroupHeader::compressed);
  EXPECT_EQ(builder.header().total_bytes(), group.size());
  EXPECT_EQ(group.size(), block_bytes);
  ASSERT_NO_FATAL_FAILURE(write(group));
  expect_rows(rows);
}

TEST_F(CompressedLogTest, AGroupMayCrossTheRingsEnd) {
  const auto rows = rows_half_alike();
  const uint64_t position = log_bytes - block_bytes;
  const std::string group = group_of(builder, rows, position);
  EXPECT_TRUE(builder.header().flags & LogGroupHeader::compressed);
  EXPECT_GE(group.size(), 3 * block_bytes);
  ASSERT_NO_FATAL_FAILURE(write(group, position));
  expect_rows(rows, position);
}

TEST_F(CompressedLogTest, AnyFlippedByteEndsTheLogThere) {
  const std::string group = group_of(builder, rows_half_alike());
  ASSERT_NO_FATAL_FAILURE(write(group));
  ASSERT_EQ(count({}), 1u);
  const size_t end = sizeof(LogGroupHeader) + builder.header().payload_bytes;
  for (size_t byte = 0; byte < end; byte += 101) {
    flip(0, byte);
    EXPECT_EQ(count({}), 0u) << "byte " << byte;
    flip(0, byte);
  }
  flip(0, end - 1);
  EXPECT_EQ(count({}), 0u);
}

// A builder is used for one group after the other.
TEST_F(CompressedLogTest, NothingOfTheGroupBeforeIsLeft) {
  const auto many = rows_alike(300), few = rows_alike(2);
  group_of(builder, many);
  const std::string again = group_of(builder, few);
  EXPECT_FALSE(builder.header().flags & LogGroupHeader::compressed);
  LogGroupBuilder fresh(true);
  EXPECT_EQ(again, group_of(fresh, few));
}

TEST_F(CompressedLogTest, WhatSavesNoBlockStaysAsItIs) {
  const auto rows = random_rows(7, 1000);
  LogGroupBuilder plain;
  EXPECT_EQ(group_of(builder, rows), group_of(plain, rows));
  EXPECT_FALSE(builder.header().flags & LogGroupHeader::compressed);
  EXPECT_EQ(group_of(builder, rows_alike(7)).size(), block_bytes);  // one block anyway
  EXPECT_FALSE(builder.header().flags & LogGroupHeader::compressed);
}

TEST_F(CompressedLogTest, WhatWouldTakeLongStaysAsItIs) {
  const auto rows = rows_alike(1000);
  const std::string group = group_of(builder, rows);
  EXPECT_FALSE(builder.header().flags & LogGroupHeader::compressed);
  ASSERT_NO_FATAL_FAILURE(write(group));
  expect_rows(rows);
}

TEST_F(CompressedLogTest, APayloadThatLiesIsAnErrorNotACrash) {
  const std::string group = group_of(builder, rows_alike(30));
  const LogGroupHeader header = builder.header();
  BlockMemory unpacked;
  ASSERT_TRUE(unpack_payload(header, bytes_of(group), &unpacked).ok());
  uint32_t true_bytes;
  std::memcpy(&true_bytes, group.data() + sizeof(header), sizeof(true_bytes));
  for (const uint32_t raw_bytes : {0u, 1u, 5000u, true_bytes - 1, true_bytes + 1,
                                   true_bytes + 4096, 1u << 20, UINT32_MAX}) {
    std::string lie = group;
    std::memcpy(lie.data() + sizeof(header), &raw_bytes, sizeof(raw_bytes));
    EXPECT_EQ(unpack_payload(header, bytes_of(lie), &unpacked).status().code(), EIO) << raw_bytes;
  }
  for (const uint32_t payload_bytes : {0u, 3u, 4u, 5u, 100u, header.payload_bytes - 1}) {
    LogGroupHeader cut = header;
    cut.payload_bytes = payload_bytes;
    EXPECT_EQ(unpack_payload(cut, bytes_of(group), &unpacked).status().code(), EIO)
        << payload_bytes;
  }
  std::string broken = group;
  for (size_t i = 200; i < 300; ++i) broken[i] = char(0xFF);
  EXPECT_EQ(unpack_payload(header, bytes_of(broken), &unpacked).status().code(), EIO);
}

TEST_F(LogTest, AGroupMayFillWhatIsLeftOfTheLap) {
  LogPosition at;
  append(at, 1, 50);
  append(at, 1, log_bytes - 3 * block_bytes);
  EXPECT_EQ(at.position, log_bytes - block_bytes);
  append(at, 1, 50);
  EXPECT_EQ(count({}), 3u);
}

TEST(LogPosition, IsReadAsItWasWritten) {
  const LogPosition position{7 * block_bytes, 5, 3, 0x12345678};
  const auto read = LogPosition::decode(position.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->encode(), position.encode());
}

TEST(LogPosition, OnesThatNoLogHasAreDamage) {
  const LogPosition good{block_bytes, 5, 3, 4};
  EXPECT_TRUE(LogPosition::decode(good.encode()));
  for (const LogPosition& bad : {LogPosition{block_bytes + 512, 5, 3, 4},
                                 LogPosition{uint64_t(1) << 62, 5, 3, 4},
                                 LogPosition{block_bytes, 0, 3, 4},
                                 LogPosition{block_bytes, UINT64_MAX, 3, 4},
                                 LogPosition{block_bytes, 5, UINT64_MAX, 4}})
    EXPECT_FALSE(LogPosition::decode(bad.encode()));
  EXPECT_FALSE(LogPosition::decode(good.encode().substr(1)));
  EXPECT_FALSE(LogPosition::decode(good.encode() + "x"));
}

TEST_F(LogTest, AMissingOrShortSegmentIsNamed) {
  ring.reset();
  std::filesystem::resize_file(directory + "/log/2", segment_bytes - block_bytes);
  auto r = LogRing::open(*disk, log_bytes, segment_bytes);
  EXPECT_EQ(r.status().code(), EIO);
  EXPECT_NE(r.status().what().find("log/2"), std::string::npos) << r.status().what();
  std::filesystem::remove(directory + "/log/2");
  EXPECT_FALSE(LogRing::open(*disk, log_bytes, segment_bytes).ok());
}

// As cp --sparse=always, rsync -S and tar -S do it with blocks of zeros.
TEST_F(LogTest, SegmentsThatWereRestoredSparselyAreMadePlainAtOpen) {
  LogPosition at;
  const LogPosition start = at;
  append(at, 3, 100);
  append(at, 2, 5000);
  ring.reset();
  {
    auto file = disk->open("log/1", OpenMode::read_write);
    ASSERT_TRUE(file.ok() && (*file)->punch(0, segment_bytes).ok());
    auto first = disk->open("log/0", OpenMode::read_write);
    ASSERT_TRUE(first.ok() && (*first)->punch(segment_bytes / 2, segment_bytes / 4).ok());
    ASSERT_TRUE((*first)->allocate(segment_bytes / 2, segment_bytes / 8).ok());
    if ((*first)->unwritten()->front().length == segment_bytes)
      GTEST_SKIP() << "this file system does not tell what is written";
  }
  auto again = LogRing::open(*disk, log_bytes, segment_bytes);
  ASSERT_TRUE(again.ok()) << again.status().what();
  ring = again.take();
  for (uint64_t position = 0; position < log_bytes; position += segment_bytes)
    EXPECT_TRUE(ring->file(position).unwritten()->empty()) << position;
  EXPECT_EQ(count(start), 2u);
}

}  // namespace
}  // namespace tablestore
