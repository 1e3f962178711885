// A Disk, and its files, that pass everything on: what a test derives from to make one thing fail.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

class FileWrapper : public File {
 public:
  explicit FileWrapper(std::unique_ptr<File> below) : below_(std::move(below)) {}

  // Something that is written to this file goes to a queue, which knows the file below.
  virtual void queued([[maybe_unused]] const WriteOp& op) {}
  File& below() { return *below_; }

  const std::string& path() const override { return below_->path(); }
  uint64_t size_bytes() const override { return below_->size_bytes(); }
  Status read(uint64_t offset, std::span<std::byte> out) override {
    return below_->read(offset, out);
  }
  Status write(uint64_t offset, std::span<const std::byte> data) override {
    return below_->write(offset, data);
  }
  Status flush() override { return below_->flush(); }
  Status allocate(uint64_t offset, uint64_t length) override {
    return below_->allocate(offset, length);
  }
  Status write_zeroes(uint64_t offset, uint64_t length) override {
    return below_->write_zeroes(offset, length);
  }
  Status punch(uint64_t offset, uint64_t length) override { return below_->punch(offset, length); }
  Result<std::vector<ByteRange>> unwritten(std::vector<ByteRange>* holes = nullptr) override {
    return below_->unwritten(holes);
  }
  Result<uint64_t> make_plain() override { return below_->make_plain(); }
  Result<Sharing> watch(bool look) override { return below_->watch(look); }
  bool needs_own_flush() const override { return below_->needs_own_flush(); }
  void let_park() override { below_->let_park(); }
  Status hold() override { return below_->hold(); }
  void let_go() override { below_->let_go(); }

 private:
  const std::unique_ptr<File> below_;
};

// As thread-safe as what is below.
class DiskWrapper : public Disk {
 public:
  explicit DiskWrapper(std::shared_ptr<Disk> below) : below_(std::move(below)) {}
  // Of one that outlives it.
  explicit DiskWrapper(Disk& below) : below_(std::shared_ptr<Disk>(), &below) {}

  const std::string& name() const override { return below_->name(); }
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    auto file = below_->open(path, mode);
    if (!file.ok()) return file.status();
    return wrap(path, file.take());
  }
  Result<bool> exists(const std::string& path) override { return below_->exists(path); }
  Result<std::vector<std::string>> list(const std::string& dir) override {
    return below_->list(dir);
  }
  Status make_dir(const std::string& dir) override { return below_->make_dir(dir); }
  Status remove(const std::string& path) override { return below_->remove(path); }
  Status rename(const std::string& from, const std::string& to) override {
    return below_->rename(from, to);
  }
  Status remove_tree(const std::string& dir) override { return below_->remove_tree(dir); }
  Status sync_dir(const std::string& dir) override { return below_->sync_dir(dir); }
  Result<bool> flush_all() override { return below_->flush_all(); }
  Result<DiskSpace> space() override { return below_->space(); }
  std::vector<Concern> concerns() override { return below_->concerns(); }
  std::unique_ptr<WriteQueue> make_write_queue() override {
    return std::make_unique<Queue>(below_->make_write_queue());
  }
  std::shared_ptr<rocksdb::FileSystem> table_fs() override { return below_->table_fs(); }
  std::string table_path(const std::string& path) const override {
    return below_->table_path(path);
  }

 protected:
  // What open() gives for the file of that path.
  virtual std::unique_ptr<File> wrap([[maybe_unused]] const std::string& path,
                                     std::unique_ptr<File> file) {
    return file;
  }

 private:
  // Hands the files below to the queue below.
  class Queue : public WriteQueue {
   public:
    explicit Queue(std::unique_ptr<WriteQueue> below) : below_(std::move(below)) {}
    void submit(std::span<WriteOp* const> ops, Begin begin) override {
      for (WriteOp* op : ops)
        while (auto* file = dynamic_cast<FileWrapper*>(op->file)) {
          file->queued(*op);
          op->file = &file->below();
        }
      below_->submit(ops, begin);
    }
    size_t reap(bool wait) override { return below_->reap(wait); }
    void wake() override { below_->wake(); }
    uint64_t requests() const override { return below_->requests(); }

   private:
    const std::unique_ptr<WriteQueue> below_;
  };

  const std::shared_ptr<Disk> below_;
};

}  // namespace tablestore
