#include "test/tablestore/sim/damage_bounds.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "os/tablestore/engine/table/table.h"
#include "rocksdb/db.h"
#include "rocksdb/metadata.h"
#include "test/tablestore/sim/machine.h"

namespace tablestore::sim {

namespace {

uint32_t container_of(const std::string& path) {
  return uint32_t(std::stoul(path.substr(path.rfind('/') + 1)));
}

unsigned family_of(const std::string& name) {
  return name == "object" ? 1 : name == "data" ? 2 : name == "omap" ? 3 : 0;
}

LiveLog::Group to_live(const LogGroup& group) {
  const LogGroupHeader& h = group.header;
  LiveLog::Group live{h.position, h.position + h.total_bytes(), h.first_lsn,
                      h.first_lsn + h.transactions - 1, h.watermark, {}};
  for (const LogRecord& record : group.records)
    for (const LoggedWrite& w : record.writes)
      for (uint32_t b = w.run.block; b < w.run.block + w.run.blocks; ++b)
        live.written.insert({w.run.container, b});
  return live;
}

// The table's file CURRENT is a line with one name.
std::string read_current(const DiskImage& whole) {
  const FileView& view = whole.inode(whole.lookup("table/CURRENT")).current;
  const std::string line(reinterpret_cast<const char*>(view.page(0)), view.size);
  return line.substr(0, line.find('\n'));
}

void read_chain(Disk& disk, const EngineOptions& o, const LogPosition& start, LiveLog* live) {
  StoreUuid uuid;
  std::memcpy(uuid.data(), o.store_uuid.data(), uuid.size());
  auto ring = LogRing::open(disk, o.log_bytes, o.segment_bytes);
  if (!ring.ok()) throw Failure{"the log of a disk without damage: " + ring.status().what()};
  LogReader reader(**ring, uuid, start);
  for (;;) {
    auto group = reader.next();
    if (!group.ok()) throw Failure{"the log of a disk without damage: " + group.status().what()};
    if (!*group) return;
    live->groups.push_back(to_live(**group));
  }
}

// One block after the other, and then what they cost together.
class Judge {
 public:
  Judge(const DiskImage& left, uint64_t acknowledged, const EngineOptions& options, LiveLog log)
      : left_(left), options_(options), log_(std::move(log)), acknowledged_(acknowledged) {}

  void add(const std::string& path, uint32_t block, const DamagedBlock& damaged) {
    if (path == "label")
      ++labels_;
    else if (path.starts_with("log/"))
      add_log(path, block);
    else if (path.starts_with("containers/"))
      (damaged.unreadable ? unreadable_ : changed_).insert({container_of(path), block});
    else if (path.starts_with("table/"))
      add_table(path.substr(6));
  }

  Bounds bounds() {
    if (labels_ > 1) allow_refusal("both copies of the label are damaged", false);
    judge_log();
    judge_data();
    bounds_.accepted_lsn = std::min(bounds_.accepted_lsn, bounds_.least_lsn);
    return bounds_;
  }

 private:
  void allow_refusal(const std::string& why, bool has_way_out = true) {
    bounds_.refusal = why;
    bounds_.has_way_out &= has_way_out;
  }
  void lose_from(uint64_t lsn) { bounds_.least_lsn = std::min(bounds_.least_lsn, lsn - 1); }

  void add_log(const std::string& path, uint32_t block) {
    const EngineOptions& o = options_;
    const uint64_t offset = container_of(path) * o.segment_bytes + block * block_bytes;
    for (size_t i = 0; i < log_.groups.size(); ++i) {
      const LiveLog::Group& g = log_.groups[i];
      const uint64_t into = (offset + o.log_bytes - g.begin % o.log_bytes) % o.log_bytes;
      if (into < g.end - g.begin) damaged_groups_.insert(i);
    }
  }

  void add_table(const std::string& name) {
    if (name == "CURRENT" || name == "IDENTITY" || name == log_.manifest)
      return allow_refusal("the table's " + name + " is damaged", false);
    const auto file = log_.table_files.find(name);
    if (file == log_.table_files.end() || file->second != 0) return;
    const auto is_lost = [this](Family family, const std::string& row) {
      return !can_read(left_, options_, {family, row, {}});
    };
    const auto both_are_lost = [is_lost](const std::string& row) {
      return is_lost(Family::super, row) && is_lost(Family::object, row);
    };
    for (const std::string& row : {engine_rows::log_start(), engine_rows::applied()})
      if (both_are_lost(row))
        allow_refusal("the engine's row " + row.substr(1) + " is damaged, and its copy", false);
    if (both_are_lost(engine_rows::ownership_unknown()))
      allow_refusal("whether ownership is known is in the damaged " + name + ", and its copy");
  }

  // What the one behind it says as well: where that is intact, recovery goes on behind it.
  bool follows_from_next(size_t group) const {
    const LiveLog::Group& g = log_.groups[group];
    return g.last_lsn < g.first_lsn && group + 1 < log_.groups.size() &&
           !damaged_groups_.contains(group + 1);
  }

  // That the first of the damaged groups was durable: an intact one behind it, or the table.
  bool has_witness(size_t first) const {
    const uint64_t lsn = log_.groups[first].first_lsn;
    if (log_.applied_lsn >= lsn) return true;
    for (size_t i = first + 1; i < log_.groups.size(); ++i)
      if (log_.groups[i].watermark >= lsn &&
          (!damaged_groups_.contains(i) || lies_elsewhere(log_.groups[i])))
        return true;
    return false;
  }

  // The disk has written all of it to another place, over what was there.
  bool lies_elsewhere(const LiveLog::Group& group) const {
    for (uint64_t at = 0; at < options_.log_bytes; at += block_bytes)
      if (damage_at(at) && holds(group, at)) return true;
    return false;
  }
  bool holds(const LiveLog::Group& group, uint64_t at) const {
    for (uint64_t done = 0; done < group.end - group.begin; done += block_bytes) {
      const DamagedBlock* damage = damage_at(at + done);
      if ((damage && damage->unreadable) ||
          std::memcmp(block_of_log(at + done), good_block_of_log(group.begin + done),
                      block_bytes) != 0)
        return false;
    }
    return true;
  }
  const Inode& segment_of(uint64_t position, uint32_t* block) const {
    const uint64_t offset = position % options_.log_bytes;
    *block = uint32_t(offset % options_.segment_bytes / block_bytes);
    return left_.inode(left_.lookup("log/" + std::to_string(offset / options_.segment_bytes)));
  }
  const DamagedBlock* damage_at(uint64_t position) const {
    uint32_t block;
    const Inode& segment = segment_of(position, &block);
    const auto damaged = segment.damaged.find(block);
    return damaged == segment.damaged.end() ? nullptr : &damaged->second;
  }
  const std::byte* block_of_log(uint64_t position) const {
    uint32_t block;
    return segment_of(position, &block).current.page(block);
  }
  const std::byte* good_block_of_log(uint64_t position) const {
    const DamagedBlock* damage = damage_at(position);
    return damage ? damage->good->data() : block_of_log(position);
  }

  // Where the log may end.
  void judge_log() {
    chain_end_ = log_.groups.size();
    std::erase_if(damaged_groups_, [this](size_t group) { return follows_from_next(group); });
    if (damaged_groups_.empty()) return;
    bounds_.accepted_lsn = log_.groups[*damaged_groups_.begin()].first_lsn - 1;
    for (const size_t group : damaged_groups_) {
      const uint64_t lsn = log_.groups[group].first_lsn;
      if (acknowledged_ >= lsn) allow_refusal("the log is damaged in transaction " +
                                              std::to_string(lsn));
      if (!has_witness(group)) {
        chain_end_ = group;
        return lose_from(lsn);
      }
      // Nobody knows of a transaction that was durable whether it was acknowledged. Where it is no
      // refusal, what was hit is behind the group's payload, and recovery goes on.
      allow_refusal("the log is damaged in transaction " + std::to_string(lsn) +
                    ", which was durable");
    }
  }

  void judge_data() {
    const uint64_t vouched = log_.vouched_lsn(chain_end_);
    for (const LiveLog::Group& g : log_.groups) {
      if (g.last_lsn < g.first_lsn || g.last_lsn <= vouched) continue;
      auto hits = [&g](const DamagedBlocks& damaged) {
        return std::ranges::any_of(damaged, [&g](const auto& b) { return g.written.contains(b); });
      };
      const bool unreadable = hits(unreadable_);
      if (!unreadable && !hits(changed_)) continue;
      lose_from(g.first_lsn);
      if (unreadable && acknowledged_ >= g.first_lsn)
        allow_refusal("data of transaction " + std::to_string(g.first_lsn) + " is unreadable");
    }
  }

  const DiskImage& left_;
  const EngineOptions& options_;
  const LiveLog log_;
  const uint64_t acknowledged_;
  Bounds bounds_{.least_lsn = acknowledged_, .refusal = {}, .accepted_lsn = acknowledged_};
  unsigned labels_ = 0;
  std::set<size_t> damaged_groups_;
  size_t chain_end_ = 0;
  DamagedBlocks changed_, unreadable_;
};

}  // namespace

uint64_t LiveLog::vouched_lsn(size_t end) const {
  uint64_t lsn = applied_lsn;
  for (size_t i = 0; i < end; ++i) lsn = std::max(lsn, groups[i].watermark);
  return lsn;
}

namespace {

Result<std::unique_ptr<Table>> open_table(SimDisk& disk, const EngineOptions& o,
                                          SteppedThreads& threads) {
  TableOptions of_table;
  of_table.memtable_bytes = o.memtable_bytes;
  of_table.cache_bytes = o.table_cache_bytes;
  of_table.option_string = o.table_options;
  return Table::open(disk, of_table, threads);
}

}  // namespace

LiveLog read_live_log(const DiskImage& whole, const EngineOptions& o) {
  SimDisk disk(whole, Machine::capacity_bytes, 1);
  SteppedThreads threads;
  auto table = open_table(disk, o, threads);
  if (!table.ok()) throw Failure{"the table of a disk without damage: " + table.status().what()};
  LiveLog live;
  live.manifest = read_current(whole);
  std::string row;
  auto found = (*table)->get(Family::super, engine_rows::applied(), &row);
  if (found.ok() && *found) live.applied_lsn = engine_rows::decode_applied(row).value();
  row.clear();
  found = (*table)->get(Family::super, engine_rows::log_start(), &row);
  const auto start = LogPosition::decode(row);
  if (!found.ok() || !start) throw Failure{"a disk without damage has no row of the log's start"};
  std::vector<rocksdb::LiveFileMetaData> files;
  threads.table()->GetLiveFilesMetaData(&files);
  for (const auto& f : files) live.table_files[f.name.substr(1)] = family_of(f.column_family_name);
  read_chain(disk, o, *start, &live);
  return live;
}

Bounds bounds_of(const DiskImage& left, uint64_t acknowledged_lsn, const EngineOptions& options) {
  if (!left.is_damaged())
    return {.least_lsn = acknowledged_lsn, .refusal = {}, .accepted_lsn = acknowledged_lsn};
  return bounds_of(left, acknowledged_lsn, options, read_live_log(left.healed(), options));
}

Bounds bounds_of(const DiskImage& left, uint64_t acknowledged_lsn, const EngineOptions& options,
                 LiveLog whole) {
  Judge judge(left, acknowledged_lsn, options, std::move(whole));
  for (const auto& [path, id] : left.names())
    for (const auto& [block, damaged] : left.inode(id).damaged) judge.add(path, block, damaged);
  return judge.bounds();
}

bool can_read(const DiskImage& left, const EngineOptions& o, const RowRange& rows) {
  SimDisk disk(left, Machine::capacity_bytes, 1);
  SteppedThreads threads;
  auto table = open_table(disk, o, threads);
  if (!table.ok()) return false;
  if (rows.end.empty()) {
    std::string value;
    return (*table)->get(rows.family, rows.first, &value).ok();
  }
  const auto it = (*table)->iterate(rows.family, rows.first, rows.end);
  for (it->seek(rows.first); it->valid(); it->next()) {
  }
  return it->status().ok();
}

bool lost_table_file(const DiskImage& image, const std::string& name) {
  return image.lost_promises() && !image.lookup("table/" + name);
}

bool is_table_damaged(const DiskImage& image) {
  return std::ranges::any_of(image.names(), [&image](const auto& name) {
    return name.first.starts_with("table/") && !image.inode(name.second).damaged.empty();
  });
}

Damage damage_of(const DiskImage& image, rocksdb::DB* table) {
  Damage all;
  if (!image.is_damaged() && !image.lost_promises()) return all;
  std::set<std::string> files;
  for (const auto& [path, id] : image.all_names())
    for (const auto& [block, damaged] : image.inode(id).damaged) {
      if (path.starts_with("containers/"))
        (damaged.unreadable ? all.unreadable : all.blocks).insert({container_of(path), block});
      else if (path.starts_with("table/"))
        files.insert(path.substr(5));
    }
  if (!table) return all;
  std::vector<rocksdb::LiveFileMetaData> live;
  table->GetLiveFilesMetaData(&live);
  for (const auto& f : live)
    if (files.contains(f.name) || lost_table_file(image, f.name.substr(1)))
      all.rows[family_of(f.column_family_name)].emplace_back(f.smallestkey, f.largestkey);
  return all;
}

}  // namespace tablestore::sim
