// A Disk on a file system of a size that the test chooses, which others use as well.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "test/tablestore/engine/disk_wrapper.h"

namespace tablestore {

// On another Disk in `directory`. What the files there take counts; what would take more than there
// is fails. Thread-safe.
class SmallDisk : public DiskWrapper {
 public:
  SmallDisk(Disk& below, std::string directory, uint64_t bytes)
      : DiskWrapper(below), directory_(std::move(directory)), bytes_(bytes) {}

  void set_other_bytes(uint64_t bytes) { other_bytes_ = bytes; }
  // What a file system says that is full: ENOSPC, or EDQUOT, which space() then does not know of.
  void set_error(int error) { error_ = error; }
  // None is made from now on.
  void set_without_ballast() { without_ballast_ = true; }
  // Compactions stand after the first large write, until there is no hold.
  void hold_compactions(bool hold) {
    hold_compactions_ = hold;
    hold_compactions_.notify_all();
  }
  bool is_compaction_held() const { return is_compaction_held_; }
  // How often a file of the table's rows got no space.
  unsigned refusals() const { return refusals_; }
  uint64_t used_bytes() const {
    uint64_t used = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_, ignored)) {
      struct stat st;
      if (::lstat(entry.path().c_str(), &st) == 0) used += uint64_t(st.st_blocks) * 512;
    }
    return used;
  }
  uint64_t available_bytes() const {
    const uint64_t used = used_bytes() + other_bytes_;
    return bytes_ - std::min(bytes_, used);
  }

  Result<DiskSpace> space() override {
    if (error_ == EDQUOT) return DiskSpace{uint64_t(1) << 40, uint64_t(1) << 39};
    return DiskSpace{bytes_, available_bytes()};
  }
  std::shared_ptr<rocksdb::FileSystem> table_fs() override {
    return std::make_shared<Fs>(*this, DiskWrapper::table_fs());
  }

 protected:
  std::unique_ptr<File> wrap(const std::string&, std::unique_ptr<File> file) override {
    return std::make_unique<SmallFile>(*this, std::move(file));
  }

 private:
  class SmallFile : public FileWrapper {
   public:
    SmallFile(SmallDisk& disk, std::unique_ptr<File> below)
        : FileWrapper(std::move(below)), disk_(disk) {}
    Status allocate(uint64_t offset, uint64_t length) override {
      const bool is_refused = disk_.without_ballast_ && path().ends_with("ballast");
      if (is_refused || disk_.available_bytes() < length)
        return Status::from_errno(disk_.error_, path());
      return FileWrapper::allocate(offset, length);
    }

   private:
    SmallDisk& disk_;
  };
  rocksdb::IOStatus no_space(const std::string& path) {
    if (path.ends_with(".sst")) ++refusals_;
    if (error_ == ENOSPC) {
      auto s = rocksdb::IOStatus::NoSpace(path, std::strerror(ENOSPC));
      s.SetRetryable(true);
      return s;
    }
    return rocksdb::IOStatus::IOError(path, std::strerror(error_));
  }
  static constexpr size_t held_write_bytes = 256 << 10;
  class TableFile : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    TableFile(SmallDisk& disk, std::string path, std::unique_ptr<FSWritableFile> file)
        : FSWritableFileOwnerWrapper(std::move(file)), disk_(disk), path_(std::move(path)) {}
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& o,
                             rocksdb::IODebugContext* d) override {
      if (disk_.available_bytes() < data.size()) return disk_.no_space(path_);
      const auto s = FSWritableFileOwnerWrapper::Append(data, o, d);
      wait_where_held(data, o);
      return s;
    }
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& o,
                             const rocksdb::DataVerificationInfo& v,
                             rocksdb::IODebugContext* d) override {
      if (disk_.available_bytes() < data.size()) return disk_.no_space(path_);
      const auto s = FSWritableFileOwnerWrapper::Append(data, o, v, d);
      wait_where_held(data, o);
      return s;
    }
    // No more than is written.
    void PrepareWrite(size_t, size_t, const rocksdb::IOOptions&,
                      rocksdb::IODebugContext*) override {}
    rocksdb::IOStatus Allocate(uint64_t, uint64_t, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override {
      return rocksdb::IOStatus::OK();
    }

   private:
    void wait_where_held(const rocksdb::Slice& data, const rocksdb::IOOptions& o) {
      const bool is_of_compaction = o.rate_limiter_priority == rocksdb::Env::IO_LOW;
      if (!is_of_compaction || !disk_.hold_compactions_ || data.size() < held_write_bytes) return;
      disk_.is_compaction_held_ = true;
      disk_.hold_compactions_.wait(true);
    }

    SmallDisk& disk_;
    const std::string path_;
  };
  class Fs : public rocksdb::FileSystemWrapper {
   public:
    Fs(SmallDisk& disk, const std::shared_ptr<rocksdb::FileSystem>& below)
        : FileSystemWrapper(below), disk_(disk) {}
    const char* Name() const override { return "tablestore.small"; }
    rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& o,
                                      std::unique_ptr<rocksdb::FSWritableFile>* result,
                                      rocksdb::IODebugContext* d) override {
      if (disk_.available_bytes() < block_bytes) return disk_.no_space(path);
      std::unique_ptr<rocksdb::FSWritableFile> file;
      auto s = FileSystemWrapper::NewWritableFile(path, o, &file, d);
      if (s.ok()) *result = std::make_unique<TableFile>(disk_, path, std::move(file));
      return s;
    }

   private:
    SmallDisk& disk_;
  };

  const std::string directory_;
  const uint64_t bytes_;
  std::atomic<uint64_t> other_bytes_{0};
  std::atomic<int> error_{ENOSPC};
  std::atomic<bool> without_ballast_{false};
  std::atomic<bool> hold_compactions_{false};
  std::atomic<bool> is_compaction_held_{false};
  std::atomic<unsigned> refusals_{0};
};

}  // namespace tablestore
