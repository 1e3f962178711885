#include "os/tablestore/engine/table/failed_syncs.h"

#include <cerrno>
#include <utility>

#include "rocksdb/file_system.h"

namespace tablestore {

namespace {

using rocksdb::FileOptions;
using rocksdb::FSDirectory;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

using FailedSyncsPtr = std::shared_ptr<FailedSyncs>;

// A file that finds no space is given up, and its rows are written to a new one. Names stay, and a
// later sync of their directory may succeed without them: like any other failure.
IOStatus of_names(IOStatus s) {
  return s.IsNoSpace() ? IOStatus::IOError(s.ToString()) : s;
}

class WatchedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WatchedFile(std::unique_ptr<FSWritableFile> file, std::string path, FailedSyncsPtr failed)
      : FSWritableFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        failed_(std::move(failed)) {}
  IOStatus Sync(const IOOptions& o, IODebugContext* d) override {
    return failed_->noted(path_, FSWritableFileOwnerWrapper::Sync(o, d));
  }
  IOStatus Fsync(const IOOptions& o, IODebugContext* d) override {
    return failed_->noted(path_, FSWritableFileOwnerWrapper::Fsync(o, d));
  }
  // Begins to write, and empties no cache; but an error of it is told once, as those of syncs are.
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& o,
                     IODebugContext* d) override {
    return failed_->noted(path_, FSWritableFileOwnerWrapper::RangeSync(offset, bytes, o, d));
  }

 private:
  const std::string path_;
  const FailedSyncsPtr failed_;
};

class WatchedDirectory : public rocksdb::FSDirectoryWrapper {
 public:
  WatchedDirectory(std::unique_ptr<FSDirectory> directory, std::string path, FailedSyncsPtr failed)
      : FSDirectoryWrapper(std::move(directory)),
        path_(std::move(path)),
        failed_(std::move(failed)) {}
  IOStatus Fsync(const IOOptions& o, IODebugContext* d) override {
    return failed_->noted(path_, of_names(FSDirectoryWrapper::Fsync(o, d)));
  }
  IOStatus FsyncWithDirOptions(const IOOptions& o, IODebugContext* d,
                               const rocksdb::DirFsyncOptions& reason) override {
    return failed_->noted(path_, of_names(FSDirectoryWrapper::FsyncWithDirOptions(o, d, reason)));
  }

 private:
  const std::string path_;
  const FailedSyncsPtr failed_;
};

class WatchedFs : public rocksdb::FileSystemWrapper {
 public:
  WatchedFs(const std::shared_ptr<FileSystem>& fs, FailedSyncsPtr failed)
      : FileSystemWrapper(fs), failed_(std::move(failed)) {}
  const char* Name() const override { return "tablestore.watched"; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& o,
                           std::unique_ptr<FSWritableFile>* file, IODebugContext* d) override {
    return watched(path, target()->NewWritableFile(path, o, file, d), file);
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& o,
                              std::unique_ptr<FSWritableFile>* file, IODebugContext* d) override {
    return watched(path, target()->ReopenWritableFile(path, o, file, d), file);
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string& old,
                             const FileOptions& o, std::unique_ptr<FSWritableFile>* file,
                             IODebugContext* d) override {
    return watched(path, target()->ReuseWritableFile(path, old, o, file, d), file);
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions& o,
                        std::unique_ptr<FSDirectory>* directory, IODebugContext* d) override {
    const IOStatus s = target()->NewDirectory(path, o, directory, d);
    if (s.ok())
      *directory = std::make_unique<WatchedDirectory>(std::move(*directory), path, failed_);
    return s;
  }

 private:
  IOStatus watched(const std::string& path, IOStatus s, std::unique_ptr<FSWritableFile>* file) {
    if (s.ok()) *file = std::make_unique<WatchedFile>(std::move(*file), path, failed_);
    return s;
  }
  const FailedSyncsPtr failed_;
};

}  // namespace

Status FailedSyncs::first() const {
  std::lock_guard lock(mutex_);
  return first_;
}

Status FailedSyncs::tell(std::function<void(const Status&)> teller,
                         const std::atomic<bool>* is_ending) {
  std::lock_guard lock(mutex_);
  teller_ = std::move(teller);
  is_ending_ = is_ending;
  return first_;
}

rocksdb::IOStatus FailedSyncs::noted(const std::string& path, rocksdb::IOStatus status) {
  if (status.IsNoSpace()) return status;
  if (status.ok()) {
    std::lock_guard lock(mutex_);
    if (first_.ok() && !(is_ending_ && *is_ending_)) return status;
    return IOStatus::IOError("sync of " + path + ", behind a flush that failed");
  }
  const Status failure(EIO, "table: sync of " + path + ": " + status.ToString());
  std::function<void(const Status&)> teller;
  {
    std::lock_guard lock(mutex_);
    if (first_.ok()) first_ = failure;
    teller = teller_;
  }
  if (teller) teller(failure);
  return status;
}

std::shared_ptr<rocksdb::FileSystem> watch_syncs(std::shared_ptr<rocksdb::FileSystem> fs,
                                                 std::shared_ptr<FailedSyncs> failed) {
  return std::make_shared<WatchedFs>(fs, std::move(failed));
}

}  // namespace tablestore
