// Small writes of data wait until the lane makes a group, up to a limit.
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bad_sectors.h"
#include "engine_fixture.h"
#include "test/tablestore/sim/stepped_threads.h"

namespace tablestore {
namespace {

using Begin = WriteQueue::Begin;

// Another Disk, which outlives it; notes when its asynchronous writes are to begin.
class NotingDisk : public BadSectors {
 public:
  using BadSectors::BadSectors;
  std::unique_ptr<WriteQueue> make_write_queue() override {
    return std::make_unique<Queue>(*this, BadSectors::make_write_queue());
  }
  std::vector<Begin> take() { return std::exchange(begins_, {}); }
  // What had been posted when the last group of the log was written.
  bool data_begun_before_log() const { return data_begun_before_log_; }

 private:
  class Queue : public WriteQueue {
   public:
    Queue(NotingDisk& disk, std::unique_ptr<WriteQueue> queue)
        : disk_(disk), queue_(std::move(queue)) {}
    void submit(std::span<WriteOp* const> ops, Begin begin) override {
      disk_.begins_.push_back(begin);
      if (begin == Begin::in_this_thread) disk_.data_begun_before_log_ = disk_.data_begun_;
      disk_.data_begun_ = false;
      queue_->submit(ops, begin);
    }
    size_t reap(bool wait) override {
      disk_.data_begun_ = true;
      return queue_->reap(wait);
    }
    void wake() override { queue_->wake(); }
    uint64_t requests() const override { return queue_->requests(); }

   private:
    NotingDisk& disk_;
    const std::unique_ptr<WriteQueue> queue_;
  };
  std::vector<Begin> begins_;
  bool data_begun_ = false, data_begun_before_log_ = false;
};

class PostedBytesTest : public EngineFixture {
 protected:
  static constexpr uint64_t blocks = 16;           // 64 KiB
  static constexpr size_t posted_at_the_most = 12;  // of these

  void SetUp() override {
    EngineFixture::SetUp();
    format();
    noting.emplace(*disk);
    options.threads = threads;
    auto opened = Engine::open(*noting, options);
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    engine = opened.take();
  }
  void TearDown() override {
    engine.reset();
    noting.reset();
    EngineFixture::TearDown();
  }
  void expect_posted(size_t writes, size_t posted) {
    noting->take();
    for (size_t i = 0; i < writes; ++i) {
      auto txn = std::make_shared<Txn>();
      write(*txn, blocks, i);
      txn->put(Family::object, "k" + std::to_string(i), "v");
      engine->submit(txn);
    }
    std::vector<Begin> expected(posted, Begin::at_next_reap);
    expected.resize(writes, Begin::at_once);
    EXPECT_EQ(noting->take(), expected);
  }

  const std::shared_ptr<sim::SteppedThreads> threads = std::make_shared<sim::SteppedThreads>();
  std::optional<NotingDisk> noting;
};

TEST_F(PostedBytesTest, MoreThanThatIsNotLeftToTheLane) {
  expect_posted(posted_at_the_most + 4, posted_at_the_most);
}

TEST_F(PostedBytesTest, WhatTheLaneHasWrittenWaitsNoMore) {
  for (int round = 0; round < 3; ++round) {
    expect_posted(posted_at_the_most - 2, posted_at_the_most - 2);
    threads->step_all("commit");
  }
}

TEST_F(PostedBytesTest, DataOfSeveralBeginBeforeTheirGroupOfTheLogIsBuilt) {
  expect_posted(2, 2);
  threads->step_all("commit");
  EXPECT_TRUE(noting->data_begun_before_log());
}

TEST_F(PostedBytesTest, ASingleWriteGoesTogetherWithTheLog) {
  expect_posted(1, 1);
  threads->step_all("commit");
  EXPECT_FALSE(noting->data_begun_before_log());
}

}  // namespace
}  // namespace tablestore
