// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What one thread of the benchmark has measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "test/objectstore/tablestore/bench/histogram.h"

namespace store_bench {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

inline double seconds_of(Clock::duration d) { return std::chrono::duration<double>(d).count(); }
inline Clock::duration duration_of(double seconds)
{
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Operations and bytes in tenths of seconds, and the latency of each operation. Used by one
/// thread; the merging thread comes after it has stopped.
struct Recorder {
  static constexpr std::chrono::milliseconds interval{100};

  void start(Time begin)
  {
    *this = Recorder();
    from = begin;
  }

  /// What ended before the measurement began does not count.
  void add(Time begun, Time ended, uint64_t payload_bytes)
  {
    if (ended < from)
      return;
    latencies.add(std::chrono::nanoseconds(ended - begun).count());
    const size_t i = (ended - from) / interval;
    if (i >= ops.size()) {
      ops.resize(i + 1);
      bytes.resize(i + 1);
    }
    ++ops[i];
    bytes[i] += payload_bytes;
    last = std::max(last, ended);
  }

  void merge(const Recorder& other)
  {
    latencies.merge(other.latencies);
    if (ops.size() < other.ops.size()) {
      ops.resize(other.ops.size());
      bytes.resize(other.ops.size());
    }
    for (size_t i = 0; i < other.ops.size(); ++i) {
      ops[i] += other.ops[i];
      bytes[i] += other.bytes[i];
    }
    last = std::max(last, other.last);
  }

  Time from;
  Time last;                       ///< when the last operation ended
  Histogram latencies;
  std::vector<uint64_t> ops;       ///< by the interval in which they ended
  std::vector<uint64_t> bytes;
};

}  // namespace store_bench
