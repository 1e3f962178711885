// The container files by number: found, made and removed.
#pragma once

#include <memory>
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
// file(), exists(), read() from any thread; `mutex_` guards the map. All else from one thread at a
// time.
class ContainerFiles {
 public:
  ContainerFiles(Disk& disk, uint64_t container_bytes);

  // mkfs: the directories.
  static Status format(Disk& disk);

  struct Found {
    uint32_t container;
    unsigned slot_class;
    BlockBitmap unwritten;
  };
  // Opens all that are there. Flushes each before it asks which blocks are unwritten, so that what
  // reads as written is durably so.
  Result<std::vector<Found>> open();
  // Numbers of the files that were being made at a crash.
  std::vector<uint32_t> incomplete() const;
  Status remove_incomplete();
  void close();

  // Durable, with all its space, when this returns. Leaves no file behind where it fails for
  // ENOSPC.
  enum class Space { allocated, written };
  Result<BlockBitmap> create(uint32_t container, unsigned slot_class,
                             Space space = Space::allocated);
  Status remove(uint32_t container);
  // The file of `from`, of which nobody uses anything, is that of `to` from here on; durably so
  // when this returns. ENOSPC: nothing has changed.
  Status rename(uint32_t from, uint32_t to, unsigned to_class);

  File& file(uint32_t container);
  bool exists(uint32_t container) const;
  uint32_t blocks() const { return container_bytes_ / block_bytes; }

 private:
  struct Open {
    std::unique_ptr<File> file;
    unsigned slot_class;
  };
  Status open_class(unsigned slot_class, std::vector<Found>* found);
  Status fill_new(File& file, Space space);
  Result<BlockBitmap> unwritten_blocks(File& file) const;
  Status remove_path(uint32_t container, unsigned slot_class);

  Disk& disk_;
  const uint64_t container_bytes_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<uint32_t, Open> files_;
  std::vector<std::pair<uint32_t, unsigned>> incomplete_;  // container and class
};

}  // namespace tablestore
