// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// A disk on which reads of containers fail now and then, as behind a bad cable.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "test/tablestore/engine/disk_wrapper.h"

namespace tablestore_test {

/// All but those reads goes to the disk below. Thread-safe.
class FlakyDisk : public tablestore::DiskWrapper {
 public:
  enum class Fault {
    error,
    slow_error,   ///< after more than a second, as of a disk that has tried by itself
    garbage,
    no_damage   ///< an error that says nothing of the bytes
  };
  struct Read {
    std::string path;
    uint64_t offset;
    uint64_t length;
    bool aligned;   ///< its memory
  };

  explicit FlakyDisk(std::unique_ptr<tablestore::Disk> below) : DiskWrapper(std::move(below)) {}

  /// The next `times` reads of which byte `offset` of container file `path` is a part fail, or
  /// bring another byte there. `path` may begin with the store's directory.
  void spoil(const std::string& path, uint64_t offset, Fault fault, unsigned times);
  /// Of containers, since the last call.
  std::vector<Read> take_reads();

 protected:
  std::unique_ptr<tablestore::File> wrap(const std::string& path,
                                         std::unique_ptr<tablestore::File> file) override;

 private:
  class Container;
  struct Spoiled {
    std::string path;
    uint64_t offset;
    Fault fault;
    unsigned times;
  };
  tablestore::Status spoilt(const Read& read, std::span<std::byte> data);

  std::mutex mutex;
  std::vector<Spoiled> spoiled;   ///< under mutex, as the next
  std::vector<Read> reads;
};

}  // namespace tablestore_test
