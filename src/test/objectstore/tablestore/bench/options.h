// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What one run of the benchmark does: its command line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace store_bench {

struct Options {
  std::string store;                 ///< as its help lists them
  std::string dir;                   ///< where the store is made, empty before
  std::string workload;
  std::string out;                   ///< the JSON goes there; empty: to standard output
  bool existing = false;             ///< mounts the store that is there: no mkfs

  // the load
  uint64_t size = 4096;              ///< of one operation
  unsigned depth = 16;               ///< operations in flight
  unsigned shards = 0;               ///< threads that issue them; 0: the workload chooses
  double seconds = 5;
  double warmup = 1;
  double rest = 0.9;                 ///< seconds without I/O before it: a store begins rested
  unsigned parts = 1;                ///< of the measurement, each with figures of its own
  uint64_t max_bytes = uint64_t(4) << 30;   ///< of payload in one phase
  uint64_t objects = 0;              ///< of a population; 0: the workload chooses
  uint64_t object_size = uint64_t(4) << 20;
  bool unaligned = false;            ///< offsets and lengths of any byte
  uint64_t aged_bytes = 0;           ///< written and deleted before new objects are measured
  bool cold = false;                 ///< reads begin after a remount with empty caches
  uint64_t other_bytes = 0;          ///< of other objects, read before so that caches are full
  unsigned read_percent = 70;        ///< of the mix
  unsigned rounds = 10;              ///< of aging
  unsigned fill_percent = 90;        ///< of the full store
  std::optional<uint64_t> flush_us;  ///< as imitate_flush() takes it
  uint64_t seed = 1;

  // the placement groups
  unsigned pgs = 32;                 ///< a power of two
  unsigned log_entries = 0;          ///< of each PG's log; 0: as an OSD chooses

  /// Ceph's options, by name.
  std::map<std::string, std::string> settings;
};

/// Nothing where the words are wrong or help was wanted: `status` is then the exit code.
std::optional<Options> parse_options(int argc, char** argv, int* status);

}  // namespace store_bench
