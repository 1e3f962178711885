// Disks as files: a FUSE file system whose files are CutDisks, for loop devices to be put on.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "os/tablestore/engine/status.h"
#include "test/tablestore/powercut/cut_disk.h"

struct fuse_session;

namespace tablestore::powercut {

// Serves with threads of its own, in this process. The files are opened for direct I/O, so that
// nothing is cached between a file and its disk, and a flush of the file is a flush of the disk.
// Thread-safe; `mutex_` guards the map. When the process dies, all I/O on the files fails; it must
// not itself have mounted what lies on them (file_system.h says why).
class DiskServer {
 public:
  // On the empty directory `dir`.
  static Result<std::unique_ptr<DiskServer>> start(const std::string& dir);
  ~DiskServer();
  DiskServer(const DiskServer&) = delete;
  DiskServer& operator=(const DiskServer&) = delete;

  // The path of a new file. It is there until whoever opens it first closes it again.
  std::string add(std::shared_ptr<CutDisk> disk);
  // Nobody will open it any more, if nobody has it open: then it goes. False: somebody has.
  bool remove_unless_open(const std::string& path);

 private:
  friend struct Requests;
  struct Served {
    std::shared_ptr<CutDisk> disk;
    bool open = false;
  };
  DiskServer() = default;
  std::shared_ptr<CutDisk> find(uint64_t number);
  void opened(uint64_t number);
  void forget(uint64_t number);

  std::string dir_;
  std::mutex mutex_;
  std::map<uint64_t, Served> disks_;  // by inode number
  uint64_t next_number_ = 2;          // 1 is the directory
  fuse_session* session_ = nullptr;
  std::thread thread_;
};

}  // namespace tablestore::powercut
