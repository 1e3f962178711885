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

IOStatus to_io(const Status& status, const char* doing) {
  if (status.ok()) return IOStatus::OK();
  return status.code() == ENOSPC ? IOStatus::NoSpace(doing) : IOStatus::IOError(doing);
}

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
    if (auto s = open(path, &id); !s.ok()) return s;
    result->reset(new Sequential(disk_, id, path));
    return IOStatus::OK();
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions&,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext*) override {
    DiskImage::InodeId id;
    if (auto s = open(path, &id); !s.ok()) return s;
    result->reset(new Random(disk_, id, path));
    return IOStatus::OK();
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions&,
                           std::unique_ptr<FSWritableFile>* result, IODebugContext*) override {
    // A note for people that nothing depends on, and a third of the time that an open takes.
    if (path.find("/OPTIONS-") != std::string::npos) return IOStatus::IOError("not kept");
    std::lock_guard lock(disk_.mutex_);
    if (auto s = to_io(disk_.change_of_name(path), "creation fails"); !s.ok()) return s;
    disk_.io("table create");
    if (disk_.image_.lookup(ours(path))) disk_.image_.remove(ours(path));
    const DiskImage::InodeId id = disk_.image_.create(ours(path), true);
    if (path.ends_with(".sst")) disk_.new_table_files_.insert(id);
    result->reset(new Writable(disk_, id));
    return IOStatus::OK();
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions&,
                        std::unique_ptr<FSDirectory>* result, IODebugContext*) override {
    result->reset(new Directory(disk_, ours(path)));
    return IOStatus::OK();
  }
  IOStatus FileExists(const std::string& path, const IOOptions&, IODebugContext*) override {
    DiskImage::InodeId id;
    return find(path, &id).ok() ? IOStatus::OK() : IOStatus::NotFound(path);
  }
  IOStatus GetChildren(const std::string& dir, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override {
    std::lock_guard lock(disk_.mutex_);
    if (auto s = to_io(disk_.call(dir), "listing fails"); !s.ok()) return s;
    *result = names_in(disk_.image_.names(), ours(dir));
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(disk_.mutex_);
    // The table goes on without: what is too much is removed later.
    if (auto s = to_io(disk_.call(path), "removal fails"); !s.ok()) return s;
    if (!disk_.image_.lookup(ours(path))) return IOStatus::NotFound(path);
    disk_.io("table remove");
    if (is_current_manifest(path)) disk_.misuse_ = path + " is removed, and CURRENT names it";
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
    if (auto s = to_io(disk_.change_of_name(from), "renaming fails"); !s.ok()) return s;
    if (!disk_.image_.lookup(ours(from))) return IOStatus::NotFound(from);
    disk_.io("table rename");
    disk_.image_.rename(ours(from), ours(to));
    if (to.ends_with("/CURRENT")) disk_.new_table_files_.clear();
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
  // After a full disk RocksDB would look for space again, in a thread of its own.
  IOStatus GetFreeSpace(const std::string&, const IOOptions&, uint64_t*,
                        IODebugContext*) override {
    return IOStatus::NotSupported("free space");
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
  // With disk_.mutex_ held.
  bool is_current_manifest(const std::string& path) const {
    const DiskImage::InodeId current = disk_.image_.lookup("table/CURRENT");
    if (!current || disk_.image_.inode(current).current.size == 0) return false;
    const FileView& view = disk_.image_.inode(current).current;
    std::string named(reinterpret_cast<const char*>(view.page(0)), view.size);
    while (named.ends_with('\n')) named.pop_back();
    return ours(path) == "table/" + named;
  }
  // Errors name their file, as those of the system calls do.
  static IOStatus error(const std::string& what, const std::string& path) {
    return IOStatus::IOError(what + ": " + path, std::strerror(EIO));
  }
  struct Readable {
    SimDisk& disk;
    const DiskImage::InodeId id;
    const std::string path;
  };
  static IOStatus read(const Readable& file, uint64_t offset, size_t bytes, Slice* result,
                       char* scratch, bool fails_when_short) {
    SimDisk& disk = file.disk;
    std::lock_guard lock(disk.mutex_);
    if (disk.happens(disk.faults_.read_error)) {
      disk.count_refused_read(file.id);
      return error("while reading", file.path);
    }
    if (!disk.image_.readable(file.id, offset, bytes))
      return error("while reading a bad sector", file.path);
    const FileView& view = disk.image_.inode(file.id).current;
    const uint64_t end = std::min<uint64_t>(view.size, offset + bytes);
    const uint64_t length = end > offset ? end - offset : 0;
    const uint64_t readable = disk.readable(file.id, length);
    // A sequential file that gives less than it was asked for has ended, and who reads at a place
    // knows how much is there.
    if (readable < length && fails_when_short) return error("while reading a part", file.path);
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
    Sequential(SimDisk& disk, DiskImage::InodeId id, const std::string& path)
        : file_{disk, id, path} {}
    IOStatus Read(size_t bytes, const IOOptions&, Slice* result, char* scratch,
                  IODebugContext*) override {
      const IOStatus s = read(file_, at_, bytes, result, scratch, true);
      if (s.ok()) at_ += result->size();
      return s;
    }
    IOStatus Skip(uint64_t bytes) override {
      at_ += bytes;
      return IOStatus::OK();
    }

   private:
    const Readable file_;
    uint64_t at_ = 0;
  };

  class Random : public FSRandomAccessFile {
   public:
    Random(SimDisk& disk, DiskImage::InodeId id, const std::string& path)
        : file_{disk, id, path} {}
    IOStatus Read(uint64_t offset, size_t bytes, const IOOptions&, Slice* result, char* scratch,
                  IODebugContext*) const override {
      return read(file_, offset, bytes, result, scratch, false);
    }
    // As of a real file: it is for the kernel to read ahead, and what fails there fails nobody.
    // Else RocksDB does, and blocks before a bad one cannot be read either.
    IOStatus Prefetch(uint64_t, size_t, const IOOptions&, IODebugContext*) override {
      return IOStatus::OK();
    }

   private:
    const Readable file_;
  };

  class Writable : public FSWritableFile {
   public:
    Writable(SimDisk& disk, DiskImage::InodeId id) : disk_(disk), id_(id) {}
    IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
      std::lock_guard lock(disk_.mutex_);
      disk_.io("table append");
      if (disk_.happens(disk_.faults_.write_error)) {
        ++disk_.refused_.writes;
        return IOStatus::IOError("write fails");
      }
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
      return to_io(disk_.flush(id_), "sync fails");
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
    return *id ? IOStatus::OK() : IOStatus::PathNotFound(path);
  }

  IOStatus open(const std::string& path, DiskImage::InodeId* id) {
    if (auto s = find(path, id); !s.ok()) return s;
    std::lock_guard lock(disk_.mutex_);
    const bool is_new = disk_.new_table_files_.contains(*id);
    if (is_new ? disk_.change_of_name(path).ok() : disk_.call(path).ok()) return IOStatus::OK();
    return error("while opening", path);
  }

  SimDisk& disk_;
};

std::shared_ptr<rocksdb::FileSystem> make_sim_table_fs(SimDisk& disk) {
  return std::make_shared<SimTableFs>(disk);
}

}  // namespace tablestore::sim
