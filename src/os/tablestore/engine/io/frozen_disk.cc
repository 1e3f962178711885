#include "os/tablestore/engine/io/frozen_disk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "os/tablestore/engine/io/frozen_table_fs.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {

namespace {

// What has become of one file. Thread-safe.
class FrozenContent {
 public:
  // `below` is null where the file is new.
  explicit FrozenContent(std::unique_ptr<File> below)
      : below_(std::move(below)), size_(below_ ? below_->size_bytes() : 0), below_size_(size_) {}

  uint64_t size() const {
    std::lock_guard lock(mutex_);
    return size_;
  }
  File* below() const { return below_.get(); }

  Status read(const std::string& path, uint64_t offset, std::span<std::byte> out) {
    // Most files: others may read at the same time.
    if (!is_changed_ && offset + out.size() <= below_size_) return below_->read(offset, out);
    std::lock_guard lock(mutex_);
    if (offset + out.size() > size_)
      return Status(EIO, path + ": read at " + std::to_string(offset) + "+" +
                             std::to_string(out.size()) + ": the file ends at " +
                             std::to_string(size_));
    const uint64_t end = offset + out.size();
    for (uint64_t at = offset; at < end;) {
      const auto next = blocks_.lower_bound(at / block_bytes);
      const uint64_t changed = next == blocks_.end() ? end : next->first * block_bytes;
      const auto piece = out.subspan(at - offset, std::min(std::max(changed, at), end) - at);
      if (!piece.empty()) {
        if (Status s = read_below(at, piece); !s.ok()) return s;
        at += piece.size();
        continue;
      }
      const auto block = out.subspan(at - offset, block_bytes);
      if (next->second)
        std::memcpy(block.data(), next->second->data(), block_bytes);
      else
        std::memset(block.data(), 0, block_bytes);
      at += block_bytes;
    }
    return {};
  }

  // Without data: zeros.
  void write(uint64_t offset, uint64_t length, const std::byte* data) {
    std::lock_guard lock(mutex_);
    is_changed_ = true;
    for (uint64_t done = 0; done < length; done += block_bytes) {
      auto& block = blocks_[(offset + done) / block_bytes];
      block = data ? std::make_unique<Block>() : nullptr;
      if (data) std::memcpy(block->data(), data + done, block_bytes);
    }
    size_ = std::max(size_, offset + length);
  }

  void grow(uint64_t size) {
    std::lock_guard lock(mutex_);
    size_ = std::max(size_, size);
  }

 private:
  using Block = std::array<std::byte, block_bytes>;

  Status read_below(uint64_t offset, std::span<std::byte> out) {
    const uint64_t there =
        offset < below_size_ ? std::min<uint64_t>(out.size(), below_size_ - offset) : 0;
    std::memset(out.data() + there, 0, out.size() - there);
    return there > 0 ? below_->read(offset, out.first(there)) : Status();
  }

  const std::unique_ptr<File> below_;
  mutable std::mutex mutex_;
  uint64_t size_;
  const uint64_t below_size_;
  std::atomic<bool> is_changed_{false};
  std::map<uint64_t, std::unique_ptr<Block>> blocks_;  // that were written; null: zeros
};

class FrozenFile : public File {
 public:
  FrozenFile(std::string path, std::shared_ptr<FrozenContent> content)
      : path_(std::move(path)), content_(std::move(content)) {}

  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override { return content_->size(); }
  Status read(uint64_t offset, std::span<std::byte> out) override {
    return content_->read(path_, offset, out);
  }
  Status write(uint64_t offset, std::span<const std::byte> data) override {
    content_->write(offset, data.size(), data.data());
    return {};
  }
  Status flush() override { return {}; }
  Status allocate(uint64_t offset, uint64_t length) override {
    content_->grow(offset + length);
    return {};
  }
  Status write_zeroes(uint64_t offset, uint64_t length) override {
    content_->write(offset, length, nullptr);
    return {};
  }
  Status punch(uint64_t offset, uint64_t length) override { return write_zeroes(offset, length); }
  Result<std::vector<ByteRange>> unwritten(std::vector<ByteRange>* holes) override {
    if (content_->below()) return content_->below()->unwritten(holes);
    if (holes) holes->clear();
    return std::vector<ByteRange>{};
  }
  void let_park() override {
    if (content_->below()) content_->below()->let_park();
  }

 private:
  const std::string path_;
  const std::shared_ptr<FrozenContent> content_;
};

// Does everything at once, and tells about it at reap().
class FrozenQueue : public WriteQueue {
 public:
  void submit(std::span<WriteOp* const> ops, Begin) override {
    std::lock_guard lock(mutex_);
    for (WriteOp* op : ops) {
      uint64_t offset = op->offset;
      op->first_error = 0;
      for (const iovec& part : op->iov) {
        const std::span data(static_cast<const std::byte*>(part.iov_base), part.iov_len);
        if (const Status s = op->file->write(offset, data); !s.ok()) op->first_error = s.code();
        offset += part.iov_len;
      }
      completed_.push_back(op);
    }
    requests_ += ops.size();
    ready_.notify_one();
  }
  size_t reap(bool wait) override {
    std::deque<WriteOp*> completed;
    {
      std::unique_lock lock(mutex_);
      if (wait) ready_.wait(lock, [this] { return woken_ || !completed_.empty(); });
      if (wait) woken_ = false;
      completed.swap(completed_);
    }
    for (WriteOp* op : completed) op->done(*op, op->first_error);
    return completed.size();
  }
  void wake() override {
    std::lock_guard lock(mutex_);
    woken_ = true;
    ready_.notify_one();
  }
  uint64_t requests() const override { return requests_; }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<WriteOp*> completed_;
  bool woken_ = false;
  std::atomic<uint64_t> requests_{0};
};

// `mutex_` guards the names.
class FrozenDisk : public Disk {
 public:
  explicit FrozenDisk(std::shared_ptr<Disk> below)
      : below_(std::move(below)), table_fs_(freeze_table_fs(below_->table_fs())) {}

  const std::string& name() const override { return below_->name(); }
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& dir) override;
  Status make_dir(const std::string&) override { return {}; }
  Status remove(const std::string& path) override;
  Status rename(const std::string& from, const std::string&) override { return refused(from); }
  Status remove_tree(const std::string& dir) override { return refused(dir); }
  Status sync_dir(const std::string&) override { return {}; }
  Result<bool> flush_all() override { return true; }
  Result<DiskSpace> space() override { return below_->space(); }
  std::unique_ptr<WriteQueue> make_write_queue() override {
    return std::make_unique<FrozenQueue>();
  }
  std::shared_ptr<rocksdb::FileSystem> table_fs() override { return table_fs_; }
  std::string table_path(const std::string& path) const override {
    return below_->table_path(path);
  }

 private:
  Status refused(const std::string& path) const {
    return Status(EROFS, name() + "/" + path + ": the store is open for reading");
  }
  // With mutex_ held. What is known of the path: null where it was removed.
  std::optional<std::shared_ptr<FrozenContent>> known(const std::string& path) const {
    const auto it = files_.find(path);
    if (it == files_.end()) return std::nullopt;
    return it->second;
  }

  const std::shared_ptr<Disk> below_;
  const std::shared_ptr<rocksdb::FileSystem> table_fs_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<FrozenContent>> files_;  // null: it was removed
  std::set<std::string> new_;  // of files_: that were made here
};

Result<std::unique_ptr<File>> FrozenDisk::open(const std::string& path, OpenMode mode) {
  std::lock_guard lock(mutex_);
  auto file = [&](std::shared_ptr<FrozenContent> content) {
    return std::unique_ptr<File>(std::make_unique<FrozenFile>(path, std::move(content)));
  };
  const auto before = known(path);
  if (mode == OpenMode::create_new) {
    const auto below = before ? Result<bool>(*before != nullptr) : below_->exists(path);
    if (!below.ok()) return below.status();
    if (*below) return Status::from_errno(EEXIST, name() + "/" + path);
    new_.insert(path);
    return file(files_[path] = std::make_shared<FrozenContent>(nullptr));
  }
  if (before && *before) return file(*before);
  if (before) return Status::from_errno(ENOENT, name() + "/" + path);
  auto below = below_->open(path, OpenMode::read_only);
  if (!below.ok()) return below;
  return file(files_[path] = std::make_shared<FrozenContent>(below.take()));
}

Result<bool> FrozenDisk::exists(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (const auto before = known(path)) return *before != nullptr;
  return below_->exists(path);
}

Result<std::vector<std::string>> FrozenDisk::list(const std::string& dir) {
  std::lock_guard lock(mutex_);
  auto names = below_->list(dir);
  if (!names.ok()) return names;
  std::erase_if(*names, [&](const std::string& name) {
    const auto before = known(dir + "/" + name);
    return before && !*before;
  });
  for (const std::string& path : new_)
    if (path.starts_with(dir + "/") && path.find('/', dir.size() + 1) == path.npos)
      names->push_back(path.substr(dir.size() + 1));
  std::ranges::sort(*names);
  return names;
}

Status FrozenDisk::remove(const std::string& path) {
  std::lock_guard lock(mutex_);
  files_[path] = nullptr;
  new_.erase(path);
  return {};
}

}  // namespace

std::shared_ptr<Disk> freeze(std::shared_ptr<Disk> below) {
  return std::make_shared<FrozenDisk>(std::move(below));
}

}  // namespace tablestore
