// Recovery from a log and rows that are intact and make no sense, as a faulty writer might leave
// them: refused, with EIO.
#include "engine_fixture.h"

#include <algorithm>

#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/own_threads.h"
#include "os/tablestore/engine/table/rows.h"
#include "os/tablestore/engine/table/table.h"

namespace tablestore {
namespace {

class RecoveryTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    format();
  }
  // The first group of the log, with these records.
  void write_group(const std::function<void(LogGroupBuilder&)>& add) {
    auto ring = LogRing::open(*disk, options.log_bytes, options.segment_bytes);
    ASSERT_TRUE(ring.ok()) << ring.status().what();
    LogGroupBuilder builder;
    builder.begin(0);
    add(builder);
    LogGroupHeader header{};
    std::ranges::copy(options.store_uuid, header.store_uuid);
    header.epoch = 1;
    header.first_lsn = 1;
    header.flags = LogGroupHeader::begins_epoch;
    ASSERT_TRUE((*ring)->write(0, builder.finish(header)).ok());
  }
  void put(const std::string& key, std::string_view value) {
    OwnThreads threads;
    auto table = Table::open(*disk, {}, threads);
    ASSERT_TRUE(table.ok()) << table.status().what();
    std::string row;
    RowWriter(row).put(Family::super, key, value);
    RowBatch batch;
    batch.append(1, row);
    std::string rep = batch.take();
    ASSERT_TRUE((*table)->write(&rep).ok());
    ASSERT_TRUE((*table)->flush().ok());
  }
  void expect_refused(const std::string& part_of_line) {
    auto opened = Engine::open(*disk, options);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.status().code(), EIO) << opened.status().what();
    EXPECT_NE(opened.status().what().find(part_of_line), std::string::npos)
        << opened.status().what();
  }
  static std::string row() {
    std::string rows;
    RowWriter(rows).put(Family::object, "key", "value");
    return rows;
  }
};

TEST_F(RecoveryTest, AGroupOfSoundRecordsIsReplayed) {
  write_group([](LogGroupBuilder& b) { b.add(1, row(), {}, {}); });
  open();
  EXPECT_EQ(get(Family::object, "key"), "value");
}

TEST_F(RecoveryTest, ExtentsThatNoContainerHasAreRefused) {
  const uint32_t blocks = uint32_t(options.container_bytes / block_bytes);
  for (const Extent& e : {Extent{0, 0, 0}, Extent{0, blocks, 1}, Extent{0, 1, blocks},
                          Extent{0, UINT32_MAX, UINT32_MAX}, Extent{UINT32_MAX, 0, 1}}) {
    const LoggedWrite written{e, 0};
    write_group([&](LogGroupBuilder& b) { b.add(1, row(), {&written, 1}, {}); });
    expect_refused("no store writes such records");
    write_group([&](LogGroupBuilder& b) { b.add(1, row(), {}, {&e, 1}); });
    expect_refused("no store writes such records");
  }
}

TEST_F(RecoveryTest, RowsThatTheTableWouldBelieveAreRefused) {
  write_group([](LogGroupBuilder& b) { b.add(2, row(), {}, {}); });
  expect_refused("no store writes such records");
  std::string merged;
  RowWriter(merged).merge(Family::super, "P", "odd");
  write_group([&](LogGroupBuilder& b) { b.add(1, merged, {}, {}); });
  expect_refused("no store writes such records");
}

TEST_F(RecoveryTest, FreedBlocksWithoutAnOwnerAreRefused) {
  const Extent freed{0, 0, 1};
  write_group([&](LogGroupBuilder& b) { b.add(1, row(), {}, {&freed, 1}); });
  expect_refused("which have no owner");
}

TEST_F(RecoveryTest, ATableThatEndsInTheMidstOfAGroupIsRefused) {
  write_group([](LogGroupBuilder& b) {
    b.add(1, row(), {}, {});
    b.add(1, row(), {}, {});
  });
  const uint64_t applied = 1;
  put(std::string("\0applied", 8), {reinterpret_cast<const char*>(&applied), sizeof(applied)});
  expect_refused("row applied");
}

TEST_F(RecoveryTest, RowsOfTheEngineThatItNeverWritesAreRefused) {
  put(std::string("\0alloc\0\0\0\1", 10), "\5");
  expect_refused("row alloc");
}

TEST_F(RecoveryTest, APositionThatNoLogHasIsRefused) {
  LogPosition position;
  position.position = 512;
  put(std::string("\0log_start", 10), position.encode());
  expect_refused("row log_start");
}

}  // namespace
}  // namespace tablestore
