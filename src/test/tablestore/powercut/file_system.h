// Real file systems on disks of a DiskServer.
//
// Who mounts one is a process of its own, with a mount namespace of its own, and never the one that
// serves the disk: when a process dies, the kernel may unmount what it has mounted before it closes
// its files, and would wait forever for a server among them.
#pragma once

#include <string>
#include <vector>

#include "os/tablestore/engine/status.h"

namespace tablestore::powercut {

enum class FileSystem { ext4, xfs };
const char* name_of(FileSystem fs);

// A file system as somebody may have it.
struct FileSystemKind {
  FileSystem type;
  std::string mkfs;   // options
  std::string mount;  // options
};
// Those below which power is cut.
std::vector<FileSystemKind> kinds_of(FileSystem fs);
std::string to_string(const FileSystemKind& kind);

// Puts a loop device on the file `disk` and runs mkfs.
Status make_file_system(const FileSystemKind& kind, const std::string& disk);

// Puts a loop device on the file `disk`, mounts it on the directory `dir`, which replays the
// journal, for this process and its children only. The device and the mount go with this process.
Status mount_for_this_process(const FileSystemKind& kind, const std::string& disk,
                              const std::string& dir);

// Of this process from now on: nobody else sees what it mounts. An errno.
int own_mount_namespace();

}  // namespace tablestore::powercut
