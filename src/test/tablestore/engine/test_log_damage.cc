// Sectors of the log, and of data that the log names, which cannot be read or hold something else:
// what was not acknowledged is cut off, what was is missed.
#include <fstream>
#include <set>

#include "bad_sectors.h"
#include "engine_fixture.h"
#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/engine/troubles.h"
#include "test/tablestore/sim/stepped_threads.h"

namespace tablestore {
namespace {

// Knows what was started.
class NotingThreads : public sim::SteppedThreads {
 public:
  std::unique_ptr<Worker> start(const std::string& name, Urgency urgency,
                                std::function<void()> run, std::function<bool()> step) override {
    started.insert(name);
    return SteppedThreads::start(name, urgency, std::move(run), std::move(step));
  }
  std::set<std::string> started;
};

class LogDamageTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    options.reporter.log = [this](Reporter::Level level, const std::string& line) {
      if (level <= Reporter::Level::warning) said += line + "\n";
    };
    options.troubles = troubles;
    bad.emplace(*disk);
    step();
    format();
    open();
  }
  void step() {
    threads = std::make_shared<NotingThreads>();
    options.threads = threads;
  }
  void crash() {
    engine.reset();
    step();
  }
  Status open_again() {
    auto opened = Engine::open(*bad, options);
    if (!opened.ok()) return opened.status();
    engine = opened.take();
    return {};
  }
  uint64_t log_used_bytes() {
    for (const auto& [name, value] : engine->statistics())
      if (name == "log_used_bytes") return value;
    return 0;
  }
  // One transaction, one group; durable, and applied only where `apply`. Returns where its group
  // begins, in blocks of the log.
  uint64_t commit_one(const std::string& key, bool apply, Written* written = nullptr,
                      const std::vector<Extent>& frees = {}) {
    const uint64_t block = log_used_bytes() / block_bytes;
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, key, "v");
    if (written) *written = write(*txn, 1, 7);
    for (const Extent& e : frees) txn->free(e);
    engine->submit(txn);
    threads->step("commit");
    if (apply) threads->step_all("apply");
    return block;
  }
  void make_log_bad(uint64_t block) { bad->make_bad("log/0", block); }
  std::string container_path(const Extent& e) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(directory + "/containers"))
      if (entry.path().filename() == std::to_string(e.container))
        return std::filesystem::relative(entry.path(), directory);
    ADD_FAILURE() << "no container " << e.container;
    return {};
  }
  bool says(const std::string& part) { return said.find(part) != std::string::npos; }
  uint64_t owned_blocks() {
    uint64_t blocks = 0;
    for (const auto& [container, bitmap] : engine->owned_blocks()) blocks += bitmap.count();
    return blocks;
  }

  std::optional<BadSectors> bad;
  std::shared_ptr<NotingThreads> threads;
  const std::shared_ptr<Troubles> troubles = std::make_shared<Troubles>();
  std::string said;
};

TEST_F(LogDamageTest, FreeSpaceThatCannotBeReadMeansNothing) {
  const uint64_t last = commit_one("a", true);
  crash();
  for (uint64_t block : {last + 1, last + 2, last + 100}) make_log_bad(block);
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(get(Family::object, "a"), "v");
  commit_one("b", true);
  crash();
  ASSERT_TRUE(open_again().ok());
  EXPECT_EQ(get(Family::object, "b"), "v");
}

// Behind a bad sector there may be proof all the same.
TEST_F(LogDamageTest, ProofIsFoundBesideWhatCannotBeRead) {
  const uint64_t first = commit_one("a", false);
  commit_one("b", false);
  commit_one("c", false);
  crash();
  make_log_bad(first);
  make_log_bad(first + 1);
  EXPECT_EQ(open_again().code(), EIO);
}

TEST_F(LogDamageTest, UnacknowledgedDataThatCannotBeReadEndsTheLog) {
  Written w;
  commit_one("a", true);
  commit_one("b", false, &w);  // nothing vouches for it
  crash();
  bad->make_bad(container_path(w.extents.at(0)), w.extents.at(0).block);
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(get(Family::object, "a"), "v");
  EXPECT_EQ(get(Family::object, "b"), std::nullopt);
  EXPECT_EQ(owned_blocks(), 0u);
  EXPECT_TRUE(says("transactions 2 to 2 are cut off")) << said;
  EXPECT_TRUE(says("container " + std::to_string(w.extents.at(0).container))) << said;
}

TEST_F(LogDamageTest, AReadThatFailsForAMomentCutsNothing) {
  Written w;
  const uint64_t group = commit_one("a", false, &w);
  crash();
  bad->make_bad(container_path(w.extents.at(0)), w.extents.at(0).block, read_tries - 1);
  bad->make_bad("log/0", group, read_tries - 1);
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(get(Family::object, "a"), "v");
  expect_data(w.extents, 7);
}

// Where the header of a group comes wrong, the log seems to end before it.
TEST_F(LogDamageTest, AHeaderThatComesWrongForAMomentCutsNothing) {
  const uint64_t first = commit_one("a", false), last = commit_one("b", false);
  for (const uint64_t block : {last, first}) {
    crash();
    bad->spoil("log/0", block, 1);
    const Status s = open_again();
    ASSERT_TRUE(s.ok()) << s.what();
    EXPECT_EQ(bad->left_to_spoil(), 0u);
    EXPECT_EQ(get(Family::object, "a"), "v");
    EXPECT_EQ(get(Family::object, "b"), "v");
  }
}

// What the process lacks says nothing of the log, nor does a path to the disk that is gone, however
// long it lasts.
class ReadsThatSayNothingTest : public LogDamageTest, public testing::WithParamInterface<int> {};

TEST_P(ReadsThatSayNothingTest, CutNothing) {
  Written w;
  commit_one("a", false);
  commit_one("b", false, &w);  // nothing vouches for it, so that its data are read
  crash();
  for (const std::string& part : {std::string("log"), std::string("containers")}) {
    bad->fail_reads_of(part, GetParam());
    for (int life = 0; life < 2; ++life)
      EXPECT_EQ(open_again().code(), GetParam()) << part;
    bad->fail_reads_of(part, 0);
  }
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(get(Family::object, "a"), "v");
  EXPECT_EQ(get(Family::object, "b"), "v");
  expect_data(w.extents, 7);
}

// Also where only the look behind the end meets it: what lies there may be the proof.
TEST_P(ReadsThatSayNothingTest, CutNothingWhereTheyLookBehindTheEnd) {
  const uint64_t torn = commit_one("a", false);
  commit_one("b", false);
  crash();
  make_log_bad(torn);
  bad->fail_reads_of("log/1", GetParam());
  EXPECT_EQ(open_again().code(), GetParam());
  bad->fail_reads_of("log/1", 0);
  EXPECT_EQ(open_again().code(), EIO);
}

// Nor is one of two copies taken for damaged.
TEST_P(ReadsThatSayNothingTest, CondemnNoLabel) {
  crash();
  bad->fail_reads_of("label", GetParam());
  EXPECT_EQ(open_again().code(), GetParam());
  bad->fail_reads_of("label", 0);
  EXPECT_TRUE(open_again().ok());
}

INSTANTIATE_TEST_SUITE_P(, ReadsThatSayNothingTest,
                         testing::Values(ENOMEM, ETIMEDOUT, ENOLINK, ENODEV, EBADE));

// Blocks of the log from `first` on, to the end of the ring.
class UnreadableRestTest : public LogDamageTest {
 protected:
  static constexpr int kept = 10, all = 100;

  void make_rest_bad() {
    for (int i = 0; i < all; ++i) {
      const uint64_t block = commit_one("k" + std::to_string(i), false);
      if (i == kept) first = block;
    }
    threads->step("vouch");
    crash();
    make_bad_from_first();
  }
  void make_bad_from_first() {
    const uint64_t segment = options.segment_bytes / block_bytes;
    for (uint64_t block = first; block < options.log_bytes / block_bytes; ++block)
      bad->make_bad("log/" + std::to_string(block / segment), block % segment);
  }
  void expect_refused() {
    const Status refused = open_again();
    EXPECT_EQ(refused.code(), EIO);
    for (const char* part :
         {"before transaction 11", "log/0", "blocks", "tablestore_accept_log_loss"})
      EXPECT_NE(refused.what().find(part), std::string::npos) << part << " in " << refused.what();
  }
  uint64_t first = 0;
};

TEST_F(UnreadableRestTest, MoreThanAGroupCanHaveTakenIsRefused) {
  make_rest_bad();
  expect_refused();
  EXPECT_FALSE(troubles->all().contains("LOG_LOSS"));
  expect_refused();  // nothing has changed
}

// As a path to the disk does, that comes back when somebody looks at it.
TEST_F(UnreadableRestTest, NothingIsLostWhereItCanBeReadAgain) {
  make_rest_bad();
  expect_refused();
  bad->heal_all();
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  for (int i = 0; i < all; ++i) EXPECT_EQ(get(Family::object, "k" + std::to_string(i)), "v");
}

TEST_F(UnreadableRestTest, AnAcceptedLossIsNotMetAgain) {
  make_rest_bad();
  options.accept_log_loss = true;
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_TRUE(troubles->all().contains("LOG_LOSS"));
  EXPECT_TRUE(says("tablestore_accept_log_loss")) << said;
  EXPECT_FALSE(engine->needs_adoption());
  options.accept_log_loss = false;
  for (int life = 0; life < 3; ++life) {
    commit_one("life" + std::to_string(life), false);
    crash();
    const Status again = open_again();
    ASSERT_TRUE(again.ok()) << again.what();
    EXPECT_EQ(get(Family::object, "life" + std::to_string(life)), "v");
  }
  for (int i = 0; i < all; ++i)
    EXPECT_EQ(get(Family::object, "k" + std::to_string(i)).has_value(), i < kept) << i;
}

// The last group that can be read may be the one that was being written: its data are looked at.
TEST_F(UnreadableRestTest, WhereALossIsAcceptedTheLastGroupIsJudgedAsEver) {
  Written w;
  commit_one("a", false);
  commit_one("b", false, &w);
  first = log_used_bytes() / block_bytes;
  crash();
  make_bad_from_first();
  bad->make_bad(container_path(w.extents.at(0)), w.extents.at(0).block);
  options.accept_log_loss = true;
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(get(Family::object, "a"), "v");
  EXPECT_EQ(get(Family::object, "b"), std::nullopt);
}

// A segment that cannot be read, far from where the log ends.
TEST_F(UnreadableRestTest, FarFromTheEndItMeansNothing) {
  commit_one("a", true);
  const uint64_t torn = commit_one("b", false);
  crash();
  make_log_bad(torn);
  for (const char* segment : {"log/2", "log/3"})
    for (uint64_t block = 0; block < options.segment_bytes / block_bytes; ++block)
      bad->make_bad(segment, block);
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(get(Family::object, "a"), "v");
  EXPECT_EQ(get(Family::object, "b"), std::nullopt);
}

// All of one group, however large, that nothing says to have been durable.
TEST_F(UnreadableRestTest, OneGroupIsCutOff) {
  commit_one("a", true);
  const uint64_t begin = log_used_bytes() / block_bytes;
  auto txn = std::make_shared<Txn>();
  txn->put(Family::object, "large", std::string(1 << 20, 'x'));
  engine->submit(txn);
  threads->step("commit");
  const uint64_t end = log_used_bytes() / block_bytes;
  crash();
  for (uint64_t block = begin; block < end; ++block) make_log_bad(block);
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(get(Family::object, "a"), "v");
  EXPECT_EQ(get(Family::object, "large"), std::nullopt);
}

TEST_F(LogDamageTest, TheLastGroupWhereNothingVouchesForItIsCutOff) {
  commit_one("a", true);
  const uint64_t last = commit_one("b", false);
  crash();
  make_log_bad(last);
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(get(Family::object, "b"), std::nullopt);
  EXPECT_TRUE(says("the log ends before transaction 2")) << said;
  // And it does not come back with what follows.
  commit_one("c", true);
  crash();
  ASSERT_TRUE(open_again().ok());
  EXPECT_EQ(get(Family::object, "b"), std::nullopt);
  EXPECT_EQ(get(Family::object, "c"), "v");
}

// What one damaged block of the log takes with it while others have the space of what was freed.
class ReusedSpaceTest : public LogDamageTest {
 protected:
  // Written and freed in one group.
  Written commit_and_free() {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, "a", "v");
    Written w = write(*txn, 1, 7);
    engine->submit(txn);
    txn = std::make_shared<Txn>();
    for (const Extent& e : w.extents) txn->free(e);
    engine->submit(txn);
    threads->step("commit");
    return w;
  }
  // Others have its space since.
  void reuse(const Extent& e) {
    std::fstream file(directory + "/" + container_path(e),
                      std::ios::in | std::ios::out | std::ios::binary);
    const std::string other(block_bytes, 9);
    file.seekp(std::streamoff(e.block * block_bytes)).write(other.data(), block_bytes);
    ASSERT_TRUE(file.flush().good());
  }
};

TEST_F(ReusedSpaceTest, OneOfTheGroupsThatBeginAnEpochIsEnough) {
  const Written w = commit_and_free();
  crash();
  ASSERT_TRUE(open_again().ok());
  const uint64_t end = log_used_bytes() / block_bytes;
  crash();
  reuse(w.extents.at(0));
  make_log_bad(end - 2);
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(get(Family::object, "a"), "v");
}

// A disk that has written a group to another place, over others.
class MisplacedGroupTest : public ReusedSpaceTest {
 protected:
  // The group of so many blocks at `from` went to `to`, and never to its own place.
  void misplace(uint64_t from, uint64_t to, uint64_t blocks = 1) {
    std::fstream log(directory + "/log/0", std::ios::in | std::ios::out | std::ios::binary);
    const std::streamsize bytes = std::streamsize(blocks * block_bytes);
    std::string group(bytes, 0);
    log.seekg(std::streamoff(from * block_bytes)).read(group.data(), bytes);
    log.seekp(std::streamoff(from * block_bytes)).write(std::string(bytes, 0).data(), bytes);
    log.seekp(std::streamoff(to * block_bytes)).write(group.data(), bytes);
    ASSERT_TRUE(log.flush().good());
  }
};

TEST_F(MisplacedGroupTest, OverTheOneThatVouchedItVouchesInItsPlace) {
  const Written w = commit_and_free();
  const uint64_t vouching = log_used_bytes() / block_bytes;
  ASSERT_TRUE(threads->step("vouch"));
  const uint64_t last = commit_one("b", false);
  crash();
  reuse(w.extents.at(0));
  misplace(last, vouching);
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_EQ(get(Family::object, "a"), "v");
  EXPECT_EQ(get(Family::object, "b"), std::nullopt);
}

TEST_F(MisplacedGroupTest, OverAcknowledgedOnesItIsAWitnessOfTheirLoss) {
  Written w;
  commit_one("a", false, &w);
  const uint64_t second = commit_one("b", false, nullptr, w.extents);
  const uint64_t third = commit_one("c", false);
  crash();
  reuse(w.extents.at(0));
  misplace(third, second);
  const Status s = open_again();
  EXPECT_EQ(s.code(), EIO);
  EXPECT_NE(s.what().find("transactions 2 to 2 were durable"), std::string::npos) << s.what();
  options.accept_log_loss = true;
  ASSERT_TRUE(open_again().ok());
  EXPECT_EQ(get(Family::object, "a"), "v");
  EXPECT_EQ(get(Family::object, "b"), std::nullopt);
}

TEST_F(MisplacedGroupTest, ItIsAWitnessAlsoWhereItCannotBeReadForAMoment) {
  commit_one("a", false);
  const uint64_t second = commit_one("b", false);
  for (int i = 0; i < 3; ++i) commit_one("c", false);
  auto txn = std::make_shared<Txn>();
  txn->put(Family::object, "d", std::string(2 * block_bytes, 'd'));
  engine->submit(txn);
  threads->step("commit");
  crash();
  misplace(second + 4, second, 3);
  for (const uint64_t block : {second, second + 1})
    for (uint64_t reads = 1; reads <= 2 * read_tries; ++reads) {
      bad->make_bad("log/0", block, reads);
      const Status s = open_again();
      EXPECT_EQ(s.code(), EIO) << block << ", " << reads;
      EXPECT_NE(s.what().find("transactions 2 to 5 were durable"), std::string::npos) << s.what();
    }
}

// There it begins in space that is free, and ends over what the log begins with.
TEST_F(MisplacedGroupTest, AcrossTheStartOfTheLogItIsAWitnessToo) {
  commit_one("a", false);
  const uint64_t start = log_used_bytes() / block_bytes;
  ASSERT_GE(start, 2u);
  ASSERT_TRUE(engine->checkpoint().ok());
  ASSERT_EQ(log_used_bytes(), 0u);
  commit_one("b", false);
  ASSERT_EQ(log_used_bytes(), block_bytes);
  auto txn = std::make_shared<Txn>();
  txn->put(Family::object, "c", std::string(2 * block_bytes, 'c'));
  engine->submit(txn);
  threads->step("commit");
  ASSERT_EQ(log_used_bytes(), 4 * block_bytes);
  crash();
  misplace(start + 1, start - 2, 3);
  const Status s = open_again();
  EXPECT_EQ(s.code(), EIO);
  EXPECT_NE(s.what().find("transactions 2 to 2 were durable"), std::string::npos) << s.what();
}

// What a group without transactions said is known from those before and behind it.
TEST_F(LogDamageTest, AGroupThatOnlyVouchesCostsNothingWhereOneFollows) {
  commit_one("a", false);
  const uint64_t vouching = log_used_bytes() / block_bytes;
  ASSERT_TRUE(threads->step("vouch"));
  Written w;
  commit_one("b", false, &w);  // nothing vouches for it
  crash();
  make_log_bad(vouching);
  for (int life = 0; life < 3; ++life) {
    const Status s = open_again();
    ASSERT_TRUE(s.ok()) << s.what();
    EXPECT_TRUE(says("without transactions")) << said;
    EXPECT_EQ(get(Family::object, "a"), "v");
    ASSERT_EQ(get(Family::object, "b"), "v") << life;
    expect_data(w.extents, 7);
    crash();
  }
}

TEST_F(LogDamageTest, TheBeginningOfAnEpochCostsNothingWhereAGroupFollows) {
  crash();
  ASSERT_TRUE(open_again().ok());
  const uint64_t epoch = log_used_bytes() / block_bytes - 1;
  commit_one("a", false);
  crash();
  make_log_bad(epoch);
  for (int life = 0; life < 2; ++life) {
    ASSERT_TRUE(open_again().ok());
    EXPECT_EQ(get(Family::object, "a"), "v");
    crash();
  }
}

// The new epoch is above that of all groups that it makes void, also where the one that began
// theirs cannot be read.
TEST_F(LogDamageTest, WhatFollowedAnUnreadableBeginningOfAnEpochStaysCutOff) {
  crash();
  ASSERT_TRUE(open_again().ok());
  const uint64_t epoch = log_used_bytes() / block_bytes - 1;
  const uint64_t first = commit_one("a", false);
  crash();
  make_log_bad(epoch);
  make_log_bad(first);
  ASSERT_TRUE(open_again().ok());
  EXPECT_EQ(get(Family::object, "a"), std::nullopt);
  crash();
  bad->make_bad("log/0", first, 1);  // it can be read again
  ASSERT_TRUE(open_again().ok());
  EXPECT_EQ(get(Family::object, "a"), std::nullopt);
}

TEST_F(LogDamageTest, AcknowledgedTransactionsThatTheLogLostAreNamed) {
  commit_one("a", true);
  const uint64_t lost = commit_one("b", false);
  commit_one("c", false);
  threads->step("vouch");
  crash();
  make_log_bad(lost);
  const Status refused = open_again();
  EXPECT_EQ(refused.code(), EIO);
  for (const char* part :
       {"transactions 2 to 3 were durable", "log/0", "tablestore_accept_log_loss"})
    EXPECT_NE(refused.what().find(part), std::string::npos) << part << " in " << refused.what();
  EXPECT_FALSE(troubles->all().contains("LOG_LOSS"));
  // Refused again: nothing has changed.
  EXPECT_EQ(open_again().code(), EIO);
}

TEST_F(LogDamageTest, AcceptedALossLeavesWhatWasBefore) {
  Written w;
  commit_one("a", true, &w);
  const uint64_t lost = commit_one("b", false);
  commit_one("c", false);
  threads->step("vouch");
  crash();
  make_log_bad(lost);
  options.accept_log_loss = true;
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_TRUE(says("transactions 2 to 3 were durable")) << said;
  EXPECT_TRUE(troubles->all().contains("LOG_LOSS"));
  EXPECT_EQ(get(Family::object, "a"), "v");
  EXPECT_EQ(get(Family::object, "b"), std::nullopt);
  EXPECT_EQ(get(Family::object, "c"), std::nullopt);
  expect_data(w.extents, 7);
  // The log knows who owns what: the store can be used at once, and opened without consent.
  EXPECT_FALSE(engine->needs_adoption());
  commit_one("d", true, &w);
  options.accept_log_loss = false;
  crash();
  ASSERT_TRUE(open_again().ok());
  EXPECT_EQ(get(Family::object, "d"), "v");
  EXPECT_EQ(get(Family::object, "b"), std::nullopt);
  EXPECT_EQ(owned_blocks(), 2u);
}

// By a tool, as a rule: who looks after the cluster sees what the store tells in its later lives.
TEST_F(LogDamageTest, AnAcceptedLossIsToldUntilItIsSettled) {
  commit_one("a", true);
  const uint64_t lost = commit_one("b", false);
  threads->step("vouch");
  crash();
  make_log_bad(lost);
  options.accept_log_loss = true;
  ASSERT_TRUE(open_again().ok());
  const auto told = troubles->all();
  ASSERT_TRUE(told.contains("LOG_LOSS"));
  EXPECT_NE(told.at("LOG_LOSS").find("settle"), std::string::npos);
  options.accept_log_loss = false;
  for (int life = 0; life < 3; ++life) {
    if (life == 1) {
      ASSERT_TRUE(engine->close().ok());
    }
    crash();
    troubles->clear("LOG_LOSS");
    ASSERT_TRUE(open_again().ok());
    EXPECT_EQ(troubles->all(), told) << life;
    commit_one("life" + std::to_string(life), true);
  }
  engine->settle_log_loss();
  EXPECT_FALSE(troubles->all().contains("LOG_LOSS"));
  for (int life = 0; life < 2; ++life) {
    crash();
    ASSERT_TRUE(open_again().ok());
    EXPECT_FALSE(troubles->all().contains("LOG_LOSS"));
  }
}

// What lies behind the damage may reach far, and into epochs that nobody has read of.
TEST_F(LogDamageTest, AnAcceptedLossIsNotMetAgainFarBehindIt) {
  engine.reset();
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  disk = open_disk();
  bad.emplace(*disk);
  options.log_bytes = 64 << 20;
  options.memtable_bytes = 256 << 20;
  format();
  open();
  step();
  ASSERT_NO_FATAL_FAILURE(crash());
  ASSERT_TRUE(open_again().ok());
  const auto write_mib = [this](int n) {
    for (int i = 0; i < n; ++i) {
      auto txn = std::make_shared<Txn>();
      txn->put(Family::object, "far", std::string(1 << 20, 'x'));
      engine->submit(txn);
      threads->step("commit");
    }
  };
  const uint64_t lost = commit_one("a", false);
  write_mib(24);
  for (int life = 0; life < 2; ++life) {
    crash();
    const Status s = open_again();
    ASSERT_TRUE(s.ok()) << s.what();
  }
  commit_one("b", false);
  threads->step("vouch");
  crash();
  {
    auto log = disk->open("log/0", OpenMode::read_write);
    ASSERT_TRUE(log.ok() && (*log)->write_zeroes(lost * block_bytes, block_bytes).ok());
  }
  EXPECT_EQ(open_again().code(), EIO);
  options.accept_log_loss = true;
  ASSERT_TRUE(open_again().ok());
  options.accept_log_loss = false;
  for (int life = 0; life < 2; ++life) {
    commit_one("c" + std::to_string(life), false);
    write_mib(6);
    crash();
    const Status s = open_again();
    ASSERT_TRUE(s.ok()) << s.what();
  }
  EXPECT_EQ(get(Family::object, "c0"), "v");
}

// The lost transactions had emptied a container, which was then removed.
TEST_F(LogDamageTest, AContainerThatIsGoneIsMadeAgainEmpty) {
  Written w;
  commit_one("a", true, &w);
  const uint64_t lost = commit_one("b", false, nullptr, w.extents);
  threads->step("vouch");
  crash();
  make_log_bad(lost);
  std::filesystem::remove(directory + "/" + container_path(w.extents.at(0)));
  options.accept_log_loss = true;
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_TRUE(says("is gone")) << said;
  EXPECT_EQ(get(Family::object, "a"), "v");
  BlockMemory found(block_bytes);
  ASSERT_TRUE(engine->read(w.extents.at(0), found.span()).ok());  // its checksum is wrong
  commit_one("c", true, nullptr, w.extents);
  options.accept_log_loss = false;
  crash();
  ASSERT_TRUE(open_again().ok());
  EXPECT_EQ(owned_blocks(), 0u);
}

// What it has is not thrown away with what was cut off.
TEST_F(LogDamageTest, AContainerThatIsCutIsMadeAgainWithWhatItHas) {
  Written kept, w;
  commit_one("a", true, &kept);
  commit_one("b", true, &w);
  const uint64_t lost = commit_one("c", false, nullptr, w.extents);
  threads->step("vouch");
  crash();
  make_log_bad(lost);
  const Extent& last = w.extents.at(0);
  ASSERT_EQ(kept.extents.at(0).container, last.container);
  ASSERT_LT(kept.extents.at(0).block, last.block);
  std::filesystem::resize_file(directory + "/" + container_path(last), last.offset_bytes());
  options.accept_log_loss = true;
  const Status s = open_again();
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_TRUE(says("too short")) << said;
  commit_one("d", true, nullptr, w.extents);
  options.accept_log_loss = false;
  for (int life = 0; life < 2; ++life) {
    expect_data(kept.extents, 7);
    crash();
    ASSERT_TRUE(open_again().ok());
  }
  EXPECT_EQ(owned_blocks(), 1u);
}

// The table may be ahead of the log: it is flushed whenever it likes.
class TableAheadTest : public LogDamageTest {
 protected:
  void SetUp() override {
    LogDamageTest::SetUp();
    commit_one("a", true, &kept);
    const uint64_t lost = commit_one("b", true, &unknown);
    commit_one("c", true, nullptr, kept.extents);
    ASSERT_TRUE(threads->flush_table().ok());
    crash();
    make_log_bad(lost);
    EXPECT_EQ(open_again().code(), EIO);
    options.accept_log_loss = true;
    const Status s = open_again();
    ASSERT_TRUE(s.ok()) << s.what();
  }
  // As rows say: "a" has lost its block to "c", and "b" has its own.
  std::map<uint32_t, BlockBitmap> owned_by_rows() {
    std::map<uint32_t, BlockBitmap> owned;
    for (const Extent& e : unknown.extents)
      owned.try_emplace(e.container, BlockBitmap(uint32_t(options.container_bytes / block_bytes)))
          .first->second.set(e.block, e.blocks);
    return owned;
  }
  Written kept, unknown;
};

TEST_F(TableAheadTest, TheRowsAreKeptAndNothingIsHandedOut) {
  EXPECT_TRUE(says("the table has those up to 3")) << said;
  EXPECT_TRUE(engine->needs_adoption());
  for (const char* key : {"a", "b", "c"}) EXPECT_EQ(get(Family::object, key), "v");
  EXPECT_EQ(engine->reserve(block_bytes).code(), EROFS);
  // Nothing is written ahead, punched or removed either.
  for (const char* work : {"prepare", "shrink", "relieve"})
    EXPECT_FALSE(threads->started.contains(work)) << work;
  expect_data(unknown.extents, 7);
}

TEST_F(TableAheadTest, ItStaysSoUntilTheRowsHaveSaidWhatTheyOwn) {
  crash();
  options.accept_log_loss = false;
  const Status refused = open_again();
  EXPECT_EQ(refused.code(), EIO);
  EXPECT_NE(refused.what().find("--op repair"), std::string::npos) << refused.what();
  options.accept_log_loss = true;
  ASSERT_TRUE(open_again().ok());
  EXPECT_TRUE(engine->needs_adoption());
}

TEST_F(TableAheadTest, WhatRowsOwnIsAdopted) {
  const Status s = engine->adopt_owned(owned_by_rows());
  ASSERT_TRUE(s.ok()) << s.what();
  EXPECT_FALSE(engine->needs_adoption());
  EXPECT_EQ(engine->owned_blocks(), owned_by_rows());
  EXPECT_TRUE(threads->started.contains("prepare"));
  options.accept_log_loss = false;
  for (int life = 0; life < 2; ++life) {
    expect_data(unknown.extents, 7);
    EXPECT_EQ(owned_blocks(), 1u + uint64_t(life));
    Written w;
    commit_one("life" + std::to_string(life), true, &w);
    EXPECT_NE(w.extents, unknown.extents);
    crash();
    const Status again = open_again();
    ASSERT_TRUE(again.ok()) << again.what();
  }
  for (const char* key : {"a", "b", "c", "life0", "life1"})
    EXPECT_EQ(get(Family::object, key), "v") << key;
}

}  // namespace
}  // namespace tablestore
