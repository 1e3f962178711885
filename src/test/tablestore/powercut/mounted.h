// A real file system on a loop device on a disk of a DiskServer.
#pragma once

#include <span>
#include <string>

#include "os/tablestore/engine/status.h"

namespace tablestore::powercut {

// A loop device over a file. It goes when this object and whoever mounted it have let go, also when
// the process dies.
class LoopDevice {
 public:
  static Result<LoopDevice> attach(const std::string& file);
  LoopDevice(LoopDevice&& other) noexcept;
  LoopDevice& operator=(LoopDevice&&) = delete;
  ~LoopDevice();
  const std::string& path() const { return path_; }

 private:
  LoopDevice(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

enum class FileSystem { ext4, xfs };
const char* name_of(FileSystem fs);

// A file system as somebody may have it.
struct FileSystemKind {
  FileSystem type;
  const char* mkfs;   // options
  const char* mount;  // options
};
std::span<const FileSystemKind> kinds_of(FileSystem fs);
std::string to_string(const FileSystemKind& kind);

// Runs mkfs.
Status make_file_system(const FileSystemKind& kind, const LoopDevice& device);

// A mount; its destructor unmounts.
class Mounted {
 public:
  // On the empty directory `dir`. The file system replays its journal.
  static Result<Mounted> mount(const FileSystemKind& kind, LoopDevice device,
                               const std::string& dir);
  Mounted(Mounted&& other) noexcept;
  Mounted& operator=(Mounted&&) = delete;
  ~Mounted();
  const std::string& dir() const { return dir_; }

 private:
  Mounted(LoopDevice device, std::string dir)
      : device_(std::move(device)), dir_(std::move(dir)) {}
  LoopDevice device_;
  std::string dir_;  // empty: moved from
};

}  // namespace tablestore::powercut
