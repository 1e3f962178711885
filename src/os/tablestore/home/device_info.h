// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <set>
#include <string>

namespace tablestore {

/// The disks under a directory. Works whether or not a store is mounted there: every call looks
/// anew.
class DeviceInfo {
 public:
  explicit DeviceInfo(std::string directory) : directory(std::move(directory)) {}

  /// False where it cannot be known (network and memory file systems have no spindle).
  bool is_rotational() const;
  /// Whole physical disks, by kernel name. -EOPNOTSUPP where there are none.
  int devices(std::set<std::string>* names) const;
  /// The node of all disks; *node is -1 where they are on several.
  int numa_node(int* node, std::set<int>* nodes, std::set<std::string>* failed) const;
  /// How often the file system has used ext4's fast_commit: 0 where it is off, or cannot be known.
  /// With it Linux 6.18 loses what fdatasync() has covered, when threads flush several files
  /// (doc/dev/tablestore-reliability.rst).
  uint64_t fast_commits() const;
  /// The same, from the text of /proc/fs/ext4/DEVICE/fc_info.
  static uint64_t fast_commits_of(std::istream& fc_info);
  void collect_metadata(std::map<std::string, std::string>* metadata) const;

 private:
  const std::string directory;
};

/// What to do about fast_commits().
std::string fast_commit_warning(const std::string& directory);

}  // namespace tablestore
