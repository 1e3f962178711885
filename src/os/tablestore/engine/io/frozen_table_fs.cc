#include "os/tablestore/engine/io/frozen_table_fs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/file_system.h"

namespace tablestore {

namespace {

using rocksdb::FileOptions;
using rocksdb::FSDirectory;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSSequentialFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// A file in memory. Thread-safe.
class Bytes {
 public:
  uint64_t size() const {
    std::lock_guard lock(mutex_);
    return bytes_.size();
  }
  void append(const Slice& data) {
    std::lock_guard lock(mutex_);
    bytes_.append(data.data(), data.size());
  }
  void truncate(uint64_t size) {
    std::lock_guard lock(mutex_);
    bytes_.resize(size);
  }
  void read(uint64_t offset, size_t length, Slice* result, char* scratch) const {
    std::lock_guard lock(mutex_);
    const size_t there =
        offset < bytes_.size() ? std::min<uint64_t>(length, bytes_.size() - offset) : 0;
    if (there > 0) std::memcpy(scratch, bytes_.data() + offset, there);
    *result = Slice(scratch, there);
  }

 private:
  mutable std::mutex mutex_;
  std::string bytes_;
};
using BytesPtr = std::shared_ptr<Bytes>;

class Sequential : public FSSequentialFile {
 public:
  explicit Sequential(BytesPtr bytes) : bytes_(std::move(bytes)) {}
  IOStatus Read(size_t length, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) override {
    bytes_->read(at_, length, result, scratch);
    at_ += result->size();
    return IOStatus::OK();
  }
  IOStatus Skip(uint64_t length) override {
    at_ += length;
    return IOStatus::OK();
  }

 private:
  const BytesPtr bytes_;
  uint64_t at_ = 0;
};

class RandomAccess : public FSRandomAccessFile {
 public:
  explicit RandomAccess(BytesPtr bytes) : bytes_(std::move(bytes)) {}
  IOStatus Read(uint64_t offset, size_t length, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    bytes_->read(offset, length, result, scratch);
    return IOStatus::OK();
  }
  IOStatus Prefetch(uint64_t, size_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }

 private:
  const BytesPtr bytes_;
};

class Writable : public FSWritableFile {
 public:
  explicit Writable(BytesPtr bytes) : bytes_(std::move(bytes)) {}
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    bytes_->append(data);
    return IOStatus::OK();
  }
  IOStatus Append(const Slice& data, const IOOptions& o, const rocksdb::DataVerificationInfo&,
                  IODebugContext* d) override {
    return Append(data, o, d);
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    bytes_->truncate(size);
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Allocate(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return bytes_->size(); }

 private:
  const BytesPtr bytes_;
};

class Directory : public FSDirectory {
 public:
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
};

class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
  size_t GetLogFileSize() const override { return 0; }
};

class NoLock : public rocksdb::FileLock {};

std::string clean(const std::string& path) {
  std::string out;
  for (const char c : path)
    if (c != '/' || !out.ends_with('/')) out.push_back(c);
  return out;
}

// `mutex_` guards the names.
class FrozenTableFs : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "tablestore.frozen"; }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& o,
                             std::unique_ptr<FSSequentialFile>* file,
                             IODebugContext* d) override {
    BytesPtr bytes;
    switch (look_up(path, &bytes)) {
      case Place::below: return target()->NewSequentialFile(path, o, file, d);
      case Place::nowhere: return IOStatus::PathNotFound(path);
      case Place::here: file->reset(new Sequential(bytes));
    }
    return IOStatus::OK();
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& o,
                               std::unique_ptr<FSRandomAccessFile>* file,
                               IODebugContext* d) override {
    BytesPtr bytes;
    switch (look_up(path, &bytes)) {
      case Place::below: return target()->NewRandomAccessFile(path, o, file, d);
      case Place::nowhere: return IOStatus::PathNotFound(path);
      case Place::here: file->reset(new RandomAccess(bytes));
    }
    return IOStatus::OK();
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions&,
                           std::unique_ptr<FSWritableFile>* file, IODebugContext*) override {
    auto bytes = std::make_shared<Bytes>();
    put(path, bytes);
    file->reset(new Writable(std::move(bytes)));
    return IOStatus::OK();
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions&,
                              std::unique_ptr<FSWritableFile>*, IODebugContext*) override {
    return IOStatus::NotSupported("append to " + path);
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string&, const FileOptions&,
                             std::unique_ptr<FSWritableFile>*, IODebugContext*) override {
    return IOStatus::NotSupported("write over " + path);
  }
  IOStatus NewRandomRWFile(const std::string& path, const FileOptions&,
                           std::unique_ptr<rocksdb::FSRandomRWFile>*, IODebugContext*) override {
    return IOStatus::NotSupported("write into " + path);
  }
  IOStatus NewMemoryMappedFileBuffer(
      const std::string& path, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>*) override {
    return IOStatus::NotSupported("map " + path);
  }
  IOStatus NewDirectory(const std::string&, const IOOptions&,
                        std::unique_ptr<FSDirectory>* directory, IODebugContext*) override {
    directory->reset(new Directory);
    return IOStatus::OK();
  }
  IOStatus FileExists(const std::string& path, const IOOptions& o, IODebugContext* d) override {
    switch (look_up(path)) {
      case Place::below: return target()->FileExists(path, o, d);
      case Place::nowhere: return IOStatus::NotFound(path);
      case Place::here: break;
    }
    return IOStatus::OK();
  }
  IOStatus GetChildren(const std::string& dir, const IOOptions& o, std::vector<std::string>* names,
                       IODebugContext* d) override {
    const IOStatus s = target()->GetChildren(dir, o, names, d);
    if (!s.ok()) return s;
    const std::string prefix = clean(dir + "/");
    std::lock_guard lock(mutex_);
    std::erase_if(*names, [&](const std::string& name) { return files_.contains(prefix + name); });
    for (const auto& [path, bytes] : files_)
      if (bytes && path.starts_with(prefix) && path.find('/', prefix.size()) == path.npos)
        names->push_back(path.substr(prefix.size()));
    return s;
  }
  IOStatus GetChildrenFileAttributes(const std::string& dir, const IOOptions& o,
                                     std::vector<rocksdb::FileAttributes>* found,
                                     IODebugContext* d) override {
    return FileSystem::GetChildrenFileAttributes(dir, o, found, d);
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& o, IODebugContext* d) override {
    if (const IOStatus s = FileExists(path, o, d); !s.ok()) return s;
    put(path, nullptr);
    return IOStatus::OK();
  }
  IOStatus Truncate(const std::string& path, size_t size, const IOOptions&,
                    IODebugContext*) override {
    BytesPtr bytes;
    if (look_up(path, &bytes) != Place::here) return IOStatus::NotSupported("cut " + path);
    bytes->truncate(size);
    return IOStatus::OK();
  }
  IOStatus CreateDir(const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus CreateDirIfMissing(const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus DeleteDir(const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions& o, uint64_t* bytes,
                       IODebugContext* d) override {
    BytesPtr here;
    switch (look_up(path, &here)) {
      case Place::below: return target()->GetFileSize(path, o, bytes, d);
      case Place::nowhere: return IOStatus::PathNotFound(path);
      case Place::here: *bytes = here->size();
    }
    return IOStatus::OK();
  }
  IOStatus GetFileModificationTime(const std::string& path, const IOOptions& o, uint64_t* time,
                                   IODebugContext* d) override {
    if (look_up(path) == Place::below) return target()->GetFileModificationTime(path, o, time, d);
    *time = 0;
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& o,
                      IODebugContext* d) override {
    BytesPtr bytes;
    switch (look_up(from, &bytes)) {
      case Place::nowhere: return IOStatus::PathNotFound(from);
      case Place::below:
        if (const IOStatus s = copy(from, o, &bytes, d); !s.ok()) return s;
        break;
      case Place::here: break;
    }
    put(to, bytes);
    put(from, nullptr);
    return IOStatus::OK();
  }
  IOStatus LinkFile(const std::string& from, const std::string&, const IOOptions&,
                    IODebugContext*) override {
    return IOStatus::NotSupported("link " + from);
  }
  IOStatus LockFile(const std::string&, const IOOptions&, rocksdb::FileLock** lock,
                    IODebugContext*) override {
    *lock = new NoLock;
    return IOStatus::OK();
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    delete lock;
    return IOStatus::OK();
  }
  IOStatus NewLogger(const std::string&, const IOOptions&, std::shared_ptr<rocksdb::Logger>* log,
                     IODebugContext*) override {
    *log = std::make_shared<NoLog>();
    return IOStatus::OK();
  }

 private:
  enum class Place { here, below, nowhere };
  Place look_up(const std::string& path, BytesPtr* bytes = nullptr) {
    std::lock_guard lock(mutex_);
    const auto it = files_.find(clean(path));
    if (it == files_.end()) return Place::below;
    if (bytes) *bytes = it->second;
    return it->second ? Place::here : Place::nowhere;
  }
  void put(const std::string& path, BytesPtr bytes) {
    std::lock_guard lock(mutex_);
    files_[clean(path)] = std::move(bytes);
  }
  // Of a file below that gets another name: RocksDB's own old LOG.
  IOStatus copy(const std::string& path, const IOOptions& o, BytesPtr* bytes, IODebugContext* d) {
    std::unique_ptr<FSSequentialFile> file;
    if (const IOStatus s = target()->NewSequentialFile(path, {}, &file, d); !s.ok()) return s;
    *bytes = std::make_shared<Bytes>();
    std::vector<char> scratch(64 << 10);
    for (Slice piece;; (*bytes)->append(piece)) {
      const IOStatus s = file->Read(scratch.size(), o, &piece, scratch.data(), d);
      if (!s.ok() || piece.empty()) return s;
    }
  }

  std::mutex mutex_;
  std::map<std::string, BytesPtr> files_;  // null: it was removed
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> freeze_table_fs(std::shared_ptr<rocksdb::FileSystem> below) {
  return std::make_shared<FrozenTableFs>(std::move(below));
}

}  // namespace tablestore
