// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/device_info.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/blkdev.h"
#include "include/stringify.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

namespace tablestore {

namespace {

class Directory {
 public:
  explicit Directory(const std::string& path)
    : fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
  {
  }
  ~Directory()
  {
    if (fd >= 0)
      ::close(fd);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const int fd;
};

std::string fs_type(int fd)
{
  struct statfs st;
  if (::fstatfs(fd, &st) < 0)
    return "unknown";
  switch (static_cast<uint32_t>(st.f_type)) {
  case XFS_SUPER_MAGIC: return "xfs";
  case EXT4_SUPER_MAGIC: return "ext4";
  case BTRFS_SUPER_MAGIC: return "btrfs";
  case TMPFS_MAGIC: return "tmpfs";
  case OVERLAYFS_SUPER_MAGIC: return "overlay";
  }
  char hex[16];
  snprintf(hex, sizeof(hex), "0x%x", static_cast<uint32_t>(st.f_type));
  return hex;
}

std::string joined(const std::set<std::string>& names)
{
  std::string all;
  for (const auto& name : names)
    all += (all.empty() ? "" : ",") + name;
  return all;
}

}  // namespace

bool DeviceInfo::is_rotational() const
{
  Directory dir(directory);
  if (dir.fd < 0)
    return false;
  std::string disk;
  BlkDev device(dir.fd);
  return device.wholedisk(&disk) >= 0 && device.is_rotational();
}

int DeviceInfo::devices(std::set<std::string>* names) const
{
  Directory dir(directory);
  if (dir.fd < 0)
    return -errno;
  std::string disk;
  if (BlkDev(dir.fd).wholedisk(&disk) < 0)
    return -EOPNOTSUPP;
  get_raw_devices(disk, names);
  return 0;
}

int DeviceInfo::numa_node(int* node, std::set<int>* nodes, std::set<std::string>* failed) const
{
  std::set<std::string> names;
  if (int r = devices(&names); r < 0)
    return r;
  std::set<int> found;
  for (const auto& name : names) {
    int n;
    if (BlkDev(name).get_numa_node(&n) < 0) {
      if (failed)
        failed->insert(name);
    } else {
      found.insert(n);
    }
  }
  if (node)
    *node = found.size() == 1 && (!failed || failed->empty()) ? *found.begin() : -1;
  if (nodes)
    *nodes = found;
  return 0;
}

uint64_t DeviceInfo::fast_commits() const
{
  Directory dir(directory);
  struct stat st;
  if (dir.fd < 0 || fs_type(dir.fd) != "ext4" || ::fstat(dir.fd, &st) < 0)
    return 0;
  std::error_code error;
  const std::string number = stringify(major(st.st_dev)) + ":" + stringify(minor(st.st_dev));
  const auto device = std::filesystem::canonical("/sys/dev/block/" + number, error);
  if (error)
    return 0;
  std::ifstream fc_info("/proc/fs/ext4/" + device.filename().string() + "/fc_info");
  return fast_commits_of(fc_info);
}

uint64_t DeviceInfo::fast_commits_of(std::istream& fc_info)
{
  std::string title, what;
  uint64_t commits = 0;
  std::getline(fc_info, title);
  fc_info >> commits >> what;
  return title == "fc stats:" && what == "commits" ? commits : 0;
}

std::string fast_commit_warning(const std::string& directory)
{
  return directory + " is on ext4 with fast_commit, which can lose writes that were flushed: "
                     "stop the OSD, unmount the file system, switch it off with "
                     "'tune2fs -O ^fast_commit DEVICE'";
}

void DeviceInfo::collect_metadata(std::map<std::string, std::string>* metadata) const
{
  auto& pm = *metadata;
  const std::string prefix = "tablestore_";
  pm[prefix + "path"] = directory;
  pm[prefix + "access_mode"] = "directory";
  pm[prefix + "rotational"] = is_rotational() ? "1" : "0";
  pm[prefix + "type"] = is_rotational() ? "hdd" : "ssd";
  Directory dir(directory);
  if (dir.fd < 0)
    return;
  pm[prefix + "fs_type"] = fs_type(dir.fd);
  struct statfs st;
  if (::fstatfs(dir.fd, &st) == 0)
    pm[prefix + "fs_size"] = stringify(uint64_t(st.f_blocks) * st.f_bsize);

  if (std::set<std::string> names; devices(&names) == 0)
    pm[prefix + "devices"] = joined(names);
  char buffer[1024] = {0};
  BlkDev device(dir.fd);
  if (device.partition(buffer, sizeof(buffer)) == 0)
    pm[prefix + "dev_node"] = buffer;
  if (struct stat s; ::fstat(dir.fd, &s) == 0)
    pm[prefix + "dev"] = stringify(major(s.st_dev)) + ":" + stringify(minor(s.st_dev));

  int node = -1;
  std::set<int> nodes;
  std::set<std::string> failed;
  if (numa_node(&node, &nodes, &failed) >= 0) {
    if (!failed.empty())
      pm["objectstore_numa_unknown_devices"] = joined(failed);
    if (!nodes.empty())
      pm["objectstore_numa_nodes"] = stringify(nodes);
    if (node >= 0)
      pm["objectstore_numa_node"] = stringify(node);
  }
}

}  // namespace tablestore
