// What a simulator says of the history in which the process ends, or which does not end.
#pragma once

#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace tablestore::sim {

// A history takes a second or so of CPU, a long one with sanitizers a minute.
constexpr time_t history_cpu_seconds = 300;

class LastWords {
 public:
  // Once. An assertion or a signal, and a history that is still busy after history_cpu_seconds,
  // print the line that was set, and end the process.
  static void install() {
    for (const int number : {SIGABRT, SIGSEGV, SIGPROF}) std::signal(number, say);
  }
  // Before each history: how to replay it.
  static void set(const std::string& replay) {
    std::snprintf(line, sizeof line, "FAILED: the process ended, or %jd s of CPU were not enough\n"
                  "replay: %s\n", intmax_t(history_cpu_seconds), replay.c_str());
    arm(history_cpu_seconds);
  }
  // What comes may take its time; `what` is said if it ends the process.
  static void set_untimed(const std::string& what) {
    std::snprintf(line, sizeof line, "FAILED: the process ended in %s\n", what.c_str());
    arm(0);
  }

 private:
  static void arm(time_t seconds) {
    const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
    ::setitimer(ITIMER_PROF, &limit, nullptr);
  }
  static void say(int number) {
    if (::write(STDOUT_FILENO, line, std::strlen(line)) < 0) ::_exit(2);
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  static inline char line[512];
};

}  // namespace tablestore::sim
