// A Disk some blocks of which cannot be read, for tests of what recovery makes of them.
#pragma once

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "disk_wrapper.h"
#include "os/tablestore/engine/io/read_errors.h"

namespace tablestore {

// On another Disk. A bad block stays so until it is written. Thread-safe.
class BadSectors : public DiskWrapper {
 public:
  using DiskWrapper::DiskWrapper;

  // So many reads of it fail; by default all.
  void make_bad(const std::string& path, uint64_t block, uint64_t times = UINT64_MAX) {
    std::lock_guard lock(mutex_);
    bad_[{path, block}] = times;
  }
  // So many reads of it give a wrong bit in its first byte, and no error.
  void spoil(const std::string& path, uint64_t block, uint64_t times) {
    std::lock_guard lock(mutex_);
    spoilt_[{path, block}] = times;
  }
  uint64_t left_to_spoil() const {
    std::lock_guard lock(mutex_);
    return spoilt_.size();
  }
  void heal_all() {
    std::lock_guard lock(mutex_);
    bad_.clear();
    spoilt_.clear();
  }
  // Every read of a file whose path begins so fails for this; 0: none any more. Writes heal nothing
  // of it.
  void fail_reads_of(const std::string& prefix, int error) {
    std::lock_guard lock(mutex_);
    failing_ = prefix;
    error_ = error;
  }
  bool is_bad(const std::string& path, uint64_t block) const {
    std::lock_guard lock(mutex_);
    return bad_.contains({path, block});
  }

 protected:
  std::unique_ptr<File> wrap(const std::string& path, std::unique_ptr<File> file) override {
    return std::make_unique<OpenFile>(*this, path, std::move(file));
  }

 private:
  class OpenFile : public FileWrapper {
   public:
    OpenFile(BadSectors& disk, std::string path, std::unique_ptr<File> file)
        : FileWrapper(std::move(file)), disk_(disk), name_(std::move(path)) {}
    void queued(const WriteOp& op) override {
      uint64_t bytes = 0;
      for (const iovec& v : op.iov) bytes += v.iov_len;
      disk_.heal(name_, op.offset, bytes);
    }
    Status read(uint64_t offset, std::span<std::byte> out) override {
      if (const int error = disk_.error_for(name_))
        return Status(code_of_failed_read(error),
                      name_ + ": cannot read: " + std::strerror(error));
      if (disk_.fails(name_, offset, out.size()))
        return Status(EIO, name_ + ": cannot read: Input/output error");
      const Status s = FileWrapper::read(offset, out);
      if (s.ok()) disk_.spoil_read(name_, offset, out);
      return s;
    }
    Status write(uint64_t offset, std::span<const std::byte> data) override {
      disk_.heal(name_, offset, data.size());
      return FileWrapper::write(offset, data);
    }
    Status write_zeroes(uint64_t offset, uint64_t length) override {
      disk_.heal(name_, offset, length);
      return FileWrapper::write_zeroes(offset, length);
    }

   private:
    BadSectors& disk_;
    const std::string name_;
  };

  using Block = std::pair<std::string, uint64_t>;

  bool fails(const std::string& path, uint64_t offset, uint64_t length) {
    std::lock_guard lock(mutex_);
    const auto bad = bad_.lower_bound({path, offset / block_bytes});
    if (bad == bad_.end() || bad->first >= Block(path, (offset + length) / block_bytes))
      return false;
    if (bad->second != UINT64_MAX && --bad->second == 0) bad_.erase(bad);
    return true;
  }
  void spoil_read(const std::string& path, uint64_t offset, std::span<std::byte> out) {
    std::lock_guard lock(mutex_);
    const Block end(path, (offset + out.size()) / block_bytes);
    const auto spoilt = spoilt_.lower_bound({path, offset / block_bytes});
    if (spoilt == spoilt_.end() || spoilt->first >= end) return;
    out[spoilt->first.second * block_bytes - offset] ^= std::byte(1);
    if (--spoilt->second == 0) spoilt_.erase(spoilt);
  }
  int error_for(const std::string& path) const {
    std::lock_guard lock(mutex_);
    return path.starts_with(failing_) ? error_ : 0;
  }
  void heal(const std::string& path, uint64_t offset, uint64_t length) {
    std::lock_guard lock(mutex_);
    bad_.erase(bad_.lower_bound({path, offset / block_bytes}),
               bad_.lower_bound({path, (offset + length) / block_bytes}));
  }

  mutable std::mutex mutex_;
  std::map<Block, uint64_t> bad_;  // and how many reads still fail
  std::map<Block, uint64_t> spoilt_;
  std::string failing_;
  int error_ = 0;
};

}  // namespace tablestore
