// Another process, which lives on a store.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace tablestore::powercut {

// A process that takes so long hangs.
inline constexpr unsigned patience_seconds = 900;

// Killed when it still runs at the end of this object, and when this process dies. Its standard
// output and error go to a file.
class Child {
 public:
  // `words`: the program and its arguments. It finds `shared_fd` open as number 3.
  Child(std::vector<std::string> words, int shared_fd, const std::string& log);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void signal(int number);
  // The exit status, or minus the signal that ended it; none while it runs.
  std::optional<int> ended();
  // Waits. Killed when it takes so long.
  int wait(unsigned seconds);
  // The last lines of what it wrote.
  std::string words() const;

 private:
  const std::string log_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

}  // namespace tablestore::powercut
