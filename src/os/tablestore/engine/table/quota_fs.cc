#include "os/tablestore/engine/table/quota_fs.h"

#include <cerrno>
#include <string>
#include <utility>

#include "os/tablestore/engine/table/rocksdb_status.h"
#include "rocksdb/file_system.h"

namespace tablestore {

namespace {

using rocksdb::DataVerificationInfo;
using rocksdb::FileOptions;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus taken_for_space(IOStatus s) {
  if (lack_in(s) != EDQUOT) return s;
  IOStatus full = IOStatus::NoSpace(s.ToString());
  full.SetRetryable(true);
  return full;
}

class QuotaFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using Base = rocksdb::FSWritableFileOwnerWrapper;
  using Base::Base;
  IOStatus Append(const Slice& data, const IOOptions& o, IODebugContext* d) override {
    return taken_for_space(Base::Append(data, o, d));
  }
  IOStatus Append(const Slice& data, const IOOptions& o, const DataVerificationInfo& v,
                  IODebugContext* d) override {
    return taken_for_space(Base::Append(data, o, v, d));
  }
  IOStatus Allocate(uint64_t offset, uint64_t bytes, const IOOptions& o,
                    IODebugContext* d) override {
    return taken_for_space(Base::Allocate(offset, bytes, o, d));
  }
  IOStatus Truncate(uint64_t size, const IOOptions& o, IODebugContext* d) override {
    return taken_for_space(Base::Truncate(size, o, d));
  }
  IOStatus Flush(const IOOptions& o, IODebugContext* d) override {
    return taken_for_space(Base::Flush(o, d));
  }
  IOStatus Sync(const IOOptions& o, IODebugContext* d) override {
    return taken_for_space(Base::Sync(o, d));
  }
  IOStatus Fsync(const IOOptions& o, IODebugContext* d) override {
    return taken_for_space(Base::Fsync(o, d));
  }
  IOStatus Close(const IOOptions& o, IODebugContext* d) override {
    return taken_for_space(Base::Close(o, d));
  }
};

class QuotaFs : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "tablestore.quota"; }
  IOStatus NewWritableFile(const std::string& path, const FileOptions& o,
                           std::unique_ptr<FSWritableFile>* file, IODebugContext* d) override {
    return watched(target()->NewWritableFile(path, o, file, d), file);
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& o,
                              std::unique_ptr<FSWritableFile>* file, IODebugContext* d) override {
    return watched(target()->ReopenWritableFile(path, o, file, d), file);
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& o,
                      IODebugContext* d) override {
    return taken_for_space(target()->RenameFile(from, to, o, d));
  }

 private:
  static IOStatus watched(const IOStatus& s, std::unique_ptr<FSWritableFile>* file) {
    if (s.ok()) *file = std::make_unique<QuotaFile>(std::move(*file));
    return taken_for_space(s);
  }
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> take_quota_for_space(
    std::shared_ptr<rocksdb::FileSystem> fs) {
  return std::make_shared<QuotaFs>(std::move(fs));
}

}  // namespace tablestore
