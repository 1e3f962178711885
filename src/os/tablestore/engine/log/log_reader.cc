#include "os/tablestore/engine/log/log_reader.h"

#include <algorithm>
#include <cstring>

#include "os/tablestore/engine/io/repeated_read.h"

namespace tablestore {

namespace {

// Something is damaged, or the disk cannot read it. Any other error is of the moment.
bool is_of_the_log(const Status& s) { return s.ok() || s.code() == EIO; }

}  // namespace

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

LogGroupHeader LogPosition::empty_group(const StoreUuid& store) const {
  LogGroupHeader header{};
  std::ranges::copy(store, header.store_uuid);
  header.epoch = epoch;
  header.position = position;
  header.first_lsn = next_lsn;
  header.watermark = next_lsn - 1;
  header.previous_crc = previous_crc;
  return header;
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
    if (position < not_ahead_until_) return ring_.read(position, out);
    const uint64_t lap_end = start_position_ + ring_.capacity_bytes();
    const uint64_t bytes = std::min<uint64_t>(ahead_.size(), lap_end - position);
    ahead_bytes_ = 0;
    if (bytes < out.size()) return ring_.read(position, out);
    if (!ring_.read(position, ahead_.span().first(bytes)).ok()) {
      not_ahead_until_ = position + bytes;
      return ring_.read(position, out);
    }
    ahead_position_ = position;
    ahead_bytes_ = bytes;
  }
  std::memcpy(out.data(), ahead_.data() + (position - ahead_position_), out.size());
  return {};
}

bool LogReader::follows(const LogGroupHeader& h) const {
  const bool begins_epoch = h.flags & LogGroupHeader::begins_epoch;
  const bool epoch_fits = begins_epoch ? h.epoch > at_.epoch : h.epoch == at_.epoch;
  return epoch_fits && h.previous_crc == at_.previous_crc && h.first_lsn == at_.next_lsn;
}

// No group reaches into the lap after: recovery would need what it overwrites.
bool LogReader::fits_the_lap(const LogGroupHeader& header, uint64_t position) const {
  return header.total_bytes() <= start_position_ + ring_.capacity_bytes() - position;
}

// The rest of a group that lies at `position`, whose first block has been read. False: its crc does
// not match.
Result<bool> LogReader::read_group(const LogGroupHeader& header, uint64_t position,
                                   std::span<const std::byte> first, LogGroup* group) {
  BlockMemory memory(header.total_bytes());
  std::memcpy(memory.data(), first.data(), block_bytes);
  if (auto s = read(position + block_bytes, memory.span().subspan(block_bytes)); !s.ok())
    return s;
  if (!crc_matches(header, memory.span())) return false;
  group->header = header;
  group->memory = std::move(memory);
  return true;
}

// False: there is none. EIO: one was begun, or nobody knows.
Result<bool> LogReader::read_next(LogGroup* group) {
  BlockMemory first(block_bytes);
  if (auto s = read(at_.position, first.span()); !s.ok()) return s;
  const auto header = parse_header(first.span(), uuid_, at_.position);
  if (!header || !follows(*header)) return false;
  if (fits_the_lap(*header, at_.position)) {
    auto found = read_group(*header, at_.position, first.span(), group);
    if (!found.ok() || *found) return found;
  }
  return Status(EIO, "a group of " + std::to_string(header->transactions) +
                         " transactions begins there, and not all of it is as it was written");
}

// The group without transactions at the end of the chain, as the one behind it says that it was.
// False: none says so.
Result<bool> LogReader::derive_empty(LogGroup* group) {
  const uint64_t behind = at_.position + block_bytes;
  if (behind - start_position_ + block_bytes > ring_.capacity_bytes()) return false;
  BlockMemory first(block_bytes);
  const Status seen = read_repeatedly([&] { return read(behind, first.span()); });
  if (!is_of_the_log(seen)) return seen;
  if (!seen.ok()) return false;
  const auto next = parse_header(first.span(), uuid_, behind);
  if (!next || next->first_lsn != at_.next_lsn || next->epoch < at_.epoch ||
      !fits_the_lap(*next, behind))
    return false;
  LogGroupHeader header = at_.empty_group(uuid_);
  if (next->epoch > at_.epoch && !(next->flags & LogGroupHeader::begins_epoch)) {
    header.epoch = next->epoch;
    header.flags = LogGroupHeader::begins_epoch;
  }
  LogGroupBuilder builder;
  builder.begin(0);
  const std::span<const std::byte> derived = builder.finish(header);
  if (next->previous_crc != builder.crc()) return false;
  LogGroup after;
  const auto intact =
      read_repeatedly([&] { return read_group(*next, behind, first.span(), &after); });
  if (!is_of_the_log(intact.status())) return intact.status();
  if (!intact.ok() || !*intact) return false;
  group->memory = BlockMemory(derived.size());
  std::memcpy(group->memory.data(), derived.data(), derived.size());
  std::memcpy(&group->header, derived.data(), sizeof(group->header));
  group->is_derived = true;
  return true;
}

Result<std::optional<LogGroup>> LogReader::next() {
  using Found = std::optional<LogGroup>;
  end_ = {};
  if (at_.position - start_position_ + block_bytes > ring_.capacity_bytes()) return Found();
  LogGroup group;
  const auto look = [&] {
    return read_repeatedly([&] {
      auto read = read_next(&group);
      if (!read.ok()) ahead_bytes_ = 0;
      return read;
    });
  };
  auto found = look();
  if (found.ok() && !*found) {
    // It may have come wrong just then, and what is here ends the log.
    ahead_bytes_ = 0;
    found = look();
  }
  if (!is_of_the_log(found.status())) return found.status();
  if (!found.ok() || !*found) {
    const auto derived = derive_empty(&group);
    if (!derived.ok()) return derived.status();
    if (!*derived) {
      if (!found.ok()) end_ = found.status();
      return Found();
    }
  }
  const LogGroupHeader& h = group.header;
  BlockMemory unpacked;
  const auto payload = unpack_payload(h, group.memory.span(), &unpacked);
  if (!payload.ok()) return payload.status();
  auto records = parse_records(h, *payload);
  if (!records.ok()) return records.status();
  group.saved_bytes = round_up_to_block(sizeof(h) + payload->size()) - h.total_bytes();
  if (unpacked.size() > 0) group.memory = std::move(unpacked);
  group.records = records.take();
  at_.position += h.total_bytes();
  at_.next_lsn += h.transactions;
  at_.epoch = h.epoch;
  at_.previous_crc = h.crc;
  return Found(std::move(group));
}

// A group is a witness wherever it lies: a disk that has written it to another place, over groups
// that it vouches for, has lost these and not what it says of them. There it may also begin before
// the log does, and end behind its beginning.
Status LogReader::look_at(std::span<const std::byte> block, uint64_t position,
                          const LogPosition& end, BeyondEnd* found) {
  const auto header = parse_header(block, uuid_);
  if (!header || header->epoch < end.epoch || header->position < end.position ||
      header->total_bytes() > ring_.capacity_bytes())
    return {};
  LogGroup group;
  const auto intact =
      read_repeatedly([&] { return read_group(*header, position, block, &group); });
  if (!is_of_the_log(intact.status())) return intact.status();
  if (!intact.ok() || !*intact) return {};
  found->epoch = std::max(found->epoch, header->epoch);
  found->durable_lsn = std::max(found->durable_lsn, header->watermark);
  return {};
}

Result<BeyondEnd> LogReader::look_beyond(const LogPosition& end, uint64_t window_bytes) {
  BeyondEnd found;
  found.epoch = end.epoch;
  const uint64_t lap_end = start_position_ + ring_.capacity_bytes();
  const uint64_t last = std::min(lap_end, end.position + window_bytes);
  BlockMemory chunk(256 * block_bytes);
  for (uint64_t p = end.position; p < last; p += chunk.size()) {
    const auto bytes = chunk.span().first(std::min<uint64_t>(chunk.size(), last - p));
    const bool all = ring_.read(p, bytes).ok();
    for (uint64_t at = 0; at < bytes.size(); at += block_bytes) {
      const auto block = bytes.subspan(at, block_bytes);
      const Status seen =
          all ? Status() : read_repeatedly([&] { return ring_.read(p + at, block); });
      if (!is_of_the_log(seen)) return seen;
      if (!seen.ok())
        found.unreadable.push_back(p + at);
      else if (auto s = look_at(block, p + at, end, &found); !s.ok())
        return s;
    }
  }
  return found;
}

}  // namespace tablestore
