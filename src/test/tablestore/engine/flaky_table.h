// A Disk on which reads of the table's files fail for a moment, or which has no room for them.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "test/tablestore/engine/bad_sectors.h"
#include "rocksdb/file_system.h"

namespace tablestore {

// On another Disk. Thread-safe.
class FlakyTable : public BadSectors {
 public:
  using BadSectors::BadSectors;

  // So many of the next reads of table files fail, or give a wrong bit.
  void fail_reads(int times, int error = EIO) {
    read_error_ = error;
    failing_reads_ = times;
  }
  // All reads of a table file fail so in other threads; 0: none.
  void fail_reads_elsewhere(const std::string& path, int error) {
    std::lock_guard lock(mutex_);
    here_ = std::this_thread::get_id();
    elsewhere_path_ = path;
    elsewhere_error_ = error;
    failed_elsewhere_ = 0;
  }
  int failed_elsewhere() const {
    std::lock_guard lock(mutex_);
    return failed_elsewhere_;
  }
  void spoil_reads(int times) { spoilt_reads_ = times; }
  // So many of the next table files are not opened, for this error.
  void fail_opens(int times, int error) {
    open_error_ = error;
    failing_opens_ = times;
  }
  // The same of files that are read from the front: MANIFEST and CURRENT.
  void fail_sequences(int times) { failing_sequences_ = times; }
  void spoil_sequences(int times) { spoilt_sequences_ = times; }
  void fail_sequence_opens(int times, int error) {
    open_error_ = error;
    failing_sequence_opens_ = times;
  }
  // So many of the next table files are not made, for this error.
  void fail_makes(int times, int error) {
    open_error_ = error;
    failing_makes_ = times;
  }
  // No table file can be made any more: the file system is full.
  void set_full(bool full) { is_full_ = full; }
  // Each table file takes so long to be made. How many have been.
  void slow_makes(std::chrono::milliseconds each) { make_duration_ = each; }
  int made() const { return made_; }
  // How much of what was asked for has not happened yet.
  int left() const {
    return failing_reads_ + spoilt_reads_ + failing_opens_ + failing_sequences_ +
           spoilt_sequences_ + failing_sequence_opens_ + failing_makes_;
  }

  std::shared_ptr<rocksdb::FileSystem> table_fs() override {
    return std::make_shared<Fs>(*this, BadSectors::table_fs());
  }

 private:
  static bool take_one(std::atomic<int>& count) {
    for (int n = count; n > 0;)
      if (count.compare_exchange_weak(n, n - 1)) return true;
    return false;
  }

  int error_elsewhere(const std::string& path) {
    std::lock_guard lock(mutex_);
    if (!elsewhere_error_ || std::this_thread::get_id() == here_ || path != elsewhere_path_)
      return 0;
    ++failed_elsewhere_;
    return elsewhere_error_;
  }

  class TableFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    TableFile(FlakyTable& disk, std::string path, std::unique_ptr<FSRandomAccessFile> file)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), disk_(disk), path_(std::move(path)) {}
    rocksdb::IOStatus Read(uint64_t offset, size_t n, const rocksdb::IOOptions& options,
                           rocksdb::Slice* result, char* scratch,
                           rocksdb::IODebugContext* dbg) const override {
      int error = disk_.error_elsewhere(path_);
      if (!error && take_one(disk_.failing_reads_)) error = disk_.read_error_;
      if (error) return rocksdb::IOStatus::IOError("While pread " + path_, std::strerror(error));
      auto s = FSRandomAccessFileOwnerWrapper::Read(offset, n, options, result, scratch, dbg);
      if (s.ok() && result->size() > 0 && take_one(disk_.spoilt_reads_)) {
        std::memmove(scratch, result->data(), result->size());
        scratch[result->size() / 2] ^= 1;
        *result = {scratch, result->size()};
      }
      return s;
    }
    rocksdb::IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count,
                                const rocksdb::IOOptions& options,
                                rocksdb::IODebugContext* dbg) override {
      for (size_t i = 0; i < count; ++i) {
        auto& r = requests[i];
        r.status = Read(r.offset, r.len, options, &r.result, r.scratch, dbg);
      }
      return rocksdb::IOStatus::OK();
    }

   private:
    FlakyTable& disk_;
    const std::string path_;
  };

  class Sequence : public rocksdb::FSSequentialFileOwnerWrapper {
   public:
    Sequence(FlakyTable& disk, std::string path, std::unique_ptr<FSSequentialFile> file)
        : FSSequentialFileOwnerWrapper(std::move(file)), disk_(disk), path_(std::move(path)) {}
    // One that fails has read all the same.
    rocksdb::IOStatus Read(size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                           char* scratch, rocksdb::IODebugContext* dbg) override {
      auto s = FSSequentialFileOwnerWrapper::Read(n, options, result, scratch, dbg);
      if (take_one(disk_.failing_sequences_))
        return rocksdb::IOStatus::IOError("While reading file " + path_, std::strerror(EIO));
      if (s.ok() && result->size() > 0 && take_one(disk_.spoilt_sequences_)) {
        std::memmove(scratch, result->data(), result->size());
        scratch[result->size() / 2] ^= 1;
        *result = {scratch, result->size()};
      }
      return s;
    }

   private:
    FlakyTable& disk_;
    const std::string path_;
  };

  class Fs : public rocksdb::FileSystemWrapper {
   public:
    Fs(FlakyTable& disk, const std::shared_ptr<rocksdb::FileSystem>& below)
        : FileSystemWrapper(below), disk_(disk) {}
    const char* Name() const override { return "tablestore.flaky"; }
    rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                          rocksdb::IODebugContext* dbg) override {
      if (!path.ends_with(".sst"))
        return FileSystemWrapper::NewRandomAccessFile(path, options, result, dbg);
      if (take_one(disk_.failing_opens_))
        return rocksdb::IOStatus::IOError("While open a file for random read: " + path,
                                          std::strerror(disk_.open_error_));
      std::unique_ptr<rocksdb::FSRandomAccessFile> file;
      auto s = FileSystemWrapper::NewRandomAccessFile(path, options, &file, dbg);
      if (s.ok()) *result = std::make_unique<TableFile>(disk_, path, std::move(file));
      return s;
    }

    rocksdb::IOStatus NewSequentialFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                        rocksdb::IODebugContext* dbg) override {
      if (path.find("/MANIFEST-") == std::string::npos && !path.ends_with("/CURRENT"))
        return FileSystemWrapper::NewSequentialFile(path, options, result, dbg);
      if (take_one(disk_.failing_sequence_opens_))
        return rocksdb::IOStatus::IOError("While opening a file for sequentially reading: " + path,
                                          std::strerror(disk_.open_error_));
      std::unique_ptr<rocksdb::FSSequentialFile> file;
      auto s = FileSystemWrapper::NewSequentialFile(path, options, &file, dbg);
      if (s.ok()) *result = std::make_unique<Sequence>(disk_, path, std::move(file));
      return s;
    }

    rocksdb::IOStatus NewWritableFile(const std::string& path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* result,
                                      rocksdb::IODebugContext* dbg) override {
      if (disk_.is_full_ && path.ends_with(".sst"))
        return rocksdb::IOStatus::NoSpace(path, std::strerror(ENOSPC));
      if (path.ends_with(".sst") && take_one(disk_.failing_makes_))
        return rocksdb::IOStatus::IOError("While open a file for appending: " + path,
                                          std::strerror(disk_.open_error_));
      if (path.ends_with(".sst")) std::this_thread::sleep_for(disk_.make_duration_.load());
      auto s = FileSystemWrapper::NewWritableFile(path, options, result, dbg);
      disk_.made_ += s.ok() && path.ends_with(".sst");
      return s;
    }

   private:
    FlakyTable& disk_;
  };

  std::atomic<bool> is_full_{false};
  mutable std::mutex mutex_;
  std::thread::id here_;                      // these four under mutex_
  int elsewhere_error_ = 0, failed_elsewhere_ = 0;
  std::string elsewhere_path_;
  std::atomic<int> read_error_{EIO}, failing_reads_{0}, spoilt_reads_{0};
  std::atomic<int> failing_opens_{0}, open_error_{0};
  std::atomic<int> failing_sequences_{0}, spoilt_sequences_{0}, failing_sequence_opens_{0};
  std::atomic<int> failing_makes_{0}, made_{0};
  std::atomic<std::chrono::milliseconds> make_duration_{std::chrono::milliseconds(0)};
};

}  // namespace tablestore
