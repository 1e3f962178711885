// What the files and the write queues of one FileDisk have in common.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "os/tablestore/engine/io/dirty_files.h"
#include "os/tablestore/engine/io/large_pages.h"
#include "os/tablestore/engine/io/open_files.h"

namespace tablestore {

struct DiskState {
  std::string directory;  // as the operator knows it
  // Files are opened for direct I/O.
  bool direct = false;
  // Direct writes to written extents go to their place on the device, so that the device's cache is
  // all that a flush has to empty. Else (page cache, copy-on-write or unknown file system) a flush
  // is passed on to every file that was written since, and unwritten() knows nothing.
  bool in_place = false;
  // Files are opened for reading; see FileDiskOptions::read_only.
  bool read_only = false;
  std::atomic<bool> write_zeroes_unsupported{false};
  std::atomic<bool> unshare_unsupported{false};
  // A flush of one file covers no other one, though writes are direct: some lie on XFS's realtime
  // device, or every write goes to a new place, or may go through the page cache.
  std::atomic<bool> each_needs_own_flush{false};
  // It moves blocks of a file (EXT4_IOC_MOVE_EXT, as of e4defrag) in a transaction that fdatasync()
  // does not wait for; and see PosixFile::refresh_transaction().
  bool is_ext4 = false;
  // The first one, for ever: what a failed flush has lost no later one brings back.
  std::atomic<int> flush_error{0};
  DirtyFiles dirty;  // used only where !in_place
  OpenFiles open_files;  // those that can be parked
  std::shared_ptr<LargePages> large_pages;  // null: none, or not direct
};

}  // namespace tablestore
