#include "test/tablestore/powercut/file_system.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace tablestore::powercut {

namespace {

// Returns the device's path. The device stays open until this process ends, over exec too: it
// goes when nobody has it open or mounted.
Result<std::string> attach_loop_device(const std::string& file) {
  const int backing = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (backing < 0) return Status::from_errno(errno, file);
  const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0) return Status::from_errno(errno, "/dev/loop-control");
  // Somebody else may take the device that was free a moment ago.
  for (int tries = 0;; ++tries) {
    const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) return Status::from_errno(errno, "no free loop device");
    const std::string path = "/dev/loop" + std::to_string(number);
    const int fd = ::open(path.c_str(), O_RDWR);
    loop_config config = {};
    config.fd = uint32_t(backing);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    if (fd >= 0 && ::ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
      ::close(backing);
      ::close(control);
      return path;
    }
    if (errno != EBUSY || tries == 100) return Status::from_errno(errno, path + ": no set-up");
    if (fd >= 0) ::close(fd);
  }
}

}  // namespace

const char* name_of(FileSystem fs) { return fs == FileSystem::ext4 ? "ext4" : "xfs"; }

std::vector<FileSystemKind> kinds_of(FileSystem fs) {
  // Not -O fast_commit: there an fdatasync beside another one may return without having committed
  // anything (kernel 6.18; `--plain --mkfs "-O fast_commit"` shows it).
  // data=journal: ext4 takes O_DIRECT and ignores it, so that each written file is flushed.
  if (fs == FileSystem::ext4)
    return {{fs, "", ""},
            {fs, "", "commit=1"},
            {fs, "-b 1024", ""},
            {fs, "", "data=writeback"},
            {fs, "", "data=journal"}};
  // None with small blocks: the blocks of its directories would lie across sectors of a CutDisk.
  return {{fs, "", ""}, {fs, "-m reflink=0,rmapbt=0", "logbsize=256k"}, {fs, "-d agcount=2", ""}};
}

std::string to_string(const FileSystemKind& kind) {
  std::string text = name_of(kind.type);
  if (!kind.mkfs.empty()) text += " made with " + kind.mkfs;
  if (!kind.mount.empty()) text += " mounted with " + kind.mount;
  return text;
}

Status make_file_system(const FileSystemKind& kind, const std::string& disk) {
  const auto device = attach_loop_device(disk);
  if (!device.ok()) return device.status();
  // All of it now: what the kernel would do later in the background would only be noise.
  const char* program = kind.type == FileSystem::ext4
                            ? "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "
                            : "mkfs.xfs -q -f -K ";
  const std::string command = program + kind.mkfs + " " + *device;
  if (std::system((command + " >/dev/null").c_str()) == 0) return {};
  return Status(EIO, command + " failed");
}

int own_mount_namespace() {
  if (::unshare(CLONE_NEWNS) != 0) return errno;
  // EINVAL: in a changed root, whose mounts are private already.
  if (::mount("", "/", "", MS_REC | MS_PRIVATE, "") != 0 && errno != EINVAL) return errno;
  return 0;
}

Status mount_for_this_process(const FileSystemKind& kind, const std::string& disk,
                              const std::string& dir) {
  if (const int error = own_mount_namespace())
    return Status::from_errno(error, "no mount namespace");
  const auto device = attach_loop_device(disk);
  if (!device.ok()) return device.status();
  std::string options = kind.mount;
  // The disk that the image was taken from may be mounted, too.
  if (kind.type == FileSystem::xfs) options += options.empty() ? "nouuid" : ",nouuid";
  if (::mount(device->c_str(), dir.c_str(), name_of(kind.type), MS_NOATIME, options.c_str()) != 0)
    return Status::from_errno(errno, "the file system cannot be mounted");
  return {};
}

}  // namespace tablestore::powercut
