#include "test/tablestore/powercut/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

#include "os/tablestore/engine/require.h"

namespace tablestore::powercut {

Child::Child(std::vector<std::string> words, int shared_fd, const std::string& log)
    : log_(log) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  require(pid_ >= 0, "a process can be started");
  if (pid_ > 0) return;
  // Only what is safe after the fork of a process with threads.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || ::dup2(fd, 1) < 0 || ::dup2(fd, 2) < 0) ::_exit(127);
  if (shared_fd >= 0 && shared_fd != 3 && ::dup2(shared_fd, 3) < 0) ::_exit(127);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

Child::~Child() {
  if (ended()) return;
  signal(SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
}

void Child::signal(int number) {
  if (!status_) ::kill(pid_, number);
}

std::optional<int> Child::ended() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  return status_;
}

int Child::wait(unsigned seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!ended()) {
    if (std::chrono::steady_clock::now() > deadline) signal(SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return *status_;
}

std::string Child::words() const {
  std::ifstream in(log_);
  std::string line, all;
  while (std::getline(in, line)) all += (all.empty() ? "" : "\n  ") + line;
  return all.size() > 2000 ? all.substr(all.size() - 2000) : all;
}

}  // namespace tablestore::powercut
