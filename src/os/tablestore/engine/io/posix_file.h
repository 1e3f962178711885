// A file of a FileDisk.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "os/tablestore/engine/io/disk.h"
#include "os/tablestore/engine/io/disk_state.h"
#include "os/tablestore/engine/io/file_lease.h"

namespace tablestore {

// Owns the descriptor, and with it the lock and the lease. What changes after opening is one flag,
// and what the one thread in watch() keeps for itself.
//
// The lock is flock()'s, which belongs to the open file description: io_uring requests and writing
// threads keep that alive, so the lock outlives even a killed process until its last write has
// landed.
class PosixFile : public File {
 public:
  // `path` relative to `dir_fd`, the disk's directory. Waits up to `lock_wait_ms` for the lock.
  static Result<std::unique_ptr<File>> open(std::shared_ptr<DiskState> disk, int dir_fd,
                                            const std::string& path, OpenMode mode,
                                            unsigned lock_wait_ms);
  ~PosixFile() override;
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override;
  Status read(uint64_t offset, std::span<std::byte> out) override;
  Status write(uint64_t offset, std::span<const std::byte> data) override;
  Status flush() override;
  Status allocate(uint64_t offset, uint64_t length) override;
  Status write_zeroes(uint64_t offset, uint64_t length) override;
  Status punch(uint64_t offset, uint64_t length) override;
  Result<std::vector<ByteRange>> unwritten(std::vector<ByteRange>* holes = nullptr) override;
  Result<uint64_t> make_plain() override;
  Result<Sharing> watch(bool look) override;
  bool needs_own_flush() const override { return own_flush_ || disk_->each_needs_own_flush; }

  // For write queues, which report an errno and no line.
  int fd() const { return fd_; }
  // Writes all of `iov`. 0 or an errno.
  int write_all(uint64_t offset, std::vector<iovec> iov);

 private:
  PosixFile(std::shared_ptr<DiskState> disk, std::string path, int fd)
      : disk_(std::move(disk)), path_(std::move(path)), fd_(fd), lease_(fd) {}
  Status lock(unsigned wait_ms);
  Status check_direct();
  Status check_device(int dir_fd);
  Status write_zero_bytes(uint64_t offset, uint64_t length);
  Status rewrite(const ByteRange& range);
  // Of watch(): what the extents say, where nobody else has the file open.
  Result<Sharing> look_at_extents();
  // 0 or an errno. Where a shared block was written XFS keeps blocks ready for its neighbours, and
  // writes these to there, too, though nothing is shared any more. This makes it move them now.
  int end_copies_on_write(const std::vector<ByteRange>& own);
  // "<directory>/<path>", and with a range " at <offset>+<length>".
  std::string name() const;
  Status failed(int error, const char* doing) const;
  Status failed(int error, const char* doing, uint64_t offset, uint64_t length) const;
  Status failed_read(int error, uint64_t offset, uint64_t length) const;

  const std::shared_ptr<DiskState> disk_;
  const std::string path_;
  const int fd_;
  std::atomic<bool> own_flush_{false};
  // Of the thread in watch():
  FileLease lease_;
  bool looked_ = false;  // at the extents, and nothing was shared
};

// The write queues are those of a FileDisk, whose files are PosixFiles.
inline PosixFile& posix_file(const WriteOp& op) { return static_cast<PosixFile&>(*op.file); }

}  // namespace tablestore
