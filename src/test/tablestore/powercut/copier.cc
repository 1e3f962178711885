#include "test/tablestore/powercut/copier.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <vector>

namespace tablestore::powercut {

namespace {

constexpr unsigned copies = 3;

}  // namespace

Copier::Copier(std::string dir, uint64_t seed)
    : dir_(std::move(dir)), random_(seed), thread_([this] { run(); }) {}

Copier::~Copier() {
  stopping_ = true;
  thread_.join();
}

void Copier::run() {
  while (!stopping_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + random_() % 100));
    if (!copy_one()) return;
  }
}

// Files come and go meanwhile.
std::string Copier::any_file() {
  std::vector<std::string> files;
  std::error_code gone;
  for (const char* below : {"/log", "/containers"}) {
    for (std::filesystem::recursive_directory_iterator at(dir_ + below, gone), end;
         !gone && at != end; at.increment(gone))
      if (at->is_regular_file(gone)) files.push_back(at->path());
  }
  return files.empty() ? std::string() : files[random_() % files.size()];
}

bool Copier::copy_one() {
  const std::string copy = dir_ + "/copy-" + std::to_string(random_() % copies);
  ::unlink(copy.c_str());
  if (random_() % 4 == 0) return true;
  const int from = ::open(any_file().c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return true;
  const int to = ::open(copy.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool impossible =
      ::ioctl(to, FICLONE, from) != 0 && (errno == EOPNOTSUPP || errno == ENOTTY);
  ::close(to);
  ::close(from);
  return !impossible;
}

}  // namespace tablestore::powercut
