// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "tools/tablestore/progress.h"

#include <algorithm>
#include <cstdio>

#include <signal.h>
#include <unistd.h>

namespace tablestore_tool {

namespace {

using namespace std::chrono_literals;

std::atomic<bool> is_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void note_interrupt(int)
{
  is_interrupted = true;
}

constexpr unsigned bar_columns = 30;
constexpr auto redraw_interval = 200ms;
constexpr double foresight_seconds = 2;   // of work, before which nobody knows how long it takes

}  // namespace

const std::atomic<bool>& interrupted = is_interrupted;

void end_on_interrupts()
{
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

std::string bar(const std::string& title, double part, double seconds)
{
  const unsigned columns = unsigned(part * bar_columns);
  char numbers[80];
  std::snprintf(numbers, sizeof(numbers), "] %3.0f %%  %.0f s", part * 100, seconds);
  std::string text = title + " [" + std::string(columns, '#') +
                     std::string(bar_columns - columns, '-') + numbers;
  if (seconds >= foresight_seconds && part > 0) {
    std::snprintf(numbers, sizeof(numbers), ", about %.0f s left", seconds / part - seconds);
    text += numbers;
  }
  return text;
}

Progress::Progress(bool shown) : is_shown(shown && ::isatty(STDERR_FILENO)) {}

Progress::~Progress() { end(); }

void Progress::begin(const std::string& of)
{
  end();
  title = of;
  began = drawn = Clock::now();
}

bool Progress::advance(uint64_t done, uint64_t total)
{
  if (is_shown && total > 0) {
    const auto now = Clock::now();
    if (now >= drawn + redraw_interval) {
      drawn = now;
      is_drawn = true;
      const double part = std::min(1.0, double(done) / double(total));
      const std::string text = bar(title, part, std::chrono::duration<double>(now - began).count());
      std::fprintf(stderr, "\r%s\033[K", text.c_str());
    }
  }
  return !is_interrupted;
}

void Progress::end()
{
  if (is_drawn)
    std::fputs("\r\033[K", stderr);
  is_drawn = false;
}

}  // namespace tablestore_tool
