// The log's space: a ring of segment files, sized and written ahead of use, addressed by one
// ever-growing position.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// Position p lies in segment (p / segment_bytes) % segments, at p % segment_bytes. Which positions
// are in use the commit lane knows. Thread-safe: nothing changes after open().
//
// On disk: log/<n>, n from 0, all of segment_bytes.
class LogRing {
 public:
  // mkfs: makes the segments and writes them full of zeros, so that no write of the log ever makes
  // the file system allocate or convert, and one flush suffices.
  static Status format(Disk& disk, uint64_t log_bytes, uint64_t segment_bytes);
  // Opens and flushes every segment, so that what reads as written is durably so. What is not
  // written, or shared with a copy, as after a restore, is made plain, and `warn` is told of it.
  // EIO: one is missing or short.
  static Result<std::unique_ptr<LogRing>> open(
      Disk& disk, uint64_t log_bytes, uint64_t segment_bytes,
      const std::function<void(const std::string&)>& warn = [](const std::string&) {});

  uint64_t capacity_bytes() const { return segments_.size() * segment_bytes_; }
  // [position, +length) as write requests, at most one per segment; `data` must live until they are
  // done. `done`, `owner` as in WriteOp.
  std::vector<WriteOp> make_writes(uint64_t position, std::span<const std::byte> data,
                                   void (*done)(WriteOp&, int), void* owner);
  Status write(uint64_t position, std::span<const std::byte> data);
  Status read(uint64_t position, std::span<std::byte> out);
  // The file at `position`. A flush of it covers the whole log, all of which is written extents,
  // but for files that need a flush of their own.
  File& file(uint64_t position) { return *segments_[position / segment_bytes_ % segments_.size()]; }
  // The files of [position, +length), each once.
  std::vector<File*> files(uint64_t position, uint64_t length);
  // For a FileWatch.
  Status visit_files(const std::function<Status(File&)>& visitor);

 private:
  LogRing(uint64_t segment_bytes, std::vector<std::unique_ptr<File>> segments)
      : segment_bytes_(segment_bytes), segments_(std::move(segments)) {}
  const uint64_t segment_bytes_;
  std::vector<std::unique_ptr<File>> segments_;
};

}  // namespace tablestore
