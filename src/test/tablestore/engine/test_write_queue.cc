#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/engine/io/thread_write_queue.h"
#include "os/tablestore/engine/io/uring_write_queue.h"
#include "test/tablestore/engine/io_calls.h"
#include "test/tablestore/engine/test_directory.h"

namespace tablestore {
namespace {

using Begin = WriteQueue::Begin;

// A write of its own memory that tells a function of its end.
struct TestWrite {
  explicit TestWrite(File& file, uint64_t block, size_t blocks, uint8_t value)
      : memory(blocks * block_bytes) {
    std::memset(memory.data(), value, memory.size());
    op.file = &file;
    op.offset = block * block_bytes;
    op.iov = {{memory.data(), memory.size()}};
    op.owner = this;
    op.done = [](WriteOp& done, int error) {
      auto self = static_cast<TestWrite*>(done.owner);
      self->error = error;
      if (self->then) self->then();
    };
  }
  BlockMemory memory;
  WriteOp op;
  int error = -1;
  std::function<void()> then;
};

struct Kind {
  const char* name;
  bool io_uring;
  unsigned depth;  // or threads
};

class WriteQueueTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Disk>> opened = open_file_disk(directory.path(), {});
    ASSERT_TRUE(opened.ok());
    disk = opened.take();
    Result<std::unique_ptr<File>> made = disk->open("f", OpenMode::create_new);
    ASSERT_TRUE(made.ok());
    file = made.take();
    if (GetParam().io_uring) {
      Result<std::unique_ptr<WriteQueue>> ring = UringWriteQueue::create(GetParam().depth);
      if (!ring.ok()) GTEST_SKIP() << ring.status().what();
      queue = ring.take();
    } else {
      queue = std::make_unique<ThreadWriteQueue>(GetParam().depth);
    }
  }
  void submit(TestWrite& write) {
    WriteOp* const op = &write.op;
    queue->submit({&op, 1}, Begin::at_once);
  }
  void reap_until(size_t count) {
    while (count > 0) {
      const size_t reaped = queue->reap(true);
      ASSERT_LE(reaped, count);
      count -= reaped;
    }
  }
  uint8_t value_at(uint64_t block) {
    BlockMemory out(block_bytes);
    const Status s = file->read(block * block_bytes, out.span());
    EXPECT_TRUE(s.ok()) << s.what();
    const auto first = static_cast<uint8_t>(out.data()[0]);
    for (std::byte b : out.span()) EXPECT_EQ(static_cast<uint8_t>(b), first) << block;
    return first;
  }

  TestDirectory directory;
  std::unique_ptr<Disk> disk;
  std::unique_ptr<File> file;
  std::unique_ptr<WriteQueue> queue;
};

INSTANTIATE_TEST_SUITE_P(, WriteQueueTest,
                         testing::Values(Kind{"Uring", true, 256}, Kind{"UringOfFour", true, 4},
                                         Kind{"UringOfOne", true, 1}, Kind{"Threads", false, 16},
                                         Kind{"OneThread", false, 1}),
                         [](const auto& info) { return info.param.name; });

// What holds where the ring has room for all.
class FreeRingTest : public WriteQueueTest {};
INSTANTIATE_TEST_SUITE_P(, FreeRingTest, testing::Values(Kind{"Uring", true, 256}),
                         [](const auto& info) { return info.param.name; });

TEST_P(WriteQueueTest, WritesReachTheFile) {
  TestWrite a(*file, 0, 1, 1), b(*file, 1, 3, 2), c(*file, 6, 1, 3);
  WriteOp* const ops[] = {&a.op, &b.op, &c.op};
  queue->submit(ops, Begin::at_once);
  reap_until(3);
  for (const TestWrite* w : {&a, &b, &c}) EXPECT_EQ(w->error, 0);
  const int expected[] = {1, 2, 2, 2, 0, 0, 3};
  for (uint64_t block = 0; block < 7; ++block) EXPECT_EQ(value_at(block), expected[block]) << block;
}

TEST_P(WriteQueueTest, PostedWritesAreDoneByReaping) {
  TestWrite a(*file, 0, 1, 1), b(*file, 2, 3, 2);
  WriteOp* const ops[] = {&a.op, &b.op};
  queue->submit(ops, Begin::at_next_reap);
  reap_until(2);
  for (const TestWrite* w : {&a, &b}) EXPECT_EQ(w->error, 0);
  const int expected[] = {1, 0, 2, 2, 2};
  for (uint64_t block = 0; block < 5; ++block) EXPECT_EQ(value_at(block), expected[block]) << block;
}

TEST_P(WriteQueueTest, PostedWritesGoWithTheNextSubmitted) {
  TestWrite posted(*file, 3, 1, 1), submitted(*file, 0, 1, 2);
  WriteOp* const op = &posted.op;
  queue->submit({&op, 1}, Begin::at_next_reap);
  submit(submitted);
  reap_until(2);
  EXPECT_EQ(posted.error, 0);
  EXPECT_EQ(value_at(3), 1);
  EXPECT_EQ(value_at(0), 2);
}

TEST_P(WriteQueueTest, WhatIsWrittenTakesWhatWasPostedAlong) {
  TestWrite posted(*file, 3, 1, 1), written(*file, 0, 2, 2);
  size_t done = 0;
  for (TestWrite* w : {&posted, &written}) w->then = [&done] { ++done; };
  WriteOp* op = &posted.op;
  queue->submit({&op, 1}, Begin::at_next_reap);
  op = &written.op;
  queue->submit({&op, 1}, Begin::in_this_thread);
  while (done < 2) queue->reap(true);
  EXPECT_EQ(queue->requests(), 2u);
  EXPECT_EQ(posted.error, 0);
  EXPECT_EQ(written.error, 0);
  const int expected[] = {2, 2, 0, 1};
  for (uint64_t block = 0; block < 4; ++block) EXPECT_EQ(value_at(block), expected[block]) << block;
}

TEST_P(WriteQueueTest, WhatCannotBeWrittenTellsItsError) {
  Result<std::unique_ptr<File>> reader = disk->open("f", OpenMode::read_only);
  ASSERT_TRUE(reader.ok());
  TestWrite refused(**reader, 0, 1, 1), fine(*file, 1, 1, 2);
  size_t done = 0;
  for (TestWrite* w : {&refused, &fine}) w->then = [&done] { ++done; };
  WriteOp* const ops[] = {&refused.op, &fine.op};
  queue->submit(ops, Begin::in_this_thread);
  while (done < 2) queue->reap(true);
  EXPECT_EQ(refused.error, EBADF);
  EXPECT_EQ(fine.error, 0);
  EXPECT_EQ(value_at(1), 2);
}

// No worker thread of the kernel is woken for it.
TEST_P(FreeRingTest, WhatIsWrittenIsDoneOnReturn) {
  TestWrite a(*file, 0, 1, 1), b(*file, 4, 600, 2);
  WriteOp* const ops[] = {&a.op, &b.op};
  queue->submit(ops, Begin::in_this_thread);
  EXPECT_EQ(a.error, 0);
  EXPECT_EQ(b.error, 0);
  EXPECT_EQ(queue->reap(false), 0u);
  EXPECT_EQ(value_at(0), 1);
  EXPECT_EQ(value_at(603), 2);
}

bool kernel_skips_completions() {
  io_uring ring{};
  if (io_uring_queue_init(1, &ring, 0) < 0) return false;
  const bool skips = ring.features & IORING_FEAT_CQE_SKIP;
  io_uring_queue_exit(&ring);
  return skips;
}

// So that the disk is told of both at once. Only of both: where more is on its way, it is told of
// that anyway.
TEST_P(FreeRingTest, APairGoesThroughTheRing) {
  Result<std::unique_ptr<File>> made = disk->open("g", OpenMode::create_new);
  ASSERT_TRUE(made.ok());
  TestWrite data(**made, 0, 16, 1), log(*file, 0, 1, 2), more(**made, 32, 1, 3);
  size_t done = 0;
  for (TestWrite* w : {&data, &log, &more}) w->then = [&done] { ++done; };
  auto calls_for = [&](std::vector<WriteOp*> posted) {
    done = 0;
    queue->submit(posted, Begin::at_next_reap);
    const uint64_t before = io_calls("syscw");
    WriteOp* op = &log.op;
    queue->submit({&op, 1}, Begin::in_this_thread);
    const uint64_t calls = io_calls("syscw") - before;
    while (done < posted.size() + 1) queue->reap(true);
    return calls;
  };
  EXPECT_EQ(calls_for({&data.op}), kernel_skips_completions() ? 0u : 1u);
  EXPECT_EQ(queue->requests(), 2u);
  EXPECT_EQ(calls_for({&data.op, &more.op}), 1u);
  EXPECT_EQ(calls_for({}), 1u);

  // Completed or not: a pair is in the ring's hands until it is reaped.
  TestWrite before(**made, 64, 1, 4), beside(*file, 4, 1, 5);
  submit(before);
  WriteOp* op = &beside.op;
  queue->submit({&op, 1}, Begin::in_this_thread);
  EXPECT_EQ(calls_for({&data.op}), 1u);
  while (before.error < 0 || beside.error < 0) queue->reap(true);

  for (const TestWrite* w : {&data, &log, &more, &before, &beside}) EXPECT_EQ(w->error, 0);
  EXPECT_EQ(value_at(0), 2);
}

TEST_P(FreeRingTest, NeighboursAreNoPair) {
  TestWrite a(*file, 0, 1, 1), b(*file, 1, 1, 2);
  WriteOp* op = &a.op;
  queue->submit({&op, 1}, Begin::at_next_reap);
  op = &b.op;
  queue->submit({&op, 1}, Begin::in_this_thread);
  while (a.error < 0 || b.error < 0) queue->reap(true);
  EXPECT_EQ(value_at(0), 1);
  EXPECT_EQ(value_at(1), 2);
}

TEST_P(WriteQueueTest, PairsAreWrittenWhileOthersSubmitAndWake) {
  constexpr size_t threads = 3, each = 300, pairs = 400;
  Result<std::unique_ptr<File>> made = disk->open("g", OpenMode::create_new);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(file->allocate(0, threads * each * block_bytes).ok());
  std::vector<std::unique_ptr<TestWrite>> writes;
  size_t others_done = 0;
  for (size_t i = 0; i < threads * each; ++i) {
    writes.push_back(std::make_unique<TestWrite>(*file, i, 1, static_cast<uint8_t>(i % 249 + 1)));
    writes.back()->then = [&others_done] { ++others_done; };
  }
  std::vector<std::thread> submitters;
  for (size_t t = 0; t < threads; ++t)
    submitters.emplace_back([&, t] {
      for (size_t i = 0; i < each; ++i) {
        submit(*writes[t * each + i]);
        if (i % 16 == 0) queue->wake();
      }
    });
  for (size_t i = 0; i < pairs; ++i) {
    TestWrite data(**made, 2 * i, 1, 1), log(**made, 2 * pairs + 2 * i, 1, 2);
    WriteOp* op = &data.op;
    queue->submit({&op, 1}, Begin::at_next_reap);
    op = &log.op;
    queue->submit({&op, 1}, Begin::in_this_thread);
    while (data.error < 0 || log.error < 0) queue->reap(true);
    ASSERT_EQ(data.error, 0);
    ASSERT_EQ(log.error, 0);
  }
  for (std::thread& t : submitters) t.join();
  while (others_done < writes.size()) queue->reap(true);
  for (size_t i = 0; i < writes.size(); ++i) {
    ASSERT_EQ(writes[i]->error, 0);
    ASSERT_EQ(value_at(i), i % 249 + 1) << i;
  }
}

// In whatever order they come; not over a gap, not into another file.
TEST_P(FreeRingTest, NeighboursAreOneRequest) {
  Result<std::unique_ptr<File>> made = disk->open("g", OpenMode::create_new);
  ASSERT_TRUE(made.ok());
  TestWrite c(*file, 5, 1, 3), a(*file, 2, 2, 1), other(**made, 6, 1, 5), b(*file, 4, 1, 2),
      apart(*file, 8, 1, 4);
  WriteOp* const ops[] = {&c.op, &a.op, &other.op, &b.op, &apart.op};
  queue->submit(ops, Begin::at_once);
  reap_until(5);
  EXPECT_EQ(queue->requests(), 3u);
  for (const TestWrite* w : {&a, &b, &c, &apart, &other}) EXPECT_EQ(w->error, 0);
  const int expected[] = {0, 0, 1, 1, 2, 3, 0, 0, 4};
  for (uint64_t block = 0; block < 9; ++block) EXPECT_EQ(value_at(block), expected[block]) << block;
}

TEST_P(FreeRingTest, MergedNeighboursShareAnError) {
  Result<std::unique_ptr<File>> read_only = disk->open("f", OpenMode::read_only);
  ASSERT_TRUE(read_only.ok());
  TestWrite a(**read_only, 0, 1, 1), b(**read_only, 1, 1, 2);
  WriteOp* const ops[] = {&a.op, &b.op};
  queue->submit(ops, Begin::at_once);
  reap_until(2);
  EXPECT_EQ(queue->requests(), 1u);
  EXPECT_EQ(a.error, EBADF);
  EXPECT_EQ(b.error, EBADF);
}

// Of more pages than a disk takes at once, the kernel would make one request and a crumb.
TEST_P(FreeRingTest, ALargeWriteIsSeveralEqualRequests) {
  TestWrite half(*file, 0, 128, 1), whole(*file, 128, 256, 2), more(*file, 384, 257, 3);
  uint64_t requests = 0;
  const std::pair<TestWrite*, uint64_t> cases[] = {{&half, 1}, {&whole, 2}, {&more, 3}};
  for (const auto& [write, expected] : cases) {
    submit(*write);
    reap_until(1);
    EXPECT_EQ(write->error, 0);
    EXPECT_EQ(queue->requests() - requests, expected);
    requests = queue->requests();
  }
}

TEST_P(WriteQueueTest, LargeWritesLandWhole) {
  constexpr size_t pieces = 70, piece_blocks = 9;
  TestWrite one(*file, 0, 300, 1), before(*file, 300, 1, 3), of_pieces(*file, 301, piece_blocks, 2);
  for (size_t i = 1; i < pieces; ++i) of_pieces.op.iov.push_back(of_pieces.op.iov[0]);
  WriteOp* const ops[] = {&one.op, &before.op, &of_pieces.op};
  queue->submit(ops, Begin::at_once);
  reap_until(3);
  for (const TestWrite* w : {&one, &before, &of_pieces}) EXPECT_EQ(w->error, 0);
  EXPECT_EQ(file->size_bytes(), (301 + pieces * piece_blocks) * block_bytes);
  for (uint64_t block = 0; block < 300; ++block) ASSERT_EQ(value_at(block), 1) << block;
  EXPECT_EQ(value_at(300), 3);
  for (uint64_t block = 0; block < pieces * piece_blocks; ++block)
    ASSERT_EQ(value_at(301 + block), 2) << block;
}

TEST_P(WriteQueueTest, ALargeWriteFailsOnce) {
  Result<std::unique_ptr<File>> reader = disk->open("f", OpenMode::read_only);
  ASSERT_TRUE(reader.ok());
  TestWrite refused(**reader, 0, 600, 6), fine(*file, 1, 1, 7);
  WriteOp* const ops[] = {&refused.op, &fine.op};
  queue->submit(ops, Begin::at_once);
  reap_until(2);
  EXPECT_EQ(refused.error, EBADF);
  EXPECT_EQ(fine.error, 0);
  EXPECT_EQ(queue->reap(false), 0u);
}

TEST_P(WriteQueueTest, PiecesLandOneAfterTheOther) {
  TestWrite write(*file, 2, 1, 9);
  BlockMemory more(2 * block_bytes);
  std::memset(more.data(), 8, more.size());
  write.op.iov.push_back({more.data(), more.size()});
  write.op.iov.push_back({write.memory.data(), write.memory.size()});
  submit(write);
  reap_until(1);
  const int expected[] = {0, 0, 9, 8, 8, 9};
  for (uint64_t block = 0; block < 6; ++block) EXPECT_EQ(value_at(block), expected[block]) << block;
}

// More than one system call takes: the rest is written after a short write.
TEST_P(WriteQueueTest, ManyPiecesAreWrittenToTheEnd) {
  constexpr size_t pieces = 2500;
  TestWrite write(*file, 0, 251, 0);
  for (size_t i = 0; i < 251; ++i) {
    std::memset(write.memory.data() + i * block_bytes, static_cast<int>(i), block_bytes);
  }
  write.op.iov.clear();
  for (size_t i = 0; i < pieces; ++i) {
    write.op.iov.push_back({write.memory.data() + (i % 251) * block_bytes, block_bytes});
  }
  submit(write);
  reap_until(1);
  ASSERT_EQ(write.error, 0);
  EXPECT_EQ(file->size_bytes(), pieces * block_bytes);
  for (size_t i = 0; i < pieces; i += 7) ASSERT_EQ(value_at(i), i % 251) << i;
}

TEST_P(WriteQueueTest, SubmittingFarMoreThanFitsNeverWaitsForReap) {
  constexpr size_t count = 10000;
  ASSERT_TRUE(file->allocate(0, count * block_bytes).ok());
  std::vector<std::unique_ptr<TestWrite>> writes;
  std::vector<WriteOp*> ops;
  size_t completed = 0;
  for (size_t i = 0; i < count; ++i) {
    writes.push_back(std::make_unique<TestWrite>(*file, i, 1, static_cast<uint8_t>(i % 253)));
    writes.back()->then = [&completed] { ++completed; };
    ops.push_back(&writes.back()->op);
  }
  queue->submit(ops, Begin::at_once);  // by the thread that reaps
  reap_until(count);
  EXPECT_EQ(completed, count);
  EXPECT_EQ(queue->reap(false), 0u);
  for (size_t i = 0; i < count; i += 11) {
    ASSERT_EQ(writes[i]->error, 0);
    ASSERT_EQ(value_at(i), i % 253) << i;
  }
}

TEST_P(WriteQueueTest, ManyThreadsSubmitWhileOneReaps) {
  constexpr size_t threads = 6, batches = 60, batch = 5;
  constexpr size_t count = threads * batches * batch;
  ASSERT_TRUE(file->allocate(0, count * block_bytes).ok());
  std::vector<std::unique_ptr<TestWrite>> writes;
  for (size_t i = 0; i < count; ++i) {
    writes.push_back(std::make_unique<TestWrite>(*file, i, 1, static_cast<uint8_t>(i % 249 + 1)));
  }
  std::vector<std::thread> submitters;
  for (size_t t = 0; t < threads; ++t) {
    submitters.emplace_back([&, t] {
      for (size_t b = 0; b < batches; ++b) {
        std::vector<WriteOp*> ops;
        for (size_t i = 0; i < batch; ++i) {
          ops.push_back(&writes[(t * batches + b) * batch + i]->op);
        }
        queue->submit(ops, Begin::at_once);
      }
    });
  }
  reap_until(count);
  for (std::thread& t : submitters) t.join();
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(writes[i]->error, 0);
    ASSERT_EQ(value_at(i), i % 249 + 1) << i;
  }
}

// A request is bound to the thread that submitted it. While another thread makes the file grow, the
// writes wait for it, and most are still to be started when the thread that submitted them ends.
TEST_P(WriteQueueTest, WhatAThreadThatEndsHasSubmittedIsStillDone) {
  constexpr size_t rounds = 4, count = 64, far = 1024;
  BlockMemory zeros(8 << 20);
  std::memset(zeros.data(), 0, zeros.size());
  for (size_t i = 0; i < rounds; ++i) {
    std::vector<std::unique_ptr<TestWrite>> writes;
    std::vector<WriteOp*> ops;
    for (size_t n = 0; n < count; ++n) {
      writes.push_back(std::make_unique<TestWrite>(*file, n, 1, static_cast<uint8_t>(i + n + 1)));
      ops.push_back(&writes.back()->op);
    }
    std::atomic<bool> grows{false};
    std::thread grower([&] {
      grows = true;
      grows.notify_one();
      EXPECT_TRUE(file->write((far + i * 2048) * block_bytes, zeros.span()).ok());
    });
    grows.wait(false);
    std::thread([&] { queue->submit(ops, Begin::at_once); }).join();
    reap_until(count);
    grower.join();
    for (size_t n = 0; n < count; ++n) {
      ASSERT_EQ(writes[n]->error, 0);
      ASSERT_EQ(value_at(n), i + n + 1);
    }
  }
}

TEST_P(WriteQueueTest, DoneMaySubmitAgain) {
  int left = 50;
  TestWrite write(*file, 0, 1, 5);
  write.then = [&] {
    EXPECT_EQ(write.error, 0);
    write.op.offset += block_bytes;
    if (--left > 0) submit(write);
  };
  submit(write);
  reap_until(50);
  EXPECT_EQ(left, 0);
  EXPECT_EQ(file->size_bytes(), 50 * block_bytes);
}

TEST_P(WriteQueueTest, AFailedWriteTellsItsError) {
  TestWrite first(*file, 0, 1, 5);
  submit(first);
  reap_until(1);
  Result<std::unique_ptr<File>> reader = disk->open("f", OpenMode::read_only);
  ASSERT_TRUE(reader.ok());
  TestWrite refused(**reader, 0, 1, 6), fine(*file, 1, 1, 7);
  WriteOp* const ops[] = {&refused.op, &fine.op};
  queue->submit(ops, Begin::at_once);
  reap_until(2);
  EXPECT_EQ(refused.error, EBADF);
  EXPECT_EQ(fine.error, 0);
  EXPECT_EQ(value_at(0), 5);
  EXPECT_EQ(value_at(1), 7);
}

TEST_P(WriteQueueTest, AWriteThatIsCutShortByALimitTellsIt) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 2 * block_bytes;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  TestWrite partly(*file, 0, 4, 5), beyond(*file, 8, 1, 6);
  WriteOp* const ops[] = {&partly.op, &beyond.op};
  queue->submit(ops, Begin::at_once);
  reap_until(2);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(partly.error, EFBIG);
  EXPECT_EQ(beyond.error, EFBIG);
  EXPECT_EQ(file->size_bytes(), 2 * block_bytes);
}

TEST_P(WriteQueueTest, WakeEndsABlockedReap) {
  std::atomic<int> returned{0};
  std::thread reaper([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(queue->reap(true), 0u);
      returned = i + 1;
      returned.notify_all();
    }
  });
  for (int i = 0; i < 20; ++i) {
    queue->wake();
    while (returned.load() <= i) returned.wait(i);
  }
  reaper.join();
}

TEST_P(WriteQueueTest, AWakeUpIsKeptForTheNextBlockingReap) {
  queue->wake();
  queue->wake();
  EXPECT_EQ(queue->reap(false), 0u);
  EXPECT_EQ(queue->reap(false), 0u);
  EXPECT_EQ(queue->reap(true), 0u);
}

TEST_P(WriteQueueTest, WakersAndWritersTogetherLoseNothing) {
  constexpr size_t count = 300;
  ASSERT_TRUE(file->allocate(0, count * block_bytes).ok());
  std::atomic<bool> stop{false};
  std::thread waker([&] {
    while (!stop) queue->wake();
  });
  std::vector<std::unique_ptr<TestWrite>> writes;
  for (size_t i = 0; i < count; ++i) {
    writes.push_back(std::make_unique<TestWrite>(*file, i, 1, static_cast<uint8_t>(1)));
  }
  std::thread submitter([&] {
    for (auto& write : writes) submit(*write);
  });
  reap_until(count);
  stop = true;
  waker.join();
  submitter.join();
  for (auto& write : writes) EXPECT_EQ(write->error, 0);
  queue->reap(false);
}

TEST_P(WriteQueueTest, ReapingAnEmptyQueueReturnsAtOnce) { EXPECT_EQ(queue->reap(false), 0u); }

TEST(WriteQueueDeathTest, DestroyingABusyQueueIsABug) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  TestDirectory directory;
  Result<std::unique_ptr<Disk>> disk = open_file_disk(directory.path(), {});
  ASSERT_TRUE(disk.ok());
  Result<std::unique_ptr<File>> file = (*disk)->open("f", OpenMode::create_new);
  ASSERT_TRUE(file.ok());
  EXPECT_DEATH(
      {
        auto queue = (*disk)->make_write_queue();
        TestWrite write(**file, 0, 1, 5);
        WriteOp* const op = &write.op;
        queue->submit({&op, 1}, Begin::at_once);
        queue.reset();
      },
      "drained before it is destroyed");
}

}  // namespace
}  // namespace tablestore
