// All short histories: how their cases are named and found again, and those of the engine.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "os/tablestore/engine/io/block_memory.h"
#include "test/tablestore/sim/base.h"
#include "test/tablestore/sim/damage_places.h"
#include "test/tablestore/sim/exhaustive.h"

namespace tablestore::sim {
namespace {

TEST(CaseNames, ANameIsThatOfItsCase) {
  Cases cases("");
  EXPECT_TRUE(cases.enter(0, "wrapped", "base wrapped"));
  EXPECT_TRUE(cases.enter(1, "7", "crash at I/O 7"));
  EXPECT_EQ(cases.name(), "wrapped,7");
  EXPECT_EQ(cases.story(), "base wrapped, crash at I/O 7");
  const uint64_t seed = cases.seed();
  EXPECT_TRUE(cases.enter(1, "8", "crash at I/O 8"));
  EXPECT_EQ(cases.name(), "wrapped,8");
  EXPECT_NE(cases.seed(), seed);
}

TEST(CaseNames, OnlyThoseThatBeginSoAreWanted) {
  Cases cases("wrapped,,write");
  EXPECT_FALSE(cases.enter(0, "fresh", ""));
  EXPECT_TRUE(cases.enter(0, "wrapped", ""));
  EXPECT_TRUE(cases.enter(1, "whatever", ""));
  EXPECT_FALSE(cases.enter(2, "write_more", ""));
  EXPECT_TRUE(cases.enter(2, "write", ""));
  EXPECT_TRUE(cases.enter(3, "whatever", ""));
}

// A store that says "durable" after a write and no flush.
struct Careless {
  struct Base {
    const char* name;
    DiskImage image;
    int state;
    uint64_t lsn;
  };
  struct Op {
    unsigned kind;
  };
  class Machine {
   public:
    Machine(DiskImage image, uint64_t seed, int, uint64_t)
        : disk_(std::move(image), 1 << 20, seed) {}
    SimDisk& disk() { return disk_; }
    Snapshot snapshot(const DiskImage& image, const char* io) const { return {image, done_, io}; }
    Snapshot snapshot() const { return {disk_.image(), done_, "quiet"}; }
    uint64_t floor_lsn() const { return floor_; }
    void commit_all() { done_ = writes_; }
    void write(bool with_flush) {
      const auto file = disk_.open("a", OpenMode::read_write).take();
      BlockMemory memory(block_bytes);
      std::memset(memory.data(), int(++writes_), block_bytes);
      ASSERT_TRUE(file->write(0, memory.span()).ok());
      ASSERT_TRUE(!with_flush || file->flush().ok());
    }
    uint64_t read() {
      const DiskImage image = disk_.image();
      return floor_ = uint64_t(image.inode(image.lookup("a")).current.page(0)[0]);
    }

   private:
    SimDisk disk_;
    uint64_t writes_ = 0, done_ = 0, floor_ = 0;
  };
  static constexpr const char* subject = "the careless store";
  static constexpr unsigned op_kinds = 2;
  static constexpr uint64_t log_every = 100;

  static DiskImage file_of_zeros() {
    DiskImage image;
    const auto id = image.create("a", false);
    image.complete(id, image.submit(id, {.kind = PendingOp::Kind::zeroes, .length = block_bytes}));
    image.flush(id);
    image.sync_dir("");
    return image;
  }
  static std::vector<const Base*> bases() {
    static const Base base{"zeros", file_of_zeros(), 0, 0};
    return {&base};
  }
  static void begin(const ExhaustiveOptions&, Cases*, ExhaustiveResult*) {}
  static void begin_history(const Base&) {}
  static Op op(unsigned kind, size_t) { return {kind}; }
  static const char* name(const Op& op) { return op.kind ? "unflushed" : "flushed"; }
  static std::string open(Machine&) { return {}; }
  static void run(Machine& machine, const Op& op) { machine.write(op.kind == 0); }
  static Snapshot finish(Machine& machine, size_t, std::vector<Snapshot>* snapshots) {
    machine.disk().watch(nullptr);
    snapshots->push_back(machine.snapshot());
    return machine.snapshot();
  }
  static void check_recovered(Machine& machine, const Machine&, const Snapshot& crashed) {
    if (machine.read() < crashed.acknowledged_lsn) throw Failure{"it is not there"};
  }
  static void check_running(Machine&) {}
  static void end(Machine&) {}
  static bool damages_after(Fate fate) { return leaves_nothing_to_chance(fate); }
  static constexpr size_t damage_kinds = block_damage_kinds.size();
  static int live_log(const DiskImage&) { return 0; }
  static std::vector<BlockDamage> damages(const DiskImage&, const DiskImage&, int, bool) {
    return {{BlockDamage::Kind::rot, "a", 0}};
  }
  static void recover_damaged(const Machine&, const Snapshot&, const DiskImage& left, int, Random&,
                              ExhaustiveResult*) {
    if (left.inode(left.lookup("a")).current.page(0)[0] == std::byte(2))
      throw Failure{"it rots after two writes"};
  }
};

ExhaustiveResult run_careless(const ExhaustiveOptions& options) {
  return Exhaustive<Careless>(options, [](const std::string&) {}).run();
}

TEST(ShortHistories, AFailureNamesItsCaseWhichFailsAlone) {
  const ExhaustiveResult r = run_careless({.transactions = 1, .only = {}});
  EXPECT_EQ(r.failed_case, "zeros,in_order,unflushed,apart,2,drop");
  EXPECT_EQ(r.failure,
            "base zeros, writes complete in order, unflushed, each in a group, crash at I/O 2 of 3 "
            "(quiet), fate drop: acknowledged, but lost")
      << "that disk has been seen before";
  const ExhaustiveResult alone = run_careless({.transactions = 1, .only = r.failed_case});
  EXPECT_EQ(alone.failed_case, r.failed_case);
  EXPECT_EQ(alone.cases, 1u);
}

TEST(ShortHistories, SoDoesOneOfDamage) {
  const ExhaustiveResult r =
      run_careless({.transactions = 2, .damage = true, .only = ",,flushed+flushed"});
  EXPECT_EQ(r.failed_case, "zeros,in_order,flushed+flushed,apart,1,keep,rot@a@0");
  const ExhaustiveResult alone =
      run_careless({.transactions = 2, .damage = true, .only = r.failed_case});
  EXPECT_EQ(alone.failure, r.failure);
  EXPECT_EQ(alone.damaged, 1u);
}

// --- the engine's

ExhaustiveResult run(const ExhaustiveOptions& options) {
  return run_exhaustive(options, [](const std::string&) {});
}

TEST(ShortHistories, EveryCrashOfOneTransaction) {
  const ExhaustiveResult r = run({.transactions = 1, .only = {}});
  EXPECT_EQ(r.failure, "");
  EXPECT_TRUE(r.complete);
  EXPECT_EQ(r.histories, 3u * 2 * op_kinds);
  EXPECT_GT(r.cases, 3000u);
}

TEST(ShortHistories, EveryDamagedBlockOfOne) {
  const ExhaustiveResult r =
      run({.transactions = 1, .damage = true, .only = "provisioned,in_order,write_medium"});
  EXPECT_EQ(r.failure, "");
  EXPECT_GT(r.damaged, 300u);
  EXPECT_GT(r.refused, 0u);
  EXPECT_GT(r.accepted, 0u);
  EXPECT_GT(r.shortened, 0u);
  EXPECT_GT(r.damaged_reads, 0u);
  EXPECT_GT(r.repairs, 0u);
}

TEST(ShortHistories, DamageIsOfEachKindAndInEachFile) {
  const DiskImage& older = fresh_base().image;
  Machine::provision(0);
  Machine machine(older, 1, fresh_base().state, fresh_base().lsn);
  ASSERT_TRUE(machine.open().ok());
  const OpOnObject op{Op::write_large, 0, 10};
  machine.transaction({&op, 1});
  machine.commit_all();
  DiskImage disk = machine.disk().image();
  Random random(1);
  disk.crash(Fate::drop, random);
  const LiveLog log = read_live_log(disk);
  for (const bool all : {false, true}) {
    std::map<std::string, unsigned> applied;
    for (const BlockDamage& damage :
         damages_of(older, disk, log, Machine::engine_options(), all)) {
      DiskImage damaged = disk;
      if (!damage.apply(older, 5, &damaged)) continue;
      EXPECT_EQ(damaged.healed().fingerprint(), disk.fingerprint()) << damage.name();
      const std::string file = damage.path.substr(0, damage.path.find('/'));
      ++applied[file];
      ++applied[damage.name().substr(0, damage.name().find('@'))];
    }
    for (const char* file : {"log", "containers", "table"}) EXPECT_GT(applied[file], 5u) << file;
    EXPECT_GT(applied["stale"], 5u);
    EXPECT_EQ(applied["rot"], applied["unreadable"]);
    EXPECT_EQ(applied["label"], all ? 4u : 0u);
  }
}

// --- the order of completions

class Completing : public testing::Test {
 protected:
  // In which three writes complete, one at each reap.
  std::vector<int> order(Completions completions) {
    SimDisk disk(Careless::file_of_zeros(), 1 << 20, 1);
    disk.set_completions(completions);
    const auto file = disk.open("a", OpenMode::read_write).take();
    const auto queue = disk.make_write_queue();
    BlockMemory memory(block_bytes);
    std::memset(memory.data(), 1, block_bytes);
    std::vector<int> done;
    struct Write {
      int number;
      std::vector<int>* done;
      WriteOp op;
    } writes[3];
    std::vector<WriteOp*> ops;
    for (int i = 0; i < 3; ++i) {
      writes[i].number = i;
      writes[i].done = &done;
      WriteOp& op = writes[i].op;
      op.file = file.get();
      op.offset = uint64_t(i) * block_bytes;
      op.iov = {{memory.data(), block_bytes}};
      op.owner = &writes[i];
      op.done = [](WriteOp& completed, int error) {
        EXPECT_EQ(error, 0);
        const auto& w = *static_cast<Write*>(completed.owner);
        w.done->push_back(w.number);
      };
      ops.push_back(&op);
    }
    queue->submit(ops, WriteQueue::Begin::at_once);
    for (size_t n = 1; n <= 3; ++n) {
      EXPECT_EQ(queue->reap(true), 1u);
      EXPECT_EQ(done.size(), n);
    }
    return done;
  }
};

TEST_F(Completing, InOrder) {
  EXPECT_EQ(order(Completions::in_order), (std::vector{0, 1, 2}));
}

TEST_F(Completing, NewestFirst) {
  EXPECT_EQ(order(Completions::newest_first), (std::vector{2, 1, 0}));
}

}  // namespace
}  // namespace tablestore::sim
