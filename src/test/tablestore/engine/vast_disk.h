// A Disk with more containers than any test has space for: they are there, have their size, and
// read as zeros. Everything else is on the disk below.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "os/tablestore/engine/format/extent.h"
#include "test/tablestore/engine/disk_wrapper.h"

namespace tablestore {

// Thread-safe.
class VastDisk : public DiskWrapper {
 public:
  // Containers 0 to `containers`, of the largest class, all written.
  VastDisk(Disk& below, uint32_t containers, uint64_t container_bytes)
      : DiskWrapper(below), containers_(containers), container_bytes_(container_bytes) {}

  uint64_t container_flushes() const { return container_flushes_; }
  uint64_t flushes_of_all() const { return flushes_of_all_; }

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    if (!path.starts_with(directory())) return DiskWrapper::open(path, mode);
    return std::unique_ptr<File>(new Container(*this, path));
  }
  Result<std::vector<std::string>> list(const std::string& dir) override {
    if (dir + "/" != directory()) return DiskWrapper::list(dir);
    std::vector<std::string> names;
    for (uint32_t i = 0; i < containers_; ++i) names.push_back(std::to_string(i));
    return names;
  }
  Result<bool> flush_all() override {
    ++flushes_of_all_;
    return true;
  }

 private:
  class Container : public File {
   public:
    Container(VastDisk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
    const std::string& path() const override { return path_; }
    uint64_t size_bytes() const override { return disk_.container_bytes_; }
    Status read(uint64_t, std::span<std::byte> out) override {
      std::ranges::fill(out, std::byte(0));
      return {};
    }
    Status write(uint64_t, std::span<const std::byte>) override { return {}; }
    Status flush() override {
      ++disk_.container_flushes_;
      return {};
    }
    Status allocate(uint64_t, uint64_t) override { return {}; }
    Status write_zeroes(uint64_t, uint64_t) override { return {}; }
    Status punch(uint64_t, uint64_t) override { return {}; }
    Result<std::vector<ByteRange>> unwritten(std::vector<ByteRange>* holes) override {
      if (holes) holes->clear();
      return std::vector<ByteRange>();
    }

   private:
    VastDisk& disk_;
    const std::string path_;
  };

  static std::string directory() {
    return "containers/" + std::to_string(slot_classes - 1) + "/";
  }

  const uint32_t containers_;
  const uint64_t container_bytes_;
  std::atomic<uint64_t> container_flushes_{0};
  std::atomic<uint64_t> flushes_of_all_{0};
};

}  // namespace tablestore
