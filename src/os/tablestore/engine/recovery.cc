#include "os/tablestore/engine/recovery.h"

#include <algorithm>
#include <functional>
#include <set>

#include "os/tablestore/engine/commit/commit_lane.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/engine/table/row_combiner.h"

namespace tablestore {

namespace {

// How far behind the log's end to look for proof that it should have gone on.
constexpr uint64_t damage_window_bytes = 16 << 20;
constexpr uint64_t replayed_bytes_max = 4 << 20;  // of rows, at once
constexpr size_t written_chunks_max = 4096;         // of the allocation map, at once

class Recovery {
 public:
  explicit Recovery(RecoveryParts parts) : parts_(parts) {}
  Result<RecoveredLog> run();

 private:
  Result<bool> get_with_copy(const std::string& key, std::string* row);
  Status load_checkpoint();
  Status load_applied();
  Status load_allocation_rows();
  Status load_allocation_row(std::string_view key, std::string_view value);
  Status load_readable_allocation_rows(const Status& why);
  enum class Found { yes, no, unreadable };
  Result<Found> load_if_readable(const std::string& key);
  Status load_readable_allocation_rows_of(uint32_t container, uint32_t chunks,
                                          std::set<Allocator::ChunkName>* unknown);
  void tell_of_unknown(const std::set<Allocator::ChunkName>& unknown, const Status& why);
  void load_lasting_troubles();
  Status load_whether_ownership_is_known();
  Status read_log();
  Status look_beyond(LogReader& reader, const Status& why);
  Status judge_end(const Status& why, bool makes_sense);
  uint64_t unreadable_at_end() const;
  Status check_records(const LogGroup& group) const;
  std::string place(const LogPosition& at) const;
  Status lose(uint64_t durable_lsn, const Status& why);
  Result<uint32_t> checksum_of(const Run& run);
  Status check_data(const LoggedWrite& write);
  Status check_data(const LogGroup& group);
  void replay_vouched();
  void replay_allocation(LogGroup& group);
  void keep_rows(LogGroup& group);
  void warn_of_cut(size_t first_group, const Status& why) const;
  Status judge();
  Status replay();
  Status make_containers_again();
  Status replay_rows();
  Result<const LogGroup*> with_rows(const LogGroup& group);
  Status write_rows(RowCombiner* rows, uint64_t applied);
  Status with_room(const std::function<Status()>& change);
  Status write_batch(uint32_t count, const std::string& rows);
  Status write_checkpoint();
  Status checkpoint_if_needed(RecoveredLog* log);
  Status clear_unreadable();
  bool epoch_fits(const RecoveredLog& log) const;
  Status begin_epoch(RecoveredLog* log);
  Status append_empty_group(const LogGroupHeader& header, RecoveredLog* log);

  RecoveryParts parts_;
  LogPosition start_;
  uint64_t applied_lsn_ = 0;
  // Of the first `replayed_` the allocation is replayed, and records are there, with rows alone, as
  // keep_rows() has decided.
  std::vector<LogGroup> groups_;
  size_t replayed_ = 0;
  uint64_t watermark_ = 0;   // what has happened, as far as is known by now
  uint64_t kept_bytes_ = 0;  // of groups whose allocation is replayed
  uint64_t saved_bytes_ = 0;  // by compressing the groups that happened
  std::optional<LogReader> reader_again_;
  std::vector<LogGroup> read_again_;  // of the batch of rows that is being made
  LogPosition end_;      // after the last group that is kept
  uint64_t highest_epoch_ = 0;  // that was seen, also behind the end
  BeyondEnd beyond_;            // the end of what was read
  std::map<std::string, std::string> lasting_troubles_;  // that came up now
  bool allocation_is_known_ = true;
  bool lost_ = false;           // what was acknowledged, and that was accepted
  bool rest_is_unreadable_ = false;  // and that is all that is known of the loss
  bool ownership_is_known_ = true;
};

Status damaged_row(const std::string& which) {
  return Status(EIO, "table: row " + which +
                         " is missing or damaged; this store cannot be opened: recover its data "
                         "from replicas");
}

// One of the rows that have a copy: that, where the row cannot be read.
Result<bool> Recovery::get_with_copy(const std::string& key, std::string* row) {
  auto found = parts_.table.get(Family::super, key, row);
  if (found.ok() || found.status().code() != EIO) return found;
  auto copy = parts_.table.get(engine_rows::of_copies, key, row);
  if (!copy.ok() || !*copy)
    return Status(copy.ok() ? EIO : copy.status().code(),
                  found.status().what() + "; nor can its copy: " +
                      (copy.ok() ? "there is none" : copy.status().what()) +
                      "; this store cannot be opened: recover its data from replicas");
  parts_.reporter.log(Reporter::Level::warning,
                      "recovery: the row " + key.substr(1) + " of the table cannot be read, its "
                      "copy takes its place: " + found.status().what());
  return copy;
}

Status Recovery::load_checkpoint() {
  std::string row;
  auto found = get_with_copy(engine_rows::log_start(), &row);
  if (!found.ok()) return found.status();
  const auto start = LogPosition::decode(row);
  if (!*found || !start) return damaged_row("log_start");
  start_ = *start;
  if (auto s = load_applied(); !s.ok()) return s;
  return load_allocation_rows();
}

Status Recovery::load_applied() {
  std::string row;
  auto found = get_with_copy(engine_rows::applied(), &row);
  if (!found.ok()) return found.status();
  if (!*found) return {};
  const auto applied = engine_rows::decode_applied(row);
  if (!applied) return damaged_row("applied");
  applied_lsn_ = *applied;
  return {};
}

// After the replay, which may have been of the end of a repair. The row is there where one of the
// two is; that neither is may be said by one that can be read.
Status Recovery::load_whether_ownership_is_known() {
  bool is_there = false, can_be_read = false;
  std::string row, why;
  for (const Family family : {Family::super, engine_rows::of_copies}) {
    const auto found = parts_.table.get(family, engine_rows::ownership_unknown(), &row);
    if (!found.ok() && found.status().code() != EIO) return found.status();
    is_there |= found.ok() && *found;
    can_be_read |= found.ok();
    if (!found.ok()) why = found.status().what();
  }
  if (is_there || !can_be_read) ownership_is_known_ = false;
  if (ownership_is_known_ || parts_.accept_log_loss) return {};
  if (is_there)
    why = "the loss of a part of the log was accepted, and this store has not been repaired since";
  return Status(EIO, why + ": which blocks its objects own is not known; run "
                           "ceph-objectstore-tool --op repair with tablestore_accept_log_loss");
}

Status Recovery::load_allocation_rows() {
  const std::string begin(engine_rows::allocation_prefix);
  std::string end = begin;
  ++end.back();
  auto rows = parts_.table.iterate(Family::super, begin, end);
  for (rows->seek_to_first(); rows->valid(); rows->next())
    if (auto s = load_allocation_row(rows->key(), rows->value()); !s.ok()) return s;
  if (rows->status().code() == EIO) return load_readable_allocation_rows(rows->status());
  return rows->status();
}

// Rows in the order of their keys: that of a whole container comes before those of its chunks.
Status Recovery::load_allocation_row(std::string_view key, std::string_view value) {
  Allocator& allocator = parts_.containers.allocator();
  const auto name = engine_rows::decode_allocation_key(key);
  if (!name) return damaged_row("alloc");
  if (!name->chunk) {
    const auto owned = engine_rows::decode_whole_allocation(value);
    if (!owned) return damaged_row("alloc");
    allocator.load_whole(name->container, *owned);
    return {};
  }
  const auto row = engine_rows::decode_allocation(value);
  if (!row) return damaged_row("alloc");
  // It came into the table after the rows of all transactions that it knows of.
  if (row->as_of > applied_lsn_ + 1)
    return damaged_row("alloc, which is as of " + std::to_string(row->as_of) +
                       " where applied is " + std::to_string(applied_lsn_) + ",");
  allocator.load(name->container, *name->chunk, row->owned,
                 row->as_of > start_.next_lsn ? row->as_of : 0);
  return {};
}

// One by one: a block that has rotten may hold rows that others have replaced since.
Status Recovery::load_readable_allocation_rows(const Status& why) {
  const uint32_t all_chunks = BlockBitmap(parts_.containers.container_blocks()).chunks();
  std::map<uint32_t, uint32_t> chunks;  // of containers that are there, or of which rows tell
  for (const uint32_t container : parts_.containers.allocator().containers())
    chunks[container] = all_chunks;
  for (const uint32_t container : parts_.containers.incomplete()) chunks[container] = all_chunks;
  const std::string begin(engine_rows::allocation_prefix);
  std::string end = begin;
  ++end.back();
  const auto rows = parts_.table.iterate(Family::super, begin, end, AtDamage::step_over);
  for (rows->seek_to_first(); rows->valid(); rows->next()) {
    const auto name = engine_rows::decode_allocation_key(rows->key());
    if (!name) continue;
    uint32_t& count = chunks[name->container];
    if (name->chunk) count = std::max(count, *name->chunk + 1);
  }
  std::set<Allocator::ChunkName> unknown;
  for (const auto& [container, count] : chunks)
    if (auto s = load_readable_allocation_rows_of(container, count, &unknown); !s.ok()) return s;
  parts_.containers.allocator().load_unknown(unknown);
  if (!unknown.empty()) tell_of_unknown(unknown, why);
  return {};
}

Result<Recovery::Found> Recovery::load_if_readable(const std::string& key) {
  std::string row;
  const auto found = parts_.table.get(Family::super, key, &row);
  if (!found.ok() && found.status().code() == EIO) return Found::unreadable;
  if (!found.ok()) return found.status();
  if (!*found) return Found::no;
  // Where this fails it is no rot, which its block's checksum would tell.
  if (auto s = load_allocation_row(key, row); !s.ok()) return s;
  return Found::yes;
}

Status Recovery::load_readable_allocation_rows_of(uint32_t container, uint32_t chunks,
                                                  std::set<Allocator::ChunkName>* unknown) {
  const auto whole = load_if_readable(engine_rows::whole_allocation(container));
  if (!whole.ok()) return whole.status();
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const auto row = load_if_readable(engine_rows::allocation(container, chunk));
    if (!row.ok()) return row.status();
    const Found decisive = *row == Found::no ? *whole : *row;
    if (decisive != Found::unreadable) continue;
    // Too short: it was being made at a crash, or it was cut, and objects have what is left.
    if (!parts_.containers.exists(container) && parts_.containers.is_incomplete(container)) {
      if (auto s = parts_.containers.make_again(container); !s.ok()) return s;
      parts_.reporter.log(Reporter::Level::error,
                          "recovery: " + parts_.containers.file(container).path() +
                              " was too short, and what objects have in it cannot be told: it has "
                              "its full length again, and what was cut off reads as zeros, which "
                              "are no object's: scrub all placement groups of this OSD deeply");
    }
    if (parts_.containers.exists(container)) unknown->insert({container, chunk});
  }
  return {};
}

void Recovery::tell_of_unknown(const std::set<Allocator::ChunkName>& unknown, const Status& why) {
  std::set<uint32_t> containers;
  for (const auto& [container, chunk] : unknown) containers.insert(container);
  const std::string line =
      "which blocks of " + std::to_string(containers.size()) + " containers (" +
      parts_.containers.file(*containers.begin()).path() + (containers.size() > 1 ? ", ..." : "") +
      ") are free cannot be told, since rows of the table cannot be read (" + why.what() +
      "): all of those that they were of count as in use; stop this OSD when that suits, and run "
      "ceph-objectstore-tool --op repair, which counts anew";
  parts_.reporter.log(Reporter::Level::error, "recovery: " + line);
  lasting_troubles_[allocation_unknown] = line;
  allocation_is_known_ = false;
}

// What has come up in an earlier life of the store, and is not settled.
void Recovery::load_lasting_troubles() {
  for (const char* name : {log_loss, allocation_unknown}) {
    if (const auto now = lasting_troubles_.find(name); now != lasting_troubles_.end()) {
      parts_.troubles.raise(name, now->second);
      continue;
    }
    std::string line;
    const auto found = parts_.table.get(Family::super, engine_rows::trouble(name), &line);
    if (found.ok() && !*found) continue;
    if (!found.ok()) line = "it cannot be told whether this is so: " + found.status().what();
    parts_.troubles.raise(name, line);
    if (name == std::string_view(allocation_unknown)) allocation_is_known_ = false;
  }
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

std::string Recovery::place(const LogPosition& at) const {
  return "position " + std::to_string(at.position) + " (" + parts_.log.file(at.position).path() +
         ")";
}

Status Recovery::read_log() {
  LogReader reader(parts_.log, parts_.store_uuid, start_);
  watermark_ = applied_lsn_;
  Status why;  // the log ends there; success: nothing more was begun
  bool makes_sense = true;
  for (end_ = start_;; end_ = reader.position()) {
    auto group = reader.next();
    if (group.ok() && !*group) {
      why = reader.end();
      break;
    }
    if (!group.ok() && group.status().code() != EIO) return group.status();
    why = group.ok() ? check_records(**group) : group.status();
    makes_sense = why.ok();
    if (!makes_sense) break;
    if ((*group)->is_derived)
      parts_.reporter.log(Reporter::Level::warning,
                          "recovery: damaged: a log group without transactions, at " +
                              place(end_) + "; nothing is lost with it");
    watermark_ = std::max(watermark_, (*group)->header.watermark);
    groups_.push_back(std::move(**group));
    replay_vouched();
  }
  if (auto s = look_beyond(reader, why); !s.ok()) return s;
  return judge_end(why, makes_sense);
}

Status Recovery::look_beyond(LogReader& reader, const Status& why) {
  auto beyond = reader.look_beyond(end_, damage_window_bytes);
  if (!beyond.ok()) return beyond.status();
  // Behind what is not as it should be, a group may begin anywhere, and epochs lie at any distance.
  if (!why.ok() || std::max(beyond->durable_lsn, applied_lsn_) >= end_.next_lsn)
    beyond = reader.look_beyond(end_, parts_.log.capacity_bytes());
  if (!beyond.ok()) return beyond.status();
  beyond_ = beyond.take();
  highest_epoch_ = beyond_.epoch;
  // What cannot be read now, but may later, may have begun epochs.
  if (!why.ok()) highest_epoch_ += parts_.log.capacity_bytes() / block_bytes;
  return {};
}

// Bytes behind the end that groups may have taken. One of them follows the other, so what lies
// further from the rest than a group is long has to do with nothing.
uint64_t Recovery::unreadable_at_end() const {
  uint64_t bytes = 0, last = end_.position;
  for (const uint64_t position : beyond_.unreadable) {
    if (position - last > parts_.group_bytes_max) break;
    bytes += block_bytes;
    last = position;
  }
  return bytes;
}

// `why` the log ends; success: nothing more was begun. Of the group that was being written when the
// store stopped, nothing need be there; the one before it was durable, and so were all others.
Status Recovery::judge_end(const Status& why, bool makes_sense) {
  const uint64_t durable_lsn = std::max(beyond_.durable_lsn, applied_lsn_);
  if (!makes_sense || durable_lsn >= end_.next_lsn) return lose(durable_lsn, why);
  rest_is_unreadable_ = !why.ok() && unreadable_at_end() > parts_.group_bytes_max;
  if (rest_is_unreadable_) return lose(durable_lsn, why);
  if (!why.ok())
    parts_.reporter.log(Reporter::Level::warning,
                        "recovery: the log ends before transaction " +
                            std::to_string(end_.next_lsn) + ", at " + place(end_) + ": " +
                            why.what() + "; nothing says that it was durable: it is cut off");
  return {};
}

// The log lacks what was durable. `why` it ends, where that is known.
Status Recovery::lose(uint64_t durable_lsn, const Status& why) {
  const uint64_t first = end_.next_lsn;
  auto range = [](uint64_t from, uint64_t to) {
    return "transactions " + std::to_string(from) + " to " + std::to_string(to);
  };
  std::string line = "log damaged: it ends before transaction " + std::to_string(first) + ", at " +
                     place(end_) + ": " + (why.ok() ? "no group lies there" : why.what());
  if (durable_lsn >= first) line += "; " + range(first, durable_lsn) + " were durable";
  if (rest_is_unreadable_)
    line += "; " + std::to_string(unreadable_at_end() / block_bytes) +
            " blocks cannot be read there, more than one group takes, so that durable ones may "
            "have been among them";
  if (applied_lsn_ >= first) line += ", the table has those up to " + std::to_string(applied_lsn_);
  line += "; what came later is lost, as far as there was more";
  if (!parts_.accept_log_loss)
    return Status(EIO, line + ". This store has lost writes: do not start it, recover its data "
                              "from replicas. Where there is no other copy, "
                              "ceph-objectstore-tool --op repair with tablestore_accept_log_loss "
                              "opens it with what it has");
  lost_ = true;
  if (applied_lsn_ >= first) ownership_is_known_ = false;
  line += ". That was accepted (tablestore_accept_log_loss): scrub all placement groups of this "
          "OSD deeply, then settle it with 'ceph tell osd.N tablestore settle log loss'";
  parts_.reporter.log(Reporter::Level::error, line);
  lasting_troubles_[log_loss] = line;
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

// EIO: the run does not hold what was to be written to it. Another error says nothing of it.
Status Recovery::check_data(const LoggedWrite& write) {
  const std::string what = "blocks " + std::to_string(write.run.block) + "~" +
                           std::to_string(write.run.blocks) + " of container " +
                           std::to_string(write.run.container);
  if (!parts_.containers.exists(write.run.container))
    return Status(EIO, what + ": there is no such container");
  return read_repeatedly([&] {
    auto checksum = checksum_of(write.run);
    if (!checksum.ok())
      return Status(checksum.status().code(), what + ": " + checksum.status().what());
    if (*checksum == write.checksum) return Status();
    return Status(EIO, what + " (" + parts_.containers.file(write.run.container).path() +
                           ") hold other bytes than were to be written");
  });
}

Status Recovery::check_data(const LogGroup& group) {
  for (const LogRecord& record : group.records)
    for (const LoggedWrite& w : record.writes)
      if (auto s = check_data(w); !s.ok()) return s;
  return {};
}

void Recovery::warn_of_cut(size_t first_group, const Status& why) const {
  const LogGroupHeader& h = groups_[first_group].header;
  parts_.reporter.log(
      Reporter::Level::warning,
      "recovery: transactions " + std::to_string(h.first_lsn) + " to " +
          std::to_string(groups_.back().header.last_lsn()) + " are cut off, the log ends before " +
          "them, at " + place(end_) + ": " + why.what() +
          ". Nothing says that they were durable; as a rule the store stopped while it wrote them");
}

// Groups are in the order of their transactions: behind the first that nothing vouches for, nothing
// vouches for any.
void Recovery::replay_vouched() {
  for (; replayed_ < groups_.size(); ++replayed_) {
    LogGroup& group = groups_[replayed_];
    if (group.header.transactions > 0 && group.header.last_lsn() > watermark_) return;
    replay_allocation(group);
  }
}

void Recovery::replay_allocation(LogGroup& group) {
  Allocator& allocator = parts_.containers.allocator();
  uint64_t lsn = group.header.first_lsn;
  for (const LogRecord& record : group.records) {
    for (const LoggedWrite& w : record.writes) allocator.replay_owned(w.run, lsn);
    for (const Extent& e : record.frees) allocator.replay_freed(e, lsn);
    ++lsn;
  }
  ++parts_.counters.recovered_groups;
  parts_.counters.recovered_transactions += group.header.transactions;
  keep_rows(group);
}

// What is needed of a group whose allocation is replayed: nothing where the table has its rows.
// Rows that are not kept are read again.
void Recovery::keep_rows(LogGroup& group) {
  const uint64_t bytes = group.memory.size() + group.records.size() * sizeof(LogRecord);
  if (group.header.transactions == 0 || group.header.last_lsn() <= applied_lsn_ ||
      kept_bytes_ + bytes > parts_.replay_bytes) {
    group.records = {};
    group.memory = {};
    return;
  }
  kept_bytes_ += bytes;
  for (LogRecord& record : group.records) {
    record.writes = {};
    record.frees = {};
  }
}

// What lies behind a group that was not durable was not either. A disk that cannot read what was
// being written when the power went is no reason to refuse the store. An error: it is not known
// what lies there.
Status Recovery::judge() {
  watermark_ = std::max(watermark_, beyond_.durable_lsn);
  if (lost_ && !rest_is_unreadable_)
    watermark_ = end_.next_lsn - 1;  // some later group has vouched for all of them
  replay_vouched();
  end_ = start_;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const LogGroupHeader& h = groups_[i].header;
    if (i >= replayed_ && h.transactions > 0) {
      if (auto s = check_data(groups_[i]); !s.ok()) {
        if (s.code() != EIO) return s;
        warn_of_cut(i, s);
        groups_.resize(i);
        return {};
      }
    }
    saved_bytes_ += groups_[i].saved_bytes;
    end_.position = h.position + h.total_bytes();
    end_.next_lsn = h.first_lsn + h.transactions;
    end_.epoch = h.epoch;
    end_.previous_crc = h.crc;
  }
  return {};
}

// `applied` is the last transaction of a group: the table holds whole groups.
Status Recovery::write_rows(RowCombiner* rows, uint64_t applied) {
  std::string row;
  RowWriter writer(row);
  engine_rows::write_with_copy(writer, engine_rows::applied(),
                               engine_rows::encode_applied(applied));
  rows->append(engine_rows::rows_with_copy, row);
  std::string rep = rows->take(parts_.counters);
  return with_room([&] { return parts_.table.write(&rep); });
}

// The table is full of what it has to flush, and the file system, too.
Status Recovery::with_room(const std::function<Status()>& change) {
  Status s = change();
  while (is_lack_of_space(s.code()) && parts_.make_room()) {
    parts_.table.resume();
    s = change();
  }
  return s;
}

Status Recovery::replay() {
  watermark_ = end_.next_lsn - 1;  // what was judged has happened too
  replay_vouched();
  if (lost_)
    if (auto s = make_containers_again(); !s.ok()) return s;
  if (auto s = parts_.containers.allocator().finish_recovery(); !s.ok()) return s;
  return replay_rows();
}

// What the lost transactions had freed may have been given back to the file system since.
Status Recovery::make_containers_again() {
  for (uint32_t container : parts_.containers.allocator().missing_containers()) {
    if (auto s = parts_.containers.make_again(container); !s.ok()) return s;
    parts_.reporter.log(Reporter::Level::error,
                        "recovery: container " + std::to_string(container) +
                            " is gone or too short; zeros take the place of what is missing, and "
                            "objects that the lost transactions had removed or written anew cannot "
                            "be read from there");
  }
  return {};
}

// The group with its rows, which stay until read_again_ is cleared; the pointer, until the next
// call. Groups are asked for in their order.
Result<const LogGroup*> Recovery::with_rows(const LogGroup& group) {
  if (!group.records.empty()) return &group;
  const LogGroupHeader& h = group.header;
  if (!reader_again_) {
    LogPosition before{h.position, h.first_lsn, h.epoch, h.previous_crc};
    if (h.flags & LogGroupHeader::begins_epoch) --before.epoch;
    reader_again_.emplace(parts_.log, parts_.store_uuid, before);
  }
  std::optional<LogGroup> found;
  while (reader_again_->position().position <= h.position) {
    auto next = reader_again_->next();
    if (!next.ok()) return next.status();
    found = next.take();
    if (!found) break;
  }
  if (found && found->header.position == h.position && found->header.crc == h.crc) {
    ++parts_.counters.recovered_groups_read_again;
    return &read_again_.emplace_back(std::move(*found));
  }
  return Status(EIO, "log group at position " + std::to_string(h.position) + " (" +
                         parts_.log.file(h.position).path() +
                         "): it was intact when it was first read, and is not a moment later; "
                         "nothing was changed, but this disk is failing");
}

Status Recovery::replay_rows() {
  RowCombiner rows([this](const Row& range, CountedRows* erasures) {
    return parts_.table.list_erasures(range, erasures);
  });
  uint64_t bytes = 0, last_lsn = 0;
  for (const LogGroup& group : groups_) {
    if (group.header.transactions == 0 || group.header.last_lsn() <= applied_lsn_) continue;
    if (group.header.first_lsn <= applied_lsn_)  // the table holds whole groups
      return damaged_row("applied, which is " + std::to_string(applied_lsn_) + " in the midst of "
                         "a log group,");
    const auto found = with_rows(group);
    if (!found.ok()) return found.status();
    for (const LogRecord& record : (*found)->records) {
      rows.append(record.row_count, record.rows);
      bytes += record.rows.size();
    }
    last_lsn = group.header.last_lsn();
    if (bytes < replayed_bytes_max) continue;
    if (auto s = write_rows(&rows, last_lsn); !s.ok()) return s;
    read_again_.clear();
    bytes = last_lsn = 0;
  }
  return last_lsn ? write_rows(&rows, last_lsn) : Status();
}

Status Recovery::write_batch(uint32_t count, const std::string& rows) {
  RowBatch batch;
  batch.append(count, rows);
  std::string rep = batch.take();
  return with_room([&] { return parts_.table.write(&rep); });
}

// Not durable before the table is flushed. What says why blocks count as owned comes before the
// rows by which they do.
Status Recovery::write_checkpoint() {
  std::string rows;
  RowWriter writer(rows);
  uint32_t reasons = uint32_t(lasting_troubles_.size());
  if (!ownership_is_known_) {
    engine_rows::write_with_copy(writer, engine_rows::ownership_unknown(), "");
    reasons += engine_rows::rows_with_copy;
  }
  for (const auto& [name, line] : lasting_troubles_)
    writer.put(Family::super, engine_rows::trouble(name), line);
  if (reasons > 0)
    if (auto s = write_batch(reasons, rows); !s.ok()) return s;
  Allocator& allocator = parts_.containers.allocator();
  allocator.begin_capture();
  for (;;) {
    const auto chunks = allocator.take_changed(written_chunks_max);
    if (chunks.empty()) break;
    rows.clear();
    for (const auto& chunk : chunks)
      engine_rows::write_allocation(writer, chunk, end_.next_lsn);
    if (auto s = write_batch(uint32_t(chunks.size()), rows); !s.ok()) {
      allocator.put_back_changed(chunks);
      return s;
    }
  }
  rows.clear();
  engine_rows::write_with_copy(writer, engine_rows::log_start(), end_.encode());
  return write_batch(engine_rows::rows_with_copy, rows);
}

// What begin_epoch() writes.
bool Recovery::epoch_fits(const RecoveredLog& log) const {
  return log.head.position - log.tail + 2 * block_bytes <= parts_.log.capacity_bytes();
}

// A store that crashes again and again must not fill its log with nothing but beginnings of epochs.
// After a loss, nothing may need what is left of the log: transactions go on after those that the
// table has, and the blocks that they own are not known. Blocks that count as owned because nobody
// knows become so with the rows that say why.
Status Recovery::checkpoint_if_needed(RecoveredLog* log) {
  const bool is_filling =
      end_.position - start_.position + saved_bytes_ > parts_.log.capacity_bytes() / 2;
  if (lost_) end_.next_lsn = std::max(end_.next_lsn, applied_lsn_ + 1);
  log->head = end_;
  log->tail = start_.position;
  log->saved_bytes = saved_bytes_;
  if (!is_filling && lasting_troubles_.empty()) return {};
  // The next checkpoint makes it durable, or the next recovery comes to the same.
  const bool can_wait = !lost_ && epoch_fits(*log);
  const Status written = write_checkpoint();
  // Not before the table has taken what came up now: the row that says it may be overwritten.
  if (is_lack_of_space(written.code()) && can_wait && lasting_troubles_.empty()) return {};
  if (!written.ok()) return written;
  const Status flushed = with_room([this] { return parts_.table.flush(); });
  if (is_lack_of_space(flushed.code()) && can_wait) return {};
  if (!flushed.ok()) return flushed;
  log->tail = end_.position;
  log->saved_bytes = 0;
  return {};
}

// That they cannot be read was taken for a loss, which was accepted. They are free space now, and
// the next recovery would come to the same.
Status Recovery::clear_unreadable() {
  BlockMemory zeros(block_bytes);
  zeros.zero();
  for (const uint64_t position : beyond_.unreadable)
    if (auto s = parts_.log.write(position, zeros.span()); !s.ok()) return s;
  return {};
}

// What was freed is free from here on, so two groups say that it was, as for every other:
// CommitLane::release_frees().
Status Recovery::begin_epoch(RecoveredLog* log) {
  require(epoch_fits(*log), "the log's end does not reach its beginning");
  if (rest_is_unreadable_)
    if (auto s = clear_unreadable(); !s.ok()) return s;
  const uint64_t position = log->head.position;
  LogGroupHeader header = log->head.empty_group(parts_.store_uuid);
  header.epoch = std::max(log->head.epoch, highest_epoch_) + 1;
  header.flags = LogGroupHeader::begins_epoch;
  if (auto s = append_empty_group(header, log); !s.ok()) return s;
  if (auto s = append_empty_group(log->head.empty_group(parts_.store_uuid), log); !s.ok()) return s;
  if (auto s = parts_.log.file(position).flush(); !s.ok()) return s;
  if (&parts_.log.file(position) == &parts_.log.file(position + block_bytes)) return {};
  return parts_.log.file(position + block_bytes).flush();
}

Status Recovery::append_empty_group(const LogGroupHeader& header, RecoveredLog* log) {
  LogGroupBuilder builder;
  builder.begin(0);
  const auto group = builder.finish(header);
  if (auto s = parts_.log.write(header.position, group); !s.ok()) return s;
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
  if (auto s = load_whether_ownership_is_known(); !s.ok()) return s;
  load_lasting_troubles();
  if (auto s = with_room(parts_.claim_format); !s.ok()) return s;
  if (auto s = checkpoint_if_needed(&log); !s.ok()) return s;
  if (auto s = begin_epoch(&log); !s.ok()) return s;
  log.ownership_is_known = ownership_is_known_;
  log.allocation_is_known = allocation_is_known_;
  return log;
}

}  // namespace

Status format_recovery_rows(Table& table) {
  std::string row;
  RowWriter writer(row);
  engine_rows::write_with_copy(writer, engine_rows::log_start(), LogPosition{}.encode());
  RowBatch batch;
  batch.append(engine_rows::rows_with_copy, row);
  std::string rep = batch.take();
  if (auto s = table.write(&rep); !s.ok()) return s;
  return table.flush();
}

Result<RecoveredLog> recover(RecoveryParts parts) { return Recovery(parts).run(); }

}  // namespace tablestore
