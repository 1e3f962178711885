#include "test/tablestore/powercut/mounted.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace tablestore::powercut {

Result<LoopDevice> LoopDevice::attach(const std::string& file) {
  const int backing = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (backing < 0) return Status::from_errno(errno, file);
  const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  Status why = control < 0 ? Status::from_errno(errno, "/dev/loop-control") : Status();
  // Somebody else may take the device that was free a moment ago.
  for (int tries = 0; control >= 0 && tries < 50; ++tries) {
    const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) {
      why = Status::from_errno(errno, "no free loop device");
      break;
    }
    std::string path = "/dev/loop" + std::to_string(number);
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    loop_config config = {};
    config.fd = uint32_t(backing);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    if (fd >= 0 && ::ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
      ::close(backing);
      ::close(control);
      return LoopDevice(fd, std::move(path));
    }
    const int error = errno;
    why = Status::from_errno(error, path + ": cannot be set up");
    if (fd >= 0) ::close(fd);
    if (error != EBUSY) break;
  }
  ::close(backing);
  if (control >= 0) ::close(control);
  return why;
}

LoopDevice::LoopDevice(LoopDevice&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

LoopDevice::~LoopDevice() {
  if (fd_ >= 0) ::close(fd_);
}

const char* name_of(FileSystem fs) { return fs == FileSystem::ext4 ? "ext4" : "xfs"; }

std::span<const FileSystemKind> kinds_of(FileSystem fs) {
  static constexpr FileSystemKind ext4[] = {
      {FileSystem::ext4, "", ""},
      {FileSystem::ext4, "", "commit=1"},
      {FileSystem::ext4, "-O fast_commit", ""},
      {FileSystem::ext4, "-b 1024", ""},
  };
  static constexpr FileSystemKind xfs[] = {
      {FileSystem::xfs, "", ""},
      {FileSystem::xfs, "-m reflink=0,rmapbt=0", "logbsize=256k"},
      {FileSystem::xfs, "-b size=1024", ""},
  };
  if (fs == FileSystem::ext4) return ext4;
  return xfs;
}

std::string to_string(const FileSystemKind& kind) {
  std::string text = name_of(kind.type);
  if (*kind.mkfs) text += std::string(" made with ") + kind.mkfs;
  if (*kind.mount) text += std::string(" mounted with ") + kind.mount;
  return text;
}

Status make_file_system(const FileSystemKind& kind, const LoopDevice& device) {
  // All of it now: what the kernel would do later in the background would only be noise.
  const char* program = kind.type == FileSystem::ext4
                            ? "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "
                            : "mkfs.xfs -q -f -K ";
  const std::string command = program + std::string(kind.mkfs) + " " + device.path();
  if (std::system((command + " >/dev/null").c_str()) == 0) return {};
  return Status(EIO, command + " failed");
}

Result<Mounted> Mounted::mount(const FileSystemKind& kind, LoopDevice device,
                               const std::string& dir) {
  std::string options = kind.mount;
  // The disk that the image was taken from may still be mounted.
  if (kind.type == FileSystem::xfs) options += options.empty() ? "nouuid" : ",nouuid";
  if (::mount(device.path().c_str(), dir.c_str(), name_of(kind.type), MS_NOATIME,
              options.c_str()) != 0)
    return Status::from_errno(errno, "the file system cannot be mounted");
  return Mounted(std::move(device), dir);
}

Mounted::Mounted(Mounted&& other) noexcept
    : device_(std::move(other.device_)), dir_(std::exchange(other.dir_, {})) {}

Mounted::~Mounted() {
  if (dir_.empty()) return;
  // A process that was killed may have I/O in flight for a moment.
  for (int tries = 0; tries < 5000; ++tries) {
    if (::umount2(dir_.c_str(), 0) == 0 || errno != EBUSY) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::umount2(dir_.c_str(), MNT_DETACH);
}

}  // namespace tablestore::powercut
