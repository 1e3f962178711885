#include "test/tablestore/powercut/disk_server.h"

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <linux/falloc.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

namespace tablestore::powercut {

namespace {

constexpr double forever = 1e9;

struct stat attributes(uint64_t number, uint64_t size) {
  struct stat st = {};
  st.st_ino = number;
  st.st_nlink = 1;
  st.st_mode = number == FUSE_ROOT_ID ? S_IFDIR | 0700 : S_IFREG | 0600;
  st.st_size = off_t(size);
  st.st_blksize = 4096;
  return st;
}

}  // namespace

// What the kernel asks of the file system.
struct Requests {
  static DiskServer& server(fuse_req_t request) {
    return *static_cast<DiskServer*>(fuse_req_userdata(request));
  }

  static void lookup(fuse_req_t request, fuse_ino_t, const char* name) {
    const uint64_t number = std::strtoull(name, nullptr, 10);
    const auto disk = server(request).find(number);
    if (!disk) {
      fuse_reply_err(request, ENOENT);
      return;
    }
    fuse_entry_param entry = {};
    entry.ino = number;
    entry.attr = attributes(number, disk->size_bytes());
    entry.attr_timeout = entry.entry_timeout = forever;
    fuse_reply_entry(request, &entry);
  }

  static void getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
    const auto disk = server(request).find(number);
    if (!disk && number != FUSE_ROOT_ID) {
      fuse_reply_err(request, ENOENT);
      return;
    }
    const struct stat st = attributes(number, disk ? disk->size_bytes() : 0);
    fuse_reply_attr(request, &st, forever);
  }

  static void open(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
    server(request).opened(number);
    file->direct_io = 1;
    file->parallel_direct_writes = 1;
    fuse_reply_open(request, file);
  }

  static void release(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
    server(request).forget(number);
    fuse_reply_err(request, 0);
  }

  // The disk of a request for [offset, +length); where there is none, the request is answered.
  static std::shared_ptr<CutDisk> disk(fuse_req_t request, fuse_ino_t number, off_t offset,
                                       size_t length) {
    auto found = server(request).find(number);
    if (found && uint64_t(offset) + length <= found->size_bytes()) return found;
    fuse_reply_err(request, EIO);
    return nullptr;
  }

  static void read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                   fuse_file_info*) {
    const auto from = disk(request, number, offset, size);
    if (!from) return;
    std::vector<std::byte> data(size);
    from->read(uint64_t(offset), data);
    fuse_reply_buf(request, reinterpret_cast<const char*>(data.data()), data.size());
  }

  static void write(fuse_req_t request, fuse_ino_t number, const char* data, size_t size,
                    off_t offset, fuse_file_info*) {
    const auto to = disk(request, number, offset, size);
    if (!to) return;
    to->write(uint64_t(offset), {reinterpret_cast<const std::byte*>(data), size});
    fuse_reply_write(request, size);
  }

  static void fsync(fuse_req_t request, fuse_ino_t number, int, fuse_file_info*) {
    const auto of = disk(request, number, 0, 0);
    if (!of) return;
    of->flush();
    fuse_reply_err(request, 0);
  }

  // What a discard, or zeros that need not be written one by one, become.
  static void fallocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset,
                        off_t length, fuse_file_info*) {
    if (!(mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))) {
      fuse_reply_err(request, EOPNOTSUPP);
      return;
    }
    const auto of = disk(request, number, offset, size_t(length));
    if (!of) return;
    of->zero(uint64_t(offset), uint64_t(length));
    fuse_reply_err(request, 0);
  }
};

Result<std::unique_ptr<DiskServer>> DiskServer::start(const std::string& dir) {
  fuse_lowlevel_ops ops = {};
  ops.lookup = Requests::lookup;
  ops.getattr = Requests::getattr;
  ops.open = Requests::open;
  ops.release = Requests::release;
  ops.read = Requests::read;
  ops.write = Requests::write;
  ops.fsync = Requests::fsync;
  ops.fallocate = Requests::fallocate;

  std::unique_ptr<DiskServer> server(new DiskServer());
  server->dir_ = dir;
  char name[] = "tablestore_powercut";
  char* argv[] = {name, nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, argv);
  server->session_ = fuse_session_new(&args, &ops, sizeof(ops), server.get());
  if (!server->session_) return Status(EINVAL, dir + ": libfuse makes no session");
  if (fuse_session_mount(server->session_, dir.c_str()) != 0) {
    fuse_session_destroy(std::exchange(server->session_, nullptr));
    return Status(EIO, dir + ": FUSE cannot be mounted here");
  }
  server->thread_ = std::thread([session = server->session_] {
    // A file system waits for us: we must not wait for a file system to free memory. Inherited by
    // the threads that libfuse starts.
    ::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
    fuse_loop_config* config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(config, 8);
    fuse_loop_cfg_set_idle_threads(config, 8);
    fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
  });
  return server;
}

DiskServer::~DiskServer() {
  if (!session_) return;
  fuse_session_exit(session_);
  fuse_session_unmount(session_);  // wakes the threads
  thread_.join();
  fuse_session_destroy(session_);
}

std::string DiskServer::add(std::shared_ptr<CutDisk> disk) {
  std::lock_guard lock(mutex_);
  const uint64_t number = next_number_++;
  disks_[number].disk = std::move(disk);
  return dir_ + "/" + std::to_string(number);
}

std::shared_ptr<CutDisk> DiskServer::find(uint64_t number) {
  std::lock_guard lock(mutex_);
  const auto found = disks_.find(number);
  return found == disks_.end() ? nullptr : found->second.disk;
}

void DiskServer::opened(uint64_t number) {
  std::lock_guard lock(mutex_);
  if (const auto found = disks_.find(number); found != disks_.end()) found->second.open = true;
}

void DiskServer::forget(uint64_t number) {
  Served last;  // goes without the mutex
  std::lock_guard lock(mutex_);
  const auto found = disks_.find(number);
  if (found == disks_.end()) return;
  last = std::move(found->second);
  disks_.erase(found);
}

bool DiskServer::remove_unless_open(const std::string& path) {
  const uint64_t number = std::strtoull(path.c_str() + path.rfind('/') + 1, nullptr, 10);
  {
    std::lock_guard lock(mutex_);
    const auto found = disks_.find(number);
    if (found != disks_.end() && found->second.open) return false;
  }
  forget(number);
  return true;
}

}  // namespace tablestore::powercut
