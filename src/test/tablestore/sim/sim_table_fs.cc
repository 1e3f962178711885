// RocksDB's files on the simulated disk.
#include <algorithm>
#include <cstring>

#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test/tablestore/paths.h"
#include "test/tablestore/sim/sim_disk.h"

namespace tablestore::sim {

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

// Our paths have no slash at their beginning, and none at their end.
std::string ours(const std::string& path) {
  size_t begin = path.find_first_not_of('/');
  if (begin == std::string::npos) return "";
  std::string clean;
  for (size_t i = begin; i < path.size(); ++i)
    if (path[i] != '/' || (i + 1 < path.size() && path[i + 1] != '/')) clean.push_back(path[i]);
  return clean;
}

class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
  size_t GetLogFileSize() const override { return 0; }
};

class NoLock : public rocksdb::FileLock {};

}  // namespace

class SimTableFs : public rocksdb::FileSystem {
 public:
  explicit SimTableFs(SimDisk& disk) : disk_(disk) {}
  const char* Name() const override { return "tablestore.simulated"; }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions&,
                             std::unique_ptr<FSSequentialFile>* result,
                             IODebugContext*) override {
    DiskImage::InodeId id;
    if (auto s = find(path, &id); !s.ok()) return s;
    result->reset(new Sequential(disk_, id));
    return IOStatus::OK();
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions&,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext*) override {
    DiskImage::InodeId id;
    if (auto s = find(path, &id); !s.ok()) return s;
    result->reset(new Random(disk_, id));
    return IOStatus::OK();
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions&,
                           std::unique_ptr<FSWritableFile>* result, IODebugContext*) override {
    // A note for people that nothing depends on, and a third of the time that an open takes.
    if (path.find("/OPTIONS-") != std::string::npos) return IOStatus::IOError("not kept");
    std::lock_guard lock(disk_.mutex_);
    disk_.io("table create");
    if (disk_.image_.lookup(ours(path))) disk_.image_.remove(ours(path));
    result->reset(new Writable(disk_, disk_.image_.create(ours(path), true)));
    return IOStatus::OK();
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions&,
                        std::unique_ptr<FSDirectory>* result, IODebugContext*) override {
    result->reset(new Directory(disk_, ours(path)));
    return IOStatus::OK();
  }
  IOStatus FileExists(const std::string& path, const IOOptions&, IODebugContext*) override {
    DiskImage::InodeId id;
    return find(path, &id);
  }
  IOStatus GetChildren(const std::string& dir, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override {
    std::lock_guard lock(disk_.mutex_);
    *result = names_in(disk_.image_.names(), ours(dir));
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(disk_.mutex_);
    if (!disk_.image_.lookup(ours(path))) return IOStatus::NotFound(path);
    disk_.io("table remove");
    disk_.image_.remove(ours(path));
    return IOStatus::OK();
  }
  IOStatus CreateDir(const std::string& path, const IOOptions& o, IODebugContext* d) override {
    return CreateDirIfMissing(path, o, d);
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions&,
                              IODebugContext*) override {
    if (!disk_.make_dir(ours(path)).ok()) return IOStatus::IOError(path);
    return IOStatus::OK();
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return disk_.remove(ours(path)).ok() ? IOStatus::OK() : IOStatus::IOError(path);
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions&, uint64_t* bytes,
                       IODebugContext*) override {
    DiskImage::InodeId id;
    if (auto s = find(path, &id); !s.ok()) return s;
    std::lock_guard lock(disk_.mutex_);
    *bytes = disk_.image_.inode(id).current.size;
    return IOStatus::OK();
  }
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, uint64_t* time,
                                   IODebugContext*) override {
    *time = 0;
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      IODebugContext*) override {
    std::lock_guard lock(disk_.mutex_);
    if (!disk_.image_.lookup(ours(from))) return IOStatus::NotFound(from);
    disk_.io("table rename");
    disk_.image_.rename(ours(from), ours(to));
    return IOStatus::OK();
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
  IOStatus GetTestDirectory(const IOOptions&, std::string* path, IODebugContext*) override {
    *path = "/test";
    return IOStatus::OK();
  }
  IOStatus NewLogger(const std::string&, const IOOptions&, std::shared_ptr<rocksdb::Logger>* log,
                     IODebugContext*) override {
    *log = std::make_shared<NoLog>();
    return IOStatus::OK();
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* absolute,
                           IODebugContext*) override {
    *absolute = path;
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string&, const IOOptions&, uint64_t* bytes,
                        IODebugContext*) override {
    const auto space = disk_.space();
    *bytes = space.ok() ? space->available_bytes : 0;
    return IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* is_dir,
                       IODebugContext*) override {
    DiskImage::InodeId id;
    if (auto s = find(path, &id); !s.ok()) return s;
    std::lock_guard lock(disk_.mutex_);
    *is_dir = disk_.image_.inode(id).directory;
    return IOStatus::OK();
  }

 private:
  static IOStatus read(SimDisk& disk, DiskImage::InodeId id, uint64_t offset, size_t bytes,
                       Slice* result, char* scratch, bool fails_when_short) {
    std::lock_guard lock(disk.mutex_);
    if (disk.happens(disk.faults_.read_error)) return IOStatus::IOError("read fails");
    const FileView& view = disk.image_.inode(id).current;
    const uint64_t end = std::min<uint64_t>(view.size, offset + bytes);
    const uint64_t length = end > offset ? end - offset : 0;
    const uint64_t readable = disk.readable(length);
    // A sequential file that gives less than it was asked for has ended, and who reads at a place
    // knows how much is there.
    if (readable < length && fails_when_short) return IOStatus::IOError("only a part is read");
    size_t done = 0;
    for (uint64_t at = offset; at < offset + readable;) {
      const size_t skip = at % block_bytes;
      const size_t piece = std::min<uint64_t>(offset + readable - at, block_bytes - skip);
      std::memcpy(scratch + done, view.page(uint32_t(at / block_bytes)) + skip, piece);
      at += piece;
      done += piece;
    }
    *result = Slice(scratch, done);
    return IOStatus::OK();
  }

  class Sequential : public FSSequentialFile {
   public:
    Sequential(SimDisk& disk, DiskImage::InodeId id) : disk_(disk), id_(id) {}
    IOStatus Read(size_t bytes, const IOOptions&, Slice* result, char* scratch,
                  IODebugContext*) override {
      const IOStatus s = read(disk_, id_, at_, bytes, result, scratch, true);
      if (s.ok()) at_ += result->size();
      return s;
    }
    IOStatus Skip(uint64_t bytes) override {
      at_ += bytes;
      return IOStatus::OK();
    }

   private:
    SimDisk& disk_;
    const DiskImage::InodeId id_;
    uint64_t at_ = 0;
  };

  class Random : public FSRandomAccessFile {
   public:
    Random(SimDisk& disk, DiskImage::InodeId id) : disk_(disk), id_(id) {}
    IOStatus Read(uint64_t offset, size_t bytes, const IOOptions&, Slice* result, char* scratch,
                  IODebugContext*) const override {
      return read(disk_, id_, offset, bytes, result, scratch, false);
    }

   private:
    SimDisk& disk_;
    const DiskImage::InodeId id_;
  };

  class Writable : public FSWritableFile {
   public:
    Writable(SimDisk& disk, DiskImage::InodeId id) : disk_(disk), id_(id) {}
    IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
      std::lock_guard lock(disk_.mutex_);
      disk_.io("table append");
      if (disk_.happens(disk_.faults_.write_error)) return IOStatus::IOError("write fails");
      if (!disk_.check_space(data.size() / block_bytes + 1).ok())
        return IOStatus::NoSpace("the simulated disk is full");
      disk_.image_.append(id_, std::as_bytes(std::span(data.data(), data.size())));
      return IOStatus::OK();
    }
    IOStatus Append(const Slice& data, const IOOptions& o, const rocksdb::DataVerificationInfo&,
                    IODebugContext* d) override {
      return Append(data, o, d);
    }
    IOStatus Truncate(uint64_t bytes, const IOOptions&, IODebugContext*) override {
      std::lock_guard lock(disk_.mutex_);
      disk_.image_.truncate(id_, bytes);
      return IOStatus::OK();
    }
    IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
    IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
    IOStatus Sync(const IOOptions&, IODebugContext*) override {
      std::lock_guard lock(disk_.mutex_);
      return disk_.flush(id_).ok() ? IOStatus::OK() : IOStatus::IOError("sync fails");
    }
    uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
      std::lock_guard lock(disk_.mutex_);
      return disk_.image_.inode(id_).current.size;
    }

   private:
    SimDisk& disk_;
    const DiskImage::InodeId id_;
  };

  class Directory : public FSDirectory {
   public:
    Directory(SimDisk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
    IOStatus Fsync(const IOOptions&, IODebugContext*) override {
      return disk_.sync_dir(path_).ok() ? IOStatus::OK() : IOStatus::IOError("sync fails");
    }
    IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

   private:
    SimDisk& disk_;
    const std::string path_;
  };

  IOStatus find(const std::string& path, DiskImage::InodeId* id) {
    std::lock_guard lock(disk_.mutex_);
    *id = disk_.image_.lookup(ours(path));
    return *id ? IOStatus::OK() : IOStatus::NotFound(path);
  }

  SimDisk& disk_;
};

std::shared_ptr<rocksdb::FileSystem> make_sim_table_fs(SimDisk& disk) {
  return std::make_shared<SimTableFs>(disk);
}

}  // namespace tablestore::sim
