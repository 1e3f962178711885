// What random histories do to a disk, and how they crash and recover: all that is the same
// whatever store is on it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "test/tablestore/sim/frame/history.h"
#include "test/tablestore/sim/frame/snapshot.h"
#include "test/tablestore/sim/sim_disk.h"

namespace tablestore::sim {

// In how many I/Os the crash comes that a step asks for.
uint64_t random_crash(Random& random);

// Others take what space there is, or give it back.
void fill_disk(SimDisk& disk, Random& random);

// `faults`, and those among the options' that happen until the next crash. `short_reads`: these are
// among them.
Faults random_faults(Faults faults, bool short_reads, const HistoryOptions& options,
                     Random& random);

// Adds some of the rarer errors of a failing disk: flushes that drop what they covered, ENOSPC of a
// flush or a conversion, calls that fail.
void add_rare_errors(Faults* faults, Random& random);

// How a block decays, at rest: to other bytes, to those of before, to none.
enum class Decay { rot, revert, bad_sector };
// Some blocks of one file do; tells of each. False: there is no file.
bool decay(DiskImage* image, Decay how, Random& random,
           const std::function<void(const std::string& path, uint32_t block)>& decayed);

// Bits of one file flip, at rest; tells of each. False: there is no file.
bool rot(DiskImage* image, Random& random,
         const std::function<void(const std::string& path, uint32_t block, uint64_t bit)>& rotten);

// Of what a crash has left. Again: it crashed, or the disk failed.
enum class Reopened { recovered, again, refused };

// How recover_at_last() recovers.
struct Recovery {
  bool trace;
  std::function<void(const Snapshot& at)> count;  // before each crash
  // Nothing fails any more.
  std::function<void()> heal;
  // Opens what a crash has left, and judges it. Sets `next`, where the next crash happens, when it
  // returns Reopened::again.
  std::function<Reopened(const DiskImage& left, Random& random, bool may_crash,
                         std::optional<Snapshot>* next)>
      reopen;
};

// The process dies at `snapshot`, and perhaps again while it recovers. Never returns again.
Reopened recover_at_last(const Snapshot& snapshot, Random& random, const Recovery& recovery);

// How open_among_faults() opens.
struct Opening {
  // Empty, or why it does not open. May throw Died.
  std::function<std::string()> open;
  // From within SimDisk::watch.
  std::function<Snapshot(const DiskImage& image, const char* io)> snapshot;
};

// Opens a store on a disk that has `faults` meanwhile. Sets `crash` at one of its I/Os where it
// `may_crash`. Empty, or why it does not open.
std::string open_among_faults(SimDisk& disk, const Opening& opening, const Faults& faults,
                              bool may_crash, Random& random, std::optional<Snapshot>* crash);

}  // namespace tablestore::sim
