#include "os/tablestore/engine/log/log_ring.h"

#include <algorithm>

#include "os/tablestore/engine/require.h"

namespace tablestore {

namespace {

std::string segment_path(uint64_t n) { return "log/" + std::to_string(n); }

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

Result<std::unique_ptr<LogRing>> LogRing::open(Disk& disk, uint64_t log_bytes,
                                               uint64_t segment_bytes) {
  std::vector<std::unique_ptr<File>> segments;
  for (uint64_t n = 0; n < log_bytes / segment_bytes; ++n) {
    auto file = disk.open(segment_path(n), OpenMode::read_write);
    if (!file.ok()) return file.status();
    if ((*file)->size_bytes() != segment_bytes)
      return Status(EIO, (*file)->path() + ": log segment has " +
                             std::to_string((*file)->size_bytes()) + " bytes, expected " +
                             std::to_string(segment_bytes) +
                             "; it was cut or replaced: restore it or rebuild this store");
    if (auto s = (*file)->flush(); !s.ok()) return s;
    segments.push_back(file.take());
  }
  return std::unique_ptr<LogRing>(new LogRing(segment_bytes, std::move(segments)));
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
