// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/store_dir.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/ceph_context.h"
#include "common/debug.h"
#include "common/errno.h"
#include "common/safe_io.h"
#include "include/compat.h"
#include "include/stringify.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

namespace tablestore {

int StoreDir::open(Open how)
{
  const std::string name = path + "/fsid";
  const bool for_reading = how == Open::reading;
  const int flags = (for_reading ? O_RDONLY : O_RDWR) | (how == Open::create ? O_CREAT : 0);
  fd = ::open(name.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) {
    const int r = -errno;
    derr << __func__ << " cannot open " << name << ": " << cpp_strerror(r)
         << (r == -ENOENT ? " (no store here: run ceph-osd --mkfs first)" : "") << dendl;
    return r;
  }
  if (int r = lock(for_reading, true); r < 0) {
    close();
    return r;
  }
  return 0;
}

void StoreDir::close()
{
  if (fd >= 0)
    VOID_TEMP_FAILURE_RETRY(::close(fd));
  fd = -1;
}

int StoreDir::lock(bool for_reading, bool complain)
{
  struct flock l = {};
  l.l_type = for_reading ? F_RDLCK : F_WRLCK;
  l.l_whence = SEEK_SET;
  if (::fcntl(fd, F_OFD_SETLK, &l) == 0)
    return 0;
  const int r = errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
  if (complain) {
    derr << __func__ << " cannot lock " << path << "/fsid: " << cpp_strerror(r)
         << " (is another ceph-osd or tool still running?)" << dendl;
  }
  return r;
}

int StoreDir::read_fsid(uuid_d* fsid) const
{
  char text[64] = {0};
  if (::lseek(fd, 0, SEEK_SET) < 0)
    return -errno;
  const int r = safe_read(fd, text, sizeof(text) - 1);
  if (r < 0) {
    derr << __func__ << " cannot read " << path << "/fsid: " << cpp_strerror(r) << dendl;
    return r;
  }
  if (r == 0)
    return -ENOENT;
  text[std::min(r, 36)] = 0;
  if (!fsid->parse(text)) {
    derr << __func__ << " " << path << "/fsid holds \"" << text << "\", which is not a uuid"
         << dendl;
    return -EINVAL;
  }
  return 0;
}

int StoreDir::write_fsid(const uuid_d& fsid)
{
  return write(stringify(fsid) + "\n");
}

int StoreDir::clear_fsid()
{
  return write("");
}

int StoreDir::write(const std::string& text)
{
  int r = 0;
  if (::lseek(fd, 0, SEEK_SET) < 0 || ::ftruncate(fd, 0) < 0)
    r = -errno;
  if (r == 0)
    r = safe_write(fd, text.data(), text.size());
  if (r == 0 && ::fsync(fd) < 0)
    r = -errno;
  int dir_fd = -1;
  if (r == 0 && (dir_fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
    r = -errno;
  if (r == 0 && ::fsync(dir_fd) < 0)
    r = -errno;
  if (dir_fd >= 0)
    VOID_TEMP_FAILURE_RETRY(::close(dir_fd));
  if (r < 0)
    derr << __func__ << " cannot write " << path << "/fsid: " << cpp_strerror(r) << dendl;
  return r;
}

bool StoreDir::in_use(const std::string& path, Open how)
{
  const int fd = ::open((path + "/fsid").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  struct flock l = {};
  l.l_type = how == Open::reading ? F_RDLCK : F_WRLCK;
  l.l_whence = SEEK_SET;
  const bool locked = ::fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
  VOID_TEMP_FAILURE_RETRY(::close(fd));
  return locked;
}

}  // namespace tablestore
