#include "os/tablestore/engine/recovery.h"

#include <algorithm>

#include "os/tablestore/engine/commit/commit_lane.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/table/row_combiner.h"

namespace tablestore {

namespace {

// How far behind the log's end to look for proof that it should have gone on.
constexpr uint64_t damage_window_bytes = 16 << 20;
constexpr uint64_t replayed_bytes_max = 4 << 20;  // of rows, at once

class Recovery {
 public:
  explicit Recovery(RecoveryParts parts) : parts_(parts) {}
  Result<RecoveredLog> run();

 private:
  Status load_checkpoint();
  Status load_allocation_rows();
  Status read_log();
  Status check_records(const LogGroup& group) const;
  Result<uint32_t> checksum_of(const Run& run);
  Result<bool> data_is_there(const LogGroup& group);
  Status judge();
  Status replay();
  Status write_rows(RowCombiner* rows, uint64_t applied);
  Status checkpoint_if_log_is_filling(RecoveredLog* log);
  Status begin_epoch(RecoveredLog* log);

  RecoveryParts parts_;
  LogPosition start_;
  uint64_t applied_lsn_ = 0;
  std::vector<LogGroup> groups_;
  LogPosition end_;      // after the last group that is kept
};

Status damaged_row(const std::string& which) {
  return Status(EIO, "table: row " + which +
                         " is missing or damaged; this store cannot be opened: recover its data "
                         "from replicas");
}

Status Recovery::load_checkpoint() {
  std::string row;
  auto found = parts_.table.get(Family::super, engine_rows::log_start(), &row);
  if (!found.ok()) return found.status();
  const auto start = LogPosition::decode(row);
  if (!*found || !start) return damaged_row("log_start");
  start_ = *start;
  row.clear();
  found = parts_.table.get(Family::super, engine_rows::applied(), &row);
  if (!found.ok()) return found.status();
  if (*found) {
    const auto applied = engine_rows::decode_applied(row);
    if (!applied) return damaged_row("applied");
    applied_lsn_ = *applied;
  }
  return load_allocation_rows();
}

Status Recovery::load_allocation_rows() {
  const std::string begin(engine_rows::allocation_prefix);
  std::string end = begin;
  ++end.back();
  auto rows = parts_.table.iterate(Family::super, begin, end);
  for (rows->seek_to_first(); rows->valid(); rows->next()) {
    const auto state = engine_rows::decode_allocation(rows->key(), rows->value());
    if (!state) return damaged_row("alloc");
    parts_.containers.allocator().load(state->container, state->bitmap);
  }
  return rows->status();
}

// What the rest of recovery, the allocator and the table take for granted.
Status Recovery::check_records(const LogGroup& group) const {
  const uint32_t container_blocks = parts_.containers.container_blocks();
  auto possible = [&](const Run& run) {
    return run.container < UINT32_MAX && run.blocks > 0 &&
           uint64_t(run.block) + run.blocks <= container_blocks;
  };
  for (const LogRecord& record : group.records) {
    const bool sound =
        rows_are_sound(record.row_count, record.rows) &&
        std::ranges::all_of(record.writes, possible, &LoggedWrite::run) &&
        std::ranges::all_of(record.frees, possible);
    if (!sound)
      return Status(EIO, "log group at position " + std::to_string(group.header.position) + " (" +
                             parts_.log.file(group.header.position).path() +
                             "): it is intact, but no store writes such records; recover its "
                             "data from replicas");
  }
  return {};
}

Status Recovery::read_log() {
  LogReader reader(parts_.log, parts_.store_uuid, start_);
  for (;;) {
    auto group = reader.next();
    if (!group.ok()) return group.status();
    if (!*group) break;
    if (auto s = check_records(**group); !s.ok()) return s;
    groups_.push_back(std::move(**group));
  }
  if (auto s = reader.expect_end(damage_window_bytes); !s.ok()) return s;
  end_ = reader.position();
  if (applied_lsn_ >= end_.next_lsn)
    return Status(EIO, "log damaged: it ends before transaction " +
                           std::to_string(end_.next_lsn) + " at position " +
                           std::to_string(end_.position) + " (" +
                           parts_.log.file(end_.position).path() +
                           "), but the table has transactions up to " +
                           std::to_string(applied_lsn_) + "; recover its data from replicas");
  return {};
}

// The checksum of a run as a LoggedWrite has it.
Result<uint32_t> Recovery::checksum_of(const Run& run) {
  BlockMemory memory(std::min(run.blocks, largest_slot_blocks) * block_bytes);
  std::vector<uint32_t> block_crcs;
  for (uint32_t done = 0; done < run.blocks;) {
    const Extent piece{run.container, run.block + done,
                       std::min(run.blocks - done, largest_slot_blocks)};
    const auto data = memory.span().first(piece.length_bytes());
    if (auto s = parts_.containers.read(piece, data); !s.ok()) return s;
    const iovec iov{data.data(), data.size()};
    crc32c_blocks({&iov, 1}, &block_crcs);
    done += piece.blocks;
  }
  return crc32c_of_blocks(block_crcs);
}

// EIO: a block cannot be read, so that nobody can say whether the group happened.
Result<bool> Recovery::data_is_there(const LogGroup& group) {
  for (const LogRecord& record : group.records) {
    for (const LoggedWrite& w : record.writes) {
      if (!parts_.containers.exists(w.run.container)) return false;
      auto checksum = checksum_of(w.run);
      if (!checksum.ok()) return checksum.status();
      if (*checksum != w.checksum) return false;
    }
  }
  return true;
}

Status Recovery::judge() {
  uint64_t watermark = applied_lsn_;
  for (const LogGroup& g : groups_) watermark = std::max(watermark, g.header.watermark);
  LogPosition at = start_;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const LogGroupHeader& h = groups_[i].header;
    if (h.transactions > 0 && h.last_lsn() > watermark) {
      auto there = data_is_there(groups_[i]);
      if (!there.ok()) return there.status();
      if (!*there) {
        parts_.reporter.log(Reporter::Level::info,
                            "recovery: transaction " + std::to_string(h.first_lsn) +
                                " was not finished when the store stopped; the log ends before it");
        groups_.resize(i);
        break;
      }
    }
    at.position = h.position + h.total_bytes();
    at.next_lsn = h.first_lsn + h.transactions;
    at.epoch = h.epoch;
    at.previous_crc = h.crc;
  }
  end_ = at;
  return {};
}

// `applied` is the last transaction of a group: the table holds whole groups.
Status Recovery::write_rows(RowCombiner* rows, uint64_t applied) {
  std::string row;
  RowWriter(row).put(Family::super, engine_rows::applied(),
                     {reinterpret_cast<const char*>(&applied), sizeof(applied)});
  rows->append(1, row);
  uint64_t left_out = 0;
  std::string rep = rows->take(&left_out);
  parts_.counters.rows_left_out += left_out;
  return parts_.table.write(&rep);
}

Status Recovery::replay() {
  Allocator& allocator = parts_.containers.allocator();
  for (const LogGroup& group : groups_) {
    for (const LogRecord& record : group.records) {
      for (const LoggedWrite& w : record.writes) allocator.mark_owned(w.run);
      for (const Extent& e : record.frees) allocator.mark_freed(e);
    }
    ++parts_.counters.recovered_groups;
    parts_.counters.recovered_transactions += group.header.transactions;
  }
  if (auto s = allocator.finish_recovery(); !s.ok()) return s;
  RowCombiner rows;
  uint64_t bytes = 0, last_lsn = 0;
  for (const LogGroup& group : groups_) {
    if (group.header.transactions == 0 || group.header.last_lsn() <= applied_lsn_) continue;
    if (group.header.first_lsn <= applied_lsn_)  // the table holds whole groups
      return damaged_row("applied, which is " + std::to_string(applied_lsn_) + " in the midst of "
                         "a log group,");
    for (const LogRecord& record : group.records) {
      rows.append(record.row_count, record.rows);
      bytes += record.rows.size();
    }
    last_lsn = group.header.last_lsn();
    if (bytes < replayed_bytes_max) continue;
    if (auto s = write_rows(&rows, last_lsn); !s.ok()) return s;
    bytes = last_lsn = 0;
  }
  return last_lsn ? write_rows(&rows, last_lsn) : Status();
}

// A store that crashes again and again must not fill its log with nothing but beginnings of epochs.
Status Recovery::checkpoint_if_log_is_filling(RecoveredLog* log) {
  log->head = end_;
  log->tail = start_.position;
  if (end_.position - start_.position <= parts_.log.capacity_bytes() / 2) return {};
  std::string rows;
  RowWriter writer(rows);
  uint32_t count = 1;
  for (const auto& state : parts_.containers.allocator().take_dirty()) {
    engine_rows::write_allocation(writer, state);
    ++count;
  }
  writer.put(Family::super, engine_rows::log_start(), end_.encode());
  RowBatch batch;
  batch.append(count, rows);
  std::string rep = batch.take();
  if (auto s = parts_.table.write(&rep); !s.ok()) return s;
  if (auto s = parts_.table.flush(); !s.ok()) return s;
  log->tail = end_.position;
  return {};
}

Status Recovery::begin_epoch(RecoveredLog* log) {
  LogGroupBuilder builder;
  builder.begin(0);
  LogGroupHeader header{};
  std::ranges::copy(parts_.store_uuid, header.store_uuid);
  header.epoch = log->head.epoch + 1;
  header.position = log->head.position;
  header.first_lsn = log->head.next_lsn;
  header.watermark = log->head.next_lsn - 1;
  header.previous_crc = log->head.previous_crc;
  header.flags = LogGroupHeader::begins_epoch;
  const auto group = builder.finish(header);
  if (auto s = parts_.log.write(header.position, group); !s.ok()) return s;
  if (auto s = parts_.log.file(header.position).flush(); !s.ok()) return s;
  log->head.position += group.size();
  log->head.epoch = header.epoch;
  log->head.previous_crc = builder.crc();
  return {};
}

Result<RecoveredLog> Recovery::run() {
  RecoveredLog log;
  if (auto s = load_checkpoint(); !s.ok()) return s;
  if (auto s = read_log(); !s.ok()) return s;
  if (auto s = judge(); !s.ok()) return s;
  if (auto s = replay(); !s.ok()) return s;
  if (auto s = checkpoint_if_log_is_filling(&log); !s.ok()) return s;
  if (auto s = begin_epoch(&log); !s.ok()) return s;
  return log;
}

}  // namespace

Status format_recovery_rows(Table& table) {
  std::string row;
  RowWriter(row).put(Family::super, engine_rows::log_start(), LogPosition{}.encode());
  RowBatch batch;
  batch.append(1, row);
  std::string rep = batch.take();
  if (auto s = table.write(&rep); !s.ok()) return s;
  return table.flush();
}

Result<RecoveredLog> recover(RecoveryParts parts) { return Recovery(parts).run(); }

}  // namespace tablestore
