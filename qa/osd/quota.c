/* A quota on the file system below an OSD, for kernels without quotas: EDQUOT for what would take
   more than a number of bytes of it, which statfs does not know of. Preloaded into the OSD.

   QUOTA_DIRECTORY: in that file system. QUOTA_FILE: has the number; where it is not there, there is
   no quota. It is looked at anew each time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

static long long quota(void) {
  const char *path = getenv("QUOTA_FILE");
  FILE *file = path ? fopen(path, "re") : NULL;
  long long bytes = -1;
  if (!file) return -1;
  if (fscanf(file, "%lld", &bytes) != 1) bytes = -1;
  fclose(file);
  return bytes;
}

/* Whether fd may have so many bytes more. */
static int allows(int fd, long long more) {
  const char *directory = getenv("QUOTA_DIRECTORY");
  struct stat of_file, of_directory;
  struct statvfs fs;
  if (more <= 0 || !directory || fstat(fd, &of_file) || !S_ISREG(of_file.st_mode)) return 1;
  if (stat(directory, &of_directory) || of_file.st_dev != of_directory.st_dev) return 1;
  const long long most = quota();
  if (most < 0 || fstatvfs(fd, &fs)) return 1;
  return (long long)(fs.f_blocks - fs.f_bfree) * (long long)fs.f_frsize + more <= most;
}

/* What a write up to `end` takes beyond what the file has. */
static long long growth(int fd, long long end) {
  struct stat of_file;
  if (fstat(fd, &of_file) || !S_ISREG(of_file.st_mode)) return 0;
  return end - of_file.st_blocks * 512;
}

static int refused(void) {
  errno = EDQUOT;
  return -1;
}

static long long total(const struct iovec *iov, int count) {
  long long bytes = 0;
  for (int i = 0; i < count; ++i) bytes += iov[i].iov_len;
  return bytes;
}

/* A range that is partly there counts in full only beyond the end of what the file has. */
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  static int (*real)(int, int, off64_t, off64_t);
  if (!real) real = next("fallocate64");
  if (!(mode & FALLOC_FL_PUNCH_HOLE) && !allows(fd, growth(fd, offset + length))) return refused();
  return real(fd, mode, offset, length);
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  return fallocate64(fd, mode, offset, length);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  static ssize_t (*real)(int, const void *, size_t, off64_t);
  if (!real) real = next("pwrite64");
  if (!allows(fd, growth(fd, offset + (long long)size))) return refused();
  return real(fd, data, size, offset);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  return pwrite64(fd, data, size, offset);
}

ssize_t pwritev64(int fd, const struct iovec *iov, int count, off64_t offset) {
  static ssize_t (*real)(int, const struct iovec *, int, off64_t);
  if (!real) real = next("pwritev64");
  if (!allows(fd, growth(fd, offset + total(iov, count)))) return refused();
  return real(fd, iov, count, offset);
}
ssize_t pwritev(int fd, const struct iovec *iov, int count, off_t offset) {
  return pwritev64(fd, iov, count, offset);
}

ssize_t write(int fd, const void *data, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = next("write");
  struct stat of_file;
  if (!fstat(fd, &of_file) && S_ISREG(of_file.st_mode) &&
      !allows(fd, growth(fd, lseek(fd, 0, SEEK_CUR) + (long long)size)))
    return refused();
  return real(fd, data, size);
}
