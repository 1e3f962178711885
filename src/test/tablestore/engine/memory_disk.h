// A Disk in memory, for unit tests: it counts space, records what is done to it, and fails on
// demand. It forgets nothing at a "crash"; the simulated disk is for that.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// Thread-safe: `mutex_` guards all of it, files included. There is no table_fs().
class MemoryDisk : public Disk {
 public:
  enum class Operation {
    open, read, write, flush, allocate, write_zeroes, punch, remove, rename, sync_dir, space,
    flush_all
  };

  explicit MemoryDisk(uint64_t capacity_bytes);
  ~MemoryDisk() override;

  // The next `times` operations of this kind on a path that begins with `prefix` fail.
  void fail(Operation operation, const std::string& prefix, int error, unsigned times = 1);
  // Runs at the beginning of every write_zeroes(), and may block.
  void before_write_zeroes(std::function<void()> hook);
  // Space that somebody else takes on the file system.
  void set_other_bytes(uint64_t bytes);
  // Whether flush_all() does anything; at first it does not.
  void can_flush_all(bool can);

  struct Call {
    Operation operation;
    std::string path;
    uint64_t offset = 0;
    uint64_t length = 0;
    bool operator==(const Call&) const = default;
  };
  // What was changed since the last take_calls().
  std::vector<Call> take_calls();
  // Bytes that files take from the capacity.
  uint64_t used_bytes() const;
  // Cuts or extends a file, as damage or a crash would.
  void truncate(const std::string& path, uint64_t bytes);

  const std::string& name() const override { return name_; }
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& dir) override;
  Status make_dir(const std::string& dir) override;
  Status remove(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove_tree(const std::string& dir) override;
  Status sync_dir(const std::string& dir) override;
  Result<bool> flush_all() override;
  Result<DiskSpace> space() override;
  std::unique_ptr<WriteQueue> make_write_queue() override;
  std::shared_ptr<rocksdb::FileSystem> table_fs() override;
  std::string table_path(const std::string& path) const override { return path; }

 private:
  class OpenFile;
  class Queue;
  using Block = std::array<std::byte, block_bytes>;
  enum class Extent : char { hole, allocated, written };
  struct Content {
    uint64_t size = 0;
    std::vector<Extent> extents;       // one per block
    std::map<uint64_t, Block> blocks;  // a written one that is not here reads as zeros
    bool locked = false;               // open for writing
  };
  struct Failure {
    Operation operation;
    std::string prefix;
    int error;
    unsigned times;
  };

  // With mutex_ held. An injected failure, or success; records the call.
  Status enter(Operation operation, const std::string& path, uint64_t offset = 0,
               uint64_t length = 0);
  // Makes [offset, +length) at least `state`, growing the file; ENOSPC with nothing changed.
  Status extend(Content& content, uint64_t offset, uint64_t length, Extent state);
  uint64_t used_blocks(const Content& content) const;
  uint64_t used_locked() const;
  bool is_dir(const std::string& path) const;
  void unlink(const std::string& path);

  const std::string name_ = "memory";
  const uint64_t capacity_bytes_;
  mutable std::mutex mutex_;
  uint64_t other_bytes_ = 0;
  bool can_flush_all_ = false;
  std::map<std::string, std::shared_ptr<Content>> files_;  // null: a directory
  uint64_t used_blocks_ = 0;
  std::vector<Failure> failures_;
  std::vector<Call> calls_;
  std::function<void()> before_write_zeroes_;
};

}  // namespace tablestore
