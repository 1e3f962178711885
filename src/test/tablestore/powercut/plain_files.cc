#include "test/tablestore/powercut/plain_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "os/tablestore/engine/io/block_memory.h"
#include "test/tablestore/powercut/life.h"
#include "test/tablestore/powercut/life_report.h"

namespace tablestore::powercut {

namespace {

constexpr unsigned threads = 4;
constexpr uint64_t file_blocks = 16384;  // allocated, and never written

std::atomic<bool> orderly_end{false};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "FAILED %s\n", what.c_str());
  std::_Exit(1);
}

void check(bool ok, const char* doing) {
  if (!ok) fail(std::string(doing) + ": " + std::strerror(errno));
}

int open_file(const std::string& dir, unsigned thread) {
  const std::string path = dir + "/" + std::to_string(thread);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  check(fd >= 0, "open");
  return fd;
}

// Every block says which it is.
void fill(BlockMemory* memory, uint64_t block) {
  auto* words = reinterpret_cast<uint64_t*>(memory->data());
  std::fill(words, words + memory->size() / sizeof(uint64_t), block + 1);
}

// How many blocks of a file are there, from the first on.
uint64_t written(int fd) {
  BlockMemory found(block_bytes), wanted(block_bytes);
  for (uint64_t block = 0; block < file_blocks; ++block) {
    check(::pread(fd, found.data(), block_bytes, off_t(block * block_bytes)) == block_bytes,
          "read");
    fill(&wanted, block);
    if (std::memcmp(found.data(), wanted.data(), block_bytes) != 0) return block;
  }
  return file_blocks;
}

void write(int fd, uint64_t block, std::atomic<uint64_t>* acknowledged) {
  BlockMemory memory(block_bytes);
  for (; block < file_blocks && !orderly_end; ++block) {
    fill(&memory, block);
    check(::pwrite(fd, memory.data(), block_bytes, off_t(block * block_bytes)) == block_bytes,
          "write");
    check(::fdatasync(fd) == 0, "fdatasync");
    *acknowledged = block + 1;
  }
}

}  // namespace

int make_plain_files(const std::string& dir, int) {
  for (unsigned t = 0; t < threads; ++t) {
    const int fd = open_file(dir, t);
    check(::fallocate(fd, 0, 0, off_t(file_blocks * block_bytes)) == 0, "fallocate");
    check(::fsync(fd) == 0, "fsync");
  }
  const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  check(fd >= 0 && ::fsync(fd) == 0, "fsync of the directory");
  return lived;
}

int live_on_plain_files(const std::string& dir, int report_fd) {
  std::signal(SIGTERM, [](int) { orderly_end = true; });
  void* memory =
      ::mmap(nullptr, sizeof(LifeReport), PROT_READ | PROT_WRITE, MAP_SHARED, report_fd, 0);
  check(memory != MAP_FAILED, "mmap");
  LifeReport& report = *static_cast<LifeReport*>(memory);
  std::vector<int> files;
  for (unsigned t = 0; t < threads; ++t) {
    files.push_back(open_file(dir, t));
    // What is there is so durably from now on.
    check(::fdatasync(files[t]) == 0, "fdatasync");
    const uint64_t found = written(files[t]);
    if (found < report.floor[t])
      fail("file " + std::to_string(t) + " has " + std::to_string(found) + " blocks of " +
           std::to_string(report.floor[t]) + " that were flushed");
    report.acknowledged[t] = found;
  }
  if (!report.writes) return lived;
  report.begun = true;
  std::vector<std::thread> writers;
  for (unsigned t = 0; t < threads; ++t)
    writers.emplace_back(write, files[t], report.acknowledged[t].load(), &report.acknowledged[t]);
  for (auto& w : writers) w.join();
  while (!orderly_end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return lived;
}

}  // namespace tablestore::powercut
