#include "os/tablestore/engine/log/log_reader.h"

#include <algorithm>
#include <cstring>

namespace tablestore {

std::string LogPosition::encode() const {
  std::string row;
  auto append = [&row](const auto& field) {
    row.append(reinterpret_cast<const char*>(&field), sizeof(field));
  };
  append(position);
  append(next_lsn);
  append(epoch);
  append(previous_crc);
  return row;
}

std::optional<LogPosition> LogPosition::decode(std::string_view row) {
  LogPosition p;
  if (row.size() != 3 * sizeof(uint64_t) + sizeof(uint32_t)) return std::nullopt;
  std::memcpy(&p.position, row.data(), 8);
  std::memcpy(&p.next_lsn, row.data() + 8, 8);
  std::memcpy(&p.epoch, row.data() + 16, 8);
  std::memcpy(&p.previous_crc, row.data() + 24, 4);
  // No store lives to see these; below them, nothing that is added to them overflows.
  constexpr uint64_t limit = uint64_t(1) << 62;
  if (p.position % block_bytes != 0 || p.position >= limit || p.next_lsn == 0 ||
      p.next_lsn >= limit || p.epoch >= limit)
    return std::nullopt;
  return p;
}

// Most groups are small, so the log is read in large pieces. What lies beyond the chain may be
// unreadable without harm to it.
Status LogReader::read(uint64_t position, std::span<std::byte> out) {
  const bool is_ahead = position >= ahead_position_ &&
                        position + out.size() <= ahead_position_ + ahead_bytes_;
  if (!is_ahead) {
    const uint64_t lap_end = start_position_ + ring_.capacity_bytes();
    const uint64_t bytes = std::min<uint64_t>(ahead_.size(), lap_end - position);
    ahead_bytes_ = 0;
    if (bytes < out.size() || !ring_.read(position, ahead_.span().first(bytes)).ok())
      return ring_.read(position, out);
    ahead_position_ = position;
    ahead_bytes_ = bytes;
  }
  std::memcpy(out.data(), ahead_.data() + (position - ahead_position_), out.size());
  return {};
}

// False: no intact group lies there.
Result<bool> LogReader::read_group(uint64_t position, LogGroup* group) {
  BlockMemory first(block_bytes);
  if (auto s = read(position, first.span()); !s.ok()) return s;
  const auto header = parse_header(first.span(), uuid_, position);
  // No group reaches into the lap after: recovery would need what it overwrites.
  if (!header || header->total_bytes() > start_position_ + ring_.capacity_bytes() - position)
    return false;
  BlockMemory memory(header->total_bytes());
  std::memcpy(memory.data(), first.data(), block_bytes);
  if (auto s = read(position + block_bytes, memory.span().subspan(block_bytes)); !s.ok()) return s;
  if (!crc_matches(*header, memory.span())) return false;
  group->header = *header;
  group->memory = std::move(memory);
  return true;
}

Result<std::optional<LogGroup>> LogReader::next() {
  LogGroup group;
  if (at_.position - start_position_ + block_bytes > ring_.capacity_bytes())
    return std::optional<LogGroup>();
  auto found = read_group(at_.position, &group);
  if (!found.ok()) return found.status();
  const LogGroupHeader& h = group.header;
  const bool begins_epoch = h.flags & LogGroupHeader::begins_epoch;
  const bool epoch_fits = begins_epoch ? h.epoch > at_.epoch : h.epoch == at_.epoch;
  if (!*found || !epoch_fits || h.previous_crc != at_.previous_crc || h.first_lsn != at_.next_lsn)
    return std::optional<LogGroup>();
  auto records = parse_records(h, group.memory.span());
  if (!records.ok()) return records.status();
  group.records = records.take();
  at_.position += h.total_bytes();
  at_.next_lsn += h.transactions;
  at_.epoch = h.epoch;
  at_.previous_crc = h.crc;
  return std::optional<LogGroup>(std::move(group));
}

// A group that vouches for transactions of this chain's missing part, if one begins at `position`.
Result<bool> LogReader::proves_damage(std::span<const std::byte> block, uint64_t position) {
  const auto header = parse_header(block, uuid_, position);
  if (!header || header->epoch < at_.epoch || header->watermark < at_.next_lsn) return false;
  LogGroup group;
  return read_group(position, &group);
}

Status LogReader::expect_end(uint64_t window_bytes) {
  const uint64_t lap_end = start_position_ + ring_.capacity_bytes();
  const uint64_t end = std::min(lap_end, at_.position + window_bytes);
  BlockMemory chunk(256 * block_bytes);
  for (uint64_t p = at_.position + block_bytes; p < end; p += chunk.size()) {
    const auto bytes = chunk.span().first(std::min<uint64_t>(chunk.size(), end - p));
    if (auto s = ring_.read(p, bytes); !s.ok()) return s;
    for (uint64_t at = 0; at < bytes.size(); at += block_bytes) {
      auto proof = proves_damage(bytes.subspan(at, block_bytes), p + at);
      if (!proof.ok()) return proof.status();
      if (*proof)
        return Status(EIO, "log damaged at position " + std::to_string(at_.position) + " (" +
                               ring_.file(at_.position).path() + "): transaction " +
                               std::to_string(at_.next_lsn) +
                               " was durable and cannot be read; this store lost writes: do not "
                               "start it, recover its data from replicas");
    }
  }
  return {};
}

}  // namespace tablestore
