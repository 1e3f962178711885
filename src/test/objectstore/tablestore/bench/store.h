// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The object store that is measured, whichever it is.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "include/common_fwd.h"
#include "os/ObjectStore.h"
#include "test/objectstore/tablestore/bench/recorder.h"

namespace ceph {
class Formatter;
}

namespace store_bench {

/// Where something the benchmark needs fails, with what to do about it.
struct BenchError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// 0 or more, else a BenchError that names what failed.
int require(int r, const std::string& what);

/// Owns the store. Main thread, but for os().
class Store {
 public:
  /// Makes (unless `existing`) and mounts it. `rest_seconds`: of settle().
  Store(CephContext* cct, const std::string& type, const std::string& dir, bool existing,
        double rest_seconds);
  ~Store();

  ObjectStore& os() { return *store; }
  const std::string& type() const { return store_type; }
  const std::string& directory() const { return dir; }
  /// Of the mount in the constructor or the last remount().
  double mount_seconds() const { return seconds_to_mount; }

  void umount();
  /// umount, the machine's page cache dropped, mount: nothing is cached.
  void remount_cold();
  /// All is in the table, compacted: no mount finds it in a log and keeps it in memory, and no
  /// compaction comes later and brings it into the page cache.
  void empty_log();
  /// Waits until the store's work in the background has not read or written for a rest: what a
  /// store does when it is idle begins after a while (TableStore's stock: up to 0.2 s, and the
  /// creation of a container).
  void settle();

  /// All numbers that the store counts, by "section.name"; time averages as name.sum (in seconds)
  /// and name.count.
  std::map<std::string, double> counters();
  /// Bytes that the files occupy and what statfs says.
  void dump_space(ceph::Formatter& f);
  /// Bytes that statfs calls used.
  uint64_t used_bytes();
  uint64_t total_bytes();

 private:
  void create();
  void mount();

  CephContext* const cct;
  const std::string store_type;
  const std::string dir;
  const Clock::duration rest;
  std::unique_ptr<ObjectStore> store;
  double seconds_to_mount = 0;
};

}  // namespace store_bench
