// A file of a FileDisk.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "os/tablestore/engine/io/disk.h"
#include "os/tablestore/engine/io/disk_state.h"
#include "os/tablestore/engine/io/file_lease.h"
#include "os/tablestore/engine/io/open_files.h"

namespace tablestore {

// Owns the descriptor, and with it the lock and the lease. What changes after opening are flags,
// what the one thread in watch() keeps for itself, and, where the file can be parked, the
// descriptor: never while `uses_` counts somebody. Whoever parks or opens it has all that the
// thread in watch() has otherwise, which is not there then.
//
// Before it is parked it is flushed where it was written: whoever moves its blocks meanwhile moves
// nothing that a later flush of another file would have to cover. When it is opened again its
// blocks are looked at as they are the first time.
//
// The lock is flock()'s, which belongs to the open file description: io_uring requests and writing
// threads keep that alive, so the lock outlives even a killed process until its last write has
// landed.
class PosixFile : public File, private OpenFiles::Parkable {
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
  bool needs_own_flush() const override {
    return own_flush_ || may_have_moved_ || disk_->each_needs_own_flush;
  }
  void let_park() override;
  Status hold() override;
  void let_go() override;

  // For write queues, which report an errno and no line. Who calls them holds the file.
  int fd() const { return fd_; }
  // Writes all of `iov`. 0 or an errno.
  int write_all(uint64_t offset, std::vector<iovec> iov);

 private:
  PosixFile(std::shared_ptr<DiskState> disk, int dir_fd, std::string path, OpenMode mode, int fd,
            unsigned lock_wait_ms)
      : disk_(std::move(disk)),
        dir_fd_(dir_fd),
        path_(std::move(path)),
        writable_(mode != OpenMode::read_only),
        lock_wait_ms_(lock_wait_ms),
        fd_(fd),
        lease_(fd) {}

  class Use;
  // Opens the file where it is parked.
  Status begin_use();
  bool begin_use_if_open() const;
  void end_use() const;
  // OpenFiles::Parkable
  bool park() override;
  bool is_parked() const override { return uses_.load(std::memory_order_acquire) & parked; }
  Status open_again() override;
  Status check_same() const;
  Status flush_open();  // the same, of who knows that it is open
  int flush_in_place();  // 0 or an errno

  void close();
  Status lock(unsigned wait_ms);  // for this file alone, or for all who read
  Status check_direct();
  Status check_device();
  // Of watch(), for who has its thread's part.
  Result<Sharing> watch_open(bool look);
  Status write_zero_bytes(uint64_t offset, uint64_t length);
  Status rewrite(const ByteRange& range);
  // Of watch(): what the extents say, where nobody else has the file open.
  Result<Sharing> look_at_extents();
  // 0 or an errno. Where a shared block was written XFS keeps blocks ready for its neighbours, and
  // writes these to there, too, though nothing is shared any more. This makes it give them up.
  int end_copies_on_write();
  void refresh_transaction();
  // "<directory>/<path>", and with a range " at <offset>+<length>".
  std::string name() const;
  Status failed(int error, const char* doing) const;
  Status failed(int error, const char* doing, uint64_t offset, uint64_t length) const;
  Status read_into(uint64_t offset, std::vector<iovec> iov);
  Status failed_read(int error, uint64_t offset, uint64_t length) const;

  static constexpr uint32_t parked = 1u << 31;

  const std::shared_ptr<DiskState> disk_;
  const int dir_fd_;  // the disk's, which outlives a file that can be parked
  const std::string path_;
  const bool writable_;
  const unsigned lock_wait_ms_;
  bool can_park_ = false;
  dev_t device_ = 0;   // where it can be parked
  ino_t inode_ = 0;
  mutable std::atomic<uint32_t> uses_{0};  // that go on, and the flag `parked`
  int fd_;
  std::atomic<bool> own_flush_{false};
  // While it was parked nobody saw who moved its blocks, and it was not flushed since.
  std::atomic<bool> may_have_moved_{false};
  std::atomic<bool> unflushed_{false};  // was written since the last flush of this very file
  // Of the thread in watch():
  FileLease lease_;
  bool looked_ = false;  // at the extents, and nothing was shared
  std::optional<std::chrono::steady_clock::time_point> refreshed_;  // refresh_transaction()
};

// The write queues are those of a FileDisk, whose files are PosixFiles.
inline PosixFile& posix_file(const WriteOp& op) { return static_cast<PosixFile&>(*op.file); }

}  // namespace tablestore
