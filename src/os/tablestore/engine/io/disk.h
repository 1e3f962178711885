// The one seam to the disk: a directory on a file system, its files, and asynchronous writes.
//
// Everything that the engine keeps goes through these interfaces, RocksDB's files included
// (Disk::table_fs), so that a simulated disk can take the place of the real one.
//
// What a caller may rely on after a crash (and a simulated disk must be no kinder):
//  - A write that had completed before a flush of its file was issued survives, whole.
//  - A flush of any file also makes durable every *completed* write to a *written* extent of any
//    other file of this Disk: all are on one device, and a flush empties that device's cache.
//    A write to an extent that was not yet written (see File::unwritten), or to a file that
//    File::needs_own_flush(), survives only after a flush of that very file: its file system still
//    has to journal the conversion, or the move.
//  - Everything else is kept, lost or torn per 512-byte sector, in any combination.
//  - A name (create, remove) is durable after Disk::sync_dir of its directory. A rename is atomic:
//    the file has its old name or its new one; the new one is durable after a sync of both
//    directories.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "os/tablestore/engine/status.h"

namespace rocksdb {
class FileSystem;
}

namespace tablestore {

// The unit of allocation, of checksums and of direct I/O.
inline constexpr uint64_t block_bytes = 4096;

struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
  bool operator==(const ByteRange&) const = default;
};

// What somebody else may be doing to the place where a file lies.
enum class Sharing {
  none,
  opened,     // somebody else has it open, and may be about to share its blocks, or to move them
  shared,     // blocks of it are those of another file, too: a copy by reflinks
  unguarded,  // the kernel does not tell who opens it: none, as far as the last look could see
};

// One open file. Offsets, lengths and memory are multiples of block_bytes where the file was opened
// for direct I/O (all files of the engine are). Thread-safe; concurrent operations on overlapping
// ranges have no order.
//
// A file opened for writing holds an exclusive lock for as long as any request on it is in flight,
// also after its process was killed: that is what keeps a write of a dead process from
// landing in a store that somebody has opened since.
class File {
 public:
  virtual ~File() = default;
  virtual const std::string& path() const = 0;
  virtual uint64_t size_bytes() const = 0;
  // Fills all of `out`; EIO where the disk fails, or the file ends before. See read_errors.h.
  virtual Status read(uint64_t offset, std::span<std::byte> out) = 0;
  virtual Status write(uint64_t offset, std::span<const std::byte> data) = 0;
  // fdatasync. After an error nothing more may be promised on this disk: never retry.
  virtual Status flush() = 0;
  // Gives [offset, +length) space from the file system, as unwritten extents that read as zeros;
  // grows the file.
  virtual Status allocate(uint64_t offset, uint64_t length) = 0;
  // Makes [offset, +length) *written* extents of zeros (FALLOC_FL_WRITE_ZEROES or by writing);
  // grows the file. Durable after flush().
  virtual Status write_zeroes(uint64_t offset, uint64_t length) = 0;
  // Returns the space of [offset, +length) to the file system; reads as zeros; keeps the size.
  virtual Status punch(uint64_t offset, uint64_t length) = 0;
  // The parts of the file whose first write makes the file system allocate or convert (holes,
  // unwritten and shared extents), ascending. All of it where the file system cannot tell.
  // `holes`: of these, where given, the parts that have no space. Where the file system cannot
  // tell, all of it, unless the file has all its space.
  virtual Result<std::vector<ByteRange>> unwritten(std::vector<ByteRange>* holes = nullptr) = 0;

  // Makes all of the file written extents of its own, contents kept, and durably so: a copy or a
  // restored backup may have holes and share its blocks. Nobody else may be writing. Returns how
  // many bytes that took. Does nothing where unwritten() cannot tell.
  virtual Result<uint64_t> make_plain() { return uint64_t(0); }
  // Whether somebody else may share or move the blocks of this file. From the moment in which he
  // can until this says that he cannot any more, needs_own_flush(). By one thread, about every
  // second: somebody who opens the file waits for that. `look`: looks at the extents also where
  // nobody can have touched them.
  virtual Result<Sharing> watch([[maybe_unused]] bool look) { return Sharing::none; }
  // Completed writes to this file survive only after a flush of this very file, and that flush may
  // cover no other file. To be asked after the writes and before the flush.
  virtual bool needs_own_flush() const { return false; }

  // From now on the file may be closed while nobody uses it, and is opened when somebody does. Its
  // lock is given up meanwhile. Before other threads know the file.
  virtual void let_park() {}
  // Keeps it open until let_go(), for writes of a queue; see HeldFile. EMFILE, ENFILE, ENOMEM: it
  // is not open, and may be later. Any other error: the disk fails.
  virtual Status hold() { return {}; }
  virtual void let_go() {}
};

// A file that stays open for as long as this lives.
class HeldFile {
 public:
  HeldFile() = default;
  // Of a hold() that has succeeded.
  explicit HeldFile(File& file) : file_(&file) {}
  HeldFile(HeldFile&& other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
  HeldFile& operator=(HeldFile&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~HeldFile() { let_go(); }
  void let_go() {
    if (File* file = std::exchange(file_, nullptr)) file->let_go();
  }

 private:
  File* file_ = nullptr;
};

// An asynchronous write. The owner keeps it, its memory and the file alive, and where that can be
// parked, held, until `done`.
struct WriteOp {
  File* file = nullptr;
  uint64_t offset = 0;
  std::vector<iovec> iov;  // multiples of block_bytes, aligned memory
  // Runs in the thread that reaps. `error` is 0 or an errno.
  void (*done)(WriteOp& op, int error) = nullptr;
  void* owner = nullptr;

  // The queue's own, while it has the operation.
  uint32_t requests_left = 0;
  int first_error = 0;
};

// Asynchronous writes. submit() and wake() from any thread; reap() from one thread at a time. A
// queue is drained (all submitted is done) before it is destroyed.
class WriteQueue {
 public:
  virtual ~WriteQueue() = default;
  // When writes begin, and whom that wakes; a queue may begin them sooner.
  enum class Begin {
    at_next_reap,    // wakes nobody: cheaper for small ones
    at_once,         // a thread in reap() is woken for them
    in_this_thread,  // by the thread that reaps, for what it cannot go on without: begins what has
                     // been waiting for a reap() and then these, which may be done on return
  };
  // Never blocks for a completion that only a later reap() can deliver.
  virtual void submit(std::span<WriteOp* const> ops, Begin begin) = 0;
  // Runs `done` of what has completed; where nothing has and `wait`, blocks until something
  // completes or wake() is called. Returns the number completed.
  virtual size_t reap(bool wait) = 0;
  // Makes a blocked reap(), or else the next blocking one, return.
  virtual void wake() = 0;
  // Handed to the kernel so far; several writes may be one request.
  virtual uint64_t requests() const = 0;
};

struct DiskSpace {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;  // what an unprivileged user may still take
};

// Something about the file system that breaks a promise of this store, or makes it slow.
struct Concern {
  std::string trouble;  // Troubles' name of it
  std::string line;     // what it is, and what to do
  bool refuses_mkfs = false;
};
// A trouble: writes do not go to their place, or through the page cache.
inline constexpr const char* not_direct_io = "NOT_DIRECT_IO";

enum class OpenMode {
  read_only,
  read_write,
  create_new,  // EEXIST where it is there
};

// A directory and what is below it. Paths are relative to it, with '/' between names. Thread-safe.
class Disk {
 public:
  virtual ~Disk() = default;
  // For messages: the directory as the operator knows it.
  virtual const std::string& name() const = 0;
  // ENOENT, EEXIST, EBUSY (locked by another process), EIO ...
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  virtual Result<bool> exists(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& dir) = 0;
  virtual Status make_dir(const std::string& dir) = 0;  // success where it is there already
  virtual Status remove(const std::string& path) = 0;   // a file; success where it is not there
  // A file that nobody has open for writing; EEXIST where there is something at `to`.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // Removes a directory and everything in it; success where it is not there. For mkfs.
  virtual Status remove_tree(const std::string& dir) = 0;
  virtual Status sync_dir(const std::string& dir) = 0;
  // At once for all files: what a flush of each would make durable, but for those that
  // File::needs_own_flush(). False: this disk cannot, and nothing is done. An error as of flush().
  virtual Result<bool> flush_all() { return false; }
  virtual Result<DiskSpace> space() = 0;
  virtual std::vector<Concern> concerns() { return {}; }
  virtual std::unique_ptr<WriteQueue> make_write_queue() = 0;
  // RocksDB's file system on this same disk. Its paths are table_path(...).
  virtual std::shared_ptr<rocksdb::FileSystem> table_fs() = 0;
  // The path by which table_fs() knows `path`.
  virtual std::string table_path(const std::string& path) const = 0;
};

}  // namespace tablestore
