#include "test/tablestore/engine/memory_disk.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "os/tablestore/engine/require.h"
#include "test/tablestore/paths.h"

namespace rocksdb {
// Never made: a shared_ptr that is always empty needs the name only.
class FileSystem;
}  // namespace rocksdb

namespace tablestore {
namespace {

void require_aligned(uint64_t offset, uint64_t length) {
  require(offset % block_bytes == 0 && length % block_bytes == 0, "direct I/O is in whole blocks");
}

}  // namespace

class MemoryDisk::OpenFile : public File {
 public:
  OpenFile(MemoryDisk& disk, std::string path, std::shared_ptr<Content> content, bool writable)
      : disk_(disk), path_(std::move(path)), content_(std::move(content)), writable_(writable) {}

  ~OpenFile() override {
    std::lock_guard lock(disk_.mutex_);
    if (writable_) content_->locked = false;
    // An unlinked file gives its space back when the last one closes it.
    if (content_.use_count() == 1) disk_.used_blocks_ -= disk_.used_blocks(*content_);
    content_ = nullptr;
  }

  const std::string& path() const override { return path_; }

  uint64_t size_bytes() const override {
    std::lock_guard lock(disk_.mutex_);
    return content_->size;
  }

  Status read(uint64_t offset, std::span<std::byte> out) override {
    require_aligned(offset, out.size());
    std::lock_guard lock(disk_.mutex_);
    if (Status s = disk_.enter(Operation::read, path_, offset, out.size()); !s.ok()) return s;
    if (offset + out.size() > content_->size) return Status(EIO, path_ + " ends before");
    for (uint64_t at = 0; at < out.size(); at += block_bytes) {
      auto block = content_->blocks.find((offset + at) / block_bytes);
      if (block == content_->blocks.end()) {
        std::memset(out.data() + at, 0, block_bytes);
      } else {
        std::memcpy(out.data() + at, block->second.data(), block_bytes);
      }
    }
    return {};
  }

  Status write(uint64_t offset, std::span<const std::byte> data) override {
    require_aligned(offset, data.size());
    std::lock_guard lock(disk_.mutex_);
    if (Status s = begin(Operation::write, offset, data.size(), Extent::written); !s.ok()) return s;
    for (uint64_t at = 0; at < data.size(); at += block_bytes) {
      Block& block = content_->blocks[(offset + at) / block_bytes];
      std::memcpy(block.data(), data.data() + at, block_bytes);
    }
    return {};
  }

  Status flush() override {
    std::lock_guard lock(disk_.mutex_);
    return disk_.enter(Operation::flush, path_);
  }

  Status allocate(uint64_t offset, uint64_t length) override {
    std::lock_guard lock(disk_.mutex_);
    return begin(Operation::allocate, offset, length, Extent::allocated);
  }

  Status write_zeroes(uint64_t offset, uint64_t length) override {
    std::function<void()> hook;
    {
      std::lock_guard lock(disk_.mutex_);
      hook = disk_.before_write_zeroes_;
    }
    if (hook) hook();
    std::lock_guard lock(disk_.mutex_);
    if (Status s = begin(Operation::write_zeroes, offset, length, Extent::written); !s.ok()) {
      return s;
    }
    erase_blocks(offset, length);
    return {};
  }

  Status punch(uint64_t offset, uint64_t length) override {
    std::lock_guard lock(disk_.mutex_);
    if (Status s = disk_.enter(Operation::punch, path_, offset, length); !s.ok()) return s;
    require(offset + length <= content_->size, "a hole lies in its file");
    for (uint64_t i = offset / block_bytes; i < (offset + length) / block_bytes; ++i) {
      if (content_->extents[i] != Extent::hole) --disk_.used_blocks_;
      content_->extents[i] = Extent::hole;
    }
    erase_blocks(offset, length);
    return {};
  }

  Result<std::vector<ByteRange>> unwritten(std::vector<ByteRange>* holes) override {
    std::lock_guard lock(disk_.mutex_);
    if (holes) *holes = ranges([](Extent extent) { return extent == Extent::hole; });
    return ranges([](Extent extent) { return extent != Extent::written; });
  }

 private:
  Status begin(Operation operation, uint64_t offset, uint64_t length, Extent state) {
    require(writable_, "a file that changes is open for writing");
    require_aligned(offset, length);
    if (Status s = disk_.enter(operation, path_, offset, length); !s.ok()) return s;
    return disk_.extend(*content_, offset, length, state);
  }

  template <typename Is>
  std::vector<ByteRange> ranges(Is is) const {
    std::vector<ByteRange> ranges;
    for (uint64_t i = 0; i < content_->extents.size(); ++i) {
      if (!is(content_->extents[i])) continue;
      if (!ranges.empty() && ranges.back().offset + ranges.back().length == i * block_bytes) {
        ranges.back().length += block_bytes;
      } else {
        ranges.push_back({i * block_bytes, block_bytes});
      }
    }
    return ranges;
  }

  void erase_blocks(uint64_t offset, uint64_t length) {
    auto& blocks = content_->blocks;
    blocks.erase(blocks.lower_bound(offset / block_bytes),
                 blocks.lower_bound((offset + length) / block_bytes));
  }

  MemoryDisk& disk_;
  const std::string path_;
  std::shared_ptr<Content> content_;
  const bool writable_;
};

// Does everything at once, and tells about it at reap().
class MemoryDisk::Queue : public WriteQueue {
 public:
  void submit(std::span<WriteOp* const> ops, Begin) override {
    for (WriteOp* op : ops) {
      int error = 0;
      uint64_t offset = op->offset;
      for (const iovec& part : op->iov) {
        const auto* data = static_cast<const std::byte*>(part.iov_base);
        const Status s = op->file->write(offset, {data, part.iov_len});
        if (!s.ok()) error = s.code();
        offset += part.iov_len;
      }
      complete([op, error] { op->done(*op, error); });
    }
    requests_ += ops.size();
  }

  size_t reap(bool wait) override {
    std::deque<std::function<void()>> completed;
    {
      std::unique_lock lock(mutex_);
      if (wait) ready_.wait(lock, [this] { return woken_ || !completed_.empty(); });
      if (wait) woken_ = false;
      completed.swap(completed_);
    }
    for (auto& done : completed) done();
    return completed.size();
  }

  void wake() override {
    std::lock_guard lock(mutex_);
    woken_ = true;
    ready_.notify_one();
  }

  uint64_t requests() const override { return requests_; }

 private:
  void complete(std::function<void()> done) {
    std::lock_guard lock(mutex_);
    completed_.push_back(std::move(done));
    ready_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> completed_;
  std::atomic<uint64_t> requests_{0};
  bool woken_ = false;
};

MemoryDisk::MemoryDisk(uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}
MemoryDisk::~MemoryDisk() = default;

void MemoryDisk::fail(Operation operation, const std::string& prefix, int error, unsigned times) {
  std::lock_guard lock(mutex_);
  failures_.push_back({operation, prefix, error, times});
}

void MemoryDisk::before_write_zeroes(std::function<void()> hook) {
  std::lock_guard lock(mutex_);
  before_write_zeroes_ = std::move(hook);
}

void MemoryDisk::set_other_bytes(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  other_bytes_ = bytes;
}

std::vector<MemoryDisk::Call> MemoryDisk::take_calls() {
  std::lock_guard lock(mutex_);
  return std::exchange(calls_, {});
}

uint64_t MemoryDisk::used_bytes() const {
  std::lock_guard lock(mutex_);
  return used_blocks_ * block_bytes;
}

void MemoryDisk::truncate(const std::string& path, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  Content& content = *files_.at(path);
  used_blocks_ -= used_blocks(content);
  content.size = bytes;
  content.extents.resize(bytes / block_bytes, Extent::hole);
  content.blocks.erase(content.blocks.lower_bound(bytes / block_bytes), content.blocks.end());
  used_blocks_ += used_blocks(content);
}

Status MemoryDisk::enter(Operation operation, const std::string& path, uint64_t offset,
                         uint64_t length) {
  for (Failure& failure : failures_) {
    if (failure.times && failure.operation == operation && path.starts_with(failure.prefix)) {
      --failure.times;
      return Status::from_errno(failure.error, path);
    }
  }
  if (operation != Operation::read && operation != Operation::open &&
      operation != Operation::space) {
    calls_.push_back({operation, path, offset, length});
  }
  return {};
}

uint64_t MemoryDisk::used_blocks(const Content& content) const {
  return content.extents.size() -
         std::count(content.extents.begin(), content.extents.end(), Extent::hole);
}

uint64_t MemoryDisk::used_locked() const { return used_blocks_ * block_bytes + other_bytes_; }

Status MemoryDisk::extend(Content& content, uint64_t offset, uint64_t length, Extent state) {
  const uint64_t first = offset / block_bytes;
  const uint64_t end = (offset + length) / block_bytes;
  uint64_t holes = 0;
  for (uint64_t i = first; i < end; ++i) {
    holes += i >= content.extents.size() || content.extents[i] == Extent::hole;
  }
  if (used_locked() + holes * block_bytes > capacity_bytes_) {
    return Status::from_errno(ENOSPC, "memory");
  }
  if (content.extents.size() < end) content.extents.resize(end, Extent::hole);
  content.size = std::max(content.size, offset + length);
  used_blocks_ += holes;
  for (uint64_t i = first; i < end; ++i) {
    content.extents[i] = std::max(content.extents[i], state);
  }
  return {};
}

Result<std::unique_ptr<File>> MemoryDisk::open(const std::string& path, OpenMode mode) {
  std::lock_guard lock(mutex_);
  if (Status s = enter(Operation::open, path); !s.ok()) return s;
  auto it = files_.find(path);
  if (mode == OpenMode::create_new) {
    if (it != files_.end()) return Status::from_errno(EEXIST, path);
    if (!is_dir(parent_path(path))) return Status::from_errno(ENOENT, path);
    it = files_.emplace(path, std::make_shared<Content>()).first;
  }
  if (it == files_.end()) return Status::from_errno(ENOENT, path);
  if (!it->second) return Status::from_errno(EISDIR, path);
  const bool writable = mode != OpenMode::read_only;
  if (writable && std::exchange(it->second->locked, true)) return Status::from_errno(EBUSY, path);
  return std::unique_ptr<File>(std::make_unique<OpenFile>(*this, path, it->second, writable));
}

Result<bool> MemoryDisk::exists(const std::string& path) {
  std::lock_guard lock(mutex_);
  return files_.contains(path);
}

Result<std::vector<std::string>> MemoryDisk::list(const std::string& dir) {
  std::lock_guard lock(mutex_);
  if (!is_dir(dir)) return Status::from_errno(ENOENT, dir);
  return names_in(files_, dir);
}

Status MemoryDisk::make_dir(const std::string& dir) {
  std::lock_guard lock(mutex_);
  if (!is_dir(parent_path(dir))) return Status::from_errno(ENOENT, dir);
  files_.emplace(dir, nullptr);
  return {};
}

Status MemoryDisk::remove(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (Status s = enter(Operation::remove, path); !s.ok()) return s;
  unlink(path);
  return {};
}

Status MemoryDisk::rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(mutex_);
  if (Status s = enter(Operation::rename, from); !s.ok()) return s;
  const auto it = files_.find(from);
  if (it == files_.end() || !is_dir(parent_path(to))) return Status::from_errno(ENOENT, from);
  require(it->second && !it->second->locked, "a file that is renamed is not in use");
  if (files_.contains(to)) return Status::from_errno(EEXIST, to);
  files_.emplace(to, it->second);
  files_.erase(from);
  return {};
}

bool MemoryDisk::is_dir(const std::string& path) const {
  const auto it = files_.find(path);
  return path.empty() || (it != files_.end() && !it->second);
}

void MemoryDisk::unlink(const std::string& path) {
  auto it = files_.find(path);
  if (it == files_.end()) return;
  if (it->second.use_count() == 1) used_blocks_ -= used_blocks(*it->second);
  files_.erase(it);
}

Status MemoryDisk::remove_tree(const std::string& dir) {
  std::lock_guard lock(mutex_);
  for (const std::string& path : tree_of(files_, dir)) unlink(path);
  return {};
}

Status MemoryDisk::sync_dir(const std::string& dir) {
  std::lock_guard lock(mutex_);
  if (!is_dir(dir)) return Status::from_errno(ENOENT, dir);
  return enter(Operation::sync_dir, dir);
}

Result<bool> MemoryDisk::flush_all() {
  std::lock_guard lock(mutex_);
  if (!can_flush_all_) return false;
  if (Status s = enter(Operation::flush_all, ""); !s.ok()) return s;
  return true;
}

void MemoryDisk::can_flush_all(bool can) {
  std::lock_guard lock(mutex_);
  can_flush_all_ = can;
}

Result<DiskSpace> MemoryDisk::space() {
  std::lock_guard lock(mutex_);
  if (Status s = enter(Operation::space, ""); !s.ok()) return s;
  return DiskSpace{capacity_bytes_, capacity_bytes_ - std::min(capacity_bytes_, used_locked())};
}

std::unique_ptr<WriteQueue> MemoryDisk::make_write_queue() { return std::make_unique<Queue>(); }

std::shared_ptr<rocksdb::FileSystem> MemoryDisk::table_fs() { return nullptr; }

}  // namespace tablestore
