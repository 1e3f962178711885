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

// A history takes a second or so of CPU, a long one with sanitizers a minute. One that waits for
// something that never comes takes no CPU: it has four times as long by the clock on the wall, so
// that others may have the processors meanwhile.
constexpr time_t history_cpu_seconds = 300;
constexpr time_t history_wall_seconds = 4 * history_cpu_seconds;

class LastWords {
 public:
  // Once. An assertion or a signal, and a history that takes longer than it may, print the line
  // that was set, and end the process.
  static void install() {
    for (const int number : {SIGABRT, SIGSEGV, SIGPROF, SIGALRM}) std::signal(number, say);
  }
  // Before each history: how to replay it.
  static void set(const std::string& replay) {
    std::snprintf(line, sizeof line,
                  "FAILED: the process ended, or %jd s of CPU, or %jd s, were not enough\n"
                  "replay: %s\n",
                  intmax_t(history_cpu_seconds), intmax_t(history_wall_seconds), replay.c_str());
    arm(ITIMER_PROF, history_cpu_seconds);
    arm(ITIMER_REAL, history_wall_seconds);
  }
  // What comes may take its time; `what` is said if it ends the process.
  static void set_untimed(const std::string& what) {
    std::snprintf(line, sizeof line, "FAILED: the process ended in %s\n", what.c_str());
    arm(ITIMER_PROF, 0);
    arm(ITIMER_REAL, 0);
  }

 private:
  static void arm(__itimer_which timer, time_t seconds) {
    const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
    ::setitimer(timer, &limit, nullptr);
  }
  static void say(int number) {
    if (::write(STDOUT_FILENO, line, std::strlen(line)) < 0) ::_exit(2);
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  static inline char line[512];
};

}  // namespace tablestore::sim
