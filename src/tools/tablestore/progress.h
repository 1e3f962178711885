// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace tablestore_tool {

/// Whether somebody has pressed ^C, or sent SIGTERM: long work ends soon then, and in order. A
/// second ^C ends the program at once, which costs the store nothing that a crash would not.
extern const std::atomic<bool>& interrupted;
void end_on_interrupts();

/// A bar on standard error, where that is a terminal and people read what the tool says.
///
///   fsck [#########---------------------]  30 %  12 s, about 28 s left
class Progress {
 public:
  explicit Progress(bool shown);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(const std::string& title);
  /// Of how much there is to do, in any unit. False: the work is to end, somebody has asked for it.
  bool advance(uint64_t done, uint64_t total);
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  const bool is_shown;
  std::string title;
  Clock::time_point began, drawn;
  bool is_drawn = false;
};

/// What the bar says after `seconds` of work.
std::string bar(const std::string& title, double part, double seconds);

}  // namespace tablestore_tool
