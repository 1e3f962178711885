// What is known, without privileges, of the file system that a directory is on.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

struct FileSystemFacts {
  std::string type;                // as it is mounted: ext4, ext3, xfs, ...; empty: not known
  std::set<std::string> options;   // of the mounted file system: data=ordered, nobarrier, ...
  bool has_all_options = false;    // also those by default, so that what is not there is off
  bool has_volatile_cache = true;  // of its device; true where that is not known
  bool has_journal_elsewhere = false;  // ext4's, on another device
  bool flushes_before_journal = true;  // ext4, also where that is so: since Linux 6.15
};

// From proc/self/mountinfo, proc/fs, proc/sys/kernel/osrelease and sys/dev/block below `root`,
// which is another one in tests.
FileSystemFacts facts_of(dev_t device, const std::string& root = "/");

// What of that breaks a promise of the store. `directory`: as the operator knows it.
std::vector<Concern> concerns_about(const FileSystemFacts& facts, const std::string& directory);

// That the store writes through the page cache, or to a file system that may move what it writes.
Concern not_direct(const FileSystemFacts& facts, const std::string& directory);

}  // namespace tablestore
