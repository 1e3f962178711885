#include "os/tablestore/engine/io/posix_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/io/file_extents.h"
#include "os/tablestore/engine/io/iov_cursor.h"
#include "os/tablestore/engine/io/large_pages.h"
#include "os/tablestore/engine/io/read_errors.h"
#include "os/tablestore/engine/io/system_call.h"
#include "os/tablestore/engine/require.h"

#ifndef FALLOC_FL_PUNCH_HOLE
#include <linux/falloc.h>
#endif
#ifndef FALLOC_FL_WRITE_ZEROES
#define FALLOC_FL_WRITE_ZEROES 0x80
#endif
#ifndef FALLOC_FL_UNSHARE_RANGE
#define FALLOC_FL_UNSHARE_RANGE 0x40
#endif

namespace tablestore {
namespace {

constexpr size_t zeros_bytes = 1 << 20;
// What a read of this size gains by a large page is more than what the copy costs.
constexpr size_t copied_read_bytes = 16 << 10;
constexpr auto retry_interval = std::chrono::milliseconds(10);

bool whole_blocks(uint64_t offset, uint64_t length) {
  return offset % block_bytes == 0 && length % block_bytes == 0;
}

constexpr const char* in_blocks = "offsets and lengths are whole blocks";

bool aligned(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) % block_bytes == 0;
}

const BlockMemory& zeros() {
  static const BlockMemory memory = [] {
    BlockMemory m(zeros_bytes);
    m.zero();
    return m;
  }();
  return memory;
}

int open_flags(OpenMode mode) {
  switch (mode) {
    case OpenMode::read_only:
      return O_RDONLY | O_CLOEXEC;
    case OpenMode::read_write:
      return O_RDWR | O_CLOEXEC;
    case OpenMode::create_new:
      return O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  }
  require(false, "a file is opened in one of these modes");
  return O_RDONLY | O_CLOEXEC;
}

}  // namespace

Result<std::unique_ptr<File>> PosixFile::open(std::shared_ptr<DiskState> disk, int dir_fd,
                                              const std::string& path, OpenMode mode,
                                              unsigned lock_wait_ms) {
  require(!path.empty() && path.front() != '/', "paths are below the disk's directory");
  const int flags = open_flags(mode) | (disk->direct ? O_DIRECT : 0);
  const int fd = uninterrupted([&] { return ::openat(dir_fd, path.c_str(), flags, 0600); });
  if (fd < 0) {
    const char* doing = mode == OpenMode::create_new ? "cannot create" : "cannot open";
    return Status::from_errno(errno, disk->directory + "/" + path + ": " + doing);
  }
  std::unique_ptr<PosixFile> file(
      new PosixFile(std::move(disk), dir_fd, path, mode, fd, lock_wait_ms));
  if (Status s = file->check_device(); !s.ok()) return s;
  if (Status s = file->check_direct(); !s.ok()) return s;
  if (file->writable_ || file->disk_->read_only)
    if (Status s = file->lock(lock_wait_ms); !s.ok()) return s;
  if (file->writable_) {
    if (file->disk_->in_place && is_realtime(fd)) file->disk_->each_needs_own_flush = true;
  }
  return std::unique_ptr<File>(std::move(file));
}

PosixFile::~PosixFile() {
  if (can_park_) disk_->open_files.remove(*this);
  if (fd_ >= 0) close();
}

void PosixFile::close() {
  if (!disk_->in_place) disk_->dirty.forget(fd_);
  // The kernel may hold the description for a moment after a request was reported complete. Nothing
  // is in flight now, so that the next who opens the file need not wait for that.
  lease_.give_back();
  ::flock(fd_, LOCK_UN);
  ::close(fd_);
  fd_ = -1;
}

// --- parking

// A function that needs the descriptor.
class PosixFile::Use {
 public:
  explicit Use(PosixFile& file) : file_(file), status_(file.begin_use()) {}
  ~Use() {
    if (status_.ok()) file_.end_use();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  const Status& status() const { return status_; }

 private:
  PosixFile& file_;
  const Status status_;
};

void PosixFile::let_park() {
  struct stat st;
  if (::fstat(fd_, &st) != 0) return;
  device_ = st.st_dev;
  inode_ = st.st_ino;
  can_park_ = true;
  disk_->open_files.add(*this);
}

Status PosixFile::begin_use() {
  if (!can_park_) return {};
  if (!was_used.load(std::memory_order_relaxed)) was_used.store(true, std::memory_order_relaxed);
  if (!(uses_.fetch_add(1, std::memory_order_acq_rel) & parked)) return {};
  const Status s = disk_->open_files.open_again(*this);
  if (s.ok()) return s;
  end_use();
  return is_lack(s.code()) || is_path_error(s.code()) ? s : Status(EIO, s.what());
}

// Not for whoever would keep it open by that alone.
bool PosixFile::begin_use_if_open() const {
  if (!can_park_) return true;
  uint32_t uses = uses_.load(std::memory_order_relaxed);
  while (!(uses & parked))
    if (uses_.compare_exchange_weak(uses, uses + 1, std::memory_order_acq_rel)) return true;
  return false;
}

void PosixFile::end_use() const {
  if (can_park_) uses_.fetch_sub(1, std::memory_order_release);
}

Status PosixFile::hold() { return begin_use(); }

void PosixFile::let_go() {
  unflushed_ = true;
  end_use();
}

bool PosixFile::park() {
  if (disk_->flush_error) return false;
  uint32_t none = 0;
  if (!uses_.compare_exchange_strong(none, parked, std::memory_order_acq_rel)) return false;
  if (disk_->in_place && unflushed_.exchange(false)) {
    if (const int error = flush_in_place()) {
      disk_->flush_error = error;  // the next flush of any file tells
      uses_.fetch_and(~parked, std::memory_order_release);
      return false;
    }
  }
  close();
  looked_ = false;
  return true;
}

Status PosixFile::open_again() {
  const OpenMode mode = writable_ ? OpenMode::read_write : OpenMode::read_only;
  const int flags = open_flags(mode) | (disk_->direct ? O_DIRECT : 0);
  fd_ = uninterrupted([&] { return ::openat(dir_fd_, path_.c_str(), flags); });
  if (fd_ < 0) return failed(errno, "cannot open again");
  lease_ = FileLease(fd_);
  Status s = check_same();
  if (s.ok()) s = lock(lock_wait_ms_);
  if (s.ok() && writable_) {
    may_have_moved_ = disk_->in_place;
    const auto seen = watch_open(true);
    if (!seen.ok()) s = seen.status();
  }
  if (s.ok())
    uses_.fetch_and(~parked, std::memory_order_release);
  else
    close();
  return s;
}

Status PosixFile::check_same() const {
  struct stat st;
  if (::fstat(fd_, &st) != 0) return failed(errno, "cannot be examined");
  if (st.st_dev == device_ && st.st_ino == inode_) return {};
  return Status(EIO, name() + ": another file has taken the place of this one of a store in use");
}

// --- as the file that it is

// A flush of one file covers the others only where all are on one device.
Status PosixFile::check_device() {
  struct stat directory, file;
  if (::fstat(dir_fd_, &directory) != 0 || ::fstat(fd_, &file) != 0) {
    return failed(errno, "cannot be examined");
  }
  if (!S_ISREG(file.st_mode)) return Status(EINVAL, name() + ": not a regular file");
  if (file.st_dev == directory.st_dev) return Status();
  return Status(EXDEV, name() + ": on another file system than " + disk_->directory +
                           "; a store must be on one, move the file there");
}

// ext4 takes O_DIRECT for a file with data journalling and ignores it.
Status PosixFile::check_direct() {
  if (!disk_->in_place || direct_is_honoured(fd_)) return Status();
  // XFS with large blocks wants whole ones of a file that has shared some.
  if (!disk_->is_ext4 && disk_->each_needs_own_flush) return Status();
  return Status(ENOTSUP, name() + ": the file system does no direct I/O on this file, though it "
                             "does on others; data journalling (undone by chattr -j) or encryption "
                             "may be why");
}

Status PosixFile::lock(unsigned wait_ms) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(wait_ms);
  std::chrono::milliseconds pause(1);
  for (;; pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
    const int kind = writable_ ? LOCK_EX : LOCK_SH;
    if (uninterrupted([&] { return ::flock(fd_, kind | LOCK_NB); }) == 0) return Status();
    if (errno != EWOULDBLOCK) return failed(errno, "cannot be locked");
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(pause);
  }
  return Status(EBUSY, name() + ": locked by another process for more than " +
                           std::to_string(wait_ms) + " ms; the store is open elsewhere (fuser " +
                           name() + " says where), or a killed process still has writes in flight");
}

uint64_t PosixFile::size_bytes() const {
  struct stat st;
  const bool is_open = begin_use_if_open();
  const int result = is_open ? ::fstat(fd_, &st) : ::fstatat(dir_fd_, path_.c_str(), &st, 0);
  if (is_open) end_use();
  require(result == 0, "a file has a size");
  return static_cast<uint64_t>(st.st_size);
}

Status PosixFile::read(uint64_t offset, std::span<std::byte> out) {
  require(whole_blocks(offset, out.size()) && aligned(out.data()), in_blocks);
  if (out.empty()) return Status();
  const Use use(*this);
  if (!use.status().ok()) return use.status();
  std::vector<LargePages::Memory> pieces;
  if (disk_->large_pages && out.size() >= copied_read_bytes)
    pieces = disk_->large_pages->take_all(out.size());
  if (pieces.empty()) return read_into(offset, {{out.data(), out.size()}});
  std::vector<iovec> iov;
  for (const auto& piece : pieces) iov.push_back({piece.get(), piece.get_deleter().bytes});
  // Of its copy of `iov` nothing is left.
  if (Status s = read_into(offset, iov); !s.ok()) return s;
  std::byte* to = out.data();
  for (const iovec& piece : iov) {
    std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
  return Status();
}

Status PosixFile::read_into(uint64_t offset, std::vector<iovec> iov) {
  const uint64_t begin = offset, length = iov_bytes(iov);
  while (!iov.empty()) {
    const ssize_t n = uninterrupted(
        [&] { return ::preadv(fd_, iov.data(), iov_count(iov), static_cast<off_t>(offset)); });
    if (n < 0) return failed_read(errno, begin, length);
    offset += static_cast<uint64_t>(n);
    iov_advance(&iov, static_cast<uint64_t>(n));
    // At the end of a file whose size is no whole block, direct I/O cannot go on from there.
    if (n == 0 || (!iov.empty() && offset >= size_bytes())) {
      return Status(EIO, name() + ": read at " + std::to_string(begin) + "+" +
                             std::to_string(length) + ": the file ends at " +
                             std::to_string(size_bytes()));
    }
  }
  return Status();
}

Status PosixFile::failed_read(int error, uint64_t offset, uint64_t length) const {
  return Status(code_of_failed_read(error), failed(error, "read", offset, length).what());
}

Status PosixFile::write(uint64_t offset, std::span<const std::byte> data) {
  const int error = write_all(offset, {{const_cast<std::byte*>(data.data()), data.size()}});
  return error ? failed(error, "write", offset, data.size()) : Status();
}

int PosixFile::write_all(uint64_t offset, std::vector<iovec> iov) {
  require(whole_blocks(offset, iov_bytes(iov)), in_blocks);
  const Use use(*this);
  if (!use.status().ok()) return use.status().code();
  int error = 0;
  for (iov_advance(&iov, 0); !iov.empty() && !error;) {
    require(aligned(iov.front().iov_base) || offset % block_bytes != 0, "memory is aligned");
    const ssize_t n = uninterrupted(
        [&] { return ::pwritev(fd_, iov.data(), iov_count(iov), static_cast<off_t>(offset)); });
    if (n <= 0) {
      error = n < 0 ? errno : EIO;
    } else {
      offset += static_cast<uint64_t>(n);
      iov_advance(&iov, static_cast<uint64_t>(n));
    }
  }
  if (!disk_->in_place) disk_->dirty.add(fd_);
  unflushed_ = true;
  return error;
}

Status PosixFile::flush() {
  // Also of a file that is parked: a flush of one file covers others. It waits for a descriptor,
  // since an error here would end the store.
  for (;; std::this_thread::sleep_for(retry_interval)) {
    if (const int before = disk_->flush_error)
      return failed(before, "flush, after one that failed");
    const Status opened = begin_use();
    if (opened.ok()) break;
    if (!is_lack(opened.code())) return opened;
  }
  const Status flushed = flush_open();
  end_use();
  return flushed;
}

Status PosixFile::flush_open() {
  unflushed_ = false;
  if (const int error = disk_->in_place ? flush_in_place() : disk_->dirty.flush(fd_)) {
    disk_->flush_error = error;
    return failed(error, "flush");
  }
  // Another one, as of a file that was parked for this one's descriptor, may have lost what this
  // was to cover.
  if (const int beside = disk_->flush_error) return failed(beside, "flush, beside one that failed");
  may_have_moved_ = false;
  return Status();
}

int PosixFile::flush_in_place() {
  const bool may_have_moved = own_flush_ || may_have_moved_;
  return disk_->is_ext4 && may_have_moved ? flush_moved_file(fd_) : flush_file(fd_);
}

Status PosixFile::allocate(uint64_t offset, uint64_t length) {
  require(whole_blocks(offset, length), in_blocks);
  if (length == 0) return Status();
  const Use use(*this);
  if (!use.status().ok()) return use.status();
  unflushed_ = true;
  const int result = uninterrupted([&] {
    return ::fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(length));
  });
  return result == 0 ? Status() : failed(errno, "allocate", offset, length);
}

Status PosixFile::write_zeroes(uint64_t offset, uint64_t length) {
  require(whole_blocks(offset, length), in_blocks);
  if (length == 0) return Status();
  const Use use(*this);
  if (!use.status().ok()) return use.status();
  unflushed_ = true;
  if (!disk_->write_zeroes_unsupported.load(std::memory_order_relaxed)) {
    const int result = uninterrupted([&] {
      return ::fallocate(fd_, FALLOC_FL_WRITE_ZEROES, static_cast<off_t>(offset),
                         static_cast<off_t>(length));
    });
    if (result == 0) return Status();
    if (errno != EOPNOTSUPP && errno != EINVAL) {
      return failed(errno, "write zeroes", offset, length);
    }
    disk_->write_zeroes_unsupported.store(true, std::memory_order_relaxed);
  }
  // One large allocation rather than one for each piece that is written.
  if (Status s = allocate(offset, length); !s.ok()) return s;
  return write_zero_bytes(offset, length);
}

Status PosixFile::write_zero_bytes(uint64_t offset, uint64_t length) {
  while (length) {
    const uint64_t piece = std::min<uint64_t>(length, zeros_bytes);
    if (Status s = write(offset, zeros().span().first(piece)); !s.ok()) return s;
    offset += piece;
    length -= piece;
  }
  return Status();
}

Status PosixFile::punch(uint64_t offset, uint64_t length) {
  require(whole_blocks(offset, length), in_blocks);
  if (length == 0) return Status();
  const Use use(*this);
  if (!use.status().ok()) return use.status();
  unflushed_ = true;
  const int result = uninterrupted([&] {
    return ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(length));
  });
  return result == 0 ? Status() : failed(errno, "punch", offset, length);
}

Result<std::vector<ByteRange>> PosixFile::unwritten(std::vector<ByteRange>* holes) {
  if (holes) holes->clear();
  const Use use(*this);
  if (!use.status().ok()) return use.status();
  struct stat st;
  if (::fstat(fd_, &st) != 0) return failed(errno, "cannot be examined");
  const uint64_t size = uint64_t(st.st_size);
  if (size == 0) return std::vector<ByteRange>{};
  bool has_map = false;
  std::vector<ByteRange> ranges{{0, size}};
  if (disk_->in_place)
    if (int error = find_unwritten(fd_, size, &ranges, holes, &has_map))
      return failed(error, "list extents");
  constexpr uint64_t stat_block_bytes = 512;
  if (holes && !has_map && uint64_t(st.st_blocks) * stat_block_bytes < size)
    holes->assign(1, {0, size});
  return ranges;
}

// Only ranges that are not plain: a sector of others that is being overwritten when the power goes
// may hold anything afterwards. What is written here replaces what reads the same.
Result<uint64_t> PosixFile::make_plain() {
  if (!disk_->in_place) return uint64_t(0);
  auto ranges = unwritten();
  if (!ranges.ok()) return ranges.status();
  uint64_t bytes = 0;
  for (const ByteRange& range : *ranges) {
    if (Status s = rewrite(range); !s.ok()) return s;
    bytes += range.length;
  }
  if (!bytes) return bytes;
  {
    const Use use(*this);
    if (!use.status().ok()) return use.status();
    const int error = end_copies_on_write();
    if (is_lack_of_space(error))
      own_flush_ = true;  // until watch() has done it
    else if (error)
      return failed(error, "unshare");
  }
  if (Status s = flush(); !s.ok()) return s;
  auto left = unwritten();
  if (!left.ok()) return left.status();
  if (!left->empty()) disk_->each_needs_own_flush = true;
  return bytes;
}

Status PosixFile::rewrite(const ByteRange& range) {
  BlockMemory memory(std::min<uint64_t>(range.length, zeros_bytes));
  for (uint64_t done = 0; done < range.length; done += memory.size()) {
    const auto piece =
        memory.span().first(std::min<uint64_t>(range.length - done, memory.size()));
    const Status found = read(range.offset + done, piece);
    if (found.code() == EIO) continue;  // whoever needs it meets that himself
    if (!found.ok()) return found;
    if (Status s = write(range.offset + done, piece); !s.ok()) return s;
  }
  return Status();
}

// The flag is set before somebody who waits in open() goes on, and so before anything that he does.
// It is cleared when nobody else has the file open, and nobody can have it before the next call.
Result<Sharing> PosixFile::watch(bool look) {
  if (!disk_->in_place) return Sharing::none;
  // Nothing was written to a file that is parked; it is looked at when it is opened again.
  if (!begin_use_if_open()) return own_flush_ ? Sharing::shared : Sharing::none;
  auto seen = watch_open(look);
  end_use();
  return seen;
}

Result<Sharing> PosixFile::watch_open(bool look) {
  if (!disk_->in_place) return Sharing::none;
  if (lease_.held()) {
    if (lease_.is_wanted()) {
      own_flush_ = true;
      lease_.give_back();
      return Sharing::opened;
    }
    if (!look && !own_flush_) return Sharing::none;
    return look_at_extents();
  }
  const int error = lease_.take();
  if (error == EAGAIN) {
    own_flush_ = true;
    return Sharing::opened;
  }
  if (error && !look) return own_flush_ ? Sharing::shared : Sharing::unguarded;
  auto seen = look_at_extents();
  if (error && seen.ok() && *seen == Sharing::none) return Sharing::unguarded;
  return seen;
}

Result<Sharing> PosixFile::look_at_extents() {
  bool shared;
  if (const int error = find_shared(fd_, size_bytes(), &shared)) {
    return failed(error, "list extents");
  }
  if (shared) {
    if (own_flush_.exchange(true)) return Sharing::shared;
    // Found by looking: what has moved since the copy was made is made durable now.
    if (Status s = flush_open(); !s.ok()) return s;
    return Sharing::shared;
  }
  refresh_transaction();
  // Somebody may have had it journalled (chattr +j): then it is written through the page cache.
  if (disk_->is_ext4 && !direct_is_honoured(fd_)) {
    own_flush_ = true;
    return Sharing::opened;
  }
  if (own_flush_ || !looked_) {
    const int error = end_copies_on_write();
    if (is_lack_of_space(error)) {  // it wants a little: later, then
      own_flush_ = true;
      return Sharing::opened;
    }
    if (error) return failed(error, "unshare");
  }
  looked_ = true;
  if (!own_flush_) return Sharing::none;
  if (Status s = flush_open(); !s.ok()) return s;
  // The kernel lets in whoever has waited for too long.
  if (lease_.held() && lease_.is_wanted()) return Sharing::opened;
  own_flush_ = false;
  return Sharing::none;
}

// ext4 before 6.15 asks for no flush of the device where the transaction in which the file's
// extents changed last is 2^31 or more behind: it takes that for one to come. So space that is
// there already is given to it, which counts as a change. Not to a container, which may have a hole
// there: where a container's flush is waited for, its extents have changed just now. Where it fails
// the next look tries again.
void PosixFile::refresh_transaction() {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (!disk_->is_ext4 || can_park_ || (refreshed_ && now - *refreshed_ < 1h)) return;
  if (::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, off_t(block_bytes)) == 0) refreshed_ = now;
}

// Unsharing gives up what XFS keeps ready, all of it, where it finds nothing shared and no page of
// the file waits to be written. So it is asked to unshare what nobody could have shared, behind the
// end, which dirties no page, and the space that it gives there is given back. (What it is asked to
// unshare it writes where that was kept ready, but it looks for that behind the end of an extent
// only: of a range in the middle of one it leaves it there, and dirties pages beside it.)
int PosixFile::end_copies_on_write() {
  if (disk_->unshare_unsupported) return 0;
  const auto behind_the_end = off_t(size_bytes());
  // Kernels before 6.5, and files whose extents are to be larger, get more than was asked for.
  constexpr off_t all_of_it = off_t(1) << 40;
  for (const auto& [mode, length] :
       {std::pair(FALLOC_FL_UNSHARE_RANGE, off_t(block_bytes)),
        std::pair(FALLOC_FL_PUNCH_HOLE, all_of_it)}) {
    const int result = uninterrupted([&, mode = mode, length = length] {
      return ::fallocate(fd_, mode | FALLOC_FL_KEEP_SIZE, behind_the_end, length);
    });
    if (result == 0) continue;
    if (errno != EOPNOTSUPP && errno != EINVAL) return errno;
    disk_->unshare_unsupported = true;
    return 0;
  }
  return 0;
}

std::string PosixFile::name() const { return disk_->directory + "/" + path_; }

Status PosixFile::failed(int error, const char* doing) const {
  return Status::from_errno(error, name() + ": " + doing);
}

Status PosixFile::failed(int error, const char* doing, uint64_t offset, uint64_t length) const {
  return Status::from_errno(error, name() + ": " + doing + " at " + std::to_string(offset) + "+" +
                                       std::to_string(length));
}

}  // namespace tablestore
