// The container files by number: found, made and removed.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "os/tablestore/engine/container/block_bitmap.h"
#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// Owns the open files. On disk: containers/<class>/<n>, class as two digits, n in decimal and
// unique over all classes, every file container_bytes long.
//
// A file is whole and durable before anything is put into it, so one that is shorter was being
// made when the process died and holds nothing; it stays closed, and is removed when the store is
// in use.
//
// One that is given to another class gets another number too, so that for recovery, which may find
// it under either name, one container was removed and another made.
//
// file(), exists() and visit_files() from any thread. All else from one thread at a time. `mutex_`
// guards the map; `visit_mutex_`, taken before it, keeps a file that is being visited from being
// closed.
class ContainerFiles {
 public:
  ContainerFiles(Disk& disk, uint64_t container_bytes);

  // Of a container that is there or not.
  static std::string path_of(uint32_t container, unsigned slot_class);

  // mkfs: the directories.
  static Status format(Disk& disk);

  struct Found {
    uint32_t container;
    unsigned slot_class;
    BlockBitmap unwritten;
    BlockBitmap holes;  // of these, the blocks that have no space
  };
  // Opens all that are there, in so many threads. Flushes all before it asks which blocks are
  // unwritten, so that what reads as written is durably so.
  Result<std::vector<Found>> open(unsigned threads);
  // Numbers of the files that are too short: as a rule they were being made at a crash.
  std::vector<uint32_t> incomplete() const;
  bool is_incomplete(uint32_t container) const;
  // Such a file gets its full length, durably so, keeps what it has, and is one as all others are.
  Result<Found> complete(uint32_t container);
  Status remove_incomplete();
  void close();

  // Called where a flush of a file or of a directory fails. What it was for is lost, and what
  // others had written may be as well: no later flush tells.
  void on_failed_flush(std::function<void(const Status&)> f) { failed_flush_ = std::move(f); }
  // An error is EIO, whatever its name is: a file system that is full is not among its reasons.
  Status flush(File& file) { return flushed(file.flush()); }
  // One has. Any other error of a call here costs only what the call was for.
  bool flush_failed() const { return flush_failed_; }

  // Durable, with all its space, when this returns. Where it fails, the file is removed, at once or
  // with the next remove_incomplete(), but where a flush has failed.
  enum class Space { allocated, written };
  Result<BlockBitmap> create(uint32_t container, unsigned slot_class,
                             Space space = Space::allocated);
  // Where it fails, the next remove_incomplete() tries again.
  Status remove(uint32_t container);
  // The file of `from`, of which nobody uses anything, is that of `to` from here on; durably so
  // when this returns. Where `from` still exists after an error, nothing has changed.
  Status rename(uint32_t from, uint32_t to, unsigned to_class);

  // For who knows that the container stays: one of its blocks is used, or held.
  File& file(uint32_t container) const;
  bool exists(uint32_t container) const;
  uint32_t blocks() const { return container_bytes_ / block_bytes; }
  // For a FileWatch: all that are there at the call and are not removed meanwhile.
  Status visit_files(const std::function<Status(File&)>& visitor) const;

 private:
  struct Open {
    std::unique_ptr<File> file;
    unsigned slot_class;
  };
  // As all files here are: nobody can share or move its blocks without being noticed.
  Result<std::unique_ptr<File>> open_watched(const std::string& path, OpenMode mode);
  Status flushed(const Status& s);
  Status sync_class(unsigned slot_class);
  struct Opening;
  Status list_class(unsigned slot_class, std::vector<Opening>* found);
  Status open_one(Opening& found);
  Status flush_all(std::vector<Opening>& found);
  Status add(Opening& found);
  Status fill_new(File& file, Space space);
  Result<BlockBitmap> unwritten_blocks(File& file, BlockBitmap* holes = nullptr) const;
  Status make_new(File& file, unsigned slot_class, Space space, BlockBitmap* unwritten);
  // Returns its class.
  unsigned close_one(uint32_t container);
  Status remove_last_incomplete();

  Disk& disk_;
  const uint64_t container_bytes_;
  std::function<void(const Status&)> failed_flush_ = [](const Status&) {};
  std::atomic<bool> flush_failed_{false};
  mutable std::mutex visit_mutex_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<uint32_t, Open> files_;
  std::vector<std::pair<uint32_t, unsigned>> incomplete_;  // or to be removed: container, class
};

}  // namespace tablestore
