#include "os/tablestore/engine/io/file_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstdlib>

#include "os/tablestore/engine/io/disk_state.h"
#include "os/tablestore/engine/io/file_extents.h"
#include "os/tablestore/engine/io/file_system_facts.h"
#include "os/tablestore/engine/io/posix_file.h"
#include "os/tablestore/engine/io/system_call.h"
#include "os/tablestore/engine/io/table_fs.h"
#include "os/tablestore/engine/io/thread_write_queue.h"
#include "os/tablestore/engine/io/uring_write_queue.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

constexpr decltype(std::declval<struct statfs>().f_type) ext4_magic = 0xef53;
constexpr decltype(ext4_magic) xfs_magic = 0x58465342;

// A directory's descriptor, closed at the end of its scope.
class DirectoryHandle {
 public:
  explicit DirectoryHandle(int fd) : fd_(fd) {}
  ~DirectoryHandle() {
    if (fd_ >= 0) ::close(fd_);
  }
  DirectoryHandle(const DirectoryHandle&) = delete;
  DirectoryHandle& operator=(const DirectoryHandle&) = delete;
  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_directory(int dir_fd, const char* path, int more_flags = 0) {
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | more_flags;
  return uninterrupted([&] { return ::openat(dir_fd, *path ? path : ".", flags); });
}

// The names in a directory but . and .., sorted. Takes the descriptor. 0 or an errno.
int read_names(int fd, std::vector<std::string>* names) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd), ::closedir);
  if (!dir) {
    const int error = errno;
    ::close(fd);
    return error;
  }
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (!entry) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names->push_back(name);
  }
  const int error = errno;
  std::sort(names->begin(), names->end());
  return error;
}

// 0 or an errno. Follows no symbolic link.
int remove_recursively(int dir_fd, const std::string& name) {
  if (::unlinkat(dir_fd, name.c_str(), 0) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  const DirectoryHandle self(open_directory(dir_fd, name.c_str(), O_NOFOLLOW));
  if (self.fd() < 0) return errno;
  std::vector<std::string> names;
  const int copy = open_directory(self.fd(), ".");
  if (copy < 0) return errno;
  if (int error = read_names(copy, &names)) return error;
  for (const std::string& below : names) {
    if (int error = remove_recursively(self.fd(), below)) return error;
  }
  return ::unlinkat(dir_fd, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

// Whether direct I/O works below `dir_fd`, tried with a file that has no name.
bool direct_works(int dir_fd, bool otherwise) {
  const int flags = O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC;
  const DirectoryHandle file(uninterrupted([&] { return ::openat(dir_fd, ".", flags, 0600); }));
  if (file.fd() >= 0) return direct_is_honoured(file.fd());
  // A full or read-only file system tells nothing.
  return errno != EINVAL && errno != EOPNOTSUPP && errno != EISDIR && otherwise;
}

}  // namespace

// Owns the directory's descriptor. Immutable but for what DiskState guards.
class FileDisk : public Disk {
 public:
  FileDisk(std::shared_ptr<DiskState> state, FileSystemFacts facts, std::string absolute,
           int dir_fd, FileDiskOptions options)
      : state_(std::move(state)),
        facts_(std::move(facts)),
        absolute_(std::move(absolute)),
        dir_(dir_fd),
        options_(std::move(options)) {}

  const std::string& name() const override { return state_->directory; }
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& dir) override;
  Status make_dir(const std::string& dir) override;
  Status remove(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove_tree(const std::string& dir) override;
  Status sync_dir(const std::string& dir) override;
  Result<bool> flush_all() override;
  Result<DiskSpace> space() override;
  std::vector<Concern> concerns() override;
  std::unique_ptr<WriteQueue> make_write_queue() override;
  std::shared_ptr<rocksdb::FileSystem> table_fs() override { return default_table_fs(); }
  std::string table_path(const std::string& path) const override { return absolute_ + "/" + path; }

  void log(const std::string& line) const {
    if (options_.log) options_.log(name() + ": " + line);
  }

 private:
  Status failed(int error, const std::string& path, const char* doing) const {
    return Status::from_errno(error, name() + "/" + path + ": " + doing);
  }

  const std::shared_ptr<DiskState> state_;
  const FileSystemFacts facts_;
  const std::string absolute_;
  const DirectoryHandle dir_;
  const FileDiskOptions options_;
};

Result<std::unique_ptr<File>> FileDisk::open(const std::string& path, OpenMode mode) {
  for (;;) {
    auto file = PosixFile::open(state_, dir_.fd(), path, mode, options_.lock_wait_ms);
    const int code = file.ok() ? 0 : file.status().code();
    if ((code != EMFILE && code != ENFILE) || !state_->open_files.park_one()) return file;
  }
}

Result<bool> FileDisk::exists(const std::string& path) {
  struct stat st;
  if (::fstatat(dir_.fd(), path.c_str(), &st, 0) == 0) return true;
  if (errno == ENOENT) return false;
  return failed(errno, path, "cannot be examined");
}

Result<std::vector<std::string>> FileDisk::list(const std::string& dir) {
  const int fd = open_directory(dir_.fd(), dir.c_str());
  if (fd < 0) return failed(errno, dir, "cannot open directory");
  std::vector<std::string> names;
  if (int error = read_names(fd, &names)) return failed(error, dir, "cannot read directory");
  return names;
}

Status FileDisk::make_dir(const std::string& dir) {
  if (::mkdirat(dir_.fd(), dir.c_str(), 0700) == 0) return Status();
  const int error = errno;
  struct stat st;
  if (error == EEXIST && ::fstatat(dir_.fd(), dir.c_str(), &st, 0) == 0 && S_ISDIR(st.st_mode)) {
    return Status();
  }
  return failed(error, dir, "cannot make directory");
}

Status FileDisk::remove(const std::string& path) {
  if (::unlinkat(dir_.fd(), path.c_str(), 0) == 0 || errno == ENOENT) return Status();
  return failed(errno, path, "cannot remove");
}

Status FileDisk::rename(const std::string& from, const std::string& to) {
  const std::string doing = "cannot become " + to;
  if (::renameat2(dir_.fd(), from.c_str(), dir_.fd(), to.c_str(), RENAME_NOREPLACE) == 0) {
    return Status();
  }
  if (errno != EINVAL && errno != ENOSYS) return failed(errno, from, doing.c_str());
  // Not every file system can refuse to replace; nobody else makes names here.
  auto there = exists(to);
  if (!there.ok()) return there.status();
  if (*there) return failed(EEXIST, from, doing.c_str());
  if (::renameat(dir_.fd(), from.c_str(), dir_.fd(), to.c_str()) == 0) return Status();
  return failed(errno, from, doing.c_str());
}

Status FileDisk::remove_tree(const std::string& dir) {
  require(!dir.empty() && dir.front() != '/', "what is removed is below the disk's directory");
  const int error = remove_recursively(dir_.fd(), dir);
  return error ? failed(error, dir, "cannot remove what is in it") : Status();
}

Status FileDisk::sync_dir(const std::string& dir) {
  int fd, no_fd;
  do {
    fd = open_directory(dir_.fd(), dir.c_str());
    no_fd = errno;
  } while (fd < 0 && (no_fd == EMFILE || no_fd == ENFILE) && state_->open_files.park_one());
  if (fd < 0) return failed(no_fd, dir, "cannot open directory");
  const DirectoryHandle handle(fd);
  if (const int before = state_->flush_error) {
    return failed(before, dir, "cannot sync directory, after a flush that failed");
  }
  if (uninterrupted([&] { return ::fsync(handle.fd()); }) == 0) return Status();
  const int error = errno;
  state_->flush_error = error;
  return failed(error, dir, "cannot sync directory");
}

// ext4 and XFS commit their journal. XFS empties the disk's cache only where there was something to
// commit; a flush of a file always does.
Result<bool> FileDisk::flush_all() {
  if (!state_->in_place) return false;
  if (const int before = state_->flush_error)
    return failed(before, "", "cannot sync the file system, after a flush that failed");
  if (uninterrupted([&] { return ::syncfs(dir_.fd()); }) == 0) return true;
  const int error = errno;
  // Of some other program's file, which the file system had promised space. Ours have theirs.
  if (error == ENOSPC || error == EDQUOT) return false;
  state_->flush_error = error;
  return failed(error, "", "cannot sync the file system");
}

Result<DiskSpace> FileDisk::space() {
  struct statvfs fs;
  if (uninterrupted([&] { return ::fstatvfs(dir_.fd(), &fs); }) != 0) {
    return failed(errno, "", "cannot learn the free space");
  }
  return DiskSpace{.total_bytes = uint64_t(fs.f_blocks) * fs.f_frsize,
                   .available_bytes = uint64_t(fs.f_bavail) * fs.f_frsize};
}

std::vector<Concern> FileDisk::concerns() {
  std::vector<Concern> concerns = concerns_about(facts_, name());
  if (options_.direct && !state_->in_place) concerns.push_back(not_direct(facts_, name()));
  return concerns;
}

std::unique_ptr<WriteQueue> FileDisk::make_write_queue() {
  // Only the threads know how to pass a flush on to other files.
  if (options_.io_uring && state_->in_place) {
    Result<std::unique_ptr<WriteQueue>> queue = UringWriteQueue::create(options_.queue_depth);
    if (queue.ok()) return queue.take();
    log("cannot use io_uring (" + queue.status().what() + "), writing with " +
        std::to_string(options_.fallback_threads) + " threads");
  }
  return std::make_unique<ThreadWriteQueue>(options_.fallback_threads);
}

Result<std::unique_ptr<Disk>> open_file_disk(const std::string& directory,
                                             FileDiskOptions options) {
  DirectoryHandle dir(open_directory(AT_FDCWD, directory.c_str()));
  if (dir.fd() < 0) return Status::from_errno(errno, directory + ": cannot open directory");
  std::unique_ptr<char, void (*)(void*)> absolute(::realpath(directory.c_str(), nullptr),
                                                  std::free);
  struct statfs fs;
  if (!absolute || ::fstatfs(dir.fd(), &fs) != 0) {
    return Status::from_errno(errno, directory + ": cannot be examined");
  }
  struct stat st;
  if (::fstat(dir.fd(), &st) != 0) {
    return Status::from_errno(errno, directory + ": cannot be examined");
  }
  FileSystemFacts facts = facts_of(st.st_dev);
  // With data=journal O_DIRECT is ignored, of which kernels before 6.1 say nothing.
  const bool in_place_type = (fs.f_type == ext4_magic || fs.f_type == xfs_magic) &&
                             !facts.options.contains("data=journal");
  auto state = std::make_shared<DiskState>();
  state->directory = directory;
  state->read_only = options.read_only;
  state->direct = options.direct && !facts.options.contains("data=journal") &&
                  (options.read_only ? in_place_type : direct_works(dir.fd(), in_place_type));
  state->in_place = state->direct && in_place_type;
  state->is_ext4 = fs.f_type == ext4_magic;
  // XFS writes part of a block that it would have to copy through the page cache.
  state->each_needs_own_flush = fs.f_type == xfs_magic && uint64_t(fs.f_bsize) > block_bytes;
  state->open_files.set_max(options.parkable_open_max);
  if (state->direct) state->large_pages = options.large_pages;
  const bool wanted_direct = options.direct;
  auto disk = std::make_unique<FileDisk>(state, std::move(facts), absolute.get(), dir.release(),
                                         std::move(options));
  if (state->read_only) return std::unique_ptr<Disk>(std::move(disk));
  if (wanted_direct && !state->direct) {
    disk->log("the file system does no direct I/O, writing through the page cache");
  }
  if (!state->in_place) {
    disk->log("not direct I/O on ext4 or XFS: a flush has to be passed on to every written file");
  }
  return std::unique_ptr<Disk>(std::move(disk));
}

}  // namespace tablestore
