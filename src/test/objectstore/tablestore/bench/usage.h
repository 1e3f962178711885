// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What the process and the disk below it have consumed.
#pragma once

#include <cstdint>
#include <string>

namespace ceph {
class Formatter;
}

namespace store_bench {

/// Sums since some beginning; two of them are subtracted. The disk's numbers are those of the whole
/// machine: with others at work, those of the process are the better ones.
struct Usage {
  // the process (getrusage, /proc/self/io, flush.h)
  double user_seconds = 0;
  double system_seconds = 0;
  uint64_t context_switches = 0;
  uint64_t write_syscalls = 0;
  uint64_t read_bytes = 0;          ///< fetched from the disk for it
  uint64_t write_bytes = 0;         ///< sent to the disk, or dirtied in the page cache
  uint64_t flushes = 0;             ///< flushes_passed_on()
  uint64_t imitated_flushes = 0;    ///< flushes_imitated()
  // the disk that holds the store's directory (/sys/dev/block)
  uint64_t disk_reads = 0;
  uint64_t disk_read_bytes = 0;
  uint64_t disk_writes = 0;
  uint64_t disk_write_bytes = 0;
  uint64_t disk_flushes = 0;
  uint64_t disk_discarded_bytes = 0;
  // the machine (/proc/stat)
  double machine_busy_seconds = 0;  ///< of all cores, all processes and interrupts
  double machine_stolen_seconds = 0;  ///< in which a core had work, but not the host's processor

  Usage operator-(const Usage& earlier) const;
  void dump(ceph::Formatter& f) const;
};

/// Reads them for one directory, or for the device that a store there has as `block`. Any thread.
class UsageMeter {
 public:
  explicit UsageMeter(const std::string& dir);

  Usage now() const;
  /// The disk's name; empty where the file system has no single one.
  std::string disk() const { return disk_name; }

 private:
  std::string disk_stat;
  std::string disk_name;
};

/// The most memory since the last reset_peak_memory().
uint64_t peak_memory_bytes();
void reset_peak_memory();
/// One, five and fifteen minutes.
std::string load_average();
/// Space that a directory's files occupy.
uint64_t directory_bytes(const std::string& dir);

}  // namespace store_bench
