#include "os/tablestore/engine/io/large_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "test/tablestore/engine/forbidden_call.h"
#include "test/tablestore/engine/test_directory.h"

namespace tablestore {
namespace {

constexpr size_t page_bytes = LargePages::page_bytes;

std::atomic<int> pages_made;
std::atomic<int> pages_there_are;

// Ordinary ones: these tests are of what is done with them.
std::byte* make_ordinary_page() {
  if (pages_made == pages_there_are) return nullptr;
  ++pages_made;
  return static_cast<std::byte*>(std::aligned_alloc(page_bytes, page_bytes));
}

class LargePagesTest : public testing::Test {
 protected:
  void SetUp() override {
    pages_made = 0;
    pages_there_are = 100;
  }
  std::shared_ptr<LargePages> pages = LargePages::make(2 * page_bytes, make_ordinary_page);
};

TEST_F(LargePagesTest, NoneIsMadeBeforeItIsWanted) {
  EXPECT_EQ(pages_made, 0);
  EXPECT_TRUE(pages->take(1));
  EXPECT_EQ(pages_made, 1);
}

TEST_F(LargePagesTest, NobodyGetsMoreThanAPageOrNothing) {
  EXPECT_FALSE(pages->take(0));
  EXPECT_FALSE(pages->take(page_bytes + 1));
  EXPECT_TRUE(pages->take(page_bytes));
}

TEST_F(LargePagesTest, WhatIsInUseIsNotGivenTwice) {
  std::mt19937 random(1);
  struct Piece {
    LargePages::Memory memory;
    size_t bytes;
    int value;
  };
  std::vector<Piece> taken;
  const auto check = [](const Piece& p) {
    return std::all_of(p.memory.get(), p.memory.get() + p.bytes,
                       [&](std::byte b) { return b == std::byte(p.value); });
  };
  size_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    if (!taken.empty() && random() % 2) {
      const size_t which = random() % taken.size();
      ASSERT_TRUE(check(taken[which]));
      taken.erase(taken.begin() + which);
      continue;
    }
    const size_t most = random() % 4 ? 256 << 10 : page_bytes;
    const size_t bytes = 1 + random() % most;
    Piece piece{pages->take(bytes), bytes, i % 256};
    if (!piece.memory) {
      ++refused;
      continue;
    }
    EXPECT_EQ(uintptr_t(piece.memory.get()) % block_bytes, 0u);
    std::memset(piece.memory.get(), piece.value, bytes);
    taken.push_back(std::move(piece));
  }
  for (const Piece& piece : taken) EXPECT_TRUE(check(piece));
  EXPECT_EQ(pages_made, 2);
  EXPECT_GT(refused, 0u);
  taken.clear();
  const auto first = pages->take(page_bytes), second = pages->take(page_bytes);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(pages->take(1));
}

TEST_F(LargePagesTest, MoreThanAPageIsInPieces) {
  EXPECT_TRUE(pages->take_all(0).empty());
  EXPECT_TRUE(pages->take_all(2 * page_bytes + 1).empty());
  const auto pieces = pages->take_all(page_bytes + 1);
  ASSERT_EQ(pieces.size(), 2u) << "what was taken for more than there is was given back";
  EXPECT_EQ(pieces[0].get_deleter().bytes, page_bytes);
  EXPECT_EQ(pieces[1].get_deleter().bytes, 1u);
}

TEST_F(LargePagesTest, WhileOneIsMadeNobodyWaits) {
  static std::shared_ptr<LargePages> pool;
  static std::future<bool> another;
  pool = LargePages::make(page_bytes, [] {
    another = std::async(std::launch::async, [] { return bool(pool->take(1)); });
    EXPECT_EQ(another.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    return make_ordinary_page();
  });
  EXPECT_TRUE(pool->take(1));
  EXPECT_FALSE(another.get());
  pool.reset();
}

TEST_F(LargePagesTest, ASystemThatRefusesIsNotAskedAgainSoon) {
  pages_there_are = 0;
  EXPECT_FALSE(pages->take(1));
  pages_there_are = 1;
  EXPECT_FALSE(pages->take(1));
  EXPECT_EQ(pages_made, 0);
}

TEST_F(LargePagesTest, OfNoneNothingIsTaken) {
  EXPECT_FALSE(LargePages::make(page_bytes - 1, make_ordinary_page));
}

TEST_F(LargePagesTest, WhatIsTakenOutlivesThePool) {
  LargePages::Memory memory = pages->take(page_bytes);
  pages.reset();
  std::memset(memory.get(), 1, page_bytes);
}

// --- of the system

// In a large page, of the mapping at `memory`.
size_t large_bytes_at(const std::byte* memory) {
  std::ifstream maps("/proc/self/smaps");
  const auto address = uintptr_t(memory);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t from, to;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2)
      inside = from <= address && address < to;
    size_t kib;
    if (inside && std::sscanf(line.c_str(), "AnonHugePages: %zu", &kib) == 1) return kib << 10;
  }
  return 0;
}

bool system_has_them() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string words;
  std::getline(file, words);
  return !words.empty() && words.find("[never]") == std::string::npos;
}

// Whether a mapping of this process that asks for it gets one.
bool another_gets_one() {
  constexpr size_t bytes = 2 * page_bytes;
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::madvise(mapped, bytes, MADV_HUGEPAGE);
  std::memset(mapped, 1, bytes);
  const bool has = large_bytes_at(static_cast<std::byte*>(mapped)) >= page_bytes;
  ::munmap(mapped, bytes);
  return has;
}

// It may lack one for a moment.
std::unique_ptr<std::byte, decltype(&LargePages::free_page)> a_large_page() {
  std::byte* page = LargePages::make_page();
  for (int tries = 50; !page && system_has_them() && tries > 0; --tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    page = LargePages::make_page();
  }
  return {page, LargePages::free_page};
}

void expect_a_large_page() {
  const auto page = a_large_page();
  if (!page) {
    const int forbidden = ::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    EXPECT_FALSE(system_has_them() && another_gets_one());
    ::prctl(PR_SET_THP_DISABLE, forbidden, 0, 0, 0);
    return;
  }
  EXPECT_EQ(uintptr_t(page.get()) % page_bytes, 0u);
  EXPECT_GE(large_bytes_at(page.get()), page_bytes);
}

TEST(LargePageTest, ItIsOneWhereTheSystemHasThem) { expect_a_large_page(); }

TEST(LargePageTest, ItIsOneWhereTheProcessIsForbiddenThem) {
  const int before = ::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  expect_a_large_page();
  EXPECT_EQ(::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), 1) << "others stay forbidden";
  ::prctl(PR_SET_THP_DISABLE, before, 0, 0, 0);
}

TEST(LargePageTest, AnAdviceThatIsRefusedIsNoPage) {
  for (const unsigned advice : {14u, 25u, 10u}) {  // to be large, to become so now, to stay so
    ASSERT_EXIT(
        {
          forbid(SYS_madvise, ENOMEM, advice, 2);
          std::_Exit(LargePages::make_page() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "")
        << advice;
  }
}

TEST(LargePageTest, WhatWasInUseBeforeBecomesOneToo) {
  std::vector<std::unique_ptr<void, decltype(&std::free)>> used;
  for (int i = 0; i < 20; ++i) {
    used.emplace_back(std::aligned_alloc(page_bytes, page_bytes), std::free);
    std::memset(used.back().get(), 1, page_bytes);
  }
  used.clear();
  expect_a_large_page();
}

TEST(LargePageTest, AChildLeavesItAsItIs) {
  const auto page = a_large_page();
  if (!page) return;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte;
    ::close(ends[1]);
    [[maybe_unused]] const ssize_t n = ::read(ends[0], &byte, 1);  // until the parent is done
    std::_Exit(0);
  }
  std::memset(page.get(), 1, page_bytes);
  EXPECT_GE(large_bytes_at(page.get()), page_bytes);
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(LargePageTest, ItsMemoryIsForChildrenAgainAfterwards) {
  ASSERT_EXIT(
      {
        std::byte* const page = LargePages::make_page();
        if (page) LargePages::free_page(page);
        void* const next = std::aligned_alloc(page_bytes, page_bytes);  // perhaps the same
        std::memset(next, 1, page_bytes);
        const pid_t child = ::fork();
        if (child == 0) std::_Exit(*static_cast<char*>(next));
        int status = 0;
        ::waitpid(child, &status, 0);
        std::_Exit(WIFEXITED(status) && WEXITSTATUS(status) == 1 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// --- reads through them

class LargeReadTest : public LargePagesTest {
 protected:
  static constexpr uint64_t file_bytes = 6 << 20;

  void SetUp() override {
    LargePagesTest::SetUp();
    FileDiskOptions options;
    options.large_pages = pages;
    options.log = [this](const std::string& line) { log += line; };
    auto opened = open_file_disk(directory.path(), options);
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    disk = opened.take();
    auto made = disk->open("file", OpenMode::create_new);
    ASSERT_TRUE(made.ok()) << made.status().what();
    file = made.take();
    std::mt19937_64 random(2);
    for (uint64_t i = 0; i < file_bytes / sizeof(uint64_t); ++i)
      reinterpret_cast<uint64_t*>(content.data())[i] = random();
    ASSERT_TRUE(file->write(0, content.span()).ok());
  }
  bool reads_right(uint64_t offset, uint64_t bytes) {
    BlockMemory memory(bytes);
    return file->read(offset, memory.span()).ok() &&
           std::memcmp(memory.data(), content.data() + offset, bytes) == 0;
  }

  std::string log;
  TestDirectory directory;
  std::unique_ptr<Disk> disk;
  std::unique_ptr<File> file;
  BlockMemory content{file_bytes};
};

TEST_F(LargeReadTest, SmallOnesGoWithout) {
  EXPECT_TRUE(reads_right(4096, 8192));
  EXPECT_EQ(pages_made, 0);
  EXPECT_TRUE(reads_right(4096, 16384));
  const bool direct = log.find("no direct I/O") == std::string::npos;
  EXPECT_EQ(pages_made, direct ? 1 : 0);
}

TEST_F(LargeReadTest, AllSizesReadWhatIsThere) {
  for (uint64_t bytes = 4096; bytes <= file_bytes; bytes = bytes * 5 / 4 / 4096 * 4096 + 4096)
    for (uint64_t offset : {uint64_t(0), uint64_t(4096), (file_bytes - bytes) / 4096 * 4096})
      if (offset + bytes <= file_bytes) {
        EXPECT_TRUE(reads_right(offset, bytes)) << bytes;
      }
}

TEST_F(LargeReadTest, OfNothingIsNothing) { EXPECT_TRUE(file->read(4096, {}).ok()); }

TEST_F(LargeReadTest, WhereAllAreInUseReadsGoOn) {
  const auto first = pages->take(page_bytes), second = pages->take(page_bytes - 4096);
  EXPECT_TRUE(reads_right(0, file_bytes));
}

TEST_F(LargeReadTest, WhereTheSystemHasNoneReadsGoOn) {
  pages_there_are = 0;
  EXPECT_TRUE(reads_right(0, file_bytes));
}

TEST_F(LargeReadTest, AFileThatEndsIsAnErrorAndNothingStaysTaken) {
  BlockMemory memory(3 << 20);
  const Status s = file->read(file_bytes - (1 << 20), memory.span());
  EXPECT_EQ(s.code(), EIO);
  EXPECT_NE(s.what().find("the file ends at"), std::string::npos) << s.what();
  EXPECT_TRUE(pages->take(page_bytes) && pages->take(page_bytes));
}

TEST_F(LargeReadTest, ManyAtOnceReadWhatIsThere) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 100; ++i) {
        const uint64_t bytes = (1 + random() % 300) * 4096;
        wrong += !reads_right(random() % ((file_bytes - bytes) / 4096) * 4096, bytes);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tablestore
