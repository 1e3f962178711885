// Many lives and deaths of stores, and what came of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "test/tablestore/powercut/cut_disk.h"
#include "test/tablestore/powercut/disk_server.h"
#include "test/tablestore/powercut/file_system.h"

namespace tablestore::powercut {

struct Tally {
  uint64_t stores = 0;
  uint64_t lives = 0;          // of processes that wrote
  uint64_t transactions = 0;   // acknowledged
  uint64_t kills = 0;          // with -9, and judged afterwards
  uint64_t kills_opening = 0;  // of these, while the store was being opened
  uint64_t ends = 0;           // in order
  uint64_t cuts = 0;           // of the power, and judged afterwards
  uint64_t cuts_opening = 0;   // of these, while the store was being opened or mounted
  uint64_t unflushed = 0;      // writes that were not flushed when the power went, over all cuts
  uint64_t requests = 0;       // of all disks
  std::map<std::string, uint64_t> counters;  // of the engines of all lives
};

struct CampaignOptions {
  std::string dir;            // for scratch files
  std::string store_program;  // of Ceph, which lives on a whole ObjectStore; empty: the engine
  bool plain = false;         // neither: a few threads that write to files (plain_files.h)
  std::string mkfs;           // options: for this kind of file system only
  uint64_t seed = 1;
  uint64_t sector_bytes = 0;
  std::function<bool(const Tally&)> enough;
  std::function<void(const Tally&)> progress;
};

// Both end at the first store that is not as it must be: the result says what was wrong, empty:
// nothing; a failed cut's disk is kept in a file.

// kill -9, on the file system of `dir`.
std::string run_kills(const CampaignOptions& options, Tally* tally);
// Why there can be no such file system here; empty: there can.
std::string obstacle_to_cuts(const CampaignOptions& options, FileSystem fs, DiskServer& server);
// Power cuts below a real file system, and kill -9 between them.
std::string run_cuts(const CampaignOptions& options, FileSystem fs, DiskServer& server,
                     Tally* tally);

}  // namespace tablestore::powercut
