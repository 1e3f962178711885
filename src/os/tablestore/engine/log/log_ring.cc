#include "os/tablestore/engine/log/log_ring.h"

#include <algorithm>

#include "os/tablestore/engine/require.h"

namespace tablestore {

namespace {

std::string segment_path(uint64_t n) { return "log/" + std::to_string(n); }

Status make_plain(File& file, const std::function<void(const std::string&)>& warn) {
  const auto bytes = file.make_plain();
  if (bytes.status().code() == ENOSPC)
    return Status(ENOSPC, bytes.status().what() +
                              "; the log was restored with holes, which need their space back: "
                              "make room for the whole of it");
  if (!bytes.ok()) return bytes.status();
  if (*bytes)
    warn(file.path() + ": " + std::to_string(*bytes) +
         " bytes of this log segment had no space of their own (a sparse or reflinked copy); they "
         "have been written anew");
  return {};
}

}  // namespace

Status LogRing::format(Disk& disk, uint64_t log_bytes, uint64_t segment_bytes) {
  if (auto s = disk.make_dir("log"); !s.ok()) return s;
  for (uint64_t n = 0; n < log_bytes / segment_bytes; ++n) {
    auto file = disk.open(segment_path(n), OpenMode::create_new);
    if (!file.ok()) return file.status();
    if (auto s = (*file)->write_zeroes(0, segment_bytes); !s.ok()) return s;
    if (auto s = (*file)->flush(); !s.ok()) return s;
  }
  return disk.sync_dir("log");
}

Result<std::unique_ptr<LogRing>> LogRing::open(
    Disk& disk, uint64_t log_bytes, uint64_t segment_bytes,
    const std::function<void(const std::string&)>& warn) {
  std::vector<std::unique_ptr<File>> segments;
  for (uint64_t n = 0; n < log_bytes / segment_bytes; ++n) {
    auto file = disk.open(segment_path(n), OpenMode::read_write);
    if (!file.ok()) return file.status();
    if ((*file)->size_bytes() != segment_bytes)
      return Status(EIO, (*file)->path() + ": log segment has " +
                             std::to_string((*file)->size_bytes()) + " bytes, expected " +
                             std::to_string(segment_bytes) +
                             "; it was cut or replaced: restore it or rebuild this store");
    // Before the look at its extents: what comes after that, the watch sees.
    if (auto seen = (*file)->watch(false); !seen.ok()) return seen.status();
    if (auto s = (*file)->flush(); !s.ok()) return s;
    if (auto s = make_plain(**file, warn); !s.ok()) return s;
    segments.push_back(file.take());
  }
  return std::unique_ptr<LogRing>(new LogRing(segment_bytes, std::move(segments)));
}

std::vector<File*> LogRing::files(uint64_t position, uint64_t length) {
  std::vector<File*> files;
  const uint64_t last = (position + length - 1) / segment_bytes_;
  for (uint64_t n = position / segment_bytes_; n <= last && files.size() < segments_.size(); ++n)
    files.push_back(segments_[n % segments_.size()].get());
  return files;
}

Status LogRing::visit_files(const std::function<Status(File&)>& visitor) {
  for (const auto& segment : segments_)
    if (auto s = visitor(*segment); !s.ok()) return s;
  return {};
}

std::vector<WriteOp> LogRing::make_writes(uint64_t position, std::span<const std::byte> data,
                                          void (*done)(WriteOp&, int), void* owner) {
  require(data.size() <= capacity_bytes(), "a group fits the log");
  std::vector<WriteOp> ops;
  while (!data.empty()) {
    const uint64_t offset = position % segment_bytes_;
    const uint64_t piece = std::min<uint64_t>(data.size(), segment_bytes_ - offset);
    WriteOp op;
    op.file = &file(position);
    op.offset = offset;
    op.iov = {{const_cast<std::byte*>(data.data()), piece}};
    op.done = done;
    op.owner = owner;
    ops.push_back(std::move(op));
    position += piece;
    data = data.subspan(piece);
  }
  return ops;
}

Status LogRing::write(uint64_t position, std::span<const std::byte> data) {
  for (WriteOp& op : make_writes(position, data, nullptr, nullptr)) {
    const std::span<const std::byte> piece(static_cast<const std::byte*>(op.iov[0].iov_base),
                                           op.iov[0].iov_len);
    if (auto s = op.file->write(op.offset, piece); !s.ok()) return s;
  }
  return {};
}

Status LogRing::read(uint64_t position, std::span<std::byte> out) {
  while (!out.empty()) {
    const uint64_t offset = position % segment_bytes_;
    const uint64_t piece = std::min<uint64_t>(out.size(), segment_bytes_ - offset);
    if (auto s = file(position).read(offset, out.first(piece)); !s.ok()) return s;
    position += piece;
    out = out.subspan(piece);
  }
  return {};
}

}  // namespace tablestore
