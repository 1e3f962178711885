// The log as it lies on the disk, without a recovery; and the files that hold data.
#include <algorithm>
#include <fstream>
#include <vector>

#include "os/tablestore/engine/io/frozen_disk.h"
#include "os/tablestore/engine/log_dump.h"
#include "os/tablestore/engine/own_threads.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

class LogDumpTest : public EngineFixture {
 protected:
  void commit_row(const std::string& key) {
    auto txn = std::make_shared<Txn>();
    write(*txn, 2, 7);
    txn->put(Family::object, key, "value");
    commit(txn);
  }
  std::shared_ptr<Disk> frozen() {
    FileDiskOptions o;
    o.read_only = true;
    auto opened = open_file_disk(directory, o);
    EXPECT_TRUE(opened.ok());
    return freeze(std::shared_ptr<Disk>(opened.take()));
  }
  struct Seen {
    LogPosition start;
    uint64_t applied = 0;
    std::vector<LogGroupHeader> groups;
    uint64_t rows = 0, written_blocks = 0;
    Status end;
  };
  Result<Seen> visit(size_t groups_max = SIZE_MAX) {
    Seen seen;
    const auto disk_of_reader = frozen();
    const Status s = visit_log(
        *disk_of_reader, threads,
        {.start =
             [&](const LogPosition& start, uint64_t applied) {
               seen.start = start;
               seen.applied = applied;
             },
         .group =
             [&](const LogGroup& group, const std::string& path) {
               EXPECT_TRUE(path.starts_with("log/")) << path;
               seen.groups.push_back(group.header);
               for (const LogRecord& record : group.records) {
                 seen.rows += record.row_count;
                 for (const LoggedWrite& w : record.writes) seen.written_blocks += w.run.blocks;
               }
               return seen.groups.size() < groups_max;
             }},
        &seen.end);
    if (!s.ok()) return s;
    return seen;
  }

  OwnThreads threads;
};

TEST_F(LogDumpTest, GroupsSinceTheLastCheckpointAreSeen) {
  format();
  open();
  for (int i = 0; i < 5; ++i) commit_row("before" + std::to_string(i));
  ASSERT_TRUE(engine->checkpoint().ok());
  for (int i = 0; i < 7; ++i) commit_row("after" + std::to_string(i));
  engine.reset();
  disk.reset();
  const auto seen = visit();
  ASSERT_TRUE(seen.ok()) << seen.status().what();
  EXPECT_EQ(seen->rows, 7u);
  EXPECT_EQ(seen->written_blocks, 14u);
  EXPECT_TRUE(seen->end.ok()) << seen->end.what();
  EXPECT_GE(seen->applied + 1, seen->start.next_lsn);
  uint64_t next = seen->start.next_lsn;
  for (const LogGroupHeader& h : seen->groups) {
    EXPECT_EQ(h.first_lsn, next);
    next += h.transactions;
  }
  const auto some = visit(2);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->groups.size(), 2u);
}

TEST_F(LogDumpTest, ALogThatARecoveryRefusesIsSeenUpToTheDamage) {
  format();
  open();
  commit_row("first");
  engine.reset();
  disk.reset();
  const auto whole = visit();
  ASSERT_TRUE(whole.ok());
  const auto damaged = std::find_if(whole->groups.begin(), whole->groups.end(),
                                    [](const LogGroupHeader& h) { return h.transactions > 0; });
  ASSERT_NE(damaged, whole->groups.end());
  std::fstream(directory + "/log/0").seekp(std::streamoff(damaged->position + 90)).put('\x5a');
  const auto seen = visit();
  ASSERT_TRUE(seen.ok()) << seen.status().what();
  EXPECT_EQ(seen->groups.size(), size_t(damaged - whole->groups.begin()));
  EXPECT_EQ(seen->end.code(), EIO);
}

TEST_F(LogDumpTest, WithoutATableNobodyKnowsWhereTheLogBegins) {
  format();
  disk.reset();
  std::filesystem::remove(directory + "/table/CURRENT");
  EXPECT_EQ(visit().status().code(), ENOENT);
}

TEST_F(LogDumpTest, FreeSpaceIsGivenBackAndContainersSaySo) {
  options.prepare_bytes_per_second = 0;
  format();
  open();
  commit_row("row");
  const auto before = engine->containers();
  ASSERT_FALSE(before.empty());
  EXPECT_TRUE(before[0].path.starts_with("containers/")) << before[0].path;
  EXPECT_EQ(before[0].blocks, options.container_bytes / block_bytes);
  uint64_t given_back = 0;
  for (;;) {
    const auto bytes = engine->give_back();
    ASSERT_TRUE(bytes.ok()) << bytes.status().what();
    if (*bytes == 0) break;
    given_back += *bytes;
  }
  EXPECT_GT(given_back, 0u);
  uint64_t owned = 0, free = 0;
  for (const ContainerUsage& each : engine->containers()) {
    owned += each.owned_blocks;
    free += each.free_blocks;
  }
  EXPECT_EQ(owned, 2u);
  EXPECT_EQ(free, 0u);
}

}  // namespace
}  // namespace tablestore
