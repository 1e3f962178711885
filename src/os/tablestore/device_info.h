// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

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
  void collect_metadata(std::map<std::string, std::string>* metadata) const;

 private:
  const std::string directory;
};

}  // namespace tablestore
