// Errors of the table's files that pass: they cost nothing, and condemn no file.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <utility>

#include "flaky_fixture.h"
#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/engine/troubles.h"

namespace tablestore {
namespace {

class PassingErrorsTest : public FlakyFixture {
 protected:
  static constexpr int rows = 3000;

  void SetUp() override {
    FlakyFixture::SetUp();
    options.table_options = "disable_auto_compactions=true;compression=kNoCompression";
    options.troubles = troubles;
    options.read_retries = {[this] { return retries.load(); },
                            [this](const std::string& what) {
                              std::lock_guard lock(mutex);
                              helped.push_back(what);
                            }};
    options.reporter.log = [this](Reporter::Level level, const std::string& line) {
      std::lock_guard lock(mutex);
      if (level <= Reporter::Level::warning) said += line + "\n";
    };
    ASSERT_NO_FATAL_FAILURE(format_flaky());
    for (int half = 0; half < 2; ++half) {
      auto txn = std::make_shared<Txn>();
      for (int i = half; i < rows; i += 2)
        txn->put(Family::object, key(i), std::string(100, char('a' + i % 26)));
      commit(txn);
      ASSERT_TRUE(engine->checkpoint().ok());
    }
    ASSERT_TRUE(engine->close().ok());
    engine.reset();
    ASSERT_NO_FATAL_FAILURE(open_flaky());
  }
  static std::string key(int i) { return "k" + std::to_string(10000 + i); }
  // Rows come from the disk again.
  void forget() { ASSERT_TRUE(engine->drop_caches().ok()); }
  void expect_nothing_condemned() {
    EXPECT_FALSE(troubles->all().contains("TABLE_DAMAGED")) << said;
    EXPECT_EQ(flaky->left(), 0) << "the error did not happen";
  }
  // All rows, in order, each once. `before_row` is called with the number of rows that were seen.
  void expect_all_rows(AtDamage at_damage, const std::function<void(int)>& before_row) {
    auto it = engine->iterate(Family::object, "k", "l", at_damage);
    int seen = 0;
    before_row(seen);
    for (it->seek_to_first(); it->valid(); it->next()) {
      ASSERT_EQ(it->key(), key(seen));
      before_row(++seen);
    }
    EXPECT_TRUE(it->status().ok()) << it->status().what();
    EXPECT_EQ(seen, rows);
  }

  std::vector<std::string> take_helped() {
    std::lock_guard lock(mutex);
    return std::exchange(helped, {});
  }

  std::atomic<unsigned> retries{read_tries - 1};
  std::mutex mutex;
  std::vector<std::string> helped;  // under mutex
  const std::shared_ptr<Troubles> troubles = std::make_shared<Troubles>();
  std::string said;
};

TEST_F(PassingErrorsTest, AnIteratorGoesOnAfterAReadThatFailedForAMoment) {
  for (const AtDamage at_damage : {AtDamage::fail, AtDamage::step_over})
    for (const int when : {0, 1000, 2000}) {
      forget();
      expect_all_rows(at_damage, [&](int seen) {
        if (seen == when) flaky->fail_reads(read_tries - 1);
      });
      expect_nothing_condemned();
    }
}

TEST_F(PassingErrorsTest, AnIteratorGoesOnAfterBytesThatWereWrongForAMoment) {
  for (const int times : {1, 2})
    for (const int when : {0, 1000, 2000}) {
      forget();
      expect_all_rows(AtDamage::fail, [&](int seen) {
        if (seen == when) flaky->spoil_reads(times);
      });
      expect_nothing_condemned();
    }
}

// What came after the iterator was made is not in it, also where it reads again.
TEST_F(PassingErrorsTest, AnIteratorThatReadsAgainIsStillOfOneMoment) {
  forget();
  bool more = false;
  expect_all_rows(AtDamage::fail, [&](int seen) {
    if (seen != 1000) return;
    auto txn = std::make_shared<Txn>();
    txn->put(Family::object, key(1500) + "+", "later");
    commit(txn);
    more = true;
    flaky->spoil_reads(1);
  });
  ASSERT_TRUE(more);
  expect_nothing_condemned();
}

TEST_F(PassingErrorsTest, ARowIsReadAfterSomeFailures) {
  forget();
  flaky->fail_reads(read_tries - 1);
  EXPECT_EQ(get(Family::object, key(7)), std::string(100, 'h'));
  expect_nothing_condemned();
  forget();
  flaky->spoil_reads(2);
  EXPECT_EQ(get(Family::object, key(7)), std::string(100, 'h'));
  expect_nothing_condemned();
}

TEST_F(PassingErrorsTest, ARowIsFoundOnTheDiskAfterSomeFailures) {
  const auto value = get(Family::object, key(7));
  ASSERT_TRUE(value);
  flaky->fail_reads(read_tries - 1);
  Status s = engine->check_on_disk(Family::object, key(7), *value);
  EXPECT_TRUE(s.ok()) << s.what();
  flaky->spoil_reads(1);
  s = engine->check_on_disk(Family::object, key(8), *get(Family::object, key(8)));
  EXPECT_TRUE(s.ok()) << s.what();
  expect_nothing_condemned();
}

TEST_F(PassingErrorsTest, EachReadThatSucceededWhenItWasRepeatedIsToldOnce) {
  EXPECT_TRUE(take_helped().empty());
  const auto expect_told = [this](const char* of) {
    const auto told = take_helped();
    ASSERT_EQ(told.size(), 1u) << of;
    EXPECT_NE(told[0].find(".sst"), std::string::npos) << told[0];
  };
  for (const bool wrong : {false, true}) {
    const auto spoil = [this, wrong] {
      forget();
      wrong ? flaky->spoil_reads(1) : flaky->fail_reads(2);
    };
    spoil();
    EXPECT_TRUE(get(Family::object, key(7)));
    expect_told("a row");
    expect_all_rows(AtDamage::fail, [&](int seen) {
      if (seen == 1000) spoil();
    });
    expect_told("an iterator");
    if (wrong) continue;  // with direct I/O, the bit may be in a row that nobody looks at
    const auto value = get(Family::object, key(8));
    spoil();
    EXPECT_TRUE(engine->check_on_disk(Family::object, key(8), *value).ok());
    expect_told("the disk");
  }
  expect_nothing_condemned();
}

TEST_F(PassingErrorsTest, AReadIsRepeatedAsOftenAsTheStoreWantsIt) {
  for (const unsigned wanted : {0u, 1u, 7u}) {
    retries = wanted;
    std::string value;
    forget();
    flaky->fail_reads(int(wanted));
    EXPECT_TRUE(get(Family::object, key(7))) << wanted;
    EXPECT_EQ(take_helped().size(), wanted > 0 ? 1u : 0u) << wanted;
    EXPECT_EQ(flaky->left(), 0);
  }
  // Not once: also where the file turns out to be sound.
  retries = 0;
  for (const bool wrong : {false, true}) {
    forget();
    wrong ? flaky->spoil_reads(1) : flaky->fail_reads(1);
    std::string value;
    EXPECT_EQ(engine->get(Family::object, key(7), &value).status().code(), EIO) << wrong;
    EXPECT_EQ(engine->get(Family::object, key(7), &value).status().code(), 0) << wrong;
    forget();
    wrong ? flaky->spoil_reads(1) : flaky->fail_reads(1);
    auto it = engine->iterate(Family::object, "k", "l");
    it->seek_to_first();
    EXPECT_EQ(it->status().code(), EIO) << wrong;
  }
  EXPECT_TRUE(take_helped().empty());
  expect_nothing_condemned();
}

// However many there were in the life of a store.
TEST_F(PassingErrorsTest, ErrorsThatPassedAreForgotten) {
  for (int i = 0; i < 20; ++i) {
    forget();
    flaky->spoil_reads(1);
    EXPECT_TRUE(get(Family::object, key(i)));
    expect_nothing_condemned();
  }
}

TEST_F(PassingErrorsTest, ACompactionGoesOnAfterReadsThatFailedForAMoment) {
  forget();
  flaky->fail_reads(read_tries - 1);
  const Status s = engine->compact();
  EXPECT_TRUE(s.ok()) << s.what();
  expect_nothing_condemned();
}

TEST_F(PassingErrorsTest, ARepairCondemnsNoFileForAnErrorThatPasses) {
  flaky->fail_reads(read_tries - 1);
  auto damaged = engine->find_table_damage();
  ASSERT_TRUE(damaged.ok()) << damaged.status().what();
  EXPECT_TRUE(damaged->empty());
  flaky->spoil_reads(read_tries - 1);
  damaged = engine->salvage_table([](Family, std::string_view) { ADD_FAILURE(); });
  ASSERT_TRUE(damaged.ok()) << damaged.status().what();
  EXPECT_TRUE(damaged->empty());
  expect_nothing_condemned();
}

// That says nothing of the file: neither that it is damaged nor that it is sound.
TEST_F(PassingErrorsTest, AFileThatCannotBeLookedAtIsNotCalledSound) {
  for (const int lack : {EMFILE, ENOMEM, ETIMEDOUT, ENOLINK}) {
    flaky->fail_opens(1000, lack);
    const auto found = engine->find_table_damage();
    EXPECT_EQ(found.status().code(), lack) << found.status().what();
    const auto salvaged = engine->salvage_table([](Family, std::string_view) { ADD_FAILURE(); });
    EXPECT_EQ(salvaged.status().code(), lack) << salvaged.status().what();
    flaky->fail_opens(0, 0);
    EXPECT_TRUE(engine->find_table_damage().ok());
  }
  expect_nothing_condemned();
  for (int i = 0; i < rows; i += 100) EXPECT_TRUE(get(Family::object, key(i)));
}

// A path to the disk may come back, at once or when somebody has looked at it.
TEST_F(PassingErrorsTest, APathThatIsGoneSaysNothingOfTheFilesBehindIt) {
  for (const int error : {ETIMEDOUT, ENOLINK, ENODEV, EBADE}) {
    forget();
    flaky->fail_reads(read_tries - 1, error);
    EXPECT_EQ(get(Family::object, key(7)), std::string(100, 'h'));
    forget();
    flaky->fail_reads(1000, error);
    std::string value;
    EXPECT_EQ(engine->get(Family::object, key(7), &value).status().code(), error);
    auto it = engine->iterate(Family::object, "k", "l", AtDamage::step_over);
    it->seek_to_first();
    EXPECT_FALSE(it->valid());
    EXPECT_EQ(it->status().code(), error);
    EXPECT_EQ(engine->compact().code(), error);
    flaky->fail_reads(0);
    expect_nothing_condemned();
    expect_all_rows(AtDamage::fail, [](int) {});
    auto txn = std::make_shared<Txn>();
    txn->put(Family::omap, "after", "it");
    commit(txn);
    EXPECT_TRUE(engine->checkpoint().ok());
  }
  EXPECT_TRUE(engine->compact().ok());
}

// A salvage drops what cannot be read: of what nobody has seen it drops nothing.
class SalvageOfAFlakyTableTest : public PassingErrorsTest {
 protected:
  void SetUp() override {
    PassingErrorsTest::SetUp();
    engine.reset();
    options.table_cache_bytes = 64 << 10;  // less than it reads
    // The first half, so that nothing is below it.
    std::filesystem::path rotten;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/table"))
      if (entry.path().extension() == ".sst" && entry.file_size() > 100000 &&
          (rotten.empty() || entry.path() < rotten))
        rotten = entry.path();
    std::fstream file(rotten, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(50000);
    file.write("rot", 3);
    ASSERT_TRUE(file.good());
    file.close();
    ASSERT_NO_FATAL_FAILURE(open_flaky());
  }
  std::set<int> lost_rows() {
    std::set<int> lost;
    std::string value;
    for (int i = 0; i < rows; ++i) {
      const auto found = engine->get(Family::object, key(i), &value);
      if (!found.ok() || !*found) lost.insert(i);
    }
    return lost;
  }
};

TEST_F(SalvageOfAFlakyTableTest, DropsNothingThatIsBehindAPathThatIsGone) {
  const std::set<int> lost = lost_rows();
  EXPECT_GT(lost.size(), 0u);
  EXPECT_LT(lost.size(), 100u);
  for (const int error : {ETIMEDOUT, ENOLINK, ENOMEM}) {
    // In the middle of it: when it is known what cannot be read.
    const auto damaged = engine->salvage_table(
        [](Family, std::string_view) {}, [&](const std::vector<DamagedTableFile>& found) {
          EXPECT_EQ(found.size(), 1u);
          flaky->fail_reads_elsewhere(found.at(0).path, error);
          return Status();
        });
    EXPECT_EQ(damaged.status().code(), error) << damaged.status().what();
    EXPECT_GT(flaky->failed_elsewhere(), 0);
    flaky->fail_reads_elsewhere({}, 0);
    EXPECT_EQ(lost_rows(), lost) << error;
    engine.reset();
    ASSERT_NO_FATAL_FAILURE(open_flaky());
  }
  const auto damaged = engine->salvage_table([](Family, std::string_view) {});
  ASSERT_TRUE(damaged.ok()) << damaged.status().what();
  EXPECT_EQ(lost_rows(), lost);
}

// MANIFEST and CURRENT, without which nothing else of the table is known.
TEST_F(PassingErrorsTest, ATableOpensAfterSomeFailures) {
  const std::function<void()> errors[] = {
      [&] { flaky->fail_sequences(read_tries - 1); },
      [&] { flaky->fail_sequence_opens(read_tries - 1, EIO); },
      [&] { flaky->spoil_sequences(1); }, [&] { flaky->spoil_sequences(3); }};
  for (const auto& error : errors) {
    engine.reset();
    error();
    ASSERT_NO_FATAL_FAILURE(open_flaky());
    expect_nothing_condemned();
    expect_all_rows(AtDamage::fail, [](int) {});
  }
}

TEST_F(PassingErrorsTest, AnOpenThatLacksFilesIsRefusedForThatAndLosesNothing) {
  engine.reset();
  flaky->fail_sequence_opens(1000, EMFILE);
  EXPECT_EQ(Engine::open(*flaky, options).status().code(), EMFILE);
  flaky->fail_sequence_opens(1000, EIO);
  EXPECT_EQ(Engine::open(*flaky, options).status().code(), EIO);
  flaky->fail_sequence_opens(0, 0);
  ASSERT_NO_FATAL_FAILURE(open_flaky());
  expect_nothing_condemned();
  expect_all_rows(AtDamage::fail, [](int) {});
}

TEST_F(PassingErrorsTest, ACompactionThatLacksFilesEndsNothing) {
  for (const int lack : {EMFILE, ENFILE, ENOMEM}) {
    flaky->fail_makes(1, lack);
    EXPECT_EQ(engine->compact().code(), lack);
    auto txn = std::make_shared<Txn>();
    txn->put(Family::omap, "after", "it");
    commit(txn);
    EXPECT_TRUE(engine->checkpoint().ok());
  }
  EXPECT_TRUE(engine->compact().ok());
  expect_nothing_condemned();
  expect_all_rows(AtDamage::fail, [](int) {});
}

TEST_F(PassingErrorsTest, ACheckpointThatLacksFilesIsMadeLater) {
  auto txn = std::make_shared<Txn>();
  txn->put(Family::omap, "key", "value");
  commit(txn);
  flaky->fail_makes(1, EMFILE);
  EXPECT_EQ(engine->checkpoint().code(), EMFILE);
  txn = std::make_shared<Txn>();
  txn->put(Family::omap, "after", "it");
  commit(txn);
  const Status s = engine->checkpoint();
  EXPECT_TRUE(s.ok()) << s.what();
  expect_nothing_condemned();
  ASSERT_NO_FATAL_FAILURE(engine.reset());
  ASSERT_NO_FATAL_FAILURE(open_flaky());
  EXPECT_EQ(get(Family::omap, "key"), "value");
  EXPECT_EQ(get(Family::omap, "after"), "it");
}

// In the background, where nobody asks for it: commits wait until there are files again.
TEST_F(PassingErrorsTest, CommitsOutliveAFlushOfTheTableThatLacksFiles) {
  flaky->fail_makes(3, EMFILE);
  for (int i = 0; i < 20; ++i) {
    auto txn = std::make_shared<Txn>();
    txn->put(Family::omap, "key" + std::to_string(i), std::string(1 << 20, char('a' + i)));
    commit(txn);
  }
  EXPECT_EQ(flaky->left(), 0);
  EXPECT_TRUE(engine->checkpoint().ok());
  expect_nothing_condemned();
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(get(Family::omap, "key" + std::to_string(i)), std::string(1 << 20, char('a' + i)));
}

}  // namespace
}  // namespace tablestore
